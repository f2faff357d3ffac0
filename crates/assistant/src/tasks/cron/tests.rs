//! Tests of parsing and of the next time, by tables and by an oracle that checks every minute.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn cron(written: &str) -> Cron {
    written.parse().unwrap_or_else(|said| panic!("{written}: {said}"))
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn numbers(field: Field) -> Vec<i8> {
    field.numbers().collect()
}

#[test]
fn fields_are_the_numbers_they_mean() {
    let read = cron(" */20  9-17/4 1,15,31 * 5-7 ");
    assert_eq!(read.to_string(), "*/20 9-17/4 1,15,31 * 5-7");
    assert_eq!(numbers(read.minutes), [0, 20, 40]);
    assert_eq!(numbers(read.hours), [9, 13, 17]);
    assert_eq!(numbers(read.days), [1, 15, 31]);
    assert_eq!(numbers(read.months), (1..=12).collect::<Vec<_>>());
    assert_eq!(numbers(read.weekdays), [0, 5, 6], "Sunday is 0 and 7");
    assert_eq!(numbers(cron("* * * * *").weekdays), (0..7).collect::<Vec<_>>());
    assert_eq!(numbers(cron("* * * * */3").weekdays), [0, 3, 6]);
    assert_eq!(numbers(cron("0-10,5-15 * * * *").minutes), (0..16).collect::<Vec<_>>());
}

#[test]
fn names_and_words_stand_for_numbers() {
    for (written, plain) in [
        ("0 8 * * MON", "0 8 * * 1"),
        ("0 8 * * mon-Fri", "0 8 * * 1-5"),
        ("0 8 * * FRI-SUN", "0 8 * * 5-7"),
        ("0 8 * * SUN-TUE", "0 8 * * 0-2"),
        ("0 8 * * SUN", "0 8 * * 7"),
        ("0 8 * * TUE,THU,6", "0 8 * * 2,4,6"),
        ("0 8 1 JAN,jul *", "0 8 1 1,7 *"),
        ("0 8 1 MAR-NOV/4 *", "0 8 1 3-11/4 *"),
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ] {
        let (read, meant) = (cron(written), cron(plain));
        let fields = |cron: &Cron| (cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays);
        assert_eq!(fields(&read), fields(&meant), "{written}");
    }
    assert_eq!(cron("0 8 * * MON-FRI").to_string(), "0 8 * * MON-FRI");
    assert_eq!(cron("@daily").to_string(), "0 0 * * *", "a word is kept as what it stands for");
}

#[test]
fn what_makes_no_sense_or_never_comes_is_refused_in_words() {
    for (written, word) in [
        ("", "five fields"),
        ("* * * *", ", not 4"),
        ("0 * * * * *", ", not 6"),
        ("60 * * * *", "\"60\" is not a valid minute"),
        ("* 24 * * *", "is not a valid hour"),
        ("* * 0 * *", "is not a valid day of the month"),
        ("* * 32 * *", "is not a valid day of the month"),
        ("* * * 13 *", "is not a valid month"),
        ("* * * 0 *", "is not a valid month"),
        ("* * * * 8", "is not a valid day of the week"),
        ("* * * * MOND", "is not a valid day of the week"),
        ("* * * JAN-XYZ *", "a name from JAN to DEC"),
        ("* * * * */MON", "is not a valid day of the week"),
        ("MON * * * *", "is not a valid minute"),
        ("* * * MON *", "is not a valid month"),
        ("* * * * SAT-MON", "is not a valid day of the week"),
        ("@reboot", "@reboot is not a cron expression that Kai knows. Write one of @yearly"),
        ("@daily 5", "@daily 5 is not a cron expression that Kai knows"),
        ("-1 * * * *", "is not a valid minute"),
        ("+1 * * * *", "is not a valid minute"),
        ("1.5 * * * *", "is not a valid minute"),
        ("*/0 * * * *", "is not a valid minute"),
        ("*/ * * * *", "is not a valid minute"),
        ("*/-2 * * * *", "is not a valid minute"),
        ("5/15 * * * *", "is not a valid minute"),
        ("20-10 * * * *", "\"20-10\" is not a valid minute"),
        ("1,,2 * * * *", "is not a valid minute"),
        ("1, * * * *", "is not a valid minute"),
        ("** * * * *", "is not a valid minute"),
        ("1-2-3 * * * *", "is not a valid minute"),
        ("999999999999 * * * *", "is not a valid minute"),
        ("0 0 30 2 *", "never matches a date"),
        ("0 0 31 2,4,6,9,11 *", "never matches a date"),
        ("0 0 31 4 */2", "never matches a date"),
    ] {
        let said = written.parse::<Cron>().unwrap_err();
        assert!(said.to_string().contains(word), "{written:?}: {said}");
    }
}

