//! Turns a post from a bridge into the bounded record that is stored. Pure.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex;
use crate::source::SourceId;
use crate::untrusted::Untrusted;

/// The platform's key of a notification. It stays the same when the notification is updated. Bridges use it as it is;
/// in the store, and for everyone who reads from it, a paired phone's key has the phone before it: `p2:` and the key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NotificationId(String);

impl NotificationId {
    /// Makes an id of a key. Apps choose parts of their keys, so a key that is too long or not one plain line is
    /// replaced by its hash: that is safe in a prompt, a model can repeat it, and the same key always gives the same
    /// id. What [`of`](Self::of) made stays as it is.
    pub fn new(key: &str) -> Self {
        let own = split(key).map_or(key, |(_, own)| own);
        let plain = !own.is_empty() && own.len() <= KEY_LIMIT && Untrusted::new(own).line(KEY_LIMIT) == own;
        if plain { Self(key.to_owned()) } else { Self::hashed(key) }
    }

    fn hashed(key: &str) -> Self {
        Self(format!("hash:{}", hex::encode(&Sha256::digest(key.as_bytes())[..16])))
    }

    /// The id among those of all sources, of a key that this source's bridge reported. No app can choose a key that
    /// passes for another source's.
    #[must_use]
    pub fn of(&self, source: SourceId) -> Self {
        match source {
            SourceId::HERE if split(&self.0).is_some() => Self::hashed(&self.0),
            SourceId::HERE => self.clone(),
            // It is that long only if it begins like an id itself.
            SourceId(number) if self.0.len() > KEY_LIMIT => {
                Self(format!("p{number}:{}", Self::hashed(&self.0).0))
            }
            SourceId(number) => Self(format!("p{number}:{}", self.0)),
        }
    }

    /// The source whose notification it is.
    pub fn source(&self) -> SourceId {
        split(&self.0).map_or(SourceId::HERE, |(source, _)| source)
    }

    /// The key by which the source's own bridge knows it.
    #[must_use]
    pub fn key(&self) -> Self {
        Self(split(&self.0).map_or(self.0.as_str(), |(_, own)| own).to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name under which the ledger records it.
    pub(crate) fn identity(&self) -> String {
        format!("notification {}", self.0)
    }
}

/// The paired phone and its own key, if this is written as the id of one. Each number is written in one way only.
fn split(id: &str) -> Option<(SourceId, &str)> {
    let (number, own) = id.strip_prefix('p')?.split_once(':')?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
    let number: i64 = number.parse().ok().filter(|_| digits)?;
    (number > SourceId::HERE.0).then_some((SourceId(number), own))
}

/// A notification as a bridge reports it. What the platform does not report is `None`, never guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    pub id: NotificationId,
    pub package_name: String,
    /// Other names of the app, under which the user may have ignored it.
    pub other_names: Vec<String>,
    /// Its sender was gone before it could be identified, so it may be any app.
    pub sender_unknown: bool,
    pub app_label: Option<Untrusted>,
    pub title: Untrusted,
    pub text: Untrusted,
    /// The longer text that is shown when the user expands the notification.
    pub big_text: Option<Untrusted>,
    pub subtext: Option<Untrusted>,
    pub category: Option<String>,
    pub posted_at: Option<Timestamp>,
    /// It stays while something is running, such as playback, a download or navigation.
    pub ongoing: Option<bool>,
    pub foreground_service: Option<bool>,
    pub visibility: Option<Visibility>,
    /// It only summarises the other notifications of its group.
    pub group_summary: Option<bool>,
    /// The system or the app marked its content as sensitive.
    pub sensitive: bool,
    /// The messages of a conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// What the platform wants to be told with an answer, if the notification can be answered.
    pub reply_id: Option<String>,
}

/// What a lock screen may show of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    Public,
    Private,
    Secret,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Empty if the user wrote it.
    pub sender: Untrusted,
    pub text: Untrusted,
    /// Epoch milliseconds, if the platform reports them.
    pub time: Option<i64>,
}

