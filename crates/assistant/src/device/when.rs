//! Parses the times that a model writes for a calendar event. Pure.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use kai_words::Said;

use crate::moment::{moment, pieces, too_far};

/// When an event takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Timed {
        start: Timestamp,
        end: Timestamp,
    },
    /// Whole days. `end` is the day after the last day.
    Days {
        start: Date,
        end: Date,
    },
}

/// Reads the start and end of an event with times of day. A time without an offset is in `zone`. Without an end, the
/// event lasts an hour.
pub(super) fn timed(start: &str, end: Option<&str>, zone: &TimeZone) -> Result<When, Said> {
    let start = moment("start_time", start, zone)?;
    let end = match end {
        Some(end) => moment("end_time", end, zone)?,
        None => start.checked_add(SignedDuration::from_hours(1)).map_err(|_| too_far("start_time"))?,
    };
    if end <= start {
        return Err("The end_time must be after the start_time.".into());
    }
    Ok(When::Timed { start, end })
}

/// Reads an all-day event by the dates as written. Without an end, it lasts one day.
pub(super) fn days(start: &str, end: Option<&str>) -> Result<When, Said> {
    let start = pieces("start_time", start)?.date();
    let end = match end {
        Some(end) => pieces("end_time", end)?.date(),
        None => start.checked_add(1.day()).map_err(|_| too_far("start_time"))?,
    };
    if end <= start {
        return Err(
            "The end_time of an all-day event is the day after its last day, so it must be after the \
                    start_time."
                .into(),
        );
    }
    Ok(When::Days { start, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    #[test]
    fn times_are_moments_and_bad_ones_are_refused() {
        for (start, end, expected) in [
            ("2026-03-09T15:00", None, Ok(("2026-03-09T14:00:00Z", "2026-03-09T15:00:00Z"))),
            (" 2026-03-09 15:00:30 ", None, Ok(("2026-03-09T14:00:30Z", "2026-03-09T15:00:30Z"))),
            ("2026-03-09T15:00:00-05:00", None, Ok(("2026-03-09T20:00:00Z", "2026-03-09T21:00:00Z"))),
            (
                "2026-03-09T15:00:00Z",
                Some("2026-03-09T17:00"),
                Ok(("2026-03-09T15:00:00Z", "2026-03-09T16:00:00Z")),
            ),
            (
                "2026-07-01T15:00[America/New_York]",
                None,
                Ok(("2026-07-01T19:00:00Z", "2026-07-01T20:00:00Z")),
            ),
            // The clock goes forward from 2 to 3, so 2:30 means 3:30.
            ("2026-03-29T02:30", None, Ok(("2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"))),
            (
                "2026-03-29T01:30",
                Some("2026-03-29T03:00"),
                Ok(("2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z")),
            ),
            // The clock goes back from 3 to 2, so 2:30 comes twice; the event still lasts an hour.
            ("2026-10-25T02:30", None, Ok(("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"))),
            ("2026-10-25T02:30+01:00", None, Ok(("2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"))),
            ("2026-03-09T15:00", Some("2026-03-09T15:00"), Err("after the start_time")),
            ("2026-03-09T15:00", Some("2026-03-09T14:00"), Err("after the start_time")),
            ("2026-03-09T15:00+01:00", Some("2026-03-09T15:30+02:00"), Err("after the start_time")),
            ("2026-03-09", None, Err("needs a time of day")),
            ("2026-03-09T15:00", Some("2026-03-10"), Err("end_time needs a time of day")),
            ("tomorrow", None, Err("start_time must be a date")),
            ("", None, Err("start_time must be a date")),
            ("2026-02-30T10:00", None, Err("start_time must be a date")),
            ("2026-03-09T25:00", None, Err("start_time must be a date")),
            ("1969-12-31T10:00", None, Err("between 1970 and 2199")),
            ("9999-12-31T23:30", None, Err("between 1970 and 2199")),
            ("2026-03-09T15:00[Mars/Olympus]", None, Err("unknown time zone")),
        ] {
            let found = timed(start, end, &berlin());
            match (found, expected) {
                (Ok(When::Timed { start: s, end: e }), Ok((from, to))) => {
                    assert_eq!((s.to_string().as_str(), e.to_string().as_str()), (from, to), "{start}");
                }
                (Err(said), Err(word)) => assert!(said.to_string().contains(word), "{start}: {said}"),
                other => panic!("{start}: {other:?}"),
            }
        }
    }

    #[test]
    fn days_go_by_the_date_that_was_written() {
        let date = |text: &str| text.parse::<Date>().unwrap();
        for (start, end, expected) in [
            ("2026-03-09", None, Some(("2026-03-09", "2026-03-10"))),
            ("2026-12-31", None, Some(("2026-12-31", "2027-01-01"))),
            ("2026-03-09T23:30:00-11:00", None, Some(("2026-03-09", "2026-03-10"))),
            ("2026-03-09", Some("2026-03-12"), Some(("2026-03-09", "2026-03-12"))),
            ("2026-03-09", Some("2026-03-09"), None),
            ("2026-03-09", Some("2026-03-08"), None),
            ("2026-13-01", None, None),
            ("2200-01-01", None, None),
        ] {
            let expected = expected.map(|(s, e)| When::Days { start: date(s), end: date(e) });
            assert_eq!(days(start, end).ok(), expected, "{start} to {end:?}");
        }
    }

    mod fuzz {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            /// Any text is either rejected with a short error message or becomes a valid time range in the supported
            /// years.
            #[test]
            fn times_are_sound_or_refused(
                start in written(),
                end in proptest::option::of(written()),
            ) {
                let years = 1969..=2201;
                match timed(&start, end.as_deref(), &berlin()) {
                    Ok(When::Timed { start, end }) => {
                        let year = |at: Timestamp| at.to_zoned(TimeZone::UTC).year();
                        prop_assert!(start < end && years.contains(&year(start)) && years.contains(&year(end)));
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(said) => prop_assert!(said.to_string().len() <= 200, "{said}"),
                }
                match days(&start, end.as_deref()) {
                    Ok(When::Days { start, end }) => {
                        prop_assert!(start < end && years.contains(&start.year()) && years.contains(&end.year()));
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(said) => prop_assert!(said.to_string().len() <= 200, "{said}"),
                }
            }
        }

        fn written() -> impl Strategy<Value = String> {
            kai_mutate::text(
                [
                    "2026-03-09T15:00",
                    "2199-12-31T23:59:60-23:59",
                    "2026-10-25 02:30[Europe/Berlin]",
                    "1970-01-01",
                    "+002026-03-09T15Z",
                ]
                .map(str::to_owned)
                .to_vec(),
            )
        }
    }
}
