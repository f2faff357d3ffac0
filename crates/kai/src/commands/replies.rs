//! The user's own answers to messages in the inbox. They become drafts, which wait for a tap like any other.

use kai_assistant::db::DbError;
use kai_assistant::inbox::{Key, NoReply};
use kai_assistant::outbox::DraftId;
use kai_assistant::outbox::store::{self as drafts, StageError};
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::inbox;
use crate::app::App;

/// The most characters in an answer, as in any draft.
const LONGEST: usize = 10_000;

/// Why an answer was not drafted.
#[derive(Debug)]
pub(crate) enum NotDrafted {
    Empty,
    TooLong,
    /// There is another message in this place by now.
    Changed,
    Impossible(NoReply),
    Stage(StageError),
}

impl From<DbError> for NotDrafted {
    fn from(error: DbError) -> Self {
        Self::Stage(StageError::Store(error))
    }
}

impl NotDrafted {
    pub(crate) fn said(&self) -> Said {
        match self {
            Self::Empty => said::inbox_reply_empty(),
            Self::TooLong => said::inbox_reply_long(),
            Self::Changed => said::inbox_reply_changed(),
            Self::Impossible(NoReply::Gone) => said::inbox_gone(),
            Self::Impossible(NoReply::Impossible(why)) => why.clone(),
            Self::Stage(StageError::Full | StageError::GuestFull) => said::inbox_reply_full(),
            Self::Impossible(NoReply::Store(error)) | Self::Stage(StageError::Store(error)) => error.said(),
        }
    }
}

/// Drafts the user's answer to a message. `date` is the message's as it was shown: phones use ids again.
pub(crate) async fn draft(app: &App, key: Key, date: i64, body: &str) -> Result<DraftId, NotDrafted> {
    let body = body.replace("\r\n", "\n").replace('\0', "").trim().to_owned();
    match body.chars().count() {
        0 => return Err(NotDrafted::Empty),
        1..=LONGEST => {}
        _ => return Err(NotDrafted::TooLong),
    }
    inbox::fetch(app, &key).await?;
    let (sources, now) = (app.inbox.clone(), app.clock.now());
    let staged = move |tx: &Transaction<'_>| {
        let gone = || NotDrafted::Impossible(NoReply::Gone);
        let source = sources.of(&key).ok_or_else(gone)?;
        let message = source.message(tx, &key.id, now)?.ok_or_else(gone)?;
        if message.item.date != date {
            return Err(NotDrafted::Changed);
        }
        let new = source.reply(tx, &key.id, body, now).map_err(NotDrafted::Impossible)?;
        drafts::stage_own(tx, &new, now).map(|draft| draft.id).map_err(NotDrafted::Stage)
    };
    app.db.write(staged).await
}

/// Why a message cannot be answered, if that is known before anything is typed.
pub(crate) async fn impossible(app: &App, key: Key) -> Result<Option<Said>, DbError> {
    let (sources, now) = (app.inbox.clone(), app.clock.now());
    let asked = move |tx: &Transaction<'_>| {
        let Some(source) = sources.of(&key) else { return Ok(None) };
        // Any text will do; an empty one would be refused for itself.
        match source.reply(tx, &key.id, "…".to_owned(), now) {
            Ok(_) | Err(NoReply::Gone) => Ok(None),
            Err(NoReply::Impossible(why)) => Ok(Some(why)),
            Err(NoReply::Store(error)) => Err(error),
        }
    };
    app.db.read(asked).await
}
