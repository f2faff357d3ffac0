//! Notifications as a device reports them. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kai_assistant::untrusted::Untrusted;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::envelope::Malformed;
use super::lenient::{Flag, List, Number, Text, objects, texts};
use super::sms::cut;

/// Most buttons and chat messages that are read, and the longest key and text, in characters.
const MOST_ACTIONS: usize = 20;
const MOST_LINES: usize = 100;
const LONGEST_KEY: usize = 1_000;
const LONGEST_TEXT: usize = 20_000;

/// What Android 15 shows to other apps in place of a text with a one-time code.
const HIDDEN: &str = "Sensitive notification content hidden";

/// What happened to a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was posted, or updated if there was one with the same key.
    Posted(Box<Shown>),
    /// The one with this key was removed.
    Removed(String),
}

/// Keys that cannot be ids, by the ids that were made of them, so that such notifications can be dismissed.
#[derive(Debug, Default)]
pub(super) struct OddKeys(BTreeMap<String, String>);

/// Most odd keys that are remembered. Hardly any app has one.
const MOST_ODD: usize = 200;

impl OddKeys {
    pub(super) fn remember(&mut self, id: &str, key: &str) {
        if id == key {
            return;
        }
        if self.0.len() >= MOST_ODD {
            self.0.clear();
        }
        self.0.insert(id.to_owned(), key.to_owned());
    }

    /// The key that an id was made of.
    pub(super) fn key_of(&self, id: &str) -> String {
        self.0.get(id).map_or(id, String::as_str).to_owned()
    }
}

/// A notification on a device. What the device does not report, or hides, is `None` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// On Android `user|package|id|tag|uid`.
    pub key: String,
    pub app: Option<Untrusted>,
    pub title: Option<Untrusted>,
    pub text: Option<Untrusted>,
    /// Title and text on one line. Some desktops send only this.
    pub ticker: Option<Untrusted>,
    pub posted_at: Option<Timestamp>,
    pub dismissable: bool,
    /// It was already there when the notifications were requested.
    pub silent: bool,
    /// Set if the notification can be answered.
    pub reply_id: Option<String>,
    pub actions: Vec<Untrusted>,
    /// The messages of a chat, oldest first.
    pub conversation: Vec<ChatLine>,
    pub group_name: Option<Untrusted>,
}

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatLine {
    pub sender: Untrusted,
    pub text: Untrusted,
}

impl Shown {
    /// The Android package of the app, from the key. Desktops do not have one.
    pub fn package(&self) -> Option<&str> {
        let mut parts = self.key.splitn(3, '|');
        parts.next()?.parse::<i64>().ok()?;
        let package = parts.next()?;
        (parts.next().is_some() && package.contains('.')).then_some(package)
    }

    /// Whether Android hid the text because it looks like a one-time code.
    pub fn is_hidden(&self) -> bool {
        let texts = [&self.text, &self.title, &self.ticker];
        texts.into_iter().flatten().any(|text| text.as_written().contains(HIDDEN))
    }

    fn json(&self) -> Value {
        let mut json = Map::new();
        json.insert("id".to_owned(), self.key.as_str().into());
        json.insert("isClearable".to_owned(), self.dismissable.into());
        json.insert("silent".to_owned(), self.silent.into());
        let texts = [
            ("appName", &self.app),
            ("title", &self.title),
            ("text", &self.text),
            ("ticker", &self.ticker),
            ("groupName", &self.group_name),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                json.insert(name.to_owned(), text.as_written().into());
            }
        }
        if let Some(at) = self.posted_at {
            json.insert("time".to_owned(), at.as_millisecond().to_string().into());
        }
        if let Some(reply_id) = &self.reply_id {
            json.insert("requestReplyId".to_owned(), reply_id.as_str().into());
        }
        if !self.actions.is_empty() {
            let actions: Vec<&str> = self.actions.iter().map(Untrusted::as_written).collect();
            json.insert("actions".to_owned(), json!(actions));
        }
        if !self.conversation.is_empty() {
            let lines = self.conversation.iter();
            let lines =
                lines.map(|l| json!({ "sender": l.sender.as_written(), "content": l.text.as_written() }));
            json.insert("conversation".to_owned(), lines.collect::<Vec<_>>().into());
        }
        Value::Object(json)
    }
}

