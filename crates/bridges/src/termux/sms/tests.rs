//! Tests SMS with scripts in place of the phone's programs: the exact arguments of every call, and everything that
//! can go wrong.

use std::time::Duration;

use jiff::tz::TimeZone;
use kai_assistant::MIGRATIONS;
use kai_assistant::clock::ManualClock;
use kai_assistant::db::Db;
use kai_assistant::outbox::door::SentMessage;
use kai_assistant::sms::{Inbox, Poller, SmsId};

use super::*;
use crate::program::fake::Programs;

/// Logs a call as one line with its arguments in brackets.
const NOTE_CALL: &str = r#"for a in "$@"; do printf '[%s]' "$a" >> "$LOG"; done; echo >> "$LOG""#;
const NEW_HELP: &str = r#"if [ "$1" = --help ]; then echo '[ --message-selection=<selection> ]'; exit 0; fi"#;
const OLD_HELP: &str = r#"if [ "$1" = --help ]; then echo 'illegal option --'; exit 1; fi"#;
/// Prints the file named after the limit argument.
const BY_LIMIT: &str = r#"cat "$(dirname "$0")/$4""#;
const PERMISSION: &str = r#"echo '{"error":"Please grant the following permissions: X"}'"#;

struct At(TimeZone);

impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn zone(&self) -> TimeZone {
        self.0.clone()
    }
}

fn termux(programs: &Programs) -> Termux {
    in_zone(programs, TimeZone::UTC)
}

fn in_zone(programs: &Programs, zone: TimeZone) -> Termux {
    let termux = Termux::in_folder(programs.folder()).with_clock(Arc::new(At(zone)));
    Termux { patience: Duration::from_secs(20), ..termux }
}

fn lists(programs: &Programs, help: &str, script: &str) {
    programs.write(LIST, &format!("{NOTE_CALL}\n{help}\n{script}"));
}

/// A list of messages with these ids, received that many minutes after the start of the year.
fn printed(kind: &str, messages: impl IntoIterator<Item = (i64, i64)>) -> String {
    let row = |(id, minutes): (i64, i64)| {
        format!(
            r#"{{"_id":{id},"type":"{kind}","address":"+1555","received":"2026-01-01 {:02}:{:02}:00","body":"b{id}"}}"#,
            minutes / 60,
            minutes % 60,
        )
    };
    format!("[{}]", messages.into_iter().map(row).collect::<Vec<_>>().join(","))
}

fn answer(programs: &Programs, name: &str, text: &str) {
    std::fs::write(programs.folder().join(name), text).unwrap();
}

fn minute(minutes: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + jiff::SignedDuration::from_mins(minutes)
}

fn ids(messages: &[Sms]) -> Vec<i64> {
    messages.iter().map(|sms| sms.id.0).collect()
}

#[tokio::test]
async fn the_phone_is_asked_in_its_own_words() {
    let programs = Programs::new();
    lists(&programs, NEW_HELP, "echo '[]'");
    let termux = termux(&programs);
    assert_eq!(termux.access().await, Access::Granted);
    assert_eq!(termux.last().await, Ok(None));
    assert_eq!(termux.from(From::Id(SmsId(41)), 50).await, Ok(vec![]));
    let date = "2026-11-15T00:30:00.75Z".parse().unwrap();
    assert_eq!(termux.from(From::Date(date), 50).await, Ok(vec![]));
    assert_eq!(termux.newest(0, 20).await, Ok(vec![]));
    assert_eq!(termux.newest(40, usize::MAX).await, Ok(vec![]));
    assert_eq!(termux.sent_since(date).await, Some(vec![]));
    assert_eq!(
        programs.log(),
        "[-t][inbox][-l][1]\n\
         [--help]\n\
         [-t][inbox][-l][1][--message-sort-order=_id DESC][--message-return-no-order-reverse]\n\
         [-t][inbox][-l][50][--message-selection=_id >= 41][--message-sort-order=_id ASC][--message-return-no-order-reverse]\n\
         [-t][inbox][-l][50][--message-selection=date >= 1794702600000][--message-sort-order=date ASC, _id ASC][--message-return-no-order-reverse]\n\
         [-t][inbox][-l][20][--message-sort-order=date DESC, _id DESC][--message-return-no-order-reverse]\n\
         [-t][inbox][-l][2147483647][-o][40][--message-sort-order=date DESC, _id DESC][--message-return-no-order-reverse]\n\
         [-t][sent][-l][500][--message-selection=date >= 1794702600000][--message-sort-order=date ASC, _id ASC][--message-return-no-order-reverse]\n"
    );
}