#[test]
fn the_next_time_in_a_zone() {
    const BERLIN: &str = "Europe/Berlin";
    const NEW_YORK: &str = "America/New_York";
    for (written, place, after, expected) in [
        ("30 7 * * 1-5", BERLIN, "2026-03-06T07:29+01:00", "2026-03-06T07:30+01:00"),
        ("30 7 * * 1-5", BERLIN, "2026-03-06T07:30+01:00", "2026-03-09T07:30+01:00"),
        ("* * * * *", BERLIN, "2026-03-06T07:29:59+01:00", "2026-03-06T07:30+01:00"),
        ("*/15 9-17 * * *", BERLIN, "2026-03-06T17:45+01:00", "2026-03-07T09:00+01:00"),
        ("0 0 1 1 *", BERLIN, "2026-01-01T00:00+01:00", "2027-01-01T00:00+01:00"),
        ("0 9 31 * *", BERLIN, "2026-04-01T00:00+02:00", "2026-05-31T09:00+02:00"),
        ("0 9 29 2 *", BERLIN, "2026-03-01T00:00+01:00", "2028-02-29T09:00+01:00"),
        ("0 9 29 2 *", BERLIN, "2096-03-01T00:00+01:00", "2104-02-29T09:00+01:00"),
        // The 13th and every Friday: either one matches.
        ("0 9 13 * 5", BERLIN, "2026-04-03T09:00+02:00", "2026-04-10T09:00+02:00"),
        ("0 9 13 * 5", BERLIN, "2026-04-10T09:00+02:00", "2026-04-13T09:00+02:00"),
        // A field that begins with a star is no restriction, even with a step: the odd days that are a Monday.
        ("0 9 */2 * 1", BERLIN, "2026-04-01T00:00+02:00", "2026-04-13T09:00+02:00"),
        // 2:30 does not exist on 29 March 2026 in Berlin, so it fires an hour later; from the next day on as usual.
        ("30 2 * * *", BERLIN, "2026-03-28T12:00+01:00", "2026-03-29T03:30+02:00"),
        ("30 2 * * *", BERLIN, "2026-03-29T03:30+02:00", "2026-03-30T02:30+02:00"),
        ("0 2,3 * * *", BERLIN, "2026-03-28T12:00+01:00", "2026-03-29T03:00+02:00"),
        ("0 2,3 * * *", BERLIN, "2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"),
        ("30 2,3 * * *", BERLIN, "2026-03-29T01:59+01:00", "2026-03-29T03:30+02:00"),
        // A time that was moved forward may come after a later one.
        ("45,50 2-3 * * *", BERLIN, "2026-03-29T03:45+02:00", "2026-03-29T03:50+02:00"),
        ("0 * * * *", BERLIN, "2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"),
        // 2:30 occurs twice on 25 October 2026: it fires once, unless the expression fires every hour.
        ("30 2 * * *", BERLIN, "2026-10-25T00:00+02:00", "2026-10-25T02:30+02:00"),
        ("30 2 * * *", BERLIN, "2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"),
        ("30 * * * *", BERLIN, "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"),
        ("30 * * * *", BERLIN, "2026-10-25T02:30+01:00", "2026-10-25T03:30+01:00"),
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00-05:00", "2026-03-08T03:30-04:00"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T00:00-04:00", "2026-11-01T01:30-04:00"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"),
        ("*/30 * * * *", NEW_YORK, "2026-11-01T01:30-04:00", "2026-11-01T01:00-05:00"),
        // In Beirut the clock change skips midnight itself.
        ("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00+02:00", "2026-03-29T01:00+03:00"),
        // A clock change of only half an hour.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00+10:30", "2026-10-04T02:45+11:00"),
    ] {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let found = cron(written).after(at(after), &zone(place));
        assert_eq!(found, Some(at(expected)), "{written} in {place} after {after}");
    }
}

#[test]
fn the_end_of_the_calendar_is_no_panic() {
    assert_eq!(cron("* * * * *").after(Timestamp::MAX, &TimeZone::UTC), None);
    assert_eq!(cron("0 0 29 2 *").after(Timestamp::MAX, &zone("Europe/Berlin")), None);
}

