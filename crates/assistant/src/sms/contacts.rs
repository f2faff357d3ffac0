//! Reads the contacts of the phone that Kai runs on: as soon as the user wants names, and then once an hour.

use std::sync::Arc;

use jiff::Timestamp;
use kai_words::{Said, said};
use rusqlite::Transaction;
use tokio::sync::Mutex;

use super::inbox::Inbox;
use super::port::ReadError;
use super::{due, names};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::phones::port::Contact;
use crate::source::SourceId;

/// The contacts of the phone that Kai runs on.
pub struct ContactBook {
    db: Db,
    clock: Arc<dyn Clock>,
    inbox: Arc<Inbox>,
    /// Held while the phone is asked.
    asking: Mutex<()>,
}

impl ContactBook {
    pub fn new(db: Db, clock: Arc<dyn Clock>, inbox: Arc<Inbox>) -> Self {
        Self { db, clock, inbox, asking: Mutex::default() }
    }

    /// Asks the phone for its contacts if names are on and it is time to, unless it is being asked already. A failure
    /// is noted, and the names that are there stay.
    pub async fn read_if_due(&self) -> Result<(), DbError> {
        let Ok(_alone) = self.asking.try_lock() else { return Ok(()) };
        let now = self.clock.now();
        if !self.db.read(move |tx| is_due(tx, now)).await? {
            return Ok(());
        }
        let answer = self.inbox.contacts().await;
        self.db.write(move |tx| settle(tx, &answer, now)).await
    }
}

fn is_due(tx: &Transaction<'_>, now: Timestamp) -> Result<bool, DbError> {
    let last = names::last_read(tx, SourceId::HERE)?.map(|last| last.at);
    Ok(due::contacts_are_due(last, now) && names::is_on(tx, SourceId::HERE)?)
}

/// Keeps the answer, unless names were turned off meanwhile.
fn settle(
    tx: &Transaction<'_>,
    answer: &Result<Vec<Contact>, ReadError>,
    now: Timestamp,
) -> Result<(), DbError> {
    if !names::is_on(tx, SourceId::HERE)? {
        return Ok(());
    }
    if let Ok(contacts) = answer {
        names::replace(tx, SourceId::HERE, contacts)?;
    }
    names::note_read(tx, SourceId::HERE, now, answer.as_ref().err().map(why).as_ref())
}

/// What went wrong, and what the user can do.
fn why(error: &ReadError) -> Said {
    match error {
        ReadError::NotPermitted(what_to_do) => said::access_not_granted_yet(what_to_do),
        ReadError::Failed(why) => why.clone(),
    }
}
