//! Decides which messages in the inbox are new. Pure.
//!
//! Android reuses ids: if the newest message is deleted, the next one gets its id. So the mark is an id *and* a date.
//! While the marked message still has its id, everything with a higher id is new. Once it is gone or its id belongs to
//! another message, the dates decide: everything dated at or after the newest date seen is new, unless it was seen.
//!
//! Some phones tell local times only. After such a phone has travelled, its dates are wrong by whole quarters of an hour
//! until its new zone is known, so a date that differs by that is the same date.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::port::From;
use super::{Sms, SmsId};
use crate::untrusted::Untrusted;

/// The most new messages that one poll takes.
pub(super) const PER_POLL: usize = 50;

/// Identifies one message. The id alone is not enough, because phones reuse ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub id: SmsId,
    pub date: Timestamp,
    pub address: Untrusted,
}

/// Time zones are whole quarters of an hour apart …
const QUARTER_MS: u64 = 15 * 60 * 1_000;
/// … and at most so far: from 12 hours behind UTC to 14 hours ahead of it.
const FARTHEST_MS: u64 = 26 * 60 * 60 * 1_000;

impl Identity {
    /// Whether both are the same message, though one date may have been read in the wrong time zone. Another message
    /// would have to be of the same sender, with a re-used id, and exactly that long before or after.
    fn is_same(&self, other: &Self) -> bool {
        let apart = self.date.as_millisecond().abs_diff(other.date.as_millisecond());
        let is_same_date = apart <= FARTHEST_MS && apart.is_multiple_of(QUARTER_MS);
        is_same_date && self.id == other.id && self.address == other.address
    }
}

impl Sms {
    /// The identity, with the date cut to milliseconds as it is stored, so that a stored identity compares equal.
    pub fn identity(&self) -> Identity {
        let date = Timestamp::from_millisecond(self.date.as_millisecond()).unwrap_or(self.date);
        Identity { id: self.id, date, address: self.address.clone() }
    }
}

/// How far an inbox has been read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    /// Whether the mark was initialised. Messages that were already in the inbox then count as seen.
    pub seeded: bool,
    /// The message with the highest id that was seen.
    pub top: Option<Identity>,
    /// The latest date seen, capped at the clock's time when it was seen.
    pub newest: Option<Timestamp>,
    /// Messages with that date or a later one that were already seen.
    pub seen: BTreeSet<Identity>,
    /// Whether the last poll hit its limit, so there may be more new messages.
    pub more: bool,
}

/// The result of one poll: the new messages and the mark to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// Oldest first.
    pub(super) fresh: Vec<Sms>,
    pub(super) mark: Mark,
}

impl Mark {
    /// A mark that counts everything now in the inbox as seen. `last` is the message with the highest id, `recent` the
    /// newest messages by date.
    pub(super) fn seed(last: Option<&Sms>, recent: &[Sms], now: Timestamp) -> Self {
        let Some(last) = last else { return Self { seeded: true, ..Self::default() } };
        let newest = recent.iter().chain([last]).map(|sms| sms.date.min(now)).max();
        // A message that arrived between the two reads has a higher id than `last`, and is still new.
        let there = recent.iter().filter(|sms| sms.id <= last.id).chain([last]).map(Sms::identity).collect();
        let mark = Self { seeded: true, top: Some(last.identity()), newest, seen: there, more: false };
        mark.pruned()
    }

    /// The first query of a poll: where to start and how many messages to request. It includes the marked message
    /// itself, which proves that the phone has not reused its id.
    pub(super) fn query_by_id(&self) -> (From, usize) {
        match (&self.top, self.newest) {
            (Some(top), _) => (From::Id(top.id), PER_POLL + 1),
            (None, Some(_)) => self.query_by_date(),
            // The inbox was empty when the mark was initialised, so every message is new.
            (None, None) => (From::Id(SmsId(0)), PER_POLL),
        }
    }

    /// The query by date, used when the marked message is gone.
    pub(super) fn query_by_date(&self) -> (From, usize) {
        let newest = self.newest.unwrap_or(Timestamp::MIN);
        (From::Date(newest), PER_POLL + self.seen.len())
    }

    /// Takes the new messages from the rows of [`Mark::query_by_id`]. Returns `None` if the marked message is gone or
    /// was replaced by another one.
    pub(super) fn by_id(&self, rows: &[Sms], now: Timestamp) -> Option<Taken> {
        let rows = match &self.top {
            Some(top) => {
                let (first, rest) = rows.split_first()?;
                first.identity().is_same(top).then_some(rest)?
            }
            None => rows,
        };
        let full = rows.len() >= PER_POLL;
        let rows: Vec<Sms> = rows.iter().take(PER_POLL).cloned().collect();
        let top = rows.iter().max_by_key(|sms| sms.id).map(Sms::identity);
        let fresh: Vec<Sms> = rows.into_iter().filter(|sms| !self.has_seen(sms)).collect();
        Some(self.advanced(fresh, top.or_else(|| self.top.clone()), full, now))
    }

