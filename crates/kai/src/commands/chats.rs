//! Runs turns, and lists, shows, names, pins, exports and deletes conversations.

mod markdown;

use jiff::Timestamp;
use kai_assistant::agent::conversation::{self, Conversation, ConversationId, Entry, Which};
pub(crate) use kai_assistant::agent::deleted::Deleted as TakenAway;
use kai_assistant::agent::queued::{self, Queued, QueuedId};
use kai_assistant::agent::{Answer, Face, Saying, TurnError, deleted, listing, reports, search};
use kai_assistant::attachments::store::StagedId;
use kai_assistant::attachments::{self, Prepared, Refused};
use kai_assistant::db::DbError;
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::{heartbeat, lease, transfer};
use kai_words::Lang;
use rusqlite::Transaction;

use crate::app::App;
use crate::call::chats::{AskAnswer, AskFile, ChatFile, ChatRow};
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

/// Runs one turn. Dropping the future cancels it.
pub(crate) async fn ask(
    app: &App,
    env: &CallerEnv,
    said: Saying,
    chat: Which,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    if said.is_empty() {
        return Err(Unanswered::Empty);
    }
    let chosen = match &said.model {
        Some(model) => Some(model.clone()),
        None => chosen(app, chat).await?,
    };
    let models = models::ready_for(app, env, chosen).await?;
    Ok(ask_answer(app.driver(&models, face, RunKind::Chat, Level::Nothing).turn(chat, said).await?))
}

/// The model that the user chose for this conversation.
async fn chosen(app: &App, chat: Which) -> Result<Option<String>, Unready> {
    let read = move |tx: &Transaction<'_>| {
        let id = match chat {
            Which::New | Which::Question => None,
            Which::Newest => conversation::newest(tx)?,
            Which::Id(id) => Some(id),
        };
        id.map_or(Ok(None), |id| conversation::model(tx, id))
    };
    app.db.read(read).await.map_err(|error: DbError| error.into())
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
    let said = Saying { files: staged.clone(), ..Saying::from(text) };
    let answered = ask(app, env, said, chat, face).await;
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
    Ok(ask_answer(driver.turn(Which::New, Saying { quotes, ..Saying::from(text) }).await?))
}

/// How to go on in a conversation without saying something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GoOn {
    /// Answers the last message again.
    Again,
    /// The same, without showing the model any picture.
    WithoutPictures,
    /// Goes on with the answer that was stopped.
    Continued,
    /// Sends the first message that is queued. If one is meant, it has to be that.
    Queued(Option<QueuedId>),
    /// Replaces the words of the last message, which is the one that was seen.
    Rewritten { seen: String, words: String },
}

/// Runs one turn in a conversation without a new message.
pub(crate) async fn go_on(
    app: &App,
    env: &CallerEnv,
    chat: ConversationId,
    how: GoOn,
    face: &dyn Face,
) -> Result<AskAnswer, Unanswered> {
    let models = models::ready_for(app, env, chosen(app, Which::Id(chat)).await?).await?;
    let driver = app.driver(&models, face, RunKind::Chat, Level::Nothing);
    Ok(ask_answer(match how {
        GoOn::Again => driver.again(chat).await?,
        GoOn::WithoutPictures => driver.again_without_pictures(chat).await?,
        GoOn::Continued => driver.continued(chat).await?,
        GoOn::Queued(meant) => driver.queued(chat, meant).await?,
        GoOn::Rewritten { words, .. } if words.trim().is_empty() => return Err(Unanswered::Empty),
        GoOn::Rewritten { seen, words } => driver.rewritten(chat, seen, words).await?,
    }))
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
    let found = app.db.read(move |tx| search::search(tx, &text, usize::MAX)).await?;
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

/// Deletes a conversation for a command, which can take it back for a moment ([`undelete`]).
pub(crate) async fn delete(app: &App, id: ConversationId) -> Result<ConversationId, Failure> {
    let now = app.clock.now();
    let delete = move |tx: &Transaction<'_>| {
        let taken = take(tx, id, now)?;
        deleted::keep(tx, &taken, now).map_err(TurnError::Store)
    };
    app.db.write(delete).await?;
    Ok(id)
}

/// Restores the conversation that a command deleted last, under a new id.
pub(crate) async fn undelete(app: &App) -> Result<ConversationId, Failure> {
    let now = app.clock.now();
    let restore = move |tx: &Transaction<'_>| {
        let taken = deleted::take_newest(tx, now)?;
        taken.map(|taken| give_back(tx, &taken, now)).transpose()
    };
    let restored: Option<_> = app.db.write(restore).await.map_err(|error: DbError| error)?;
    restored.ok_or_else(|| {
        Failure::failed("No chat was deleted within the last minute, so there is nothing to take back.")
    })
}

/// Deletes a conversation and returns it, so that it can be restored. Refused while a turn is running in it, whose
/// answer would have nowhere to go.
pub(crate) async fn take_away(app: &App, id: ConversationId) -> Result<TakenAway, TurnError> {
    let now = app.clock.now();
    app.db.write(move |tx| take(tx, id, now)).await
}

fn take(tx: &Transaction<'_>, id: ConversationId, now: Timestamp) -> Result<TakenAway, TurnError> {
    if lease::held(tx, &id.lease(), now)? {
        return Err(TurnError::Busy(id));
    }
    let whole = conversation::whole(tx, id)?.ok_or(TurnError::Unknown(id))?;
    let whole = conversation::with_contents(tx, whole)?;
    let queued = queued::all(tx, id)?.into_iter().map(|queued| with_files(tx, queued));
    let queued = queued.collect::<Result<_, DbError>>()?;
    conversation::delete(tx, id)?;
    Ok(TakenAway { whole, queued })
}

fn with_files(tx: &Transaction<'_>, queued: Queued) -> Result<(String, Vec<Prepared>), DbError> {
    let mut files = vec![];
    for file in attachments::store::staged(tx, &queued.files)?.unwrap_or_default() {
        if let Some(bytes) = attachments::store::bytes(tx, &file.hash)? {
            files.push(Prepared { file, bytes });
        }
    }
    Ok((queued.text, files))
}

/// Restores a conversation that was deleted, under a new id.
pub(crate) async fn put_back(app: &App, taken: TakenAway) -> Result<ConversationId, DbError> {
    let now = app.clock.now();
    app.db.write(move |tx| give_back(tx, &taken, now)).await
}

fn give_back(tx: &Transaction<'_>, taken: &TakenAway, now: Timestamp) -> Result<ConversationId, DbError> {
    let id = conversation::restore(tx, &taken.whole)?;
    for (text, files) in &taken.queued {
        let files = files.iter().map(|file| attachments::store::stage(tx, file, now));
        queued::add(tx, id, text, &files.collect::<Result<Vec<_>, DbError>>()?)?;
    }
    Ok(id)
}

/// Chooses the model that answers in a conversation; `None` for the usual order.
pub(crate) async fn choose_model(
    app: &App,
    id: ConversationId,
    model: Option<String>,
) -> Result<(), TurnError> {
    let chosen = app.db.write(move |tx| conversation::set_model(tx, id, model.as_deref())).await?;
    if chosen { Ok(()) } else { Err(TurnError::Unknown(id)) }
}
