//! Tracks whether the platform currently lets us do something. It grants and revokes permissions without telling us, so
//! its last answer is stored with the time, requested again when it is old, and corrected by the outcome of every real
//! call.

use crate::lock::lock;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// What the platform lets us do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// Not allowed; the text says what the user can do about it.
    Denied(Said),
    /// The platform did not answer; the text says why.
    Silent(Said),
}

/// The state of a permission, in one word for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessState {
    Granted,
    Denied,
    Unknown,
    /// This platform has nothing that could be allowed.
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

/// How long an answer stays fresh, so the platform is asked at most this often.
const FRESH: SignedDuration = SignedDuration::from_secs(60);

/// The last known state of one permission.
#[derive(Debug, Default)]
pub struct Known(Mutex<Option<(Timestamp, Access)>>);

impl Known {
    pub fn learn(&self, access: Access, now: Timestamp) {
        *lock(&self.0) = Some((now, access));
    }

    /// The last known state, however old; `None` if it was never learned.
    pub fn last(&self) -> Option<Access> {
        lock(&self.0).as_ref().map(|(_, access)| access.clone())
    }

    /// The last known state if it is less than a minute old.
    pub fn fresh(&self, now: Timestamp) -> Option<Access> {
        if self.is_old(now) { None } else { self.last() }
    }

    /// Whether the state must be requested again; also true if the clock was set back.
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
