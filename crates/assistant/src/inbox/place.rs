//! Places in the inbox: which messages are wanted, and where a page goes on. Pure.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::source::SourceId;

/// Names a message among those of every kind, such as `sms-42`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kind of its source.
    pub kind: String,
    /// Its id among those of its kind.
    pub id: String,
}

impl Key {
    pub fn new(kind: &str, id: impl fmt::Display) -> Self {
        Self { kind: kind.to_owned(), id: id.to_string() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind, self.id)
    }
}

/// The text is not a key, or not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAPlace;

impl FromStr for Key {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (kind, id) = text.split_once('-').ok_or(NotAPlace)?;
        if kind.is_empty() || id.is_empty() { Err(NotAPlace) } else { Ok(Self::new(kind, id)) }
    }
}

/// Orders keys of one kind by their length first, which orders numbers by their size.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = |key: &Self| (key.kind.clone(), key.id.len(), key.id.clone());
        parts(self).cmp(&parts(other))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A place between two messages: a page that goes on there begins with what is older. Of messages of the same
/// millisecond, those with a lower key count as older.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Epoch milliseconds.
    pub date: i64,
    pub key: Key,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.date, self.key)
    }
}

impl FromStr for Cursor {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (date, key) = text.split_once('-').ok_or(NotAPlace)?;
        Ok(Self { date: date.parse().map_err(|_| NotAPlace)?, key: key.parse()? })
    }
}

/// Which messages are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// All but those that were dismissed.
    #[default]
    All,
    Unread,
    /// Those that wait for the next heartbeat.
    Waiting,
    /// Those that were dismissed.
    Away,
}

impl Show {
    pub const ALL: [Self; 4] = [Self::All, Self::Unread, Self::Waiting, Self::Away];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Unread => "unread",
            Self::Waiting => "waiting",
            Self::Away => "dismissed",
        }
    }

    /// The one with this name; all for any other.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|show| show.as_str() == name).unwrap_or_default()
    }
}

/// What a page of the inbox shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What to search for; blank for everything.
    pub words: String,
    /// The only kind that is listed.
    pub kind: Option<String>,
    /// The only phone whose messages are listed.
    pub phone: Option<SourceId>,
    pub show: Show,
    /// Only messages before it are listed.
    pub before: Option<Cursor>,
    pub now: Timestamp,
}

impl Wanted {
    /// Everything, from the newest on.
    pub fn all(now: Timestamp) -> Self {
        Self { words: String::new(), kind: None, phone: None, show: Show::All, before: None, now }
    }

    /// Whether a message comes after the place where the page begins.
    pub fn admits(&self, date: i64, key: &Key) -> bool {
        self.before.as_ref().is_none_or(|before| (date, key) < (before.date, &before.key))
    }

    /// The latest date that a listed message can have, in epoch milliseconds.
    pub fn latest(&self) -> i64 {
        self.before.as_ref().map_or(i64::MAX, |before| before.date)
    }

    pub fn has_phone(&self, phone: SourceId) -> bool {
        self.phone.is_none_or(|only| only == phone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_it_was_written_from() {
        for text in ["sms-42", "notification-0|com.whatsapp|7", "notification-p2:a-b", "mail-x-y-z"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
            let cursor = format!("1800000000000-{text}");
            assert_eq!(cursor.parse::<Cursor>().unwrap().to_string(), cursor);
        }
        for text in ["", "sms", "sms-", "-42", "42"] {
            assert_eq!(text.parse::<Key>(), Err(NotAPlace), "{text}");
            assert!(format!("x-{text}").parse::<Cursor>().is_err(), "{text}");
        }
        for show in Show::ALL {
            assert_eq!(Show::named(show.as_str()), show);
        }
        assert_eq!(Show::named("else"), Show::All);
    }

    #[test]
    fn what_is_older_comes_after() {
        let at = |date, kind, id: &str| Cursor { date, key: Key::new(kind, id) };
        let oldest_first = [
            at(1, "sms", "99"),
            at(2, "notification", "z"),
            at(2, "notification", "aa"),
            at(2, "sms", "9"),
            at(2, "sms", "10"),
            at(3, "notification", "a"),
        ];
        assert!(oldest_first.is_sorted());
        for (n, before) in oldest_first.iter().enumerate() {
            let wanted = Wanted { before: Some(before.clone()), ..Wanted::all(Timestamp::UNIX_EPOCH) };
            let admitted = oldest_first.iter().filter(|it| wanted.admits(it.date, &it.key));
            assert_eq!(admitted.count(), n, "{before}");
        }
    }
}
