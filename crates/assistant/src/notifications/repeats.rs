//! Recognises a notification that only repeats an SMS: the phone's SMS app shows every message that Kai gets from the
//! phone as well. Such a notification is stored but not queued, or the user would be told twice. The rule
//! itself is pure.
//!
//! Either of the two may come first. What is known about the SMS comes in through [`RepeatsSms`] when a notification
//! arrives; when the SMS comes second, [`store::sms_came`](super::store::sms_came) takes the notification from the queue.

use std::ops::RangeInclusive;

use rusqlite::Transaction;

use super::record::Record;
use crate::db::DbError;
use crate::source::SourceId;
use crate::untrusted::Untrusted;

/// Looks up whether a notification repeats an SMS of the same phone.
pub type RepeatsSms = dyn Fn(&Transaction<'_>, SourceId, &Record) -> Result<bool, DbError> + Send + Sync;

/// For where no SMS are known.
pub fn never(_: &Transaction<'_>, _: SourceId, _: &Record) -> Result<bool, DbError> {
    Ok(false)
}

/// How far apart the two may be, in milliseconds.
const APART: i64 = 2 * 60 * 1_000;

/// The dates, in epoch milliseconds, of the SMS that a notification may repeat.
pub fn dates(record: &Record) -> RangeInclusive<i64> {
    record.posted_at.saturating_sub(APART)..=record.posted_at.saturating_add(APART)
}

/// Whether a notification repeats an SMS of the same phone with this date (epoch milliseconds) and text.
pub fn repeats(record: &Record, date: i64, body: &Untrusted) -> bool {
    let body = words(body);
    let last = record.messages.last().map(|last| &last.text);
    let says_it = [Some(&record.text), last].into_iter().flatten().any(|text| is_same(&words(text), &body));
    dates(record).contains(&date) && says_it
}

/// The shortest text of a notification that counts as the beginning of a longer SMS. Shorter ones are never cut.
const LONG: usize = 150;

/// A long SMS is cut in its notification: by the app, often with dots at the end, or when the record was made.
fn is_same(shown: &str, body: &str) -> bool {
    let begun = shown.trim_end_matches(['…', '.']);
    let cut = || begun.chars().count() >= LONG && body.starts_with(begun);
    !shown.is_empty() && (shown == body || cut())
}

fn words(text: &Untrusted) -> String {
    text.as_written().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::NotificationId;
    use crate::notifications::record::{ChatMessage, Post};

    const NOON: i64 = 1_800_000_000_000;

    fn shown(text: &str, messages: &[&str]) -> Record {
        let said = |text: &&str| ChatMessage {
            sender: Untrusted::new("Lena"),
            text: Untrusted::new(*text),
            time: None,
        };
        let post = Post {
            messages: messages.iter().map(said).collect(),
            ..Post::new(NotificationId::new("1"), "com.android.messaging", "Lena", text)
        };
        Record::of(SourceId(2), &post, jiff::Timestamp::from_millisecond(NOON).unwrap())
    }

    #[test]
    fn the_same_text_within_two_minutes_is_a_repetition() {
        let long = "Are we still on for tonight? ".repeat(20);
        let begun: String = long.chars().take(160).collect();
        for (name, record, date, body, expected) in [
            ("the same", shown("Dinner at 8?", &[]), NOON, "Dinner at 8?", true),
            ("other white space", shown("Dinner at 8?", &[]), NOON, "Dinner\nat  8? ", true),
            ("two minutes before", shown("Dinner?", &[]), NOON - 120_000, "Dinner?", true),
            ("two minutes after", shown("Dinner?", &[]), NOON + 120_000, "Dinner?", true),
            ("longer ago", shown("Dinner?", &[]), NOON - 120_001, "Dinner?", false),
            ("much later", shown("Dinner?", &[]), NOON + 120_001, "Dinner?", false),
            ("another text", shown("Dinner?", &[]), NOON, "Lunch?", false),
            ("the beginning of another", shown("Yes", &[]), NOON, "Yes, but later", false),
            ("no text", shown("", &[]), NOON, "", false),
            ("the last of a chat", shown("2 new messages", &["Hi", "Dinner?"]), NOON, "Dinner?", true),
            ("an earlier one of a chat", shown("2 new messages", &["Dinner?", "Hi"]), NOON, "Dinner?", false),
            ("cut by the app", shown(&format!("{begun}…"), &[]), NOON, &long, true),
            ("cut in another place", shown(&format!("{begun}x"), &[]), NOON, &long, false),
            ("hidden", shown("Sensitive notification content hidden", &[]), NOON, "Code 482913", false),
        ] {
            assert_eq!(repeats(&record, date, &Untrusted::new(body)), expected, "{name}");
        }
    }
}