    /// Takes the new messages from the rows of [`Mark::query_by_date`]. The caller must read `last` before `rows`, so
    /// that a message that arrives in between has a higher id than the new mark and is not skipped.
    pub(super) fn by_date(&self, rows: &[Sms], last: Option<&Sms>, now: Timestamp) -> Taken {
        let unseen = rows.iter().filter(|sms| !self.has_seen(sms)).cloned();
        let mut fresh: Vec<Sms> = unseen.collect();
        let full = fresh.len() > PER_POLL || rows.len() >= self.query_by_date().1;
        fresh.truncate(PER_POLL);
        let top = fresh.iter().chain(last).max_by_key(|sms| sms.id).map(Sms::identity);
        // While there are more, keep the old top, so that the next poll queries by date again.
        let top = if full { self.top.clone() } else { top };
        self.advanced(fresh, top, full, now)
    }

    fn has_seen(&self, sms: &Sms) -> bool {
        let identity = sms.identity();
        let first = Identity { id: identity.id, date: Timestamp::MIN, address: Untrusted::default() };
        let mut of_id = self.seen.range(first..).take_while(|seen| seen.id == identity.id);
        of_id.any(|seen| seen.is_same(&identity))
    }

    fn advanced(&self, fresh: Vec<Sms>, top: Option<Identity>, full: bool, now: Timestamp) -> Taken {
        let newest = fresh.iter().map(|sms| sms.date.min(now)).chain(self.newest).max();
        let seen = self.seen.iter().cloned().chain(fresh.iter().map(Sms::identity)).collect();
        let mark = Self { seeded: true, top, newest, seen, more: full };
        Taken { fresh, mark: mark.pruned() }
    }

    /// Drops seen messages that a query by date would not return again.
    fn pruned(mut self) -> Self {
        let newest = self.newest.unwrap_or(Timestamp::MIN);
        self.seen.retain(|identity| identity.date >= newest);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_800_014_400;
    const HOUR: i64 = 3_600;

    fn sms(id: i64, second: i64, address: &str) -> Sms {
        Sms {
            id: SmsId(id),
            address: Untrusted::new(address),
            date: Timestamp::from_second(second).unwrap(),
            body: Untrusted::new("hi"),
            read: false,
        }
    }

    #[test]
    fn a_message_is_the_same_in_another_zone() {
        let known = sms(7, NOON, "Bob").identity();
        for (name, id, seconds, address, expected) in [
            ("itself", 7, 0, "Bob", true),
            ("the nearest zone", 7, 15 * 60, "Bob", true),
            ("Kathmandu, from London", 7, 5 * HOUR + 45 * 60, "Bob", true),
            ("Los Angeles, from Berlin", 7, -9 * HOUR, "Bob", true),
            ("as far as it gets", 7, 26 * HOUR, "Bob", true),
            ("too far ahead", 7, 26 * HOUR + 15 * 60, "Bob", false),
            ("too far behind", 7, -26 * HOUR - 15 * 60, "Bob", false),
            ("no zone is so near", 7, 60, "Bob", false),
            ("a second later", 7, HOUR + 1, "Bob", false),
            ("another id", 8, HOUR, "Bob", false),
            ("another sender", 7, HOUR, "Alice", false),
        ] {
            let told = sms(id, NOON + seconds, address).identity();
            assert_eq!((known.is_same(&told), told.is_same(&known)), (expected, expected), "{name}");
        }
    }

    /// The phone tells the times of the zone where it landed, and they are read as those of the zone that it left.
    #[test]
    fn nothing_is_new_because_the_phone_travelled() {
        let before = [sms(6, NOON, "Alice"), sms(7, NOON, "Bob")];
        let now = Timestamp::from_second(NOON + 20 * HOUR).unwrap();
        let mark = Mark::seed(before.last(), &before, now);
        for away in [6 * HOUR, -9 * HOUR] {
            let moved = |known: &Sms| {
                let second = known.date.as_second() + away;
                Sms { date: Timestamp::from_second(second).unwrap(), ..known.clone() }
            };
            let new = sms(8, NOON + 2 * HOUR, "Carol");
            let taken = mark.by_id(&[moved(&before[1]), moved(&new)], now).unwrap();
            assert_eq!(taken.fresh, [moved(&new)], "{away}");
            let known = taken.mark.by_id(&[new], now).unwrap();
            assert_eq!(known.fresh, [], "{away}: once the zone is known");
            // The marked message was deleted, and its id is used again.
            let new = sms(7, NOON + 2 * HOUR, "Carol");
            assert_eq!(mark.by_id(&[moved(&new)], now), None, "{away}");
            let taken = mark.by_date(&[moved(&before[0]), moved(&new)], Some(&moved(&new)), now);
            assert_eq!(taken.fresh, [moved(&new)], "{away}");
        }
    }
}
