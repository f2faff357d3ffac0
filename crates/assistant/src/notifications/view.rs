//! A notification as somebody gets to see it. Pure: the person sees it as it is, a model with one-time codes hidden, and
//! no more at once than fits.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::record::{ChatMessage, NotificationId, Record};
use crate::moment;
use crate::tool::Eyes;
use crate::tool::room::fitting;
use crate::untrusted::{Untrusted, folded};

/// The parts of one notification: the title may say what the number in the text is.
fn seen<const N: usize>(eyes: Eyes, parts: [&Untrusted; N]) -> [Untrusted; N] {
    let joined = parts.map(Untrusted::as_written).join(BETWEEN);
    let seen = eyes.see(&Untrusted::new(joined));
    let mut split = seen.as_written().split(BETWEEN).map(Untrusted::new);
    // Each part also alone, should a text hold what stands between them.
    parts.map(|part| eyes.see(&split.next().unwrap_or_else(|| part.clone())))
}

/// A line of its own that no notification holds: control characters are taken out when one is kept.
const BETWEEN: &str = "\n\u{1f}\n";

/// Characters of a preview.
const PREVIEW: usize = 200;

/// One in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub id: NotificationId,
    pub package_name: String,
    pub app_label: Untrusted,
    pub title: Untrusted,
    /// Epoch milliseconds.
    pub posted_at: i64,
    pub posted_at_local: String,
    pub preview: Untrusted,
    pub sensitive: bool,
}

impl Item {
    pub fn of(record: &Record, zone: &TimeZone, eyes: Eyes) -> Self {
        let [title, gist] = seen(eyes, [&record.title, &record.gist()]);
        Self {
            id: record.id.clone(),
            package_name: record.package_name.clone(),
            app_label: eyes.see(&record.app_label),
            title,
            posted_at: record.posted_at,
            posted_at_local: local(record.posted_at, zone),
            // Codes are hidden first: a cut through one would leave half of it.
            preview: Untrusted::new(gist.line(PREVIEW)),
            sensitive: record.sensitive,
        }
    }
}

/// One in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    pub id: NotificationId,
    pub package_name: String,
    pub app_label: Untrusted,
    pub title: Untrusted,
    pub text: Untrusted,
    pub subtext: Option<Untrusted>,
    pub category: Option<String>,
    /// Epoch milliseconds.
    pub posted_at: i64,
    pub posted_at_local: String,
    pub is_ongoing: Option<bool>,
    pub sensitive: bool,
    /// What a conversation holds, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Said>,
    /// Older messages that had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older_messages_left_out: usize,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub sender: Untrusted,
    pub text: Untrusted,
    pub time: Option<i64>,
}

impl Whole {
    /// With so much of its conversation as fits into `room` characters of JSON.
    pub fn of(record: &Record, zone: &TimeZone, eyes: Eyes, room: usize) -> Self {
        let said = |message: &ChatMessage| {
            let [_, sender, text] = seen(eyes, [&record.title, &message.sender, &message.text]);
            Said { sender, text, time: message.time }
        };
        let none = Untrusted::default();
        let subtext = record.subtext.as_ref();
        let [title, below, text] = seen(eyes, [&record.title, subtext.unwrap_or(&none), &record.text]);
        let newest_first: Vec<Said> = record.messages.iter().rev().map(said).collect();
        let (mut messages, older) = fitting(newest_first, room);
        messages.reverse();
        Self {
            id: record.id.clone(),
            package_name: record.package_name.clone(),
            app_label: eyes.see(&record.app_label),
            title,
            text,
            subtext: subtext.map(|_| below),
            category: record.category.clone(),
            posted_at: record.posted_at,
            posted_at_local: local(record.posted_at, zone),
            is_ongoing: record.is_ongoing,
            sensitive: record.sensitive,
            messages,
            older_messages_left_out: older,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What to look for, prepared once.
#[derive(Debug)]
pub struct Wanted {
    words: Vec<String>,
    package_name: Option<String>,
}

impl Wanted {
    /// `None` for a blank query. A blank package name means any.
    pub fn new(query: &str, package_name: Option<&str>) -> Option<Self> {
        let words: Vec<String> = query.split_whitespace().map(folded).collect();
        let package_name = package_name.map(str::trim).filter(|name| !name.is_empty()).map(str::to_lowercase);
        (!words.is_empty()).then_some(Self { words, package_name })
    }

    /// Does it hold every word, as those eyes see it? Or a search for digits would tell what is hidden.
    pub fn is_in(&self, record: &Record, eyes: Eyes) -> bool {
        if self.package_name.as_ref().is_some_and(|name| *name != record.package_name.to_lowercase()) {
            return false;
        }
        let holds = |texts: &[String], word: &str| texts.iter().any(|text| text.contains(word));
        let written = texts(record, Eyes::All);
        let possible = |word: &String| holds(&written, word) || kai_codes::may_match_placeholder(word);
        if !self.words.iter().all(possible) {
            return false;
        }
        let seen = if eyes == Eyes::All { written } else { texts(record, eyes) };
        self.words.iter().all(|word| holds(&seen, word))
    }
}

/// All that a record says, as those eyes see it.
fn texts(record: &Record, eyes: Eyes) -> Vec<String> {
    let said = record.messages.iter().map(|m| seen(eyes, [&record.title, &m.sender, &m.text]));
    let parts = seen(eyes, [&record.app_label, &record.title, &record.text]);
    parts.into_iter().chain(said.flatten()).map(|text| folded(text.as_written())).collect()
}

/// A time where the person is.
pub fn local(millisecond: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(millisecond).unwrap_or_default();
    moment::local(at, zone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notifications::record::Post;

    fn record(label: &str, title: &str, text: &str) -> Record {
        let post = Post {
            app_label: Some(Untrusted::new(label)),
            ..Post::new(NotificationId::new("0|org.app|7"), "org.App", title, text)
        };
        Record::of(&post, "2026-03-09T14:05:00Z".parse().unwrap())
    }

    #[test]
    fn a_title_says_what_the_number_below_it_is() {
        let record = record("Mail", "Your verification code", "482913");
        let zone = TimeZone::UTC;
        let item = Item::of(&record, &zone, Eyes::NoCodes);
        assert_eq!(
            (item.title.as_written(), item.preview.as_written()),
            ("Your verification code", "[code]")
        );
        assert_eq!(Whole::of(&record, &zone, Eyes::NoCodes, 9_000).text.as_written(), "[code]");
        assert_eq!(Whole::of(&record, &zone, Eyes::All, 9_000).text.as_written(), "482913");
        assert!(!Wanted::new("482913", None).unwrap().is_in(&record, Eyes::NoCodes), "no oracle");
    }

    #[test]
    fn found_as_a_person_would_find_it() {
        let record = record("Signal", "Ärger in der Straße", "Ὀδυσσεύς writes:\nDinner at 8?");
        for (query, package, expected) in [
            ("dinner", None, true),
            ("ÄRGER", None, true),
            ("strasse", None, true),
            ("ὈΔΥΣΣΕΎΣ", None, true),
            ("signal dinner", None, true),
            ("dinner lunch", None, false),
            ("dinner", Some(" "), true),
            ("dinner", Some("ORG.app"), true),
            ("dinner", Some("org"), false),
            ("org.app", None, false),
        ] {
            let wanted = Wanted::new(query, package).unwrap();
            assert_eq!(wanted.is_in(&record, Eyes::All), expected, "{query} in {package:?}");
        }
        assert!(Wanted::new(" \t", None).is_none());
    }
}
