//! Tests of the archive against a store in memory.

use proptest::prelude::*;

use super::find::{message, search, wrote_before};
use super::*;
use crate::db::Db;
use crate::phones::Switch;
use crate::phones::port::Contact;
use crate::phones::store::{NewPhone, begin_reading, pair, set};
use crate::sms::names;
use crate::sms::search::Wanted;
use crate::tool::Eyes;

const PHONE: SourceId = SourceId(2);
const MODEL: View = View::Model(Eyes::NoCodes);
const SINCE: i64 = 1_800_000_000_000;
const DAY: i64 = 24 * 60 * 60 * 1_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

fn store(days: u32) -> Db {
    let db = Db::in_memory(crate::MIGRATIONS).unwrap();
    let made = db.write_now(|tx| {
        for (device, name) in [("a", "Pixel"), ("b", "Fairphone")] {
            let new = NewPhone {
                device: device.to_owned(),
                name: name.to_owned(),
                certificate: vec![],
                protocol: 8,
            };
            let phone = pair(tx, &new, at(0))?.source;
            set(tx, phone, Switch::ReadSms, true)?;
            begin_reading(tx, phone, at(SINCE))?;
        }
        settings::store(tx, &SMS_ENABLED.key, "true")?;
        settings::store(tx, &SMS_ARCHIVE_DAYS.key, &days.to_string())
    });
    made.unwrap();
    db
}

fn sms(native_id: i64, date: i64, address: &str, body: &str) -> PhoneMessage {
    PhoneMessage {
        kind: MessageKind::Sms,
        native_id,
        thread: ThreadId(1),
        folder: Folder::Inbox,
        read: false,
        date: at(date),
        address: Untrusted::new(address),
        body: Untrusted::new(body),
    }
}

/// Archives messages that a page brought.
fn take_for(
    tx: &Transaction<'_>,
    source: SourceId,
    list: &[PhoneMessage],
    step: &Step,
) -> Result<(), DbError> {
    let now = at(SINCE + DAY);
    let rules = Rules::now(tx, source, now)?.expect("it is read");
    take(tx, &rules, list, step, now).map(drop)
}

fn page(tx: &Transaction<'_>, list: &[PhoneMessage]) -> Result<(), DbError> {
    take_for(tx, PHONE, list, &Step::default())
}

fn found(tx: &Transaction<'_>, view: View, query: &str) -> Vec<String> {
    let wanted = Wanted::new(query).unwrap().or_from(names::numbers_of(tx, query).unwrap());
    let found = search(tx, view, &wanted, 20).unwrap();
    found.into_iter().map(|stored| stored.body.as_written().to_owned()).collect()
}

fn queued(tx: &Transaction<'_>) -> Vec<Queued> {
    pending::waiting(tx, QUEUE).unwrap().into_iter().map(|waiting| waiting.entry).collect()
}

