//! Parses the output of `termux-sms-list`. Pure.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use kai_assistant::outbox::door::SentMessage;
use kai_assistant::sms::port::{From, ReadError};
use kai_assistant::sms::{Sms, SmsId};
use kai_assistant::untrusted::Untrusted;
use kai_words::said;
use serde::Deserialize;

use crate::termux::refusal;

/// A folder of messages on the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folder {
    Inbox,
    Sent,
}

impl Folder {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Sent => "sent",
        }
    }
}

/// The number of rows printed, and the rows of the requested folder. For some folders the program prints other
/// messages too.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) printed: usize,
    pub(super) rows: Vec<Row>,
}

/// A message in one of the phone's folders.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: SmsId,
    address: String,
    body: String,
    read: bool,
    at: Moment,
}

/// The time of a message. The program prints local time without an offset, so one hour each autumn is ambiguous. The
/// earlier time is always used as the message's date, because the date is part of what identifies it; the later one
/// makes sure that a query for messages from a certain time on misses none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    first: Timestamp,
    last: Timestamp,
}

impl Moment {
    /// Used for an impossible date, so that one such message does not block all others for ever.
    const NONE: Self = Self { first: Timestamp::UNIX_EPOCH, last: Timestamp::UNIX_EPOCH };
}

impl Row {
    /// Whether the message is certainly older than what was asked for.
    pub(super) fn is_before(&self, from: From) -> bool {
        match from {
            From::Id(id) => self.id < id,
            From::Date(date) => self.at.last < whole_second(date),
        }
    }

    pub(super) fn date(&self) -> Timestamp {
        self.at.first
    }

    pub(super) fn into_sms(self) -> Sms {
        Sms {
            id: self.id,
            address: Untrusted::new(self.address),
            date: self.at.first,
            body: Untrusted::new(self.body),
            read: self.read,
        }
    }

    /// As a message sent at `since` or later, which decides between the two possible times.
    pub(super) fn into_sent(self, since: Timestamp) -> SentMessage {
        let in_time = self.at.first >= whole_second(since);
        let at = if in_time { self.at.first } else { self.at.last };
        SentMessage { to: self.address, body: self.body, at }
    }
}

/// Drops the fraction of a second, for comparison with printed times, which have none.
pub(super) fn whole_second(at: Timestamp) -> Timestamp {
    let second = at.as_millisecond().div_euclid(1000);
    Timestamp::from_second(second).unwrap_or(at)
}

/// Parses the program's output. Anything but a complete list of messages is an error, because an empty list must mean
/// that there are no messages.
pub(super) fn read(printed: &str, folder: Folder, zone: &TimeZone) -> Result<Answer, ReadError> {
    let printed = printed.trim();
    if printed.is_empty() {
        return Err(ReadError::Failed(said::access_list_no_answer()));
    }
    if printed.starts_with('{') {
        return Err(refused(printed));
    }
    let all: Vec<Printed> = serde_json::from_str(printed).map_err(|e| garbled(&e))?;
    let of_folder = |row: &Printed| row.kind == folder.word();
    let count = all.len();
    let rows = all.into_iter().filter(of_folder).map(|row| row.understood(zone)).collect::<Result<_, _>>()?;
    Ok(Answer { printed: count, rows })
}

/// A row as printed. `sender` is ignored: it is the name in the user's contacts, which have a switch of their own.
#[derive(Deserialize)]
struct Printed {
    #[serde(rename = "_id")]
    id: i64,
    #[serde(rename = "type")]
    kind: String,
    read: Option<bool>,
    address: Option<String>,
    /// Older apps' name for the address.
    number: Option<String>,
    received: Option<String>,
    body: Option<String>,
}

impl Printed {
    fn understood(self, zone: &TimeZone) -> Result<Row, ReadError> {
        let received =
            self.received.as_deref().ok_or_else(|| ReadError::Failed(said::access_list_no_date(self.id)))?;
        Ok(Row {
            id: SmsId(self.id),
            address: self.address.or(self.number).unwrap_or_default(),
            body: self.body.unwrap_or_default(),
            read: self.read.unwrap_or(false),
            at: moment(received, zone).unwrap_or(Moment::NONE),
        })
    }
}

/// Parses a printed time. A time in the hour skipped in spring is read as if the clock had not changed, so that no
/// message fails.
fn moment(received: &str, zone: &TimeZone) -> Option<Moment> {
    let latin: String = received.chars().map(latin_digit).collect();
    let local = DateTime::strptime("%Y-%m-%d %H:%M:%S", latin).ok()?;
    let possible = zone.to_ambiguous_timestamp(local);
    Some(Moment { first: possible.compatible().ok()?, last: possible.later().ok()? })
}

/// Converts other digits to ASCII. The app formats dates in the phone's language, and some languages have their own
/// digits: Arabic, Persian, Marathi and Nepali, Bengali, Burmese.
fn latin_digit(c: char) -> char {
    const ZEROES: [char; 5] = ['٠', '۰', '०', '০', '၀'];
    let value =
        ZEROES.iter().find_map(|zero| (c as u32).checked_sub(*zero as u32).filter(|value| *value < 10));
    value.and_then(|value| char::from_digit(value, 10)).unwrap_or(c)
}

