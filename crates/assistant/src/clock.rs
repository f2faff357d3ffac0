//! The only file that reads the system clock. Everything else takes the time as an argument.

use crate::lock::lock;
use std::sync::{Mutex, OnceLock};

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
        let asked = || Some(OTHER_ZONE.get()?.zone(self.now()));
        TimeZone::try_system().ok().or_else(asked).unwrap_or_else(TimeZone::unknown)
    }
}

/// Set once at the start, by a program that can ask a system which keeps its time zone in an unusual place.
static OTHER_ZONE: OnceLock<OtherZone> = OnceLock::new();

/// From now on `name` is asked for the name of the time zone, such as `Europe/Berlin`, wherever it is not found in one of
/// the usual places. Only the first call counts.
pub fn find_zone_by(name: fn() -> Option<String>) {
    let _ = OTHER_ZONE.set(OtherZone { name, known: Mutex::default() });
}

/// How long a time zone counts as known. Phones travel.
const KNOWN_FOR: SignedDuration = SignedDuration::from_mins(5);

/// A time zone that somebody has to be asked for.
struct OtherZone {
    name: fn() -> Option<String>,
    known: Mutex<Option<(Timestamp, TimeZone)>>,
}

impl OtherZone {
    fn zone(&self, now: Timestamp) -> TimeZone {
        let mut known = lock(&self.known);
        if let Some((at, zone)) = known.as_ref()
            && now.duration_since(*at).abs() < KNOWN_FOR
        {
            return zone.clone();
        }
        let found = (self.name)().and_then(|name| TimeZone::get(name.trim()).ok());
        // An answer that does not come does not change the zone.
        let before = || known.as_ref().map(|(_, zone)| zone.clone());
        let zone = found.or_else(before).unwrap_or_else(TimeZone::unknown);
        *known = Some((now, zone.clone()));
        zone
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_zone_that_has_to_be_asked_for_is_asked_for_again_after_a_while() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let name = || match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 | 4 => Some("Europe/Berlin\n".to_owned()),
            1 => Some("Mars/Olympus_Mons".to_owned()),
            2 => None,
            _ => Some("Asia/Tokyo".to_owned()),
        };
        let other = OtherZone { name, known: Mutex::default() };
        let at = |minutes: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let mut seen = vec![];
        // The last look is after the clock was set back.
        for minutes in [0, 4, 5, 10, 15, 19, 3] {
            seen.push(other.zone(at(minutes)).iana_name().unwrap_or("?").to_owned());
        }
        let (berlin, tokyo) = ("Europe/Berlin", "Asia/Tokyo");
        assert_eq!(seen, [berlin, berlin, berlin, berlin, tokyo, tokyo, berlin]);
        assert_eq!(ASKED.load(Ordering::SeqCst), 5);
    }
}
