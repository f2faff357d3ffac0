//! The only file that reads the system clock. Everything else takes the time as an argument.

use crate::lock::lock;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

/// A source of the time and the time zone: the system, or a test.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
    fn zone(&self) -> TimeZone;
}

/// The system's clock and time zone.
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

/// A clock for tests, in UTC, that stands still until it is set or advanced.
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