impl Post {
    /// A post with nothing but an id, an app, a title and a text.
    pub fn new(id: NotificationId, package_name: &str, title: &str, text: &str) -> Self {
        Self {
            id,
            package_name: package_name.to_owned(),
            other_names: vec![],
            sender_unknown: false,
            app_label: None,
            title: Untrusted::new(title),
            text: Untrusted::new(text),
            big_text: None,
            subtext: None,
            category: None,
            posted_at: None,
            ongoing: None,
            foreground_service: None,
            visibility: None,
            group_summary: None,
            sensitive: false,
            messages: vec![],
            reply_id: None,
        }
    }
}

/// A notification as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub id: NotificationId,
    /// Increases each time the notification with this key changes or is posted again after it was closed.
    pub revision: u32,
    pub package_name: String,
    pub app_label: Untrusted,
    pub title: Untrusted,
    pub text: Untrusted,
    pub subtext: Option<Untrusted>,
    pub category: Option<String>,
    /// Epoch milliseconds.
    pub posted_at: i64,
    pub is_ongoing: Option<bool>,
    pub sensitive: bool,
    pub messages: Vec<ChatMessage>,
    /// What the platform wants to be told with an answer. Not for a model, which learns only that one is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_id: Option<String>,
}

pub const TEXT_LIMIT: usize = 4_000;
const LINE_LIMIT: usize = 300;
const KEY_LIMIT: usize = 300;
/// The longest reply id that is kept. A longer one could not be cut and still be used.
const REPLY_ID_LIMIT: usize = 1_000;
const MESSAGE_LIMIT: usize = 1_000;
/// The most messages of a conversation that are stored. Android itself keeps no more.
const MESSAGES: usize = 25;
/// How long a record is kept.
pub const LIFE: SignedDuration = SignedDuration::from_hours(24);
/// The text with which Android 15 replaces a sensitive notification, in the languages known to us.
const HIDDEN: [&str; 26] = [
    "Sensitive notification content hidden",
    "Vertrauliche Benachrichtigungsinhalte ausgeblendet",
    "Le contenu sensible de la notification a été masqué",
    "Contenido sensible de la notificación oculto",
    "Contenuti sensibili della notifica nascosti",
    "Conteúdo de notificação sensível oculto",
    "Content van gevoelige meldingen verborgen",
    "Känsligt aviseringsinnehåll dolt",
    "S'ha amagat contingut sensible de les notificacions",
    "Conținutul sensibil din notificări a fost ascuns",
    "Treść poufnego powiadomienia została ukryta",
    "Конфиденциальная информация в уведомлении скрыта",
    "Чутливий вміст сповіщення приховано",
    "Деликатното съдържание в известието е скрито",
    "Märguande delikaatne sisu peideti",
    "Hassas bildirim içerikleri gizlendi",
    "تم إخفاء المحتوى الحساس في الإشعار",
    "محتوای اعلان حساس پنهان شده است",
    "יש תוכן רגיש בהתראה שהוסתר",
    "संवेदनशील जानकारी वाली सूचना का कॉन्टेंट छिपा है",
    "உணர்வுபூர்வமான அறிவிப்பு உள்ளடக்கம் மறைக்கப்பட்டது",
    "Đã ẩn nội dung thông báo nhạy cảm",
    "已隐藏敏感通知内容",
    "系統已隱藏含有私密資訊的通知內容",
    "プライベートな通知内容は表示されません",
    "민감한 알림 콘텐츠 숨김",
];

/// Android's categories for notifications that come from people.
const BY_PEOPLE: [&str; 3] = ["msg", "call", "missed_call"];

impl Record {
    /// Guesses whether a person caused it: it holds messages of a conversation, or its category says so.
    pub fn is_personal(&self) -> bool {
        let category = self.category.as_deref();
        !self.messages.is_empty() || category.is_some_and(|category| BY_PEOPLE.contains(&category))
    }

