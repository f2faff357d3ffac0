//! What is being told right now, and when to try again what nobody could be told.
//!
//! The marks of a report and of drafts are cleared before their notification is shown, and kept here as long as it is
//! under way. Clearing them afterwards would repeat a notification after every death that showing it causes; clearing
//! them for good would lose it with the first failure. So:
//!
//! - If it cannot be shown, we know that nobody saw it: the marks are set again, for a try after a pause.
//! - If nobody says in time whether it was shown, or Kai dies meanwhile, we do not know. The marks are set again, but only
//!   once, so the worst is one notification that is shown twice.

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::reports;
use kai_assistant::db::DbError;
use kai_assistant::device::alarm::patience;
use kai_assistant::lease::{self, Lease};
use kai_assistant::outbox::{DraftId, store as outbox};
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use crate::app::facts::{recall, remember};

/// The marks of what needs a notification.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marks {
    /// The entry of the newest report.
    report: Option<i64>,
    drafts: Vec<DraftId>,
}

impl Marks {
    pub(super) fn now(tx: &Transaction<'_>) -> Result<Self, DbError> {
        Ok(Self { report: reports::unnotified(tx)?, drafts: outbox::unannounced(tx)? })
    }

    /// Sets the marks again, except for what was seen, sent or replaced by something newer meanwhile.
    fn put_back(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.report.map_or(Ok(()), |entry| reports::put_back_unnotified(tx, entry))?;
        outbox::put_back_unannounced(tx, &self.drafts)
    }

    fn without(&self, others: &Self) -> Self {
        Self {
            report: self.report.filter(|entry| others.report != Some(*entry)),
            drafts: self.drafts.iter().filter(|draft| !others.drafts.contains(draft)).copied().collect(),
        }
    }
}

/// How showing a notification went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Yes,
    No,
    /// Nobody said so in time.
    Perhaps,
}

/// A notification that is being shown. As long as this exists, nothing else is told.
#[derive(Debug)]
pub(super) struct Telling {
    marks: Marks,
    lease: Lease,
}

/// What is remembered between two looks around, and over a death.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    /// What is being shown.
    under_way: Option<Marks>,
    /// What was being shown when Kai died, or nobody said that it was, so that it may have been seen already.
    may_be_seen: Marks,
    /// How many attempts in a row failed, and when the last one did, in milliseconds.
    failures: u32,
    failed_at: Option<i64>,
}

const FACT: &str = "telling";
const LEASE: &str = "telling";
/// Longer than any notification takes. Within this process, the lease ends with the [`Telling`].
const LIFE: SignedDuration = SignedDuration::from_mins(5);

impl State {
    fn load(tx: &Transaction<'_>) -> Result<Self, DbError> {
        let stored = recall(tx, FACT)?;
        Ok(stored.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }

    fn save(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        remember(tx, FACT, &serde_json::to_string(self).unwrap_or_default())
    }

    /// Whether the last attempt failed too recently. The pauses are those of alarms that fail to ring. A clock that was
    /// set back must not make one longer.
    fn is_paused(&self, now: Timestamp) -> bool {
        let Some(failed) = self.failed_at.and_then(|ms| Timestamp::from_millisecond(ms).ok()) else {
            return false;
        };
        let pause = SignedDuration::try_from(patience(self.failures)).unwrap_or_default();
        let since = now.duration_since(failed);
        since >= SignedDuration::ZERO && since < pause
    }
}

/// Whether something may be told now: nothing is being told, and no pause is under way. Sets the marks again of what was
/// being told when Kai died, except for what was already told again after a death.
pub(super) fn is_free(tx: &Transaction<'_>, now: Timestamp) -> Result<bool, DbError> {
    if lease::held(tx, LEASE, now)? {
        return Ok(false);
    }
    let state = State::load(tx)?;
    if state.is_paused(now) {
        return Ok(false);
    }
    let Some(marks) = state.under_way else { return Ok(true) };
    marks.without(&state.may_be_seen).put_back(tx)?;
    State { under_way: None, may_be_seen: marks, ..state }.save(tx)?;
    Ok(true)
}

/// Forgets failures and deaths, because nothing waits to be told.
pub(super) fn forget(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("DELETE FROM daemon WHERE fact = ?1", [FACT])?;
    Ok(())
}

impl Telling {
    /// Begins to tell what had these marks, in the transaction that clears them and that found [`is_free`].
    pub(super) fn begin(tx: &Transaction<'_>, marks: Marks, now: Timestamp) -> Result<Option<Self>, DbError> {
        State { under_way: Some(marks.clone()), ..State::load(tx)? }.save(tx)?;
        Ok(lease::take(tx, LEASE, now, LIFE)?.map(|lease| Self { marks, lease }))
    }

    /// Ends it. What was not shown gets its marks again, and what may have been shown gets them once.
    pub(super) fn end(&self, tx: &Transaction<'_>, shown: Shown, now: Timestamp) -> Result<(), DbError> {
        let before = State::load(tx)?;
        let (failures, failed_at) = (before.failures.saturating_add(1), Some(now.as_millisecond()));
        let failed = State { under_way: None, failures, failed_at, ..before };
        match shown {
            Shown::Yes => forget(tx)?,
            Shown::No => {
                self.marks.put_back(tx)?;
                failed.save(tx)?;
            }
            Shown::Perhaps => {
                self.marks.without(&failed.may_be_seen).put_back(tx)?;
                State { may_be_seen: self.marks.clone(), ..failed }.save(tx)?;
            }
        }
        lease::give_back(tx, &self.lease)
    }
}