fn run(db: &Db, test: impl FnOnce(&Transaction<'_>) -> Result<(), DbError>) {
    db.write_now(test).unwrap();
}

#[test]
fn a_message_gets_a_number_of_its_own_and_keeps_it() {
    let db = store(365);
    run(&db, |tx| {
        let list = [sms(7, SINCE + 1, "+15550100", "b"), sms(6, SINCE, "+15550100", "a")];
        page(tx, &list)?;
        page(tx, &list)?;
        let ids: Vec<i64> = queued(tx).iter().map(|one| one.id.0).collect();
        assert_eq!(ids, [10_000_001, 10_000_002], "oldest first, each once");
        // The phone uses a number again, and another phone has the same.
        page(tx, &[sms(7, SINCE + 2, "+15550100", "c"), sms(7, SINCE + 1, "+15550199", "d")])?;
        take_for(tx, SourceId(3), &list, &Step::default())?;
        assert_eq!(queued(tx).len(), 6);
        assert_eq!(queued(tx)[4].source, SourceId(3));
        let stored = message(tx, MODEL, SmsId(10_000_002))?.unwrap();
        assert_eq!((stored.body.as_written(), stored.source, stored.read), ("b", PHONE, false));
        assert_eq!(message(tx, MODEL, SmsId(7))?, None, "the phone's own number means nothing");
        forget_phone(tx, PHONE)?;
        assert_eq!(message(tx, MODEL, SmsId(10_000_002))?, None);
        assert_eq!((queued(tx).len(), pending::by_phone(tx, QUEUE)?.len()), (2, 1));
        assert_eq!(found(tx, MODEL, "a"), ["a"], "the other phone's stay");
        page(tx, &list)?;
        assert_eq!(queued(tx).last().unwrap().id.0, 10_000_008, "no number twice");
        Ok(())
    });
}

#[test]
fn only_what_arrived_is_news() {
    let db = store(365);
    run(&db, |tx| {
        let sent = PhoneMessage { folder: Folder::Sent, ..sms(3, SINCE + 2, "+15550100", "mine") };
        let mms = PhoneMessage { kind: MessageKind::Mms, ..sms(3, SINCE + 3, "+15550100", "x.jpg") };
        let code = sms(4, SINCE + 4, "Bank", &format!("{}Your code is 482913", "x".repeat(190)));
        page(tx, &[code, mms, sent, sms(2, SINCE, "+1", "at once"), sms(1, SINCE - 1, "+1", "before")])?;
        let previews: Vec<String> =
            queued(tx).iter().map(|one| one.preview.as_written().to_owned()).collect();
        assert_eq!(previews[..2], ["at once".to_owned(), MMS.to_owned()]);
        assert!(previews[2].chars().count() <= 200 && !previews[2].contains('4'), "{}", previews[2]);
        assert_eq!(previews.len(), 3);
        // A clock that is behind: what is pushed now is news, what a page brings is not.
        let live = Step { live_after: [(ThreadId(1), SINCE - 500)].into(), ..Step::default() };
        take_for(tx, PHONE, &[sms(5, SINCE - 400, "+1", "late"), sms(6, SINCE - 600, "+1", "old")], &live)?;
        assert_eq!(queued(tx).last().unwrap().preview.as_written(), "late");
        assert_eq!(queued(tx).len(), 4);
        assert_eq!(message(tx, MODEL, SmsId(10_000_003))?, None, "a model does not read what was sent");
        assert!(message(tx, View::Everything, SmsId(10_000_003))?.is_some());
        assert_eq!(sent_since(tx, PHONE, at(SINCE))?.len(), 1);
        for (between, expected) in
            [(SINCE - 1..=SINCE + 2, &["before", "at once"][..]), (SINCE + 5..=SINCE + 200_000, &[])]
        {
            let came = received(tx, PHONE, &between)?;
            let texts: Vec<&str> = came.iter().map(|(_, body)| body.as_written()).collect();
            assert_eq!(texts, expected, "{between:?}");
        }
        Ok(())
    });
}

#[test]
fn search_finds_words_numbers_and_names_newest_first() {
    let db = store(365);
    run(&db, |tx| {
        page(
            tx,
            &[
                sms(5, SINCE + 5, "+49 171 5550100", "Großer ÄRGER heute"),
                sms(4, SINCE + 4, "DHL", "Parcel for 東京, call +49 30 555-0199"),
                sms(3, SINCE + 3, "+15550103333", "tea at five 😀"),
                sms(2, SINCE + 2, "+15550103333", "Tea at six"),
                sms(1, SINCE + 1, "12345", "100% sure, a_b"),
            ],
        )?;
        let lena = Contact {
            uid: "1".to_owned(),
            name: Untrusted::new("Lena Ärger"),
            numbers: vec![Untrusted::new("01 555-010-3333")],
        };
        names::replace(tx, PHONE, &[lena])?;
        for (query, expected) in [
            ("ärger", vec!["Großer ÄRGER heute", "tea at five 😀", "Tea at six"]),
            ("GROSSER heu", vec!["Großer ÄRGER heute"]),
            ("rger", vec![]),
            ("tea at", vec!["tea at five 😀", "Tea at six"]),
            ("at tea fi", vec!["tea at five 😀"]),
            ("lena", vec!["tea at five 😀", "Tea at six"]),
            ("01715550100", vec!["Großer ÄRGER heute"]),
            ("0171 555", vec!["Großer ÄRGER heute"]),
            ("5550100", vec!["Großer ÄRGER heute"]),
            ("030 5550199", vec!["Parcel for 東京, call +49 30 555-0199"]),
            ("dhl", vec!["Parcel for 東京, call +49 30 555-0199"]),
            ("京", vec!["Parcel for 東京, call +49 30 555-0199"]),
            ("東京", vec!["Parcel for 東京, call +49 30 555-0199"]),
            ("京東", vec![]),
            ("😀", vec!["tea at five 😀"]),
            ("a_b 100%", vec!["100% sure, a_b"]),
            ("%", vec![]),
            ("12345", vec!["100% sure, a_b"]),
        ] {
            assert_eq!(found(tx, MODEL, query), expected, "{query}");
        }
        let all: Vec<PhoneMessage> =
            (10..40).map(|n| sms(n, SINCE + n, "+1", &format!("many {n}"))).rev().collect();
        page(tx, &all)?;
        let many = found(tx, MODEL, "many");
        assert_eq!((many.len(), many[0].as_str(), many[19].as_str()), (20, "many 39", "many 20"));
        Ok(())
    });
}

/// A model that searches for digits learns nothing about a code that it does not see.
#[test]
fn hidden_codes_are_found_by_nobody_who_does_not_see_them() {
    let db = store(365);
    run(&db, |tx| {
        let text = "Your code is 482913. Never share it. Call 555 0100.";
        page(tx, &[sms(1, SINCE, "Bank", text)])?;
        for guess in
            ["482913", "4829", "482 913", "4", "48-29-13", "whole:482913", "\"482913\"", "code 482913"]
        {
            assert!(found(tx, MODEL, guess).is_empty(), "{guess}");
        }
        assert_eq!(found(tx, MODEL, "5550100"), [text], "other numbers are found");
        for view in [View::Model(Eyes::All), View::Inbox, View::Everything] {
            assert_eq!(found(tx, view, "4829"), [text], "{view:?}");
        }
        Ok(())
    });
}

#[test]
fn a_model_sees_nothing_of_a_phone_that_is_turned_off() {
    let db = store(365);
    run(&db, |tx| {
        page(tx, &[sms(1, SINCE, "+4915550100142", "hello")])?;
        assert!(wrote_before(tx, "0155 50100142")? && !wrote_before(tx, "+15550100143")?);
        set(tx, PHONE, Switch::ReadSms, false)?;
        assert!(found(tx, MODEL, "hello").is_empty() && message(tx, MODEL, FIRST_ID)?.is_none());
        assert!(!wrote_before(tx, "0155 50100142")?);
        assert_eq!(found(tx, View::Inbox, "hello"), ["hello"], "the user still does");
        assert!(Rules::now(tx, PHONE, at(SINCE))?.is_none());
        phones::store::remove(tx, PHONE)?;
        assert_eq!(found(tx, MODEL, "hello"), ["hello"], "the user unpaired the phone and kept its messages");
        Ok(())
    });
}

#[test]
fn unread_until_it_is_read_or_opened() {
    let db = store(365);
    run(&db, |tx| {
        let read = PhoneMessage { read: true, ..sms(3, SINCE + 2, "+1", "c") };
        page(tx, &[read, sms(2, SINCE + 1, "+1", "b"), sms(1, SINCE, "+1", "a")])?;
        let state = |tx| phone_state(tx, PHONE, at(SINCE));
        assert_eq!((state(tx)?.messages, state(tx)?.unread), (3, 2));
        open(tx, FIRST_ID)?;
        assert!(message(tx, MODEL, FIRST_ID)?.unwrap().read);
        page(tx, &[PhoneMessage { read: true, ..sms(2, SINCE + 1, "+1", "b") }])?;
        assert_eq!(state(tx)?.unread, 0, "the phone says so");
        page(tx, &[sms(2, SINCE + 1, "+1", "b")])?;
        assert_eq!(state(tx)?.unread, 0, "and does not take it back");
        Ok(())
    });
}

#[test]
fn the_state_says_how_far_it_is() {
    let db = store(365);
    run(&db, |tx| {
        assert_eq!(phone_state(tx, PHONE, at(SINCE))?, PhoneState::default());
        let horizon = SINCE - 365 * DAY;
        let half = Kept { from: SINCE - 365 * DAY / 2, to: SINCE, end: false, settled: false };
        let marks = [
            (ThreadId(1), Some(half)),
            (ThreadId(2), Some(Kept { from: horizon - 1, to: SINCE, end: false, settled: false })),
        ];
        take_for(tx, PHONE, &[], &Step { marks: marks.into(), ..Step::default() })?;
        note_error(tx, PHONE, Some(&"Why.".into()))?;
        let state = phone_state(tx, PHONE, at(SINCE))?;
        assert_eq!((state.threads, state.done, state.per_mille), (2, 1, 750));
        assert_eq!((state.last_sync, state.last_error), (Some(at(SINCE + DAY)), Some("Why.".into())));
        note_error(tx, PHONE, None)?;
        assert_eq!(phone_state(tx, PHONE, at(SINCE))?.last_error, None);
        Ok(())
    });
}

#[test]
fn what_is_old_goes_and_is_asked_for_again_if_the_setting_is_raised() {
    let db = store(30);
    run(&db, |tx| {
        let now = SINCE + DAY;
        let list: Vec<PhoneMessage> =
            (0..20).map(|n| sms(n, now - n * 2 * DAY, "+1", &format!("day {n}"))).collect();
        let kept = Kept { from: now - 40 * DAY, to: now, end: true, settled: true };
        page(tx, &list)?;
        mark(tx, PHONE, ThreadId(1), Some(kept))?;
        assert_eq!(phone_state(tx, PHONE, at(now))?.messages, 16, "what is too old is not even taken");
        assert_eq!(sweep(tx, at(now))?, 0);
        assert_eq!(marks(tx, PHONE)?[&ThreadId(1)], kept, "nothing went");
        assert_eq!(sweep(tx, at(now + 10 * DAY))?, 5);
        assert_eq!(phone_state(tx, PHONE, at(now))?.messages, 11);
        assert_eq!(found(tx, MODEL, "day").len(), 11, "and its words are gone");
        let left = marks(tx, PHONE)?[&ThreadId(1)];
        assert_eq!(left, Kept { from: now - 20 * DAY - 1, to: now, end: false, settled: true });
        assert!(left.is_done(now - 20 * DAY) && !left.is_done(now - 365 * DAY));
        Ok(())
    });
}

#[test]
fn with_0_days_a_message_leaves_with_its_queue_entry_and_is_not_news_again() {
    let db = store(0);
    run(&db, |tx| {
        let list = [sms(2, SINCE + 2, "+1", "new"), sms(1, SINCE - 1, "+1", "before")];
        let kept = Kept { from: SINCE, to: SINCE + 2, end: false, settled: false };
        let step = Step { marks: [(ThreadId(1), Some(kept))].into(), ..Step::default() };
        take_for(tx, PHONE, &list, &step)?;
        let sent = PhoneMessage { folder: Folder::Sent, ..sms(3, SINCE + 3, "+1", "mine") };
        page(tx, &[sent])?;
        assert_eq!(
            (found(tx, View::Everything, "new").len(), phone_state(tx, PHONE, at(SINCE))?.messages),
            (1, 1)
        );
        sweep(tx, at(SINCE + DAY))?;
        assert!(message(tx, MODEL, FIRST_ID)?.is_some(), "it is still queued");
        let seqs: Vec<i64> = pending::waiting::<Queued>(tx, QUEUE)?.iter().map(|one| one.seq).collect();
        pending::forget(tx, QUEUE, &seqs)?;
        assert!(message(tx, MODEL, FIRST_ID)?.is_none() && found(tx, View::Everything, "new").is_empty());
        assert_eq!(phone_state(tx, PHONE, at(SINCE))?.messages, 0);
        sweep(tx, at(SINCE + DAY))?;
        page(tx, &list)?;
        assert!(queued(tx).is_empty(), "the phone repeats itself");
        // Much later the identity is gone too, and what is far behind the newest message is no news.
        mark(tx, PHONE, ThreadId(1), Some(Kept { to: SINCE + 3 * DAY, ..kept }))?;
        sweep(tx, at(SINCE + 3 * DAY))?;
        let rows: i64 = tx.query_row("SELECT count(*) FROM sms_archive", [], |row| row.get(0))?;
        assert_eq!(rows, 0);
        page(tx, &list)?;
        assert!(queued(tx).is_empty());
        Ok(())
    });
}

#[test]
fn whoever_wants_an_archive_after_all_gets_it_without_news() {
    let db = store(0);
    run(&db, |tx| {
        let list = [sms(1, SINCE, "+1", "hello")];
        let kept = Kept { from: SINCE, to: SINCE, end: false, settled: false };
        take_for(tx, PHONE, &list, &Step { marks: [(ThreadId(1), Some(kept))].into(), ..Step::default() })?;
        pending::clear(tx, QUEUE)?;
        settings::store(tx, &SMS_ARCHIVE_DAYS.key, "30")?;
        assert!(marks(tx, PHONE)?.is_empty(), "everything is asked for again");
        page(tx, &list)?;
        assert_eq!(found(tx, MODEL, "hello"), ["hello"]);
        assert!(queued(tx).is_empty());
        settings::store(tx, &SMS_ARCHIVE_DAYS.key, "0")?;
        sweep(tx, at(SINCE))?;
        assert!(found(tx, MODEL, "hello").is_empty(), "and gone when it is not wanted");
        Ok(())
    });
}

#[test]
fn odd_dates_and_lengths_do_no_harm() {
    let db = store(3_650);
    run(&db, |tx| {
        let last = 253_402_207_200_000;
        for (native_id, date) in [(1, last), (2, SINCE), (3, SINCE), (4, SINCE)] {
            page(tx, &[sms(native_id, date, &"9".repeat(1_000), &"word ".repeat(20_000))])?;
        }
        assert_eq!(found(tx, MODEL, "word").len(), 4);
        let stored = message(tx, MODEL, FIRST_ID)?.unwrap();
        assert_eq!(stored.body.as_written().chars().count(), LONGEST_BODY);
        assert_eq!(stored.address.as_written().chars().count(), LONGEST_ADDRESS);
        assert_eq!(stored.date.as_millisecond(), last);
        forget_all(tx)?;
        assert!(found(tx, MODEL, "word").is_empty());
        Ok(())
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    /// Whatever is typed is words to the index: it finds what has them, never fails, and never sees a hidden code.
    #[test]
    fn any_query_is_only_words(queries in prop::collection::vec("\\PC{1,30}|[\"*:(){}^+\\-a-c ORNEAT0-9\\\\]{1,30}", 1..20)) {
        let db = store(365);
        run(&db, |tx| {
            page(tx, &[sms(1, SINCE, "Bank", "Your code is 482913")])?;
            for (n, query) in queries.iter().enumerate().filter(|(_, query)| !query.trim().is_empty()) {
                let guessed = query.chars().any(|c| c.is_ascii_digit())
                    && found(tx, MODEL, query).iter().any(|text| text == "Your code is 482913");
                assert!(!guessed, "{query:?}");
                let number = i64::try_from(n).unwrap() + 10;
                page(tx, &[sms(number, SINCE + number, "+1", query)])?;
                let has_words = query.chars().any(char::is_alphanumeric);
                assert!(!has_words || found(tx, View::Inbox, query).contains(query), "{query:?}");
            }
            Ok(())
        });
    }
}

#[test]
fn unread_messages_are_counted_without_reading_the_others() {
    run(&store(0), |tx| {
        let plan = format!("EXPLAIN QUERY PLAN {COUNT_UNREAD}");
        let plan: String = tx.query_row(&plan, [PHONE], |row| row.get("detail"))?;
        assert!(plan.contains("USING INDEX sms_archive_unread"), "{plan}");
        Ok(())
    });
}

#[test]
fn the_newest_received_message_is_known_even_without_its_text() {
    run(&store(365), |tx| {
        assert_eq!(newest(tx, PHONE)?, None);
        page(tx, &[sms(1, SINCE + 1, "+15550100142", "first"), sms(2, SINCE + 2, "+15550100142", "second")])?;
        let second = newest(tx, PHONE)?;
        let text = message(tx, View::Inbox, second.expect("there are two"))?.map(|stored| stored.body);
        assert_eq!(text, Some(Untrusted::new("second")));
        tx.execute("UPDATE sms_archive SET body = NULL WHERE native_id = 2", [])?;
        assert_eq!(newest(tx, PHONE)?, second);
        tx.execute("UPDATE sms_archive SET body = NULL", [])?;
        assert_eq!((newest(tx, PHONE)?, newest(tx, SourceId(3))?), (second, None));
        let plan: Vec<String> = tx
            .prepare(&format!("EXPLAIN QUERY PLAN {NEWEST}"))?
            .query_map([PHONE], |row| row.get("detail"))?
            .collect::<rusqlite::Result<_>>()?;
        // Whatever other phones have, and however long this one has been silent.
        let steps = plan.iter().filter(|step| !step.contains("SCALAR SUBQUERY"));
        assert!(
            steps.clone().all(|step| step.starts_with("SEARCH sms_archive USING")),
            "nothing is gone through or sorted: {plan:?}"
        );
        assert_eq!(steps.count(), 3, "{plan:?}");
        Ok(())
    });
}

#[test]
fn a_number_is_forgotten_with_its_last_message() {
    run(&store(365), |tx| {
        let other = SourceId(3);
        page(tx, &[sms(1, SINCE + 1, "+15550100142", "a"), sms(2, SINCE + 2, "+15550100142", "b")])?;
        take_for(tx, other, &[sms(1, SINCE + 1, "+15550100142", "a")], &Step::default())?;
        let known = || {
            let mut rows = tx.prepare("SELECT number FROM sms_numbers").unwrap();
            rows.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<Vec<String>>>().unwrap()
        };
        assert_eq!(known(), ["15550100142"]);
        forget_phone(tx, other)?;
        assert_eq!((known().len(), found(tx, View::Inbox, "100142").len()), (1, 2), "the other phone has it");
        forget_all(tx)?;
        assert!(known().is_empty());
        Ok(())
    });
}
