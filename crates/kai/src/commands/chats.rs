//! Runs turns, and lists, shows and deletes conversations.

use jiff::Timestamp;
use kai_assistant::agent::conversation::{self, Conversation, ConversationId, Entry, Which, Whole};
use kai_assistant::agent::{Answer, Face, TurnError, reports};
use kai_assistant::attachments::store::StagedId;
use kai_assistant::attachments::{self, Prepared, Refused};
use kai_assistant::db::DbError;
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::{heartbeat, lease};
use rusqlite::Transaction;

use crate::app::App;
use crate::call::chats::{AskAnswer, AskFile, ChatRow};
use crate::caller_env::CallerEnv;
use crate::commands::models::{self, Unready};
use crate::failure::Failure;

/// Why a message was not answered, as commands say it. The page has words of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("The question is empty. Type it after the command, for example: kai ask \"What day is it?\"")]
    Empty,
    /// A file could not be attached.
    #[error("{}", .0.said())]
    File(Refused),
    #[error(transparent)]
    Unready(#[from] Unready),
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl From<Unanswered> for Failure {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Empty => Self::usage(why.to_string()),
            Unanswered::File(refused) => refused.into(),
            Unanswered::Unready(unready) => unready.into(),
            Unanswered::Turn(error) => error.into(),
        }
    }
}

/// What the user says: words, files, or both.
pub(crate) struct Saying {
    pub(crate) text: String,
    pub(crate) files: Vec<StagedId>,
}

/// Runs one turn. Dropping the future cancels it.
pub(crate) async fn ask(
    app: &App,
    env: &CallerEnv,
    saying: Saying,
    chat: Which,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    let Saying { text, files } = saying;
    if text.trim().is_empty() && files.is_empty() {
        return Err(Unanswered::Empty);
    }
    let models = models::ready(app, env).await?;
    let driver = app.driver(&models, face, RunKind::Chat, Level::Nothing);
    Ok(ask_answer(driver.turn_with(chat, text, files).await?))
}

/// Runs one turn with files that a command has read.
pub(crate) async fn ask_with(
    app: &App,
    env: &CallerEnv,
    text: String,
    chat: Which,
    files: Vec<AskFile>,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    if files.len() > attachments::MOST {
        return Err(Unanswered::File(Refused::TooMany));
    }
    let mut staged = vec![];
    for AskFile { name, bytes } in files {
        let prepared = attachments::prepare(name, bytes).await.map_err(Unanswered::File)?;
        staged.push(stage(app, prepared).await.map_err(TurnError::Store)?);
    }
    let answered = ask(app, env, Saying { text, files: staged.clone() }, chat, face).await;
    if answered.is_err() {
        // The command cannot send them again. Those that are in a message by now do not wait any more.
        let unstaged = move |tx: &Transaction<'_>| {
            staged.iter().try_for_each(|file| attachments::store::unstage(tx, *file))
        };
        app.db.write(unstaged).await.map_err(TurnError::Store)?;
    }
    answered
}

/// Keeps a file until its message is sent.
pub(crate) async fn stage(app: &App, prepared: Prepared) -> Result<StagedId, DbError> {
    let now = app.clock.now();
    app.db.write(move |tx| attachments::store::stage(tx, &prepared, now)).await
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

/// Answers the last message of a conversation again, without showing the model any picture.
pub(crate) async fn again_without_pictures(
    app: &App,
    env: &CallerEnv,
    chat: ConversationId,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    let models = models::ready(app, env).await?;
    let driver = app.driver(&models, face, RunKind::Chat, Level::Nothing);
    Ok(ask_answer(driver.again_without_pictures(chat).await?))
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
    Ok(rows(app, app.db.read(conversation::list).await?))
}

/// The conversations that contain this text.
pub(crate) async fn search(app: &App, text: String) -> Result<Vec<ChatRow>, DbError> {
    Ok(rows(app, app.db.read(move |tx| conversation::search(tx, &text)).await?))
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
        let whole = conversation::with_contents(tx, whole)?;
        conversation::delete(tx, id)?;
        Ok(whole)
    };
    app.db.write(delete).await
}
