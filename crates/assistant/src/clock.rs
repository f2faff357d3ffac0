//! The only file that reads the system clock. Everything else takes the time as an argument.

use crate::lock::lock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

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
    let _ = OTHER_ZONE.set(OtherZone::new(name));
}

/// How long a time zone counts as known. Phones travel.
const KNOWN_FOR: SignedDuration = SignedDuration::from_mins(5);

/// How long the name of the time zone is waited for. Whoever wants the zone waits as long, also in the middle of other
/// work.
const PATIENCE: Duration = Duration::from_secs(2);

/// A time zone that somebody has to be asked for.
struct OtherZone {
    name: fn() -> Option<String>,
    patience: Duration,
    asked: Mutex<Asked>,
}

/// What was learned so far.
#[derive(Default)]
struct Asked {
    known: Option<(Timestamp, TimeZone)>,
    /// An answer that did not come in time. Until it is there, nobody is asked again.
    late: Option<Receiver<Option<String>>>,
}

impl OtherZone {
    fn new(name: fn() -> Option<String>) -> Self {
        Self { name, patience: PATIENCE, asked: Mutex::default() }
    }

    fn zone(&self, now: Timestamp) -> TimeZone {
        let mut asked = lock(&self.asked);
        if let Some((at, zone)) = asked.known.as_ref()
            && asked.late.is_none()
            && now.duration_since(*at).abs() < KNOWN_FOR
        {
            return zone.clone();
        }
        let found = self.ask(&mut asked.late).and_then(|name| TimeZone::get(name.trim()).ok());
        // An answer that does not come does not change the zone.
        let before = || asked.known.as_ref().map(|(_, zone)| zone.clone());
        let zone = found.or_else(before).unwrap_or_else(TimeZone::unknown);
        asked.known = Some((now, zone.clone()));
        zone
    }

    /// The name of the zone, if it comes in time. What was too late once is not waited for again, only taken when it is
    /// there.
    fn ask(&self, late: &mut Option<Receiver<Option<String>>>) -> Option<String> {
        let (answer, patience) = match late.take() {
            Some(answer) => (answer, Duration::ZERO),
            None => (aside(self.name)?, self.patience),
        };
        match answer.recv_timeout(patience) {
            Ok(name) => name,
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                *late = Some(answer);
                None
            }
        }
    }
}

/// Asks on a thread of its own, because a program that is asked may hang.
fn aside(name: fn() -> Option<String>) -> Option<Receiver<Option<String>>> {
    let (tell, answer) = mpsc::channel();
    std::thread::Builder::new().spawn(move || drop(tell.send(name()))).ok()?;
    Some(answer)
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

    /// A busy machine is not a hanging one.
    const AMPLE: Duration = Duration::from_mins(10);

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    #[test]
    fn a_zone_that_has_to_be_asked_for_is_asked_for_again_after_a_while() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let name = || match ASKED.fetch_add(1, Ordering::SeqCst) {
            0 | 4 => Some("Europe/Berlin\n".to_owned()),
            1 => Some("Mars/Olympus_Mons".to_owned()),
            2 => None,
            _ => Some("Asia/Tokyo".to_owned()),
        };
        let other = OtherZone { patience: AMPLE, ..OtherZone::new(name) };
        let mut seen = vec![];
        // The last look is after the clock was set back.
        for minutes in [0, 4, 5, 10, 15, 19, 3] {
            seen.push(other.zone(at(minutes)).iana_name().unwrap_or("?").to_owned());
        }
        let (berlin, tokyo) = ("Europe/Berlin", "Asia/Tokyo");
        assert_eq!(seen, [berlin, berlin, berlin, berlin, tokyo, tokyo, berlin]);
        assert_eq!(ASKED.load(Ordering::SeqCst), 5);
    }

    #[test]
    fn a_name_that_is_late_is_waited_for_once_and_taken_when_it_comes() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        static HANGS: Mutex<()> = Mutex::new(());
        let name = || {
            ASKED.fetch_add(1, Ordering::SeqCst);
            drop(lock(&HANGS));
            Some("Asia/Tokyo".to_owned())
        };
        let hangs = lock(&HANGS);
        let mut other = OtherZone { patience: Duration::from_millis(1), ..OtherZone::new(name) };
        assert!(other.zone(at(0)).is_unknown());
        // Whoever waited for it once more would wait for longer than any test may take.
        other.patience = AMPLE;
        assert!(other.zone(at(1)).is_unknown() && other.zone(at(6)).is_unknown());
        drop(hangs);
        while other.zone(at(6)).is_unknown() {
            std::thread::yield_now();
        }
        assert_eq!(other.zone(at(6)).iana_name(), Some("Asia/Tokyo"));
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
    }
}
