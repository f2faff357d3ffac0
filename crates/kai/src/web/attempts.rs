//! The rate limit on sign-in links: how often a peer has tried one that does not work.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::lock::lock;

use crate::places::Peer;

/// How many links a peer may try in vain within [`SPAN`]. A person who mistypes one, or reloads a page that is used up,
/// stays far below that.
const MOST: u32 = 20;
const SPAN: SignedDuration = SignedDuration::from_mins(1);
/// How many peers are remembered; whoever tried longest ago is forgotten first.
const PEERS: usize = 1_000;

/// Counts attempts per peer, so that nobody who guesses locks anybody else out: on this machine a peer is a user.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<BTreeMap<Peer, Attempt>>);

#[derive(Debug, Clone, Copy)]
struct Attempt {
    since: Timestamp,
    count: u32,
}

impl Attempts {
    /// Counts an attempt before it is checked, so that many at once are no way around the limit. Returns whether it may
    /// be checked.
    pub(super) fn begin(&self, peer: Peer, now: Timestamp) -> bool {
        let mut all = lock(&self.0);
        // A clock that was set back must not lock anybody out.
        let is_over =
            |attempt: &Attempt| !(SignedDuration::ZERO..SPAN).contains(&now.duration_since(attempt.since));
        all.retain(|_, attempt| !is_over(attempt));
        if all.len() >= PEERS && !all.contains_key(&peer) {
            let oldest = all.iter().min_by_key(|(_, attempt)| attempt.since).map(|(peer, _)| *peer);
            oldest.map(|oldest| all.remove(&oldest));
        }
        let attempt = all.entry(peer).or_insert(Attempt { since: now, count: 0 });
        attempt.count = attempt.count.saturating_add(1);
        attempt.count <= MOST
    }

    /// The link worked.
    pub(super) fn succeeded(&self, peer: Peer) {
        lock(&self.0).remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_has_to_wait_and_nobody_else() {
        let at = |seconds: i64| Timestamp::from_second(1_800_000_000 + seconds).unwrap();
        let (alice, mallory) = (Peer::User(1), Peer::User(2));
        let attempts = Attempts::default();
        let allowed = (0..100).filter(|_| attempts.begin(mallory, at(0))).count();
        assert_eq!(allowed, 20);
        assert!(attempts.begin(alice, at(0)), "another user of the machine");
        assert!(!attempts.begin(mallory, at(59)) && attempts.begin(mallory, at(60)), "a minute later");
        for _ in 0..19 {
            attempts.begin(alice, at(60));
        }
        attempts.succeeded(alice);
        assert!(attempts.begin(alice, at(60)), "a link that works ends the count");
        while attempts.begin(mallory, at(61)) {}
        assert!(attempts.begin(mallory, at(0)), "the clock was set back");
    }

    #[test]
    fn a_crowd_of_peers_takes_no_more_memory() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let attempts = Attempts::default();
        for uid in 0..5_000 {
            attempts.begin(Peer::User(uid), now);
        }
        assert_eq!(lock(&attempts.0).len(), PEERS);
    }
}
