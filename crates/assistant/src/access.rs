//! May we, right now? The platform gives and takes permissions behind our back, so what it last said is kept with
//! its time, asked again when it is old, and corrected by the outcome of every real call.

use crate::lock::lock;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// What the platform lets us do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// Not allowed, with what the person can do about it.
    Denied(String),
    /// It did not answer; why not.
    Silent(String),
}

/// What is known of a permission, in one word for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessState {
    Granted,
    Denied,
    Unknown,
    /// There is nothing here that could be allowed.
    Unsupported,
}

impl AccessState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
            Self::Unsupported => "unsupported",
        }
    }
}

impl Access {
    pub fn state(&self) -> AccessState {
        match self {
            Self::Granted => AccessState::Granted,
            Self::Denied(_) => AccessState::Denied,
            Self::Silent(_) => AccessState::Unknown,
        }
    }
}

/// It is asked at most this often.
const FRESH: SignedDuration = SignedDuration::from_secs(60);

/// What was last learned about one permission.
#[derive(Debug, Default)]
pub struct Known(Mutex<Option<(Timestamp, Access)>>);

impl Known {
    pub fn learn(&self, access: Access, now: Timestamp) {
        *lock(&self.0) = Some((now, access));
    }

    /// `None` if nothing was ever asked.
    pub fn last(&self) -> Option<Access> {
        lock(&self.0).as_ref().map(|(_, access)| access.clone())
    }

    /// What was learned within the last minute; older than that it counts for nothing.
    pub fn fresh(&self, now: Timestamp) -> Option<Access> {
        if self.is_old(now) { None } else { self.last() }
    }

    /// Is it time to ask? A clock that went back counts as time.
    pub fn is_old(&self, now: Timestamp) -> bool {
        let known = lock(&self.0);
        known.as_ref().is_none_or(|(at, _)| {
            let age = now.duration_since(*at);
            age >= FRESH || age < SignedDuration::ZERO
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_fresh_for_a_minute() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let known = Known::default();
        assert!(known.is_old(at(0)) && known.last().is_none());
        known.learn(Access::Granted, at(100));
        for (now, old) in [(100, false), (159, false), (160, true), (99, true)] {
            assert_eq!(known.is_old(at(now)), old, "at {now}");
        }
        assert_eq!(known.last(), Some(Access::Granted));
    }
}
