//! The only file that asks what time it is. Everything else is told.

use crate::lock::lock;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

/// Where time comes from: the machine, or a test's hand.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
    fn zone(&self) -> TimeZone;
}

/// The machine's clock and zone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks")]
    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }
}

/// A clock that stands until it is moved, forwards or back.
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    pub fn at(start: Timestamp) -> Self {
        Self(Mutex::new(start))
    }

    pub fn set(&self, now: Timestamp) {
        *lock(&self.0) = now;
    }

    pub fn advance(&self, by: SignedDuration) {
        let mut now = lock(&self.0);
        *now = now.saturating_add(by).unwrap_or(*now);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *lock(&self.0)
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}
