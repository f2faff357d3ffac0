//! Decides whether a heartbeat is due. Pure.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp, Zoned};
use serde::{Deserialize, Serialize};

/// The heartbeat's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub enabled: bool,
    /// Minutes.
    pub interval: u32,
    /// First active hour of the local day.
    pub active_start: u32,
    /// Hour at which the active time ends; 24 is midnight. If it is less than the start, the active time spans
    /// midnight; if equal, it is the whole day.
    pub active_end: u32,
    /// Token budget per local day; 0 means unlimited.
    pub daily_tokens: u32,
}

/// What earlier runs left behind, as far as the schedule depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScheduleState {
    /// The last run that did not fail.
    pub last_done: Option<Timestamp>,
    /// The last run, failed or not.
    pub last_try: Option<Timestamp>,
    /// Failed runs in a row.
    pub failures: u32,
    /// Tokens spent today.
    pub spent: u64,
}

/// Whether a heartbeat may run now, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Due {
    Now,
    Off,
    Asleep,
    NotYet,
    /// Today's token budget is spent.
    OverBudget,
}

/// Tolerance for ticks that come slightly early.
const SLACK: SignedDuration = SignedDuration::from_secs(5);

pub fn due(rules: &Rules, standing: &ScheduleState, now: &Zoned) -> Due {
    if !rules.enabled {
        Due::Off
    } else if !is_awake(rules, now) {
        Due::Asleep
    } else if !has_passed(rules, standing, now.timestamp()) {
        Due::NotYet
    } else if is_over_budget(rules, standing) {
        Due::OverBudget
    } else {
        Due::Now
    }
}

pub fn is_over_budget(rules: &Rules, standing: &ScheduleState) -> bool {
    rules.daily_tokens > 0 && standing.spent >= u64::from(rules.daily_tokens)
}

/// Whether it is an active hour by local time, so that the hours are right also on days when the clocks change.
fn is_awake(rules: &Rules, now: &Zoned) -> bool {
    let (hour, start, end) = (u32::from(now.hour().unsigned_abs()), rules.active_start, rules.active_end);
    match start.cmp(&end) {
        Ordering::Equal => true,
        Ordering::Less => (start..end).contains(&hour),
        Ordering::Greater => hour >= start || hour < end,
    }
}

fn has_passed(rules: &Rules, standing: &ScheduleState, now: Timestamp) -> bool {
    let interval = SignedDuration::from_mins(i64::from(rules.interval));
    let (since, wait) = match standing.failures {
        0 => (standing.last_done, interval),
        failures => (standing.last_try, back_off(failures).min(interval)),
    };
    let Some(since) = since else { return true };
    let passed = now.duration_since(since);
    // A negative age means that the clock was set back, so the old timestamp is ignored.
    passed + SLACK >= wait || passed < SignedDuration::ZERO
}

