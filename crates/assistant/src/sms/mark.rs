//! Which messages are new? Pure.
//!
//! Android re-uses ids: delete the newest message, and the next one gets its number. So the mark is an id *and* a date.
//! While the marked message lies where it lay, everything with a higher id is new. When it is gone or has become
//! another, the dates decide: everything of the newest moment seen or later, except what was seen of it.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::port::From;
use super::{Sms, SmsId};
use crate::untrusted::Untrusted;

/// A poll takes at most this many.
pub(super) const PER_POLL: usize = 50;

/// What makes a message this one and no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub id: SmsId,
    pub date: Timestamp,
    pub address: Untrusted,
}

impl Sms {
    /// To the millisecond, as it is stored: what is compared later must be what was kept.
    pub fn identity(&self) -> Identity {
        let date = Timestamp::from_millisecond(self.date.as_millisecond()).unwrap_or(self.date);
        Identity { id: self.id, date, address: self.address.clone() }
    }
}

/// What was seen of an inbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    /// What lay there at the opt-in counts as seen.
    pub seeded: bool,
    /// The message with the highest id.
    pub top: Option<Identity>,
    /// The latest date seen, never later than the clock was.
    pub newest: Option<Timestamp>,
    /// Messages of that date or later that were seen.
    pub seen: BTreeSet<Identity>,
    /// The last poll was full: there is more.
    pub more: bool,
}

/// What one poll brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// Oldest first.
    pub(super) fresh: Vec<Sms>,
    pub(super) mark: Mark,
}

impl Mark {
    /// What lies in the inbox now counts as seen: `last` is the message with the highest id, `recent` the newest by date.
    pub(super) fn seed(last: Option<&Sms>, recent: &[Sms], now: Timestamp) -> Self {
        let Some(last) = last else { return Self { seeded: true, ..Self::default() } };
        let newest = recent.iter().chain([last]).map(|sms| sms.date.min(now)).max();
        // One that came between the two answers is not seen yet.
        let there = recent.iter().filter(|sms| sms.id <= last.id).chain([last]).map(Sms::identity).collect();
        let mark = Self { seeded: true, top: Some(last.identity()), newest, seen: there, more: false };
        mark.pruned()
    }

    /// Where to look first. The marked message itself is asked for too: it proves that the ids still mean what they
    /// meant.
    pub(super) fn first_look(&self) -> (From, usize) {
        match (&self.top, self.newest) {
            (Some(top), _) => (From::Id(top.id), PER_POLL + 1),
            (None, Some(_)) => self.second_look(),
            // Nothing ever lay there, so whatever does now is new.
            (None, None) => (From::Id(SmsId(0)), PER_POLL),
        }
    }

    /// Where to look when the marked message is gone.
    pub(super) fn second_look(&self) -> (From, usize) {
        let newest = self.newest.unwrap_or(Timestamp::MIN);
        (From::Date(newest), PER_POLL + self.seen.len())
    }

    /// Takes what the first look brought; `None` if the marked message is not what it was.
    pub(super) fn by_id(&self, rows: &[Sms], now: Timestamp) -> Option<Taken> {
        let rows = match &self.top {
            Some(top) => {
                let (first, rest) = rows.split_first()?;
                (first.identity() == *top).then_some(rest)?
            }
            None => rows,
        };
        let full = rows.len() >= PER_POLL;
        let rows: Vec<Sms> = rows.iter().take(PER_POLL).cloned().collect();
        let top = rows.iter().max_by_key(|sms| sms.id).map(Sms::identity);
        let fresh: Vec<Sms> = rows.into_iter().filter(|sms| !self.seen.contains(&sms.identity())).collect();
        Some(self.advanced(fresh, top.or_else(|| self.top.clone()), full, now))
    }

    /// Takes by date. `last` was asked for before, so that whatever came in between has a higher id.
    pub(super) fn by_date(&self, rows: &[Sms], last: Option<&Sms>, now: Timestamp) -> Taken {
        let unseen = rows.iter().filter(|sms| !self.seen.contains(&sms.identity())).cloned();
        let mut fresh: Vec<Sms> = unseen.collect();
        let full = fresh.len() > PER_POLL || rows.len() >= self.second_look().1;
        fresh.truncate(PER_POLL);
        let top = fresh.iter().chain(last).max_by_key(|sms| sms.id).map(Sms::identity);
        // While there is more, the old mark stays, so that the next poll goes by date again.
        let top = if full { self.top.clone() } else { top };
        self.advanced(fresh, top, full, now)
    }

    fn advanced(&self, fresh: Vec<Sms>, top: Option<Identity>, full: bool, now: Timestamp) -> Taken {
        let newest = fresh.iter().map(|sms| sms.date.min(now)).chain(self.newest).max();
        let seen = self.seen.iter().cloned().chain(fresh.iter().map(Sms::identity)).collect();
        let mark = Self { seeded: true, top, newest, seen, more: full };
        Taken { fresh, mark: mark.pruned() }
    }

    /// Only what a look by date would bring again has to be remembered.
    fn pruned(mut self) -> Self {
        let newest = self.newest.unwrap_or(Timestamp::MIN);
        self.seen.retain(|identity| identity.date >= newest);
        self
    }
}
