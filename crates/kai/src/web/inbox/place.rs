//! What the URL of an inbox page asks to see.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kai_assistant::inbox::{Cursor, Key, Show, Wanted};
use kai_assistant::source::SourceId;

/// The path of the inbox.
pub(in crate::web) const INBOX: &str = "/inbox";

/// A page of the inbox: the list, or one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::web) struct Place {
    /// The message that is shown, as the path names it; empty for the list.
    pub(in crate::web) message: String,
    query: BTreeMap<String, String>,
}

/// The query parameters that choose what is listed.
const FILTERS: [&str; 3] = ["find", "from", "show"];
/// What `from` begins with if it names a phone.
const PHONE: &str = "phone-";

impl Place {
    pub(in crate::web) fn new(message: &str, query: BTreeMap<String, String>) -> Self {
        Self { message: message.to_owned(), query }
    }

    pub(super) fn query(&self) -> &BTreeMap<String, String> {
        &self.query
    }

    /// The value of a query parameter; empty if there is none.
    pub(in crate::web) fn says(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The message that is shown, if the path names one.
    pub(super) fn key(&self) -> Option<Key> {
        self.message.parse().ok()
    }

    pub(super) fn wanted(&self, now: Timestamp) -> Wanted {
        let from = Some(self.says("from")).filter(|from| !from.is_empty());
        let phone = from.and_then(|from| from.strip_prefix(PHONE));
        Wanted {
            words: self.says("find").trim().to_owned(),
            kind: from.filter(|_| phone.is_none()).map(str::to_owned),
            phone: phone.and_then(|number| number.parse().ok()).map(SourceId),
            show: Show::named(self.says("show")),
            before: self.says("before").parse().ok(),
            now,
        }
    }

    /// Whether something is left out of the list.
    pub(super) fn is_filtered(&self) -> bool {
        FILTERS.iter().any(|name| !self.says(name).is_empty())
    }

    /// The address of the page that goes on there; of the first one for `None`.
    pub(super) fn from(&self, cursor: Option<&Cursor>) -> String {
        let filters = FILTERS.iter().map(|name| (*name, self.says(name).to_owned()));
        let before = cursor.map(|cursor| ("before", cursor.to_string()));
        let pairs = filters.chain(before).filter(|(_, value)| !value.is_empty());
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        if query.is_empty() { INBOX.to_owned() } else { format!("{INBOX}?{query}") }
    }
}

/// The value of `from` for one phone.
pub(super) fn of_phone(phone: SourceId) -> String {
    format!("{PHONE}{}", phone.0)
}

/// The address of a list with everything that these words find.
pub(in crate::web) fn finding(words: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("find", words).finish();
    format!("{INBOX}?{query}")
}

/// The path of a message. Apps choose parts of their notifications' ids.
pub(in crate::web) fn path(key: &Key) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    format!("{INBOX}/{}", key.to_string().bytes().map(encoded).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_asks_for_what_its_url_says() {
        let place = |pairs: &[(&str, &str)]| {
            Place::new("", pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
        };
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(place(&[]).wanted(now), Wanted::all(now));
        let wanted = place(&[("find", " tea "), ("from", "sms"), ("show", "unread")]).wanted(now);
        assert_eq!((wanted.words.as_str(), wanted.kind.as_deref()), ("tea", Some("sms")));
        assert_eq!((wanted.phone, wanted.show), (None, Show::Unread));
        let wanted = place(&[("from", &of_phone(SourceId(3)))]).wanted(now);
        assert_eq!((wanted.kind, wanted.phone), (None, Some(SourceId(3))));
        let cursor: Cursor = "5-sms-42".parse().unwrap();
        let there = place(&[("find", "a b"), ("whole", "7")]).from(Some(&cursor));
        assert_eq!(there, "/inbox?find=a+b&before=5-sms-42");
        assert_eq!(place(&[("before", "5-sms-42")]).wanted(now).before, Some(cursor));
        assert_eq!(place(&[("before", "garbage")]).wanted(now).before, None);
    }

    #[test]
    fn whatever_an_app_calls_its_notification_is_one_part_of_a_path() {
        let key = Key::new("notification", "0|a/../b?c#d%41 ü");
        assert_eq!(path(&key), "/inbox/notification-0%7Ca%2F..%2Fb%3Fc%23d%2541%20%C3%BC");
        assert_eq!(path(&Key::new("sms", 42)), "/inbox/sms-42");
    }
}