/// Checks every minute from `from` to `to` for whether the wall clock shows a matching time.
fn oracle(cron: &Cron, from: Timestamp, to: Timestamp, zone: &TimeZone) -> BTreeSet<Timestamp> {
    let meant = |local: jiff::civil::DateTime| {
        cron.minutes.has(local.minute()) && cron.hours.has(local.hour()) && cron.fits(local.date())
    };
    let minute = SignedDuration::from_mins(1);
    let mut found = BTreeSet::new();
    let mut at = from;
    while at < to {
        let (here, before) =
            (zone.to_datetime(at), zone.to_datetime(at.saturating_sub(minute).unwrap_or(at)));
        let first_time = zone.to_ambiguous_timestamp(here).compatible().is_ok_and(|first| first == at);
        if meant(here) && (first_time || cron.every_hour()) {
            found.insert(at);
        }
        // The wall clock jumped forward: skipped times fire later by the length of the jump.
        let mut skipped = before.saturating_add(minute);
        let jump = here.duration_since(skipped);
        while skipped < here {
            if meant(skipped) {
                found.insert(zone.to_timestamp(skipped.saturating_add(jump)).unwrap());
            }
            skipped = skipped.saturating_add(minute);
        }
        at = at.saturating_add(minute).unwrap();
    }
    found
}

fn part(from: u8, to: u8) -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        (2..=(to - from)).prop_map(|n| format!("*/{n}")),
        (from..=to).prop_map(|n| n.to_string()),
        (from..=to, from..=to).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (from..=to, from..=to).prop_map(|(a, b)| format!("{a},{b}")),
    ]
}

/// Expressions that fire within days rather than years.
pub(in crate::tasks) fn frequent() -> impl Strategy<Value = String> {
    let minutes =
        (0..60_u8, part(0, 59)).prop_map(|(one, any)| if any == "*" { one.to_string() } else { any });
    (minutes, part(0, 23), part(1, 31), part(0, 6)).prop_map(|(minute, hour, day, weekday)| {
        let day = if weekday.starts_with('*') { "*".to_owned() } else { day };
        format!("{minute} {hour} {day} * {weekday}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Over five days around a clock change, `after` finds exactly the times that the oracle finds.
    #[test]
    fn every_time_comes_once(
        written in frequent(),
        (place, start) in prop::sample::select(vec![
            ("Europe/Berlin", "2026-03-27T12:00Z"),
            ("Europe/Berlin", "2026-10-23T12:00Z"),
            ("America/New_York", "2026-03-06T12:00Z"),
            ("America/New_York", "2026-10-30T12:00Z"),
            ("UTC", "2026-02-26T12:00Z"),
        ]),
    ) {
        let (cron, zone) = (cron(&written), zone(place));
        let from: Timestamp = start.parse().unwrap();
        let to = from + SignedDuration::from_hours(5 * 24);
        let mut found = BTreeSet::new();
        let mut at = from - SignedDuration::from_millis(1);
        while let Some(next) = cron.after(at, &zone).filter(|next| *next < to) {
            prop_assert!(next > at);
            found.insert(next);
            at = next;
        }
        prop_assert_eq!(found, oracle(&cron, from, to, &zone), "{}", written);
    }
}

mod fuzz {
    use super::*;
    use crate::tasks::describe::describe;

    proptest! {
        /// An accepted expression survives a round trip through text, fires after every moment, and has a description
        /// of bounded length.
        #[test]
        fn what_a_model_writes_is_refused_or_comes_true(
            written in kai_mutate::text(["*/5 8-18 * * 1-5", "0 0 29 2 0", "0,30 7 1-31/2 1,12 *", "59 23 31 12 7"].map(str::to_owned).to_vec()),
            second in 0..4_102_444_800_i64,
        ) {
            let Ok(cron) = written.parse::<Cron>() else { return Ok(()) };
            prop_assert_eq!(&cron.to_string().parse::<Cron>().unwrap(), &cron);
            prop_assert!(cron.to_string().len() <= 2_000 && describe(&cron, kai_words::Lang::ENGLISH).len() <= 2_000, "{cron}");
            let zone = zone("Europe/Berlin");
            let mut at = Timestamp::from_second(second).unwrap();
            for _ in 0..3 {
                let next = cron.after(at, &zone).unwrap();
                prop_assert!(next > at, "{cron} after {at}");
                at = next;
            }
        }
    }
}
