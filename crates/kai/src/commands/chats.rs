//! Runs turns, and lists, shows, names, pins, exports and deletes conversations.

mod markdown;

use jiff::Timestamp;
use kai_assistant::agent::conversation::{self, Conversation, ConversationId, Entry, Which, Whole};
use kai_assistant::agent::{Answer, Face, TurnError, listing, reports};
use kai_assistant::db::DbError;
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::{heartbeat, lease, transfer};
use kai_words::Lang;
use rusqlite::Transaction;

use crate::app::App;
use crate::call::chats::{AskAnswer, ChatFile, ChatRow};
use crate::caller_env::CallerEnv;
use crate::commands::models::{self, Unready};
use crate::failure::Failure;

/// Why a message was not answered, as commands say it. The page has words of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("The question is empty. Type it after the command, for example: kai ask \"What day is it?\"")]
    Empty,
    #[error(transparent)]
    Unready(#[from] Unready),
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl From<Unanswered> for Failure {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Empty => Self::usage(why.to_string()),
            Unanswered::Unready(unready) => unready.into(),
            Unanswered::Turn(error) => error.into(),
        }
    }
}

/// Runs one turn. Dropping the future cancels it.
pub(crate) async fn ask(
    app: &App,
    env: &CallerEnv,
    text: String,
    chat: Which,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    if text.trim().is_empty() {
        return Err(Unanswered::Empty);
    }
    let models = models::ready(app, env).await?;
    Ok(ask_answer(app.driver(&models, face, RunKind::Chat, Level::Nothing).turn(chat, text).await?))
}

/// Runs one turn in a new conversation whose first message quotes others' messages, which the ledger knows by these
/// names.
pub(crate) async fn ask_about(
    app: &App,
    env: &CallerEnv,
    text: String,
    quotes: Vec<String>,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    let models = models::ready(app, env).await?;
    let driver = app.driver(&models, face, RunKind::Chat, Level::People);
    Ok(ask_answer(driver.turn_about(Which::New, text, quotes).await?))
}

/// Answers the last message of a conversation again.
pub(crate) async fn again(
    app: &App,
    env: &CallerEnv,
    chat: ConversationId,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    let models = models::ready(app, env).await?;
    Ok(ask_answer(app.driver(&models, face, RunKind::Chat, Level::Nothing).again(chat).await?))
}

fn ask_answer(answer: Answer) -> AskAnswer {
    AskAnswer {
        text: answer.text,
        chat: answer.conversation,
        answered_by: answer.answered_by,
        end: answer.end,
        cut_off: answer.cut_off,
        tokens_in: answer.usage.input,
        tokens_out: answer.usage.output,
    }
}

/// All conversations, newest first.
pub(crate) async fn list(app: &App) -> Result<Vec<ChatRow>, DbError> {
    Ok(rows(app, app.db.read(listing::list).await?))
}

/// The conversations that contain this text.
pub(crate) async fn search(app: &App, text: String) -> Result<Vec<ChatRow>, DbError> {
    let found = app.db.read(move |tx| listing::search(tx, &text, usize::MAX)).await?;
    Ok(rows(app, found.rows.into_iter().map(|found| found.chat).collect()))
}

fn rows(app: &App, all: Vec<Conversation>) -> Vec<ChatRow> {
    let row = |conversation: Conversation| {
        let at = Timestamp::from_millisecond(conversation.updated_at).unwrap_or_default();
        let updated_local = app.local(at);
        ChatRow { conversation, updated_local }
    };
    all.into_iter().map(row).collect()
}

pub(crate) async fn show(app: &App, id: ConversationId) -> Result<Vec<Entry>, Failure> {
    let now = app.clock.now();
    let entries = app.db.write(move |tx| {
        if conversation::is_heartbeat(tx, id)? {
            reports::land(tx, now)?;
            // The report has been read now.
            heartbeat::store::lower(tx)?;
        }
        Ok::<_, DbError>(if conversation::exists(tx, id)? {
            Some(conversation::entries(tx, id)?)
        } else {
            None
        })
    });
    entries.await?.ok_or_else(|| TurnError::Unknown(id).into())
}

/// Names a conversation as the user typed it; with nothing typed, its first words are its title again.
pub(crate) async fn rename(app: &App, id: ConversationId, typed: &str) -> Result<ConversationId, Failure> {
    let name = conversation::name(typed).map_err(Failure::failed)?;
    changed(app, id, move |tx| listing::set_name(tx, id, name.as_deref())).await
}

/// Pins a conversation, or unpins it.
pub(crate) async fn pin(app: &App, id: ConversationId, pinned: bool) -> Result<ConversationId, Failure> {
    changed(app, id, move |tx| listing::set_pinned(tx, id, pinned)).await
}

/// Makes a change that returns whether there is such a conversation.
async fn changed(
    app: &App,
    id: ConversationId,
    change: impl FnOnce(&Transaction<'_>) -> Result<bool, DbError> + Send + 'static,
) -> Result<ConversationId, Failure> {
    if app.db.write(change).await? { Ok(id) } else { Err(TurnError::Unknown(id).into()) }
}

/// A conversation as a Markdown file, without the codes that are kept from files.
pub(crate) async fn export(app: &App, id: ConversationId, lang: Lang) -> Result<ChatFile, Failure> {
    let whole = app.db.read(move |tx| transfer::conversation(tx, id)).await?.ok_or(TurnError::Unknown(id))?;
    let text = markdown::markdown(&whole, lang, &app.clock.zone(), app.clock.now());
    Ok(ChatFile { id, file: markdown::file_name(whole.called()), text })
}

pub(crate) async fn delete(app: &App, id: ConversationId) -> Result<ConversationId, Failure> {
    take_away(app, id).await?;
    Ok(id)
}

/// Deletes a conversation and returns it, so that it can be restored. Refused while a turn is running in it, whose
/// answer would have nowhere to go.
pub(crate) async fn take_away(app: &App, id: ConversationId) -> Result<Whole, TurnError> {
    let now = app.clock.now();
    let delete = move |tx: &Transaction<'_>| {
        if lease::held(tx, &id.lease(), now)? {
            return Err(TurnError::Busy(id));
        }
        let whole = conversation::whole(tx, id)?.ok_or(TurnError::Unknown(id))?;
        conversation::delete(tx, id)?;
        Ok(whole)
    };
    app.db.write(delete).await
}
