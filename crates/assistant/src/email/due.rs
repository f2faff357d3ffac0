//! Decides whether it is time to poll an account, and how long to wait before connecting to it again. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::sync::Sync;

/// A tick may come this much early, because ticks are not exact.
const SLACK: SignedDuration = SignedDuration::from_secs(5);

/// Whether a poll is due. `minutes` is the interval from the settings; 0 means never. The interval counts from the last
/// attempt, successful or not, so that a failing server is not asked every minute. If the last poll succeeded but hit
/// its limit, the next one is due at once.
pub fn is_due(sync: &Sync, minutes: u32, now: Timestamp) -> bool {
    // Ignore times in the future: the clock was set back since.
    let stamps = [sync.last_sync, sync.last_attempt].into_iter().flatten().filter(|at| *at <= now);
    let Some(last) = stamps.max() else { return minutes > 0 };
    let worked = sync.last_error.is_none();
    let passed = now.duration_since(last) + SLACK >= SignedDuration::from_mins(i64::from(minutes));
    minutes > 0 && (passed || (sync.more && worked))
}

/// How long to wait before the first attempt to connect again.
const AGAIN: Duration = Duration::from_secs(5);

/// How long to wait before a connection for push is made again, after so many failures in a row: 5 seconds, then twice
/// as long each time, up to the interval of the polls.
pub fn reconnects_after(failures: u32, minutes: u32) -> Duration {
    let longest = Duration::from_secs(60 * u64::from(minutes.max(1)));
    let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    AGAIN.saturating_mul(factor).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_the_interval_has_passed() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        for (name, last_sync, last_attempt, error, more, minutes, now, expected) in [
            ("never tried", None, None, None, false, 15, 0, true),
            ("never means never", None, None, None, false, 0, 0, false),
            ("never, even when full", Some(0), Some(0), None, true, 0, 99, false),
            ("just now", Some(100), Some(100), None, false, 15, 100, false),
            ("a minute early", Some(100), Some(100), None, false, 15, 114, false),
            ("passed", Some(100), Some(100), None, false, 15, 115, true),
            ("failed just now", Some(50), Some(100), Some("x"), false, 15, 101, false),
            ("failed, and never worked", None, Some(100), Some("x"), false, 15, 101, false),
            ("failed long ago", Some(50), Some(100), Some("x"), false, 15, 115, true),
            ("full", Some(100), Some(100), None, true, 15, 101, true),
            ("full, but failed since", Some(100), Some(101), Some("x"), true, 15, 102, false),
            ("clock went back", Some(100), Some(100), None, false, 15, 50, true),
            ("clock went back, failed since", Some(100), Some(50), Some("x"), false, 15, 51, false),
        ] {
            let sync = Sync {
                more,
                last_sync: last_sync.map(at),
                last_attempt: last_attempt.map(at),
                last_error: error.map(Into::into),
                ..Sync::default()
            };
            assert_eq!(is_due(&sync, minutes, at(now)), expected, "{name}");
        }
        let early = Sync { last_sync: Some(at(0)), ..Sync::default() };
        let tick = at(15).saturating_sub(SignedDuration::from_secs(2)).unwrap();
        assert!(is_due(&early, 15, tick), "a tick two seconds early is in time");
    }

    #[test]
    fn the_pauses_grow_up_to_the_interval() {
        let seconds = |failures| reconnects_after(failures, 5).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 7, 8, 99].map(seconds), [5, 5, 10, 20, 40, 300, 300, 300]);
        assert_eq!(reconnects_after(99, 0).as_secs(), 60);
    }
}
