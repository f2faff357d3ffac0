//! Notifications as they are shown: to the user as they are, to a model with one-time codes redacted and cut to fit.
//! Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::record::{ChatMessage, NotificationId, Record};
use crate::moment;
use crate::source::SourceId;
use crate::tool::Eyes;
use crate::tool::room::fitting;
use crate::untrusted::{Untrusted, folded};

/// Redacts the parts of one notification together, because the title may say that the number in the text is a code.
fn seen<const N: usize>(eyes: Eyes, parts: [&Untrusted; N]) -> [Untrusted; N] {
    let joined = parts.map(Untrusted::as_written).join(BETWEEN);
    let seen = eyes.see(&Untrusted::new(joined));
    let mut split = seen.as_written().split(BETWEEN).map(Untrusted::new);
    // Redact each part on its own as well, in case a text contains the separator.
    parts.map(|part| eyes.see(&split.next().unwrap_or_else(|| part.clone())))
}

/// Separates the parts: a line that no stored text contains, because control characters are removed before storing.
const BETWEEN: &str = "\n\u{1f}\n";

/// The most characters in a preview.
const PREVIEW: usize = 200;

/// What the paired phones are called. Empty if all notifications come from one source, as nobody needs to be told then
/// which one it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhoneNames(pub BTreeMap<SourceId, Untrusted>);

/// The most characters of a phone's name.
const NAME: usize = 60;

impl PhoneNames {
    /// The name of the phone that a notification comes from. This machine's own have none.
    pub fn of(&self, id: &NotificationId) -> Option<Untrusted> {
        self.0.get(&id.source()).map(|name| Untrusted::new(name.line(NAME)))
    }
}

/// A notification in a list.
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
    /// The paired phone that it comes from, if there is more than one source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<Untrusted>,
    /// It can be answered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub can_reply: bool,
}

impl Item {
    pub fn of(record: &Record, names: &PhoneNames, zone: &TimeZone, eyes: Eyes) -> Self {
        let [title, gist] = seen(eyes, [&record.title, &record.gist()]);
        Self {
            id: record.id.clone(),
            package_name: record.package_name.clone(),
            app_label: eyes.see(&record.app_label),
            title,
            posted_at: record.posted_at,
            posted_at_local: local(record.posted_at, zone),
            // Codes are redacted before the cut, or half of one could remain.
            preview: Untrusted::new(gist.line(PREVIEW)),
            sensitive: record.sensitive,
            phone: names.of(&record.id),
            can_reply: record.reply_id.is_some(),
        }
    }
}

/// A notification in full.
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
    /// The paired phone that it comes from, if there is more than one source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<Untrusted>,
    /// It can be answered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub can_reply: bool,
    /// The messages of a conversation, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Said>,
    /// How many older messages did not fit.
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
    /// The full view of a record, with as many of its newest messages as fit into `room` characters of JSON.
    pub fn of(record: &Record, names: &PhoneNames, zone: &TimeZone, eyes: Eyes, room: usize) -> Self {
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
            phone: names.of(&record.id),
            can_reply: record.reply_id.is_some(),
            messages,
            older_messages_left_out: older,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_false(it: &bool) -> bool {
    !*it
}

/// A search query, prepared once for many records.
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

    /// Whether the record contains every word of the query, as `eyes` see it. Searching the redacted text keeps a model
    /// from guessing a hidden code by searching for digits.
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

/// All the text that a search covers, redacted for `eyes` and case-folded.
fn texts(record: &Record, eyes: Eyes) -> Vec<String> {
    let said = record.messages.iter().map(|m| seen(eyes, [&record.title, &m.sender, &m.text]));
    let parts = seen(eyes, [&record.app_label, &record.title, &record.text]);
    parts.into_iter().chain(said.flatten()).map(|text| folded(text.as_written())).collect()
}

/// Formats epoch milliseconds in the user's time zone.
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
        Record::of(SourceId::HERE, &post, "2026-03-09T14:05:00Z".parse().unwrap())
    }

    #[test]
    fn a_title_says_what_the_number_below_it_is() {
        let record = record("Mail", "Your verification code", "482913");
        let (zone, none) = (TimeZone::UTC, PhoneNames::default());
        let item = Item::of(&record, &none, &zone, Eyes::NoCodes);
        assert_eq!(
            (item.title.as_written(), item.preview.as_written()),
            ("Your verification code", "[code]")
        );
        assert_eq!(Whole::of(&record, &none, &zone, Eyes::NoCodes, 9_000).text.as_written(), "[code]");
        assert_eq!(Whole::of(&record, &none, &zone, Eyes::All, 9_000).text.as_written(), "482913");
        assert!(!Wanted::new("482913", None).unwrap().is_in(&record, Eyes::NoCodes), "no oracle");
    }

    /// A model learns that a notification can be answered, and never with what.
    #[test]
    fn the_phone_is_named_and_the_reply_id_is_not() {
        let here = record("Signal", "Alice", "Dinner?");
        let there =
            Record { id: here.id.of(SourceId(2)), reply_id: Some("5f0c7bd2".to_owned()), ..here.clone() };
        let names = PhoneNames([(SourceId(2), Untrusted::new("Pixel\n8"))].into());
        let shown = |record: &Record, names: &PhoneNames| {
            let item = serde_json::to_value(Item::of(record, names, &TimeZone::UTC, Eyes::NoCodes)).unwrap();
            let whole = Whole::of(record, names, &TimeZone::UTC, Eyes::NoCodes, 9_000);
            (item, serde_json::to_value(whole).unwrap())
        };
        let (item, whole) = shown(&there, &names);
        for told in [&item, &whole] {
            assert_eq!((&told["phone"], &told["can_reply"]), (&"Pixel 8".into(), &true.into()), "{told}");
            assert!(!told.to_string().contains("5f0c7bd2"), "{told}");
        }
        for (record, names) in [(&here, &names), (&there, &PhoneNames::default())] {
            let (item, whole) = shown(record, names);
            assert!(item.get("phone").is_none() && whole.get("phone").is_none(), "{item}");
        }
        assert!(shown(&here, &names).0.get("can_reply").is_none());
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
