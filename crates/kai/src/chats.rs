//! Turns and conversations, as commands and the page ask for them.

use std::sync::PoisonError;

use kai_assistant::agent::conversation::{self, ConversationId, Entry};
use kai_assistant::agent::turn::End;
use kai_assistant::agent::{Driver, Face, TurnError};
use kai_assistant::db::DbError;
use kai_assistant::gate::RunKind;

use crate::call::{AskAnswer, Chat};
use crate::failure::Failure;
use crate::models;
use crate::wire::App;

/// One turn. Dropping it cancels it.
pub(crate) async fn ask(app: &App, text: String, chat: Chat, face: &dyn Face) -> Result<AskAnswer, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("There is nothing to ask: the text is empty."));
    }
    let models = models::ready(app).await?;
    let conversation = meant(app, chat).await?;
    let _turn = Turn::take(app, conversation)?;
    let driver = Driver {
        db: &app.db,
        clock: app.clock.as_ref(),
        toolbox: &app.toolbox,
        models: &models,
        face,
        kind: RunKind::Chat,
        conversation,
        platform: PLATFORM,
    };
    let answer = driver.turn(text).await.map_err(|error| failure(&error))?;
    Ok(AskAnswer {
        text: answer.text,
        chat: conversation,
        answered_by: answer.answered_by,
        end: match answer.end {
            End::Answered => "answered",
            End::OutOfRounds => "out_of_rounds",
            End::Repeating => "repeating",
        }
        .to_owned(),
        tokens_in: answer.usage.input,
        tokens_out: answer.usage.output,
    })
}

const PLATFORM: &str = if cfg!(target_os = "android") { "Android (Termux)" } else { std::env::consts::OS };

fn failure(error: &TurnError) -> Failure {
    match error {
        TurnError::Model { label, error } => Failure::failed(format!("{label}: {error}")),
        TurnError::NoModel | TurnError::Empty { .. } | TurnError::Store(_) => {
            Failure::failed(error.to_string())
        }
    }
}

async fn meant(app: &App, chat: Chat) -> Result<ConversationId, Failure> {
    let now = app.clock.now();
    let found = app.db.write(move |tx| match chat {
        Chat::New => conversation::create(tx, now).map(Some),
        Chat::Newest => match conversation::newest(tx)? {
            Some(newest) => Ok(Some(newest)),
            None => conversation::create(tx, now).map(Some),
        },
        Chat::Id(id) => Ok::<_, DbError>(conversation::exists(tx, id)?.then_some(id)),
    });
    found.await?.ok_or_else(|| unknown(chat))
}

fn unknown(chat: Chat) -> Failure {
    let which = if let Chat::Id(id) = chat { format!(" number {}", id.0) } else { String::new() };
    Failure::failed(format!("There is no conversation{which}. See: kai chats list"))
}

/// One turn at a time in a conversation; given back when dropped.
struct Turn<'a> {
    app: &'a App,
    conversation: ConversationId,
}

impl<'a> Turn<'a> {
    fn take(app: &'a App, conversation: ConversationId) -> Result<Self, Failure> {
        let mut busy = app.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if !busy.insert(conversation) {
            let id = conversation.0;
            return Err(Failure::failed(format!(
                "Conversation {id} is being answered right now. Wait for it, or start another."
            )));
        }
        Ok(Self { app, conversation })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.app.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.conversation);
    }
}

pub(crate) async fn show(app: &App, id: ConversationId) -> Result<Vec<Entry>, Failure> {
    let entries = app.db.read(move |tx| {
        Ok::<_, DbError>(if conversation::exists(tx, id)? {
            Some(conversation::entries(tx, id)?)
        } else {
            None
        })
    });
    entries.await?.ok_or_else(|| unknown(Chat::Id(id)))
}

pub(crate) async fn delete(app: &App, id: ConversationId) -> Result<ConversationId, Failure> {
    if app.db.write(move |tx| conversation::delete(tx, id)).await? {
        Ok(id)
    } else {
        Err(unknown(Chat::Id(id)))
    }
}