    /// The first revision of a post from this source. `heard_at` is when Kai received it, and stands in for a missing
    /// post time.
    pub fn of(source: SourceId, post: &Post, heard_at: Timestamp) -> Self {
        let package_name = post.package_name.as_str();
        let package_name = Untrusted::new(package_name).line(LINE_LIMIT);
        let label = post.app_label.as_ref().map(|label| label.line(LINE_LIMIT));
        let label = label.filter(|label| !label.is_empty()).unwrap_or_else(|| package_name.clone());
        let messages = conversation(&post.messages);
        let text = body(post, &messages);
        Self {
            id: post.id.of(source),
            revision: 1,
            app_label: Untrusted::new(label),
            package_name,
            title: post.title.map(|title| Untrusted::new(title).line(LINE_LIMIT)),
            sensitive: post.sensitive || HIDDEN.contains(&text.as_written().trim()),
            text,
            subtext: some_line(post.subtext.as_ref()).map(Untrusted::new),
            category: some_line(post.category.as_ref().map(Untrusted::new).as_ref()),
            posted_at: post.posted_at.unwrap_or(heard_at).as_millisecond(),
            is_ongoing: post.ongoing,
            messages,
            reply_id: post.reply_id.clone().filter(|id| id.len() <= REPLY_ID_LIMIT),
        }
    }

    /// Whether it has the same content as `other`, whatever their revisions and post times. Phones give a notification
    /// another reply id each time they report it.
    pub fn same_content(&self, other: &Self) -> bool {
        let (revision, posted_at, reply_id) = (other.revision, other.posted_at, other.reply_id.clone());
        Self { revision, posted_at, reply_id, ..self.clone() } == *other
    }

    /// The text for a preview: the last message of a conversation with its sender, otherwise the text.
    pub fn gist(&self) -> Untrusted {
        let Some(last) = self.messages.last() else { return self.text.clone() };
        if last.sender.is_blank() {
            return last.text.clone();
        }
        last.text.map(|text| format!("{}: {text}", last.sender.as_written()))
    }
}

/// The post time, or the time at which Kai received it if the post time is missing or implausible. Apps set it to a
/// time long past, or to the time of a future event.
pub fn plausible(posted_at: Option<Timestamp>, heard_at: Timestamp) -> Timestamp {
    let age = |at: &Timestamp| heard_at.duration_since(*at);
    let fits = |at: &Timestamp| age(at) >= SignedDuration::ZERO && age(at) <= LIFE;
    posted_at.filter(fits).unwrap_or(heard_at)
}

/// The text to store: the long text, otherwise the short one, otherwise the last message of the conversation.
fn body(post: &Post, messages: &[ChatMessage]) -> Untrusted {
    let long = post.big_text.as_ref().filter(|text| !text.is_blank());
    let text = long.unwrap_or(&post.text);
    if !text.is_blank() {
        return text.map(|text| paragraph(text, TEXT_LIMIT));
    }
    messages.last().map(|last| last.text.clone()).unwrap_or_default()
}

/// The newest messages, each cut to its limit. Blank ones are left out.
fn conversation(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let said: Vec<&ChatMessage> = messages.iter().filter(|message| !message.text.is_blank()).collect();
    let newest = &said[said.len().saturating_sub(MESSAGES)..];
    let kept = |message: &&ChatMessage| ChatMessage {
        sender: message.sender.map(|sender| Untrusted::new(sender).line(LINE_LIMIT)),
        text: message.text.map(|text| paragraph(text, MESSAGE_LIMIT)),
        time: message.time,
    };
    newest.iter().map(kept).collect()
}

fn some_line(text: Option<&Untrusted>) -> Option<String> {
    text.map(|text| text.line(LINE_LIMIT)).filter(|line| !line.is_empty())
}

