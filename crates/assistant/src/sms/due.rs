//! Decides whether it is time to poll the inbox, or to ask for contacts. Pure.

use jiff::{SignedDuration, Timestamp};

use super::store::Sync;

/// A tick may come this much early, because ticks are not exact.
const SLACK: SignedDuration = SignedDuration::from_secs(5);

/// Whether a poll is due. `minutes` is the interval from the settings; 0 means never. The interval counts from the last
/// attempt, successful or not, so that a failing phone is not polled every minute. If the last poll succeeded but hit
/// its limit, the next one is due at once.
pub fn is_due(sync: &Sync, minutes: u32, now: Timestamp) -> bool {
    // Ignore times in the future: the clock was set back since.
    let stamps = [sync.last_sync, sync.last_attempt].into_iter().flatten().filter(|at| *at <= now);
    let Some(last) = stamps.max() else { return minutes > 0 };
    let worked = sync.last_error.is_none();
    let passed = now.duration_since(last) + SLACK >= SignedDuration::from_mins(i64::from(minutes));
    minutes > 0 && (passed || (sync.mark.more && worked))
}

/// How often a phone is asked for its contacts, which seldom change.
const CONTACTS: SignedDuration = SignedDuration::from_hours(1);

/// Whether it is time to ask a phone for its contacts. `last` is when it was last asked, whatever came of it.
pub fn contacts_are_due(last: Option<Timestamp>, now: Timestamp) -> bool {
    // A time in the future counts as past: the clock was set back since.
    last.is_none_or(|at| at > now || now.duration_since(at) + SLACK >= CONTACTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sms::mark::Mark;

    #[test]
    fn contacts_are_asked_for_once_an_hour() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        for (name, last, now, expected) in [
            ("never asked", None, 0, true),
            ("just now", Some(100), 100, false),
            ("a minute early", Some(100), 159, false),
            ("an hour ago", Some(100), 160, true),
            ("clock went back", Some(100), 99, true),
        ] {
            assert_eq!(contacts_are_due(last.map(at), at(now)), expected, "{name}");
        }
    }

    #[test]
    fn when_the_interval_has_passed() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        let full = Mark { more: true, ..Mark::default() };
        for (name, last_sync, last_attempt, error, mark, minutes, now, expected) in [
            ("never tried", None, None, None, Mark::default(), 15, 0, true),
            ("never means never", None, None, None, Mark::default(), 0, 0, false),
            ("never, even when full", Some(0), Some(0), None, full.clone(), 0, 99, false),
            ("just now", Some(100), Some(100), None, Mark::default(), 15, 100, false),
            ("a minute early", Some(100), Some(100), None, Mark::default(), 15, 114, false),
            ("passed", Some(100), Some(100), None, Mark::default(), 15, 115, true),
            ("failed just now", Some(50), Some(100), Some("x"), Mark::default(), 15, 101, false),
            ("failed long ago", Some(50), Some(100), Some("x"), Mark::default(), 15, 115, true),
            ("full", Some(100), Some(100), None, full.clone(), 15, 101, true),
            ("full, but failed since", Some(100), Some(101), Some("x"), full, 15, 102, false),
            ("clock went back", Some(100), Some(100), None, Mark::default(), 15, 50, true),
            ("clock went back, failed since", Some(100), Some(50), Some("x"), Mark::default(), 15, 51, false),
        ] {
            let sync = Sync {
                mark,
                last_sync: last_sync.map(at),
                last_attempt: last_attempt.map(at),
                last_error: error.map(Into::into),
                unread: 0,
            };
            assert_eq!(is_due(&sync, minutes, at(now)), expected, "{name}");
        }
        let early = Sync { last_sync: Some(at(0)), ..Sync::default() };
        let tick = at(15).saturating_sub(SignedDuration::from_secs(2)).unwrap();
        assert!(is_due(&early, 15, tick), "a tick two seconds early is in time");
    }
}
