//! Turns and conversations, as commands and the page ask for them.

use kai_assistant::agent::conversation::{self, ConversationId, Entry, Which};
use kai_assistant::agent::turn::End;
use kai_assistant::agent::{Answer, Driver, Face, Ready, TurnError};
use kai_assistant::db::DbError;
use kai_assistant::gate::{RunKind, Taint};
use kai_assistant::{heartbeat, lease};

use crate::call::{Around, AskAnswer};
use crate::failure::Failure;
use crate::models;
use crate::wire::App;

/// One turn. Dropping it cancels it.
pub(crate) async fn ask(
    app: &App,
    around: &Around,
    text: String,
    chat: Which,
    face: &dyn Face,
) -> Result<AskAnswer, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("There is nothing to ask: the text is empty."));
    }
    let models = models::ready(app, around).await?;
    told(driver(app, &models, face).turn(chat, text).await)
}

/// What was said last, answered once more.
pub(crate) async fn again(
    app: &App,
    around: &Around,
    chat: ConversationId,
    face: &dyn Face,
) -> Result<AskAnswer, Failure> {
    let models = models::ready(app, around).await?;
    told(driver(app, &models, face).again(chat).await)
}

fn driver<'a>(app: &'a App, models: &'a [Ready], face: &'a dyn Face) -> Driver<'a> {
    Driver {
        db: &app.db,
        clock: app.clock.as_ref(),
        toolbox: &app.toolbox,
        models,
        face,
        kind: RunKind::Chat,
        taint: Taint::Clean,
        shown: &[],
        platform: PLATFORM,
    }
}

fn told(answer: Result<Answer, TurnError>) -> Result<AskAnswer, Failure> {
    let answer = answer.map_err(|error| Failure::failed(error.to_string()))?;
    Ok(AskAnswer {
        text: answer.text,
        chat: answer.conversation,
        answered_by: answer.answered_by,
        end: match answer.end {
            End::Answered => "answered",
            End::OutOfRounds => "out_of_rounds",
            End::Repeating => "repeating",
        }
        .to_owned(),
        cut_off: answer.cut_off,
        tokens_in: answer.usage.input,
        tokens_out: answer.usage.output,
    })
}

pub(crate) const PLATFORM: &str =
    if cfg!(target_os = "android") { "Android (Termux)" } else { std::env::consts::OS };

pub(crate) async fn show(app: &App, id: ConversationId) -> Result<Vec<Entry>, Failure> {
    let entries = app.db.write(move |tx| {
        if conversation::is_heartbeat(tx, id)? {
            // Now it was looked at.
            heartbeat::store::lower(tx)?;
        }
        Ok::<_, DbError>(if conversation::exists(tx, id)? {
            Some(conversation::entries(tx, id)?)
        } else {
            None
        })
    });
    entries.await?.ok_or_else(|| Failure::failed(TurnError::Unknown(id).to_string()))
}

/// Not while it is being answered: the answer would have nowhere to go.
pub(crate) async fn delete(app: &App, id: ConversationId) -> Result<ConversationId, Failure> {
    let now = app.clock.now();
    let deleted = app.db.write(move |tx| {
        if lease::held(tx, &id.lease(), now)? {
            return Err(TurnError::Busy(id));
        }
        if conversation::delete(tx, id)? { Ok(id) } else { Err(TurnError::Unknown(id)) }
    });
    deleted.await.map_err(|error| Failure::failed(error.to_string()))
}
