//! Stores what the user made of a draft. It stands beside the door because no tool holds that.

use jiff::Timestamp;
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::{Door, mark_orphans_unknown};
use crate::db::DbError;
use crate::ledger::{self, Record};
use crate::outbox::edit::{Edit, Unfit, edited, goes_elsewhere};
use crate::outbox::{Draft, DraftId, store};

/// Why a draft was not edited.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum NotEdited {
    Unknown(DraftId),
    Unfit(#[from] Unfit),
    Store(#[from] DbError),
}

impl NotEdited {
    pub fn said(&self) -> Said {
        match self {
            Self::Unknown(_) => said::drafts_refused_gone(),
            Self::Unfit(why) => why.said(),
            Self::Store(error) => error.said(),
        }
    }
}

impl Door {
    /// Edits a draft. `known_contact` says whether the number or all of the addresses that were typed have written to the
    /// user.
    pub async fn edit(&self, edit: Edit, known_contact: bool) -> Result<Draft, NotEdited> {
        // What the user has sent on the phone meanwhile is not edited any more.
        self.settle_composed(edit.draft).await?;
        let now = self.clock.now();
        self.db.write(move |tx| rewrite(tx, &edit, known_contact, now)).await
    }
}

/// Compares, rewrites and records in one transaction, so that of two people who edit at once one is refused.
fn rewrite(
    tx: &Transaction<'_>,
    edit: &Edit,
    known_contact: bool,
    now: Timestamp,
) -> Result<Draft, NotEdited> {
    mark_orphans_unknown(tx, now)?;
    let before = store::get(tx, edit.draft)?.ok_or(NotEdited::Unknown(edit.draft))?;
    let mut after = edited(&before, edit)?;
    if after.digest() == before.digest() {
        return Ok(before);
    }
    if goes_elsewhere(&before, &after) {
        after.first_contact =
            !known_contact && !store::reached_before(tx, after.channel, &after.everybody())?;
    }
    store::rewrite(tx, &before, &after)?;
    let record = Record::Edited {
        draft: after.id.0,
        to: after.everybody(),
        before: before.digest(),
        digest: after.digest(),
    };
    ledger::append(tx, &record, now)?;
    Ok(after)
}