/// The error when the app printed an object instead of a list, as it does when it may not read messages.
fn refused(printed: &str) -> ReadError {
    match refusal(printed) {
        Some(why) => ReadError::NotPermitted(said::access_termux_reading(why)),
        None => ReadError::Failed(said::access_list_no_list()),
    }
}

/// Reports where the parse error is, not what it says, because that would quote someone's message.
fn garbled(error: &serde_json::Error) -> ReadError {
    let (line, column) = (error.line(), error.column());
    ReadError::Failed(match error.classify() {
        serde_json::error::Category::Data => said::access_list_garbled_at(line, column),
        serde_json::error::Category::Eof => said::access_list_cut_at(line, column),
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
            said::access_list_no_list_at(line, column)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTC: TimeZone = TimeZone::UTC;

    fn rows(printed: &str) -> Vec<Sms> {
        read(printed, Folder::Inbox, &UTC).unwrap().rows.into_iter().map(Row::into_sms).collect()
    }

    #[test]
    fn a_row_becomes_a_message() {
        let printed = r#"[{"threadid":7,"type":"inbox","read":true,"sender":"Alice","address":"+15550100",
            "number":"+15550100","received":"2026-11-15 00:30:00","body":"hi","_id":42,"new":{"a":[1]}}]"#;
        let expected = Sms {
            id: SmsId(42),
            address: Untrusted::new("+15550100"),
            date: "2026-11-15T00:30:00Z".parse().unwrap(),
            body: Untrusted::new("hi"),
            read: true,
        };
        assert_eq!(rows(printed), [expected]);
        assert_eq!(rows(" [] \n"), []);
    }

    #[test]
    fn what_may_be_missing() {
        for (name, fields, address, body, read) in [
            ("nothing else", "", "", "", false),
            ("an old app", r#","number":"+15550100","body":"x""#, "+15550100", "x", false),
            (
                "nulls",
                r#","address":null,"number":null,"body":null,"read":null,"sender":null"#,
                "",
                "",
                false,
            ),
            ("null and number", r#","address":null,"number":"30303","read":true"#, "30303", "", true),
        ] {
            let printed =
                format!(r#"[{{"_id":9000000000,"type":"inbox","received":"2026-11-15 00:30:00"{fields}}}]"#);
            let sms = rows(&printed).remove(0);
            let found = (sms.id.0, sms.address.as_written(), sms.body.as_written(), sms.read);
            assert_eq!(found, (9_000_000_000, address, body, read), "{name}");
        }
    }

    #[test]
    fn other_folders_are_counted_and_left_out() {
        let row = |id: i64, kind: &str, date: &str| format!(r#"{{"_id":{id},"type":"{kind}"{date}}}"#);
        let dated = r#","received":"2026-11-15 00:30:00""#;
        let printed = [row(1, "sent", dated), row(2, "inbox", dated), row(3, "", dated), row(4, "draft", "")];
        let printed = format!("[{}]", printed.join(","));
        for (folder, id) in [(Folder::Inbox, 2), (Folder::Sent, 1)] {
            let answer = read(&printed, folder, &UTC).unwrap();
            let ids: Vec<_> = answer.rows.iter().map(|row| row.id.0).collect();
            assert_eq!((answer.printed, ids), (4, vec![id]), "{folder:?}");
        }
    }

    #[test]
    fn hostile_words_stay_words() {
        for body in [
            r#"\"}],[{\"_id\":1"#,
            "a\nb\r\n\tc",
            "nul \0 and \u{1b}[2J",
            "😀 \u{202e}evil",
            "-n --help $(id) `id` ' ; rm",
            r"back\slash \u0041",
        ] {
            let quoted = serde_json::to_string(body).unwrap();
            let printed = format!(
                r#"[{{"_id":1,"type":"inbox","received":"2026-11-15 00:30:00","address":{quoted},"body":{quoted}}}]"#
            );
            let sms = rows(&printed).remove(0);
            assert_eq!((sms.body.as_written(), sms.address.as_written()), (body, body));
        }
    }

    #[test]
    fn anything_but_a_list_of_messages_is_an_error() {
        let row = |fields: &str| {
            format!(r#"[{{"_id":1,"type":"inbox","received":"2026-11-15 00:30:00"}},{{{fields}}}]"#)
        };
        for (printed, words) in [
            (String::new(), "without an answer"),
            (" \n".to_owned(), "without an answer"),
            ("garbage".to_owned(), "something other than a list"),
            ("null".to_owned(), "could not be understood"),
            ("[] []".to_owned(), "something other than a list"),
            (r#"[{"_id":1,"type":"inbox","body":"secr"#.to_owned(), "is cut off"),
            (r#"[{"_id":1,"type":"inbox"},"#.to_owned(), "is cut off"),
            ("{}".to_owned(), "something other than a list"),
            (r#"{"erro"#.to_owned(), "something other than a list"),
            (row(""), "could not be understood"),
            (
                row(r#""type":"inbox","received":"2026-11-15 00:30:00","body":"secret""#),
                "could not be understood",
            ),
            (row(r#""_id":"secret","type":"inbox""#), "could not be understood"),
            (row(r#""_id":1.5,"type":"inbox""#), "could not be understood"),
            (
                row(r#""_id":2,"type":"inbox","received":"2026-11-15 00:30:00","body":["secret"]"#),
                "understood",
            ),
            (row(r#""_id":2,"received":"2026-11-15 00:30:00""#), "could not be understood"),
            (row(r#""_id":2,"type":"inbox""#), "message 2 has no date"),
        ] {
            match read(&printed, Folder::Inbox, &UTC) {
                Err(ReadError::Failed(why)) => {
                    assert!(why.to_string().contains(words), "{printed}: {why}");
                    assert!(!why.to_string().contains("secret"), "{why}");
                }
                other => panic!("{printed}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_date_that_cannot_be_holds_up_nothing() {
        for date in ["garbage", "292269055-12-03 16:47:04", "2026-02-30 00:00:00", ""] {
            let printed = format!(r#"[{{"_id":2,"type":"inbox","received":"{date}"}}]"#);
            let rows = read(&printed, Folder::Inbox, &UTC).unwrap().rows;
            assert_eq!(rows[0].date(), Timestamp::UNIX_EPOCH, "{date}");
        }
    }

    #[test]
    fn a_denied_permission_says_what_to_do() {
        let printed = r#"{"error":"Please grant the following permissions to use this command: X"}"#;
        match read(printed, Folder::Inbox, &UTC) {
            Err(ReadError::NotPermitted(what)) => {
                assert!(
                    what.to_string().contains("SMS and Contacts")
                        && what.to_string().ends_with("this command: X"),
                    "{what}"
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn local_times_have_a_moment_even_where_the_clock_is_moved() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        for (name, received, first, last) in [
            ("summer", "2026-07-01 12:00:00", "2026-07-01T10:00:00Z", "2026-07-01T10:00:00Z"),
            ("winter", "2026-12-01 12:00:00", "2026-12-01T11:00:00Z", "2026-12-01T11:00:00Z"),
            ("twice in autumn", "2026-10-25 02:30:00", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
            ("skipped in spring", "2026-03-29 02:30:00", "2026-03-29T01:30:00Z", "2026-03-29T01:30:00Z"),
            ("long ago", "1970-01-01 01:00:00", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("an Arabic phone", "٢٠٢٦-٠٧-٠١ ١٢:٠٠:٠٠", "2026-07-01T10:00:00Z", "2026-07-01T10:00:00Z"),
            ("a Persian phone", "۲۰۲۶-۰۷-۰۱ ۱۲:۰۰:۵۹", "2026-07-01T10:00:59Z", "2026-07-01T10:00:59Z"),
        ] {
            let expected = Moment { first: first.parse().unwrap(), last: last.parse().unwrap() };
            assert_eq!(moment(received, &berlin), Some(expected), "{name}");
        }
    }

    #[test]
    fn from_there_on_means_from_the_same_second_on_in_either_hour() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let at = |received| Row {
            id: SmsId(5),
            address: String::new(),
            body: String::new(),
            read: false,
            at: moment(received, &berlin).unwrap(),
        };
        let date = |date: &str| From::Date(date.parse().unwrap());
        for (received, from, before) in [
            ("2026-07-01 12:00:00", From::Id(SmsId(5)), false),
            ("2026-07-01 12:00:00", From::Id(SmsId(6)), true),
            ("2026-07-01 12:00:00", date("2026-07-01T10:00:00.999Z"), false),
            ("2026-07-01 12:00:00", date("2026-07-01T10:00:01Z"), true),
            ("2026-10-25 02:30:00", date("2026-10-25T01:30:00Z"), false),
            ("2026-10-25 02:30:00", date("2026-10-25T01:30:01Z"), true),
        ] {
            assert_eq!(at(received).is_before(from), before, "{received} {from:?}");
        }
        for (since, expected) in [
            ("2026-10-25T00:30:00.5Z", "2026-10-25T00:30:00Z"),
            ("2026-10-25T00:30:01Z", "2026-10-25T01:30:00Z"),
        ] {
            let sent = at("2026-10-25 02:30:00").into_sent(since.parse().unwrap());
            assert_eq!(sent.at, expected.parse().unwrap(), "{since}");
        }
    }

    #[test]
    fn seconds_are_cut_downwards() {
        for (at, expected) in [(1_999, 1_000), (2_000, 2_000), (-1, -1_000), (0, 0)] {
            let at = Timestamp::from_millisecond(at).unwrap();
            assert_eq!(whole_second(at).as_millisecond(), expected);
        }
    }
}
