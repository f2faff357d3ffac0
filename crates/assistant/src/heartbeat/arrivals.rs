//! What waits in a queue for the next heartbeat, and what of it a run showed.

use rusqlite::Transaction;

use crate::db::DbError;
use crate::pending::{self, Queue};
use crate::untrusted::Untrusted;

/// The waiting items of one queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrivals {
    /// Oldest first.
    pub items: Vec<Arrival>,
    /// How many items the full queue dropped since this was last reported, by source.
    pub dropped: Vec<(String, u32)>,
}

/// An SMS or a notification that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    pub seq: i64,
    /// The sender or the app; shown in bold.
    pub who: Untrusted,
    /// Shown after `who`; may be blank.
    pub title: Untrusted,
    pub id: String,
    /// Its identity in the ledger.
    pub identity: String,
    pub text: Untrusted,
    pub sensitive: bool,
    /// It seems to come from a person rather than a service.
    pub personal: bool,
    /// It comes from a contact, or from somebody to whom the user has written.
    pub known: bool,
}

impl Arrivals {
    /// Marks these items as being shown by a run that begins. One that the full queue drops meanwhile counts as dropped
    /// unless the run showed it.
    pub(super) fn begin(&self, tx: &Transaction<'_>, queue: Option<Queue>) -> Result<(), DbError> {
        let Some(queue) = queue else { return Ok(()) };
        let seqs: Vec<i64> = self.items.iter().map(|item| item.seq).collect();
        pending::show(tx, queue, &seqs)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.dropped.is_empty()
    }

    /// The items that fit into `room`, oldest first, and how many do not. Items from people are chosen before those
    /// from services, and newer ones before older ones.
    pub(super) fn fitting(&self, room: usize, length: impl Fn(&Arrival) -> usize) -> (Vec<&Arrival>, usize) {
        let mut chosen: Vec<(usize, &Arrival)> = self.items.iter().enumerate().collect();
        chosen.sort_by_key(|(at, item)| (!item.personal, std::cmp::Reverse(*at)));
        let mut left = room;
        let fits = chosen.iter().take_while(|(_, item)| match left.checked_sub(length(item)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        // Show at least one: its length is bounded, and a queue of which nothing is shown would never empty.
        let shown = fits.count().max(1).min(chosen.len());
        chosen.truncate(shown);
        chosen.sort_by_key(|(at, _)| *at);
        (chosen.into_iter().map(|(_, item)| item).collect(), self.items.len() - shown)
    }
}

/// What a run showed of one queue, to be removed once the run is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    pub seqs: Vec<i64>,
    /// Their identities in the ledger.
    pub identities: Vec<String>,
}

impl Shown {
    /// Removes the shown items after the run was answered. If the feature was disabled meanwhile, the queue is kept.
    pub(super) fn answered(
        &self,
        tx: &Transaction<'_>,
        queue: Option<Queue>,
        still: FeatureState,
    ) -> Result<(), DbError> {
        let Some(queue) = queue else { return Ok(()) };
        pending::shown(tx, queue, &self.seqs)?;
        if still == FeatureState::Off {
            return Ok(());
        }
        pending::forget(tx, queue, &self.seqs)?;
        pending::forget_reported_drops(tx, queue)
    }
}

/// Whether the feature is enabled when the run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FeatureState {
    On,
    Off,
}

impl FeatureState {
    pub(super) fn of(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}