/// Keeps line breaks and tabs, removes NUL and other control characters, trims the text and cuts it to `longest`.
fn paragraph(text: &str, longest: usize) -> String {
    let text = text.replace("\r\n", "\n");
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    text.trim().chars().take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_800_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn post(title: &str, text: &str) -> Post {
        Post::new(NotificationId::new("0|app|1"), "app", title, text)
    }

    fn said(sender: &str, text: &str) -> ChatMessage {
        ChatMessage { sender: Untrusted::new(sender), text: Untrusted::new(text), time: None }
    }

    #[test]
    fn what_is_kept_of_a_post() {
        let big = |text: &str| Some(Untrusted::new(text));
        for (name, post, title, text, label) in [
            ("plain", post(" Alice ", "Hi\r\nthere "), "Alice", "Hi\nthere", "app"),
            (
                "the long form is better",
                Post { big_text: big("long"), ..post("", "short") },
                "",
                "long",
                "app",
            ),
            ("unless it is blank", Post { big_text: big(" \n"), ..post("", "short") }, "", "short", "app"),
            ("controls go", post("a\0b\nc", "x\0y\u{1b}[31m"), "a b c", "xy[31m", "app"),
            ("a label", Post { app_label: big("Signal"), ..post("t", "x") }, "t", "x", "Signal"),
            ("a blank label is none", Post { app_label: big(" "), ..post("t", "x") }, "t", "x", "app"),
        ] {
            let kept = Record::of(SourceId::HERE, &post, at(NOON));
            let read = (kept.title.as_written(), kept.text.as_written(), kept.app_label.as_written());
            assert_eq!(read, (title, text, label), "{name}");
            assert_eq!((kept.revision, kept.posted_at), (1, NOON * 1_000), "{name}");
        }
        let long = Record::of(SourceId::HERE, &post(&"t".repeat(9_000), &"ä".repeat(9_000)), at(NOON));
        assert_eq!((long.title.as_written().len(), long.text.as_written().chars().count()), (300, 4_000));
    }

    #[test]
    fn a_conversation_is_told_by_its_last_message() {
        let chat = Post { messages: vec![said("Bob", "one"), said("Alice", "two")], ..post("Club", "2 new") };
        let kept = Record::of(SourceId::HERE, &chat, at(NOON));
        assert_eq!(kept.gist().as_written(), "Alice: two");
        assert_eq!((kept.text.as_written(), kept.messages.len()), ("2 new", 2));
        for (name, messages, gist, text) in [
            ("own words", vec![said("Bob", "one"), said("", "mine")], "mine", "mine"),
            ("empty ones say nothing", vec![said("Bob", "one"), said("Alice", " ")], "Bob: one", "one"),
            ("none", vec![], "", ""),
        ] {
            let kept = Record::of(SourceId::HERE, &Post { messages, ..post("Club", "") }, at(NOON));
            assert_eq!((kept.gist().as_written(), kept.text.as_written()), (gist, text), "{name}");
        }
        let many = (0..40).map(|n| said("Bob", &n.to_string())).collect();
        let kept = Record::of(SourceId::HERE, &Post { messages: many, ..post("Club", "") }, at(NOON));
        assert_eq!((kept.messages.len(), kept.messages[0].text.as_written()), (25, "15"));
    }

    #[test]
    fn what_the_system_hid_is_sensitive() {
        for (post, sensitive) in [
            (post("Bank", "Your code"), false),
            (Post { sensitive: true, ..post("Bank", "Your code") }, true),
            (post("Bank", "Sensitive notification content hidden"), true),
            (post("Bank", "Vertrauliche Benachrichtigungsinhalte ausgeblendet"), true),
            (post("Bank", "已隐藏敏感通知内容 "), true),
            (post("Bank", "Sensitive notification content hidden, said Bob"), false),
        ] {
            assert_eq!(Record::of(SourceId::HERE, &post, at(NOON)).sensitive, sensitive, "{post:?}");
        }
    }

    #[test]
    fn only_what_is_shown_counts_as_content() {
        let first = Record::of(SourceId::HERE, &post("a", "b"), at(NOON));
        let later = Record { revision: 9, ..Record::of(SourceId::HERE, &post("a", "b"), at(NOON + 60)) };
        assert!(first.same_content(&later));
        assert!(!first.same_content(&Record::of(SourceId::HERE, &post("a", "c"), at(NOON))));
        assert!(first.same_content(&Record { reply_id: Some("r".to_owned()), ..first.clone() }));
        assert!(!first.same_content(&Record { sensitive: true, ..first.clone() }));
    }

    #[test]
    fn a_time_that_cannot_be_is_the_time_of_hearing() {
        for (name, posted, expected) in [
            ("none", None, NOON),
            ("a minute ago", Some(NOON - 60), NOON - 60),
            ("yesterday", Some(NOON - 86_400), NOON - 86_400),
            ("the day before", Some(NOON - 86_401), NOON),
            ("1970", Some(0), NOON),
            ("tomorrow's event", Some(NOON + 86_400), NOON),
        ] {
            assert_eq!(plausible(posted.map(at), at(NOON)), at(expected), "{name}");
        }
    }

    #[test]
    fn a_new_reply_id_is_no_news() {
        let first =
            Record::of(SourceId::HERE, &Post { reply_id: Some("a".to_owned()), ..post("a", "b") }, at(NOON));
        let second = Record { reply_id: Some("b".to_owned()), ..first.clone() };
        assert!(first.same_content(&second) && first != second);
        let endless = Post { reply_id: Some("x".repeat(1_001)), ..post("a", "b") };
        assert_eq!(Record::of(SourceId::HERE, &endless, at(NOON)).reply_id, None);
        let before: Record = serde_json::from_value(serde_json::json!({
            "id": "1", "revision": 1, "package_name": "app", "app_label": "app", "title": "a", "text": "b",
            "subtext": null, "category": null, "posted_at": 0, "is_ongoing": null, "sensitive": false, "messages": [],
        }))
        .unwrap();
        assert_eq!(before.reply_id, None, "as it was stored before there were any");
    }

    #[test]
    fn an_id_says_whose_it_is_and_gives_the_key_back() {
        let (pixel, key) = (SourceId(2), NotificationId::new("0|org.app|7|null|10"));
        assert_eq!(key.of(SourceId::HERE), key);
        let id = key.of(pixel);
        assert_eq!((id.as_str(), id.source(), id.key()), ("p2:0|org.app|7|null|10", pixel, key.clone()));
        assert_eq!(key.source(), SourceId::HERE);
        for odd in ["p1:a", "p02:a", "p+2:a", "p-2:a", "p:a", "p2", "P2:a", "p99999999999999999999:a"] {
            let here = NotificationId::new(odd);
            assert_eq!((here.source(), here.key()), (SourceId::HERE, here.clone()), "{odd}");
        }
    }

    #[test]
    fn no_key_passes_for_that_of_another_source() {
        let posing = NotificationId::new("p2:0|org.app|7");
        let here = posing.of(SourceId::HERE);
        assert_eq!(here.source(), SourceId::HERE, "{here:?}");
        let third = posing.of(SourceId(3));
        assert_eq!((third.as_str(), third.source()), ("p3:p2:0|org.app|7", SourceId(3)));
    }

    proptest::proptest! {
        /// A model and a person repeat an id as they read it, and find what was meant.
        #[test]
        fn what_is_repeated_is_the_same_id(key in "(p[0-9]{1,2}:){0,2}[a-z0-9|. ]{0,310}", source in 1_i64..40) {
            let id = NotificationId::new(&key).of(SourceId(source));
            proptest::prop_assert_eq!(&NotificationId::new(id.as_str()), &id);
            proptest::prop_assert_eq!(id.source(), SourceId(source));
            if source > 1 && key.len() <= KEY_LIMIT {
                proptest::prop_assert_eq!(id.key(), NotificationId::new(&key));
            }
        }
    }

    #[test]
    fn a_key_is_a_plain_line_within_bounds() {
        assert_eq!(NotificationId::new("0|com.whatsapp|1|tag|10123").as_str(), "0|com.whatsapp|1|tag|10123");
        for odd in ["", "a\nb", " a", "a ", "a  b", "a\u{2028}b", "a\u{202e}b", &"x".repeat(301)] {
            let id = NotificationId::new(odd);
            assert!(id.as_str().starts_with("hash:") && id.as_str().len() == 37, "{odd:?}");
            assert_eq!(id, NotificationId::new(odd));
        }
    }
}
