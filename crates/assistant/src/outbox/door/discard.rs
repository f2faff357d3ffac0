//! Discards drafts, and takes that back.

use jiff::Timestamp;
use rusqlite::Transaction;

use super::{Door, Refused, mark_orphans_unknown};
use crate::db::DbError;
use crate::ledger::{self, Record};
use crate::outbox::{Draft, DraftId, Status, discarded, store};

impl Door {
    /// Discards a draft without sending it. Refuses if it is being sent.
    pub async fn discard(&self, id: DraftId) -> Result<Draft, Refused> {
        let now = self.clock.now();
        self.db
            .write(move |tx| {
                begin(tx, now)?;
                discard(tx, id, now)
            })
            .await
    }

    /// Discards those of these drafts that were not sent and are not being sent. Returns them; one that is gone already
    /// is left out.
    pub async fn discard_all(&self, ids: Vec<DraftId>) -> Result<Vec<Draft>, DbError> {
        let now = self.clock.now();
        let discarded = move |tx: &Transaction<'_>| {
            begin(tx, now)?;
            let mut gone = vec![];
            for id in ids {
                if store::get(tx, id)?.is_some_and(|draft| matches!(draft.status, Status::Sent(_))) {
                    continue;
                }
                match discard(tx, id, now) {
                    Ok(draft) => gone.push(draft),
                    Err(Refused::Store(error)) => return Err(error),
                    Err(_) => {}
                }
            }
            Ok(gone)
        };
        self.db.write(discarded).await
    }

    /// Puts discarded drafts back as they were. Returns them; one that is gone for good is left out.
    pub async fn restore(&self, ids: Vec<DraftId>) -> Result<Vec<Draft>, DbError> {
        let now = self.clock.now();
        let restored = move |tx: &Transaction<'_>| {
            let mut back = vec![];
            for id in ids {
                if discarded::take(tx, id, now)? {
                    ledger::append(tx, &Record::Undiscarded { draft: id.0 }, now)?;
                    back.extend(store::get(tx, id)?);
                }
            }
            Ok(back)
        };
        self.db.write(restored).await
    }
}

fn begin(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    discarded::sweep(tx, now)?;
    mark_orphans_unknown(tx, now)
}

/// A draft that was sent is only dismissed; nobody needs it back.
fn discard(tx: &Transaction<'_>, id: DraftId, now: Timestamp) -> Result<Draft, Refused> {
    let draft = store::get(tx, id)?.ok_or(Refused::Unknown(id))?;
    match draft.status {
        Status::Sending => return Err(Refused::Sending),
        Status::Sent(_) => store::delete(tx, id)?,
        Status::Pending | Status::Failed(_) | Status::Unknown(_) => discarded::put(tx, id, now)?,
    }
    let status = draft.status.state().as_str().to_owned();
    ledger::append(tx, &Record::Discarded { draft: id.0, status }, now)?;
    Ok(draft)
}
