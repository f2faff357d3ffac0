//! Works out when an alarm rings from the tool's input. Pure.

use jiff::civil::Time;
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, ToSpan, Zoned};

use super::SetAlarmInput;

/// When an alarm rings: at a time of day, or after a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlarmSpec {
    At(Time),
    In(SignedDuration),
}

/// Reads the input, which must have exactly one of the two forms and be in range; otherwise returns an error message.
pub(super) fn spec(input: &SetAlarmInput) -> Result<AlarmSpec, String> {
    let within = |name: &str, value: i64, from: i64, to: i64| {
        let right = (from..=to).contains(&value).then_some(value);
        right.ok_or_else(|| format!("The {name} must be from {from} to {to}, not {value}."))
    };
    match (input.hour, input.minutes, input.duration_seconds) {
        (Some(hour), Some(minutes), None) => {
            let (hour, minutes) = (within("hour", hour, 0, 23)?, within("minutes", minutes, 0, 59)?);
            let time = i8::try_from(hour).ok().zip(i8::try_from(minutes).ok());
            let time = time.and_then(|(hour, minutes)| Time::new(hour, minutes, 0, 0).ok());
            time.map(AlarmSpec::At).ok_or_else(|| "That is not a time of day.".to_owned())
        }
        (None, None, Some(seconds)) => within("duration_seconds", seconds, 1, 86_400)
            .map(|s| AlarmSpec::In(SignedDuration::from_secs(s))),
        (Some(_), None, None) | (None, Some(_), None) => {
            Err("An alarm needs both hour and minutes.".to_owned())
        }
        (None, None, None) => Err("Give either hour and minutes, or duration_seconds.".to_owned()),
        (_, _, Some(_)) => Err("Give either hour and minutes, or duration_seconds, but not both.".to_owned()),
    }
}

/// The next time after `now` that matches `spec`.
pub(super) fn at(spec: AlarmSpec, now: &Zoned) -> Result<Zoned, String> {
    let too_late = |_| "That is too far away.".to_owned();
    match spec {
        AlarmSpec::In(length) => now.checked_add(length).map_err(too_late),
        AlarmSpec::At(time) => {
            let tomorrow = now.date().checked_add(1.day()).map_err(too_late)?;
            let candidates = [now.date(), tomorrow].map(|date| moments(now, date.to_datetime(time)));
            let next = candidates.into_iter().flatten().find(|at| at > now);
            next.ok_or_else(|| "There is no such time today or tomorrow.".to_owned())
        }
    }
}

/// The moments at which a clock shows `local`: usually one; two where the clock goes back; and where the clock skips
/// that time, one that is later by the length of the gap.
fn moments(now: &Zoned, local: jiff::civil::DateTime) -> Vec<Zoned> {
    let ambiguous = now.time_zone().to_ambiguous_zoned(local);
    let twice = matches!(ambiguous.offset(), AmbiguousOffset::Fold { .. });
    let second = if twice { ambiguous.clone().later().ok() } else { None };
    ambiguous.compatible().ok().into_iter().chain(second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(hour: Option<i64>, minutes: Option<i64>, duration_seconds: Option<i64>) -> SetAlarmInput {
        SetAlarmInput { hour, minutes, duration_seconds, label: None }
    }

    #[test]
    fn exactly_one_form_in_range() {
        for (hour, minutes, seconds, word) in [
            (Some(7), Some(30), None, None),
            (Some(0), Some(0), None, None),
            (Some(23), Some(59), None, None),
            (None, None, Some(1), None),
            (None, None, Some(86_400), None),
            (Some(24), Some(0), None, Some("hour must be from 0 to 23, not 24")),
            (Some(-1), Some(0), None, Some("hour must be")),
            (Some(7), Some(60), None, Some("minutes must be from 0 to 59")),
            (None, None, Some(0), Some("duration_seconds must be from 1 to 86400")),
            (None, None, Some(-5), Some("duration_seconds must be")),
            (None, None, Some(86_401), Some("duration_seconds must be")),
            (None, None, Some(i64::MAX), Some("duration_seconds must be")),
            (Some(7), None, None, Some("both hour and minutes")),
            (None, Some(30), None, Some("both hour and minutes")),
            (None, None, None, Some("Give either")),
            (Some(7), Some(30), Some(60), Some("but not both")),
            (Some(7), None, Some(60), Some("but not both")),
        ] {
            let found = spec(&input(hour, minutes, seconds));
            match word {
                None => assert!(found.is_ok(), "{hour:?}:{minutes:?} {seconds:?}"),
                Some(word) => {
                    let said = found.unwrap_err();
                    assert!(said.contains(word), "{hour:?}:{minutes:?} {seconds:?}: {said}");
                }
            }
        }
    }

    #[test]
    fn an_alarm_rings_when_it_is_next_that_time() {
        for (now, hour, minutes, expected) in [
            ("2026-03-09T06:00:00+01:00", 7, 30, "2026-03-09T07:30:00+01:00"),
            ("2026-03-09T07:30:00+01:00", 7, 30, "2026-03-10T07:30:00+01:00"),
            ("2026-03-09T08:00:00+01:00", 7, 30, "2026-03-10T07:30:00+01:00"),
            ("2026-12-31T23:00:00+01:00", 0, 0, "2027-01-01T00:00:00+01:00"),
            // The night before the clock goes forward from 2 to 3.
            ("2026-03-28T22:00:00+01:00", 7, 0, "2026-03-29T07:00:00+02:00"),
            ("2026-03-28T22:00:00+01:00", 2, 30, "2026-03-29T03:30:00+02:00"),
            // The night when the clock goes back from 3 to 2.
            ("2026-10-25T01:00:00+02:00", 2, 30, "2026-10-25T02:30:00+02:00"),
            ("2026-10-25T02:45:00+02:00", 2, 30, "2026-10-25T02:30:00+01:00"),
            ("2026-10-25T02:45:00+01:00", 2, 30, "2026-10-26T02:30:00+01:00"),
        ] {
            let now: Zoned = format!("{now}[Europe/Berlin]").parse().unwrap();
            let spec = spec(&input(Some(hour), Some(minutes), None)).unwrap();
            let due = at(spec, &now).unwrap().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
            assert_eq!(due, expected, "{hour}:{minutes} after {now}");
        }
    }

    #[test]
    fn a_timer_counts_seconds_across_a_change_of_the_clock() {
        let now: Zoned = "2026-03-29T01:59:50+01:00[Europe/Berlin]".parse().unwrap();
        let due = at(AlarmSpec::In(SignedDuration::from_secs(20)), &now).unwrap();
        assert_eq!(due.strftime("%H:%M:%S").to_string(), "03:00:10");
    }
}