#[tokio::test]
async fn answers_come_out_in_the_order_that_was_promised() {
    let programs = Programs::new();
    // Id 9 was restored late and has the oldest date. 2 and 3 arrived in the same second.
    let messages = printed("inbox", [(3, 7), (1, 5), (9, 1), (2, 7)]);
    answer(&programs, "list", &messages);
    lists(&programs, NEW_HELP, r#"cat "$(dirname "$0")/list""#);
    let termux = termux(&programs);
    let sorted = [
        ("by id", termux.from(From::Id(SmsId(1)), 50).await, vec![1, 2, 3, 9]),
        ("by date", termux.from(From::Date(minute(0)), 50).await, vec![9, 1, 2, 3]),
        ("newest", termux.newest(0, 50).await, vec![3, 2, 1, 9]),
    ];
    for (name, found, expected) in sorted {
        assert_eq!(ids(&found.unwrap()), expected, "{name}");
    }
    let last = termux.last().await.unwrap().unwrap();
    assert_eq!((last.id.0, last.date, last.body.as_written()), (9, minute(1), "b9"));
}

#[tokio::test]
async fn what_goes_wrong_is_a_sentence_and_never_an_empty_inbox() {
    for (script, denied, words) in [
        (PERMISSION, true, "SMS and Contacts"),
        ("exit 0", false, "without an answer"),
        ("echo garbage", false, "something other than a list"),
        (r#"printf '[{"_id":1,"type":"in'"#, false, "is cut off"),
        ("echo the app is gone >&2; exit 1", false, "termux-sms-list failed: the app is gone"),
        ("yes", false, "printed more than 32768 KB"),
        ("kill -9 $$", false, "was killed"),
    ] {
        let programs = Programs::new();
        lists(&programs, NEW_HELP, script);
        assert_fails(&termux(&programs), script, denied, words).await;
    }
    let programs = Programs::new();
    assert_fails(&termux(&programs), "no program", false, "pkg install termux-api").await;
}

/// Checks that every kind of request fails in the same way.
async fn assert_fails(termux: &Termux, name: &str, denied: bool, words: &str) {
    let outcomes = [
        termux.last().await.map(|last| last.map(|_| ())),
        termux.from(From::Id(SmsId(1)), 5).await.map(|all| all.first().map(|_| ())),
        termux.from(From::Date(minute(0)), 5).await.map(|all| all.first().map(|_| ())),
        termux.newest(0, 5).await.map(|all| all.first().map(|_| ())),
    ];
    for outcome in outcomes {
        match outcome {
            Err(ReadError::NotPermitted(what)) => {
                assert!(denied && what.to_string().contains(words), "{name}: {what}");
            }
            Err(ReadError::Failed(why)) => {
                assert!(!denied && why.to_string().contains(words), "{name}: {why}");
            }
            Ok(_) => panic!("{name} succeeded"),
        }
    }
    match termux.access().await {
        Access::Denied(what) => assert!(denied && what.to_string().contains(words), "{name}: {what}"),
        Access::Silent(why) => assert!(!denied && why.to_string().contains(words), "{name}: {why}"),
        Access::Granted => panic!("{name} was granted"),
    }
    assert_eq!(termux.sent_since(minute(0)).await, None, "{name}");
}

#[tokio::test]
async fn a_program_that_hangs_is_given_up() {
    let programs = Programs::new();
    lists(&programs, NEW_HELP, "sleep 600");
    let termux = Termux { patience: Duration::from_millis(300), ..termux(&programs) };
    assert!(
        matches!(termux.access().await, Access::Silent(why) if why.to_string().contains("did not answer"))
    );
    lists(&programs, "sleep 600", "");
    let failed = termux.last().await.unwrap_err();
    assert!(matches!(failed, ReadError::Failed(why) if why.to_string().contains("did not answer")));
    // The script did not show whether it is an old one, so it is asked again.
    lists(&programs, NEW_HELP, "echo '[]'");
    assert_eq!(in_good_time(termux).last().await, Ok(None));
}

fn in_good_time(termux: Termux) -> Termux {
    Termux { patience: Duration::from_secs(20), ..termux }
}

#[tokio::test]
async fn ten_megabytes_are_read_whole() {
    let programs = Programs::new();
    let row = r#"{"_id":7,"type":"inbox","received":"2026-01-01 00:00:00","body":"$body"}"#;
    let body = "x".repeat(10_000);
    let script = format!("printf '['; yes '{row},' | head -n 1000; printf '{row}]'").replace("$body", &body);
    lists(&programs, NEW_HELP, &script);
    let all = termux(&programs).newest(0, 2000).await.unwrap();
    assert_eq!(all.len(), 1001);
    assert!(all.iter().all(|sms| sms.body.as_written() == body));
}

#[tokio::test]
async fn old_scripts_are_searched_backwards() {
    let programs = Programs::new();
    lists(&programs, OLD_HELP, BY_LIMIT);
    // 120 messages, one per minute.
    answer(&programs, "50", &printed("inbox", (71..=120).map(|n| (n, n))));
    answer(&programs, "500", &printed("inbox", (1..=120).map(|n| (n, n))));
    let termux = termux(&programs);
    for (name, from, limit, expected, calls) in [
        ("near", From::Id(SmsId(119)), 50, vec![119, 120], "50"),
        ("the last that proves it", From::Id(SmsId(72)), 2, vec![72, 73], "50"),
        ("further", From::Id(SmsId(71)), 2, vec![71, 72], "50 500"),
        ("everything", From::Id(SmsId(1)), 3, vec![1, 2, 3], "50 500"),
        ("nothing", From::Id(SmsId(121)), 3, vec![], "50"),
        ("near by date", From::Date(minute(119)), 50, vec![119, 120], "50"),
        ("further by date", From::Date(minute(71)), 1, vec![71], "50 500"),
    ] {
        let before = programs.log().lines().count();
        assert_eq!(ids(&termux.from(from, limit).await.unwrap()), expected, "{name}");
        let log = programs.log();
        let asked = log.lines().skip(before).filter(|line| *line != "[--help]");
        let expected: Vec<_> = calls.split(' ').map(|limit| format!("[-t][inbox][-l][{limit}]")).collect();
        assert_eq!(asked.collect::<Vec<_>>(), expected, "{name}");
    }
    assert_eq!(termux.last().await.unwrap().unwrap().id.0, 120);
    answer(&programs, "2", &printed("inbox", [(119, 119), (120, 120)]));
    assert_eq!(ids(&termux.newest(0, 2).await.unwrap()), [120, 119]);
    let helps = programs.log().lines().filter(|line| *line == "[--help]").count();
    assert_eq!(helps, 1);
}

#[tokio::test]
async fn an_old_script_that_is_asked_for_help_may_also_answer() {
    let programs = Programs::new();
    lists(&programs, r#"if [ "$1" = --help ]; then echo 'Usage: [-l limit]'; exit 0; fi"#, BY_LIMIT);
    answer(&programs, "50", &printed("inbox", [(1, 1), (2, 2)]));
    assert_eq!(ids(&termux(&programs).from(From::Id(SmsId(2)), 50).await.unwrap()), [2]);
}

/// With an app that ignores the filter of a new script, messages between the mark and the newest ones would be lost.
#[tokio::test]
async fn old_apps_under_new_scripts_are_found_out() {
    for (name, from, limit) in [
        ("as many as the limit", From::Id(SmsId(1)), 2),
        ("one from before", From::Id(SmsId(119)), 500),
        ("one from before by date", From::Date(minute(119)), 500),
    ] {
        let programs = Programs::new();
        let ignores = format!(r#"case "$*" in *"_id < 0"*) set -- -t inbox -l 1;; esac; {BY_LIMIT}"#);
        lists(&programs, NEW_HELP, &ignores);
        for (limit, oldest) in [("1", 120), ("2", 119), ("50", 71), ("500", 1)] {
            answer(&programs, limit, &printed("inbox", (oldest..=120).map(|n| (n, n))));
        }
        let termux = termux(&programs);
        let expected = if limit == 2 { [1, 2] } else { [119, 120] };
        for _ in 0..2 {
            assert_eq!(ids(&termux.from(from, limit).await.unwrap()), expected, "{name}");
        }
        let probes = programs.log().matches("[--message-selection=_id < 0]").count();
        let selections = programs.log().matches("--message-selection").count();
        assert_eq!((probes, selections), (1, 2), "{name}");
    }
}

#[tokio::test]
async fn a_new_app_is_trusted_with_full_pages() {
    let programs = Programs::new();
    let selects = format!(r#"case "$*" in *"_id < 0"*) echo '[]'; exit;; esac; {BY_LIMIT}"#);
    lists(&programs, NEW_HELP, &selects);
    answer(&programs, "2", &printed("inbox", [(5, 5), (6, 6)]));
    let termux = termux(&programs);
    for _ in 0..2 {
        assert_eq!(ids(&termux.from(From::Id(SmsId(5)), 2).await.unwrap()), [5, 6]);
    }
    assert_eq!(programs.log().matches("_id < 0").count(), 1);
    assert_eq!(programs.log().lines().count(), 4);
}

#[tokio::test]
async fn the_hour_that_comes_twice_loses_nothing() {
    let programs = Programs::new();
    let row = r#"{"_id":4,"type":"inbox","received":"2026-10-25 02:30:00"}"#;
    lists(&programs, OLD_HELP, &format!("echo '[{row}]'"));
    let termux = in_zone(&programs, TimeZone::get("Europe/Berlin").unwrap());
    let second_hour = "2026-10-25T01:15:00Z".parse().unwrap();
    let found = termux.from(From::Date(second_hour), 50).await.unwrap();
    assert_eq!(found[0].date, "2026-10-25T00:30:00Z".parse().unwrap());
}

/// The phone lands six hours further east and prints the times of there, while the zone that it left is still taken for
/// its own. Minutes later the new zone is known.
#[tokio::test]
async fn a_phone_that_travels_brings_no_message_twice() {
    let programs = Programs::new();
    lists(&programs, OLD_HELP, r#"cat "$(dirname "$0")/list""#);
    let clock = Arc::new(ManualClock::at(minute(12 * 60)));
    let termux = Termux::in_folder(programs.folder()).with_clock(clock.clone());
    let termux = Termux { patience: Duration::from_secs(20), ..termux };
    let inbox = Arc::new(Inbox::new(Arc::new(termux), clock.clone()));
    let poller = Poller { db: Db::in_memory(MIGRATIONS).unwrap(), clock, inbox };
    let east = 6 * 60;
    answer(&programs, "list", &printed("inbox", [(1, 5)]));
    poller.turn_on().await.unwrap();
    for (name, messages, fresh) in [
        ("at home", vec![(1, 5), (2, 10)], 1),
        ("after landing", vec![(1, 5 + east), (2, 10 + east)], 0),
        ("a new one there", vec![(1, 5 + east), (2, 10 + east), (3, 40 + east)], 1),
        ("the zone is known", vec![(1, 5), (2, 10), (3, 40)], 0),
        ("the next one", vec![(1, 5), (2, 10), (3, 40), (4, 50)], 1),
    ] {
        answer(&programs, "list", &printed("inbox", messages));
        assert_eq!(poller.poll().await.unwrap().fresh, fresh, "{name}");
    }
}

#[tokio::test]
async fn what_was_sent_is_found_in_the_phones_own_box() {
    let programs = Programs::new();
    let both = printed("sent", [(8, 9)]).replace(']', ",") + &printed("inbox", [(9, 9)])[1..];
    answer(&programs, "500", &both);
    lists(&programs, NEW_HELP, BY_LIMIT);
    let expected = SentMessage { to: "+1555".to_owned(), body: "b8".to_owned(), at: minute(9) };
    assert_eq!(termux(&programs).sent_since(minute(9)).await, Some(vec![expected]));
}

#[tokio::test]
async fn a_text_goes_out_byte_for_byte() {
    let programs = Programs::new();
    let got = programs.folder().join("got");
    programs.write(SEND, &format!("{NOTE_CALL}\ncat > '{}'", got.display()));
    let termux = termux(&programs);
    for text in [
        "hello",
        "-n +15550199",
        "--help",
        r"\t \n \\ %s %d",
        "two\nlines\n",
        "  blanks around \n\n",
        "\"quotes\" 'single' `id` $(id) $HOME ; & |",
        "grüße 😀👩‍👩‍👧 \u{202e}x",
        "nul \0 in it",
        &"long ".repeat(100_000),
    ] {
        assert_eq!(termux.hand_over("+1 (555) 01-00", text).await, Ok(()), "{text:.40}");
        assert_eq!(std::fs::read(&got).unwrap(), text.as_bytes());
    }
    let log = programs.log();
    assert_eq!(log.lines().count(), 10);
    assert!(log.lines().all(|line| line == "[-n][+15550100]"), "{log}");
}

#[tokio::test]
async fn a_number_that_cannot_be_dialled_reaches_no_program() {
    let programs = Programs::new();
    programs.write(SEND, NOTE_CALL);
    let termux = termux(&programs);
    for number in ["+1 555 --es slot 9", "", "Mom", "5550100,5550101", "$(id)", "5550100\n-s\n1", "**"] {
        match termux.hand_over(number, "hi").await {
            Err(SendError::NotSent(why)) => assert!(why.to_string().contains("not a number"), "{why}"),
            other => panic!("{number:?}: {other:?}"),
        }
    }
    for text in ["", " \n\t"] {
        let empty = SendError::NotSent(said::draft_reason_empty());
        assert_eq!(termux.hand_over("5550100", text).await, Err(empty));
    }
    assert_eq!(programs.log(), "");
}

#[tokio::test]
async fn sending_says_whether_it_may_have_left() {
    let programs = Programs::new();
    let quick = |script: &str| {
        // A busy machine may take a while to start a program, so only scripts that hang get a short timeout.
        let hangs = script.contains("sleep") || script.contains("yes");
        let patience = if hangs { Duration::from_secs(2) } else { Duration::from_secs(30) };
        Termux { patience, ..self::termux(&programs) }
    };
    let termux = quick("");
    let not_installed = termux.hand_over("5550100", "hi").await;
    assert!(
        matches!(not_installed, Err(SendError::NotSent(why)) if why.to_string().contains("pkg install termux-api"))
    );
    for (script, unsure, words) in [
        (PERMISSION, false, "SMS and Phone"),
        ("cat > /dev/null; echo '{\"API_ERROR\":\"no SIM\"}'", false, "no SIM"),
        ("cat > /dev/null; echo the app is gone >&2; exit 1", false, "the app is gone"),
        ("exit 1", false, "it did not say why"),
        ("cat > /dev/null; echo 'fork(): Try again' >&2", true, "fork(): Try again"),
        ("cat > /dev/null; echo strange", true, "strange"),
        ("cat > /dev/null; kill -9 $$", true, "was killed"),
        ("cat > /dev/null; exit 143", true, "was killed"),
        ("cat > /dev/null; yes", true, "printed more than"),
        ("sleep 600", true, "did not answer"),
        ("cat > /dev/null; sleep 600", true, "did not answer"),
    ] {
        programs.write(SEND, script);
        match quick(script).hand_over("5550100", "hi").await {
            Err(SendError::NotPermitted(why)) => {
                assert!(script == PERMISSION && why.to_string().contains(words), "{script}: {why}");
            }
            Err(SendError::NotSent(why)) => {
                assert!(
                    !unsure && script != PERMISSION && why.to_string().contains(words),
                    "{script}: {why}"
                );
            }
            Err(SendError::Unsure(why)) => {
                assert!(unsure && why.to_string().contains(words), "{script}: {why}");
            }
            outcome @ (Ok(()) | Err(SendError::NotConnected)) => panic!("{script}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn contacts_are_listed_or_the_reason_is_told() {
    let programs = Programs::new();
    let termux = termux(&programs);
    for (script, words) in [
        (None, "pkg install termux-api"),
        (Some("exit 0"), "without an answer"),
        (Some("echo garbage"), "line 1"),
        (Some("echo the app is gone >&2; exit 1"), "the app is gone"),
        (Some("yes '[' | head -c 40000000"), "printed more than"),
    ] {
        if let Some(script) = script {
            programs.write(CONTACTS, script);
        }
        match termux.contacts().await {
            Err(ReadError::Failed(why)) => assert!(why.to_string().contains(words), "{script:?}: {why}"),
            other => panic!("{script:?}: {other:?}"),
        }
    }
    programs.write(CONTACTS, r#"echo '{"error": "Please grant the following permission"}'"#);
    assert!(matches!(termux.contacts().await, Err(ReadError::NotPermitted(_))));
    programs.write(
        CONTACTS,
        &format!("{NOTE_CALL}\necho '[{{\"name\": \"Lena\", \"number\": \"+1 555 0142\"}}]'"),
    );
    let listed = termux.contacts().await.unwrap();
    assert_eq!((listed[0].name.as_written(), listed[0].numbers[0].as_written()), ("Lena", "+1 555 0142"));
    assert_eq!(programs.log(), "\n", "it is called without arguments");
}

#[tokio::test]
async fn one_call_at_a_time() {
    let programs = Programs::new();
    lists(&programs, NEW_HELP, "echo begins >> \"$LOG\"; sleep 0.1; echo ends >> \"$LOG\"; echo '[]'");
    programs.write(SEND, "cat > /dev/null; echo begins >> \"$LOG\"; sleep 0.1; echo ends >> \"$LOG\"");
    let termux = termux(&programs);
    let (listed, sent, access) =
        tokio::join!(termux.newest(0, 1), termux.hand_over("5550100", "hi"), termux.access());
    assert_eq!((listed, sent, access), (Ok(vec![]), Ok(()), Access::Granted));
    let log = programs.log();
    let steps: Vec<_> = log.lines().filter(|line| !line.starts_with('[')).collect();
    assert_eq!(steps, ["begins", "ends", "begins", "ends", "begins", "ends"]);
}
