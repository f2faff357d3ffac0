//! Conversations that were deleted a moment ago: gone from the store, kept in memory for those who want them back.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::conversation::Whole;

/// So long a deletion can be taken back.
const LIFE: SignedDuration = SignedDuration::from_secs(60);
const MOST: usize = 5;

#[derive(Default)]
pub(super) struct Bin(Mutex<Vec<(u64, Timestamp, Whole)>>);

/// What the page says about the newest deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deleted {
    pub(super) number: u64,
    pub(super) title: String,
}

impl Bin {
    pub(super) fn put(&self, whole: Whole, now: Timestamp) {
        let mut bin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = bin.last().map_or(1, |(number, ..)| number + 1);
        bin.push((number, now, whole));
        let surplus = bin.len().saturating_sub(MOST);
        bin.drain(..surplus);
    }

    pub(super) fn newest(&self, now: Timestamp) -> Option<Deleted> {
        let mut bin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bin.retain(|(_, at, _)| now.duration_since(*at) < LIFE);
        bin.last().map(|(number, _, whole)| Deleted { number: *number, title: whole.title.clone() })
    }

    pub(super) fn take(&self, number: u64) -> Option<Whole> {
        let mut bin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = bin.iter().position(|(n, ..)| *n == number)?;
        Some(bin.remove(at).2)
    }

    pub(super) fn forget(&self, number: u64) {
        drop(self.take(number));
    }
}