impl Change {
    pub(super) fn body(&self) -> Value {
        match self {
            Self::Posted(shown) => shown.json(),
            Self::Removed(key) => json!({ "id": key, "isCancel": true }),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Wire {
    id: Text,
    app_name: Text,
    title: Text,
    text: Text,
    ticker: Text,
    time: Number,
    is_clearable: Flag,
    is_cancel: Flag,
    silent: Flag,
    request_reply_id: Text,
    #[serde(deserialize_with = "texts")]
    actions: List<String, MOST_ACTIONS>,
    #[serde(deserialize_with = "objects")]
    conversation: List<WireLine, MOST_LINES>,
    group_name: Text,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireLine {
    sender: Text,
    content: Text,
}

impl Wire {
    pub(super) fn understood(self) -> Result<Change, Malformed> {
        // A key that was cut could not be used to dismiss anything.
        let key = self.id.0.filter(|key| !key.is_empty() && key.chars().count() <= LONGEST_KEY);
        let key = key.ok_or(Malformed)?;
        if self.is_cancel.0 == Some(true) {
            return Ok(Change::Removed(key));
        }
        let fits = |id: &String| id.chars().count() <= LONGEST_KEY;
        Ok(Change::Posted(Box::new(Shown {
            key,
            app: untrusted(self.app_name),
            title: untrusted(self.title),
            text: untrusted(self.text),
            ticker: untrusted(self.ticker),
            posted_at: self.time.0.and_then(|at| Timestamp::from_millisecond(at).ok()),
            dismissable: self.is_clearable.0.unwrap_or(false),
            silent: self.silent.0.unwrap_or(false),
            reply_id: self.request_reply_id.0.filter(|id| !id.is_empty()).filter(fits),
            actions: self.actions.items.into_iter().filter(fits).map(Untrusted::new).collect(),
            conversation: self.conversation.items.into_iter().filter_map(WireLine::understood).collect(),
            group_name: untrusted(self.group_name),
        })))
    }
}

impl WireLine {
    fn understood(self) -> Option<ChatLine> {
        let text = untrusted(self.content)?;
        Some(ChatLine { sender: untrusted(self.sender).unwrap_or_default(), text })
    }
}

fn untrusted(text: Text) -> Option<Untrusted> {
    text.0.map(|text| Untrusted::new(cut(text, LONGEST_TEXT)))
}

/// The notification as the assistant keeps it. Phones never forward ongoing notifications or group summaries.
#[cfg(feature = "notifications")]
impl From<&Shown> for kai_assistant::notifications::record::Post {
    fn from(shown: &Shown) -> Self {
        use kai_assistant::notifications::NotificationId;
        use kai_assistant::notifications::record::ChatMessage;

        let app = shown.app.as_ref().map_or_else(String::new, |app| app.line(LONGEST_KEY));
        let package = shown.package().map_or(app, str::to_owned);
        let ticker = if shown.title.is_none() { shown.ticker.clone() } else { None };
        let lines = shown.conversation.iter();
        let messages =
            lines.map(|l| ChatMessage { sender: l.sender.clone(), text: l.text.clone(), time: None });
        Self {
            app_label: shown.app.clone(),
            title: shown.title.clone().unwrap_or_default(),
            text: shown.text.clone().or(ticker).unwrap_or_default(),
            posted_at: shown.posted_at,
            ongoing: Some(false),
            foreground_service: Some(false),
            group_summary: Some(false),
            sensitive: shown.is_hidden(),
            messages: messages.collect(),
            reply_id: shown.reply_id.clone(),
            ..Self::new(NotificationId::new(&shown.key), &package, "", "")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::Packet;
    use super::*;

    fn change(body: &str) -> Result<Change, Malformed> {
        let line = format!(r#"{{"id":1,"type":"kdeconnect.notification","body":{body}}}"#);
        match Packet::parse(line.as_bytes())? {
            Packet::Notification(change) => Ok(change),
            other => panic!("{other:?}"),
        }
    }

    fn shown(body: &str) -> Shown {
        match change(body).unwrap() {
            Change::Posted(shown) => *shown,
            Change::Removed(key) => panic!("{key} was removed"),
        }
    }

    const SIGNAL: &str = r#"{"id":"0|org.thoughtcrime.securesms|7|null|10123","appName":"Signal","title":"Alice","text":"Dinner at 8?","ticker":"Alice: Dinner at 8?","time":"1794702254000","isClearable":true,"silent":false,"requestReplyId":"5f0c7bd2","actions":["Mark as read"],"conversation":[{"sender":"Alice","content":"Dinner at 8?"}],"groupName":"Family","payloadHash":"md5hex"}"#;

    #[test]
    fn a_phones_notification_is_understood() {
        let signal = shown(SIGNAL);
        assert_eq!(signal.package(), Some("org.thoughtcrime.securesms"));
        assert_eq!(signal.reply_id.as_deref(), Some("5f0c7bd2"));
        assert_eq!(signal.posted_at, Timestamp::from_millisecond(1_794_702_254_000).ok());
        assert_eq!(signal.title.as_ref().unwrap().as_written(), "Alice");
        assert_eq!(signal.conversation[0].text.as_written(), "Dinner at 8?");
        assert!(signal.dismissable && !signal.silent && !signal.is_hidden());
    }

    #[test]
    fn what_desktops_and_wary_phones_send_is_understood() {
        let old = shown(r#"{"appName":"Calendar","id":"1","isClearable":true,"ticker":"Stand-up: Room 4"}"#);
        assert_eq!((old.key.as_str(), old.package(), &old.title), ("1", None, &None));
        assert_eq!(shown(r#"{"id":0}"#).key, "0");
        let hidden = shown(r#"{"id":"0|a.b|1|null|1","text":"Sensitive notification content hidden"}"#);
        assert!(hidden.is_hidden());
        assert_eq!(change(r#"{"id":"x","isCancel":true}"#), Ok(Change::Removed("x".to_owned())));
        assert_eq!(change(r#"{"title":"no key"}"#), Err(Malformed));
        assert_eq!(change(&format!(r#"{{"id":"{}"}}"#, "x".repeat(1_001))), Err(Malformed));
    }

    #[test]
    fn the_package_is_read_from_the_left() {
        for (key, package) in [
            ("0|org.app|7|a|b|10", Some("org.app")),
            ("-1|org.app|7|null|10", Some("org.app")),
            ("0|org.app", None),
            ("x|org.app|7", None),
            ("17", None),
            ("", None),
        ] {
            assert_eq!(Shown { key: key.to_owned(), ..Shown::default() }.package(), package, "{key}");
        }
    }

    #[cfg(feature = "notifications")]
    #[test]
    fn it_becomes_a_post() {
        use kai_assistant::notifications::record::Post;
        let post = Post::from(&shown(SIGNAL));
        assert_eq!(post.package_name, "org.thoughtcrime.securesms");
        assert_eq!((post.title.as_written(), post.messages.len()), ("Alice", 1));
        let old = Post::from(&shown(r#"{"appName":"Calendar","id":"1","ticker":"Stand-up: Room 4"}"#));
        assert_eq!((old.package_name.as_str(), old.text.as_written()), ("Calendar", "Stand-up: Room 4"));
    }
}