/// The wait after this many failures: 1, 2, 4 … minutes.
fn back_off(failures: u32) -> SignedDuration {
    SignedDuration::from_mins(1_i64 << (failures - 1).min(20))
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Span, tz::TimeZone};
    use proptest::prelude::*;

    use super::*;

    const RULES: Rules =
        Rules { enabled: true, interval: 30, active_start: 8, active_end: 22, daily_tokens: 0 };

    fn at(local: &str) -> Zoned {
        format!("{local}[Europe/Berlin]").parse().unwrap()
    }

    fn done(local: &str) -> ScheduleState {
        ScheduleState { last_done: Some(at(local).timestamp()), ..ScheduleState::default() }
    }

    #[test]
    fn when_it_beats() {
        let night = Rules { active_start: 22, active_end: 6, ..RULES };
        let always = Rules { active_start: 0, active_end: 24, ..RULES };
        let poor = Rules { daily_tokens: 1000, ..RULES };
        let failed = |failures, local: &str| ScheduleState {
            last_done: Some(at("2026-03-09T08:00").timestamp()),
            last_try: Some(at(local).timestamp()),
            failures,
            spent: 0,
        };
        for (name, rules, standing, now, expected) in [
            ("first ever", RULES, ScheduleState::default(), "2026-03-09T12:00", Due::Now),
            (
                "off",
                Rules { enabled: false, ..RULES },
                ScheduleState::default(),
                "2026-03-09T12:00",
                Due::Off,
            ),
            ("too early in the day", RULES, ScheduleState::default(), "2026-03-09T07:59", Due::Asleep),
            ("the first minute", RULES, ScheduleState::default(), "2026-03-09T08:00", Due::Now),
            ("the last minute", RULES, ScheduleState::default(), "2026-03-09T21:59", Due::Now),
            ("too late in the day", RULES, ScheduleState::default(), "2026-03-09T22:00", Due::Asleep),
            ("until midnight", always, ScheduleState::default(), "2026-03-09T23:59", Due::Now),
            ("across midnight, before", night, ScheduleState::default(), "2026-03-09T23:00", Due::Now),
            ("across midnight, after", night, ScheduleState::default(), "2026-03-09T05:59", Due::Now),
            ("across midnight, by day", night, ScheduleState::default(), "2026-03-09T12:00", Due::Asleep),
            ("just done", RULES, done("2026-03-09T12:00"), "2026-03-09T12:29", Due::NotYet),
            ("the interval has passed", RULES, done("2026-03-09T12:00"), "2026-03-09T12:30", Due::Now),
            ("slept for a day", RULES, done("2026-03-08T12:00"), "2026-03-09T12:00", Due::Now),
            ("the clock went back", RULES, done("2026-03-09T20:00"), "2026-03-09T12:00", Due::Now),
            ("failed once", RULES, failed(1, "2026-03-09T12:00"), "2026-03-09T12:00:30", Due::NotYet),
            ("after a minute again", RULES, failed(1, "2026-03-09T12:00"), "2026-03-09T12:01", Due::Now),
            ("failed thrice", RULES, failed(3, "2026-03-09T12:00"), "2026-03-09T12:03", Due::NotYet),
            ("after four minutes", RULES, failed(3, "2026-03-09T12:00"), "2026-03-09T12:04", Due::Now),
            (
                "never later than the interval",
                RULES,
                failed(60, "2026-03-09T12:00"),
                "2026-03-09T12:30",
                Due::Now,
            ),
            (
                "spent",
                poor,
                ScheduleState { spent: 1000, ..done("2026-03-09T10:00") },
                "2026-03-09T12:00",
                Due::OverBudget,
            ),
            (
                "not quite",
                poor,
                ScheduleState { spent: 999, ..done("2026-03-09T10:00") },
                "2026-03-09T12:00",
                Due::Now,
            ),
        ] {
            assert_eq!(due(&rules, &standing, &at(now)), expected, "{name}");
        }
    }

    proptest! {
        /// Weeks around a clock change: within active hours no gap exceeds the interval, outside of them nothing runs,
        /// and no two runs are closer than the interval (less the tolerance).
        #[test]
        fn weeks_of_ticks(
            start in 0..24_u32,
            end in 1..=24_u32,
            interval in prop::sample::select(vec![5_u32, 10, 15, 30, 45, 60, 120, 240]),
            zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
            from in prop::sample::select(vec!["2026-03-05T00:00", "2026-10-22T00:00"]),
        ) {
            let rules = Rules { interval, active_start: start, active_end: end, ..RULES };
            let zone = TimeZone::get(zone).unwrap();
            let begin: jiff::civil::DateTime = from.parse().unwrap();
            let mut now = begin.to_zoned(zone).unwrap();
            let (mut standing, mut awake_since) = (ScheduleState::default(), None);
            for _ in 0..(12 * 24 * 60) {
                now = now.checked_add(Span::new().minutes(1)).unwrap();
                let awake = is_awake(&rules, &now);
                awake_since = if awake { awake_since.or(Some(now.timestamp())) } else { None };
                if due(&rules, &standing, &now) == Due::Now {
                    prop_assert!(awake);
                    let gap = standing.last_done.map(|last| now.timestamp().duration_since(last));
                    let least = SignedDuration::from_mins(i64::from(interval)) - SLACK;
                    prop_assert!(gap.is_none_or(|gap| gap >= least));
                    standing.last_done = Some(now.timestamp());
                }
                if let Some(since) = awake_since {
                    let last = standing.last_done.map_or(since, |last| last.max(since));
                    let waited = now.timestamp().duration_since(last);
                    prop_assert!(waited <= SignedDuration::from_mins(i64::from(interval)));
                }
            }
        }
    }
}
