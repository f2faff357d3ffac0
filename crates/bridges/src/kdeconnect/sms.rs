//! Text messages as a phone lists them, and the requests for them. Pure.

use jiff::Timestamp;
use kai_assistant::phones::port::{MessageKind, ThreadId};
use kai_assistant::untrusted::Untrusted;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::envelope::Malformed;
use super::lenient::{List, Number, Text, objects};

/// Most messages, addresses and attachments that are read. A phone sends far fewer, and says so if asked for less.
const MOST_MESSAGES: usize = 20_000;
const MOST_ADDRESSES: usize = 100;
const MOST_ATTACHMENTS: usize = 50;

/// The longest body and the longest other text that is read, in characters.
const LONGEST_BODY: usize = 100_000;
const LONGEST_TEXT: usize = 300;

/// Beyond this, messages that all have the same date are no longer asked for together.
const LARGEST_PAGE: u32 = 1_000;

/// The folder that a message is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Folder {
    Inbox,
    Sent,
    Draft,
    Outbox,
    Failed,
    Queued,
    Other(i64),
}

impl Folder {
    fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Inbox,
            2 => Self::Sent,
            3 => Self::Draft,
            4 => Self::Outbox,
            5 => Self::Failed,
            6 => Self::Queued,
            other => Self::Other(other),
        }
    }

    fn number(self) -> i64 {
        match self {
            Self::Inbox => 1,
            Self::Sent => 2,
            Self::Draft => 3,
            Self::Outbox => 4,
            Self::Failed => 5,
            Self::Queued => 6,
            Self::Other(other) => other,
        }
    }
}

/// A message on the phone. Ids of deleted messages are used again, so a message is identified by kind, id, date and
/// address together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: MessageKind,
    pub id: i64,
    pub thread: ThreadId,
    pub folder: Folder,
    pub read: bool,
    pub date: Timestamp,
    /// Everyone else in the conversation. In a group, the sender of a received message comes first.
    pub addresses: Vec<Untrusted>,
    pub body: Untrusted,
    /// Files that came with it. Their content is not transferred.
    pub attachments: Vec<Attachment>,
    /// The SIM card that it belongs to, if the phone has several.
    pub sim: Option<i64>,
}

/// A file in a message, by name only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub part: i64,
    pub mime_type: Untrusted,
    pub name: Untrusted,
}

impl Message {
    /// Whether more than one other person takes part.
    pub fn is_group(&self) -> bool {
        self.addresses.len() > 1
    }

    fn json(&self) -> Value {
        let addresses: Vec<Value> =
            self.addresses.iter().map(|address| json!({ "address": address.as_written() })).collect();
        let event = if self.is_group() { 3 } else { 1 };
        let mut json = Map::new();
        json.insert("_id".to_owned(), self.id.into());
        json.insert("thread_id".to_owned(), self.thread.0.into());
        json.insert("type".to_owned(), self.folder.number().into());
        json.insert("read".to_owned(), i64::from(self.read).into());
        json.insert("date".to_owned(), self.date.as_millisecond().into());
        json.insert("addresses".to_owned(), addresses.into());
        json.insert("body".to_owned(), self.body.as_written().into());
        json.insert("event".to_owned(), event.into());
        json.insert("sub_id".to_owned(), self.sim.unwrap_or(-1).into());
        if self.kind == MessageKind::Mms {
            let attachments: Vec<Value> = self.attachments.iter().map(Attachment::json).collect();
            json.insert("attachments".to_owned(), attachments.into());
        }
        Value::Object(json)
    }
}

impl Attachment {
    fn json(&self) -> Value {
        json!({
            "part_id": self.part,
            "mime_type": self.mime_type.as_written(),
            "unique_identifier": self.name.as_written(),
        })
    }
}

/// Messages that a phone sent in one packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Messages {
    pub list: Vec<Message>,
    /// How many were left out, because there were too many or because they had no id, date or folder.
    pub left_out: usize,
}

impl Messages {
    pub(super) fn body(&self) -> Value {
        json!({ "version": 2, "messages": self.list.iter().map(Message::json).collect::<Vec<_>>() })
    }
}

/// A request for messages of one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    pub thread: ThreadId,
    /// Only messages of this date or earlier.
    pub until: Option<Timestamp>,
    /// The number of messages, newest first; all of them if `None`. The phone may send more if dates are equal.
    pub count: Option<u32>,
}

impl Conversation {
    pub(super) fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("threadID".to_owned(), self.thread.0.into());
        if let Some(until) = self.until {
            body.insert("rangeStartTimestamp".to_owned(), until.as_millisecond().into());
        }
        if let Some(count) = self.count {
            body.insert("numberToRequest".to_owned(), count.into());
        }
        Value::Object(body)
    }

    /// The request for the page after this one, or `None` if the phone has no older messages that are as new as
    /// `since`.
    ///
    /// Pages overlap by the messages of their oldest date, so that none is missed. Where a page brought nothing older,
    /// more messages have that date than were asked for, so more are asked for.
    #[must_use]
    pub fn next_page(&self, page: &[Message], since: Timestamp) -> Option<Self> {
        let count = self.count?;
        let oldest = page.iter().map(|message| message.date).min()?;
        if page.len() < usize::try_from(count).ok()? || oldest < since {
            return None;
        }
        let stuck = Some(oldest) == self.until;
        let (until, count) = match stuck {
            false => (oldest, count),
            true if count < LARGEST_PAGE => (oldest, count.saturating_mul(4)),
            true => (oldest.checked_sub(jiff::SignedDuration::from_millis(1)).ok()?, count),
        };
        Some(Self { until: Some(until), count: Some(count), ..*self })
    }
}

/// A text message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The phone makes one group message of several addresses.
    pub to: Vec<String>,
    pub text: String,
    pub sim: Option<i64>,
}

impl Outgoing {
    pub(super) fn body(&self) -> Value {
        let addresses: Vec<Value> = self.to.iter().map(|address| json!({ "address": address })).collect();
        let mut body = Map::new();
        body.insert("version".to_owned(), 2.into());
        body.insert("addresses".to_owned(), addresses.into());
        body.insert("messageBody".to_owned(), self.text.as_str().into());
        if let Some(sim) = self.sim {
            body.insert("subID".to_owned(), sim.into());
        }
        Value::Object(body)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireMessages {
    #[serde(deserialize_with = "objects")]
    messages: List<WireMessage, MOST_MESSAGES>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireMessage {
    #[serde(rename = "_id")]
    id: Number,
    thread_id: Number,
    #[serde(rename = "type")]
    folder: Number,
    read: Number,
    date: Number,
    #[serde(deserialize_with = "objects")]
    addresses: List<WireAddress, MOST_ADDRESSES>,
    body: Text,
    sub_id: Number,
    #[serde(deserialize_with = "objects")]
    attachments: List<WireAttachment, MOST_ATTACHMENTS>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireAddress {
    address: Text,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireAttachment {
    part_id: Number,
    mime_type: Text,
    unique_identifier: Text,
}

impl WireMessages {
    pub(super) fn understood(self) -> Messages {
        let all = self.messages.items.len();
        let list: Vec<Message> =
            self.messages.items.into_iter().filter_map(WireMessage::understood).collect();
        Messages { left_out: self.messages.left_out + all - list.len(), list }
    }
}

impl WireMessage {
    fn understood(self) -> Option<Message> {
        let kind = if self.attachments.given { MessageKind::Mms } else { MessageKind::Sms };
        Some(Message {
            kind,
            id: self.id.0?,
            thread: ThreadId(self.thread_id.0?),
            folder: Folder::from_number(self.folder.0?),
            read: self.read.0.is_some_and(|read| read != 0),
            date: Timestamp::from_millisecond(self.date.0?).ok()?,
            addresses: addresses(self.addresses),
            body: Untrusted::new(cut(self.body.0.unwrap_or_default(), LONGEST_BODY)),
            attachments: self.attachments.items.into_iter().map(WireAttachment::understood).collect(),
            sim: self.sub_id.0.filter(|sim| *sim >= 0),
        })
    }
}

impl WireAttachment {
    fn understood(self) -> Attachment {
        let text = |text: Text| Untrusted::new(cut(text.0.unwrap_or_default(), LONGEST_TEXT));
        Attachment {
            part: self.part_id.0.unwrap_or_default(),
            mime_type: text(self.mime_type),
            name: text(self.unique_identifier),
        }
    }
}

fn addresses<const MOST: usize>(list: List<WireAddress, MOST>) -> Vec<Untrusted> {
    let texts = list.items.into_iter().filter_map(|address| address.address.0);
    texts.map(|text| Untrusted::new(cut(text, LONGEST_TEXT))).collect()
}

/// The first characters of a text.
pub(super) fn cut(mut text: String, longest: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(longest) {
        text.truncate(end);
    }
    text
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WireConversation {
    #[serde(rename = "threadID")]
    thread: Number,
    range_start_timestamp: Number,
    number_to_request: Number,
}

impl WireConversation {
    pub(super) fn understood(self) -> Result<Conversation, Malformed> {
        // Plasma sends -1 for "from the newest on" and for "all".
        let until = self.range_start_timestamp.0.filter(|at| *at >= 0);
        Ok(Conversation {
            thread: ThreadId(self.thread.0.ok_or(Malformed)?),
            until: until.and_then(|at| Timestamp::from_millisecond(at).ok()),
            count: self.number_to_request.0.and_then(|count| u32::try_from(count).ok()),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireOutgoing {
    #[serde(deserialize_with = "objects")]
    addresses: List<WireAddress, MOST_ADDRESSES>,
    #[serde(rename = "phoneNumber")]
    number: Text,
    #[serde(rename = "messageBody")]
    text: Text,
    #[serde(rename = "subID")]
    sim: Number,
}

impl WireOutgoing {
    pub(super) fn understood(self) -> Result<Outgoing, Malformed> {
        let listed = self.addresses.items.into_iter().filter_map(|address| address.address.0);
        let mut to: Vec<String> = listed.collect();
        if to.is_empty() {
            to.extend(self.number.0);
        }
        let complete = !to.is_empty() && self.addresses.left_out == 0;
        let (true, Some(text)) = (complete, self.text.0) else { return Err(Malformed) };
        Ok(Outgoing { to, text, sim: self.sim.0.filter(|sim| *sim >= 0) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::Packet;
    use super::*;

    const TWO: &str = r#"{"id":1,"type":"kdeconnect.sms.messages","body":{"version":2,"messages":[{"_id":42,"thread_id":7,"type":1,"read":0,"date":1794701627646,"addresses":[{"address":"+15550100"}],"body":"Your code is 123456","event":1,"sub_id":1},{"_id":42,"thread_id":8,"type":2,"read":1,"date":1794701000000,"addresses":[{"address":"+15550100"},{"address":"+15550142"}],"body":"","event":2,"sub_id":-1,"attachments":[{"part_id":190,"mime_type":"image/jpeg","encoded_thumbnail":"aGk=","unique_identifier":"PART_1.jpg"}]}]}}"#;

    fn messages(line: &str) -> Messages {
        match Packet::parse(line.as_bytes()).unwrap() {
            Packet::Messages(messages) => messages,
            other => panic!("{other:?}"),
        }
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    #[test]
    fn a_phones_messages_are_understood() {
        let Messages { list, left_out: 0 } = messages(TWO) else { panic!("nothing is left out") };
        let [sms, mms] = list.as_slice() else { panic!("two messages: {list:?}") };
        assert_eq!(
            (sms.kind, sms.id, sms.thread, sms.folder),
            (MessageKind::Sms, 42, ThreadId(7), Folder::Inbox)
        );
        assert_eq!((sms.read, sms.date, sms.sim), (false, at(1_794_701_627_646), Some(1)));
        assert_eq!(sms.body.as_written(), "Your code is 123456");
        assert!(!sms.is_group());
        assert_eq!((mms.kind, mms.folder, mms.read, mms.sim), (MessageKind::Mms, Folder::Sent, true, None));
        assert!(mms.is_group());
        assert_eq!(mms.attachments[0].name.as_written(), "PART_1.jpg");
        assert_eq!(mms.attachments[0].mime_type.as_written(), "image/jpeg");
    }

    #[test]
    fn what_cannot_be_filed_is_counted_and_costs_nothing_else() {
        for (what, with) in [
            (r#""_id":42,"thread_id":7"#, r#""thread_id":7"#),
            (r#""thread_id":7"#, r#""thread_id":[7]"#),
            (r#""date":1794701627646"#, r#""date":"soon""#),
            (r#""date":1794701627646"#, r#""date":9223372036854775807"#),
            (r#"{"version":2,"messages":[{"#, r#"{"version":2,"messages":[null,{"#),
        ] {
            let read = messages(&TWO.replacen(what, with, 1));
            assert_eq!(read.left_out, 1, "{with}");
            assert!(!read.list.is_empty());
        }
        assert_eq!(messages(r#"{"type":"kdeconnect.sms.messages"}"#), Messages::default());
    }

    #[test]
    fn more_messages_than_allowed_are_counted() {
        let one = r#"{"_id":1,"thread_id":1,"type":1,"date":1}"#;
        let all = vec![one; MOST_MESSAGES + 5].join(",");
        let read =
            messages(&format!(r#"{{"type":"kdeconnect.sms.messages","body":{{"messages":[{all}]}}}}"#));
        assert_eq!((read.list.len(), read.left_out), (MOST_MESSAGES, 5));
    }

    fn dated(dates: &[i64]) -> Vec<Message> {
        let message = messages(TWO).list.remove(0);
        dates.iter().map(|ms| Message { date: at(*ms), ..message.clone() }).collect()
    }

    #[test]
    fn paging_back_ends_and_never_stands_still() {
        let thread = ThreadId(7);
        let ask = |until: Option<i64>, count| Conversation { thread, until: until.map(at), count };
        for (name, asked, page, expected) in [
            ("goes on from the oldest", ask(None, Some(2)), &[90, 80][..], Some((80, 2))),
            ("a short page is the last", ask(None, Some(3)), &[90, 80], None),
            ("an empty page is the last", ask(Some(80), Some(2)), &[], None),
            ("below the mark", ask(None, Some(2)), &[90, 49], None),
            ("at the mark there may be more", ask(None, Some(2)), &[90, 50], Some((50, 2))),
            ("all of one date", ask(None, Some(2)), &[80, 80, 80], Some((80, 2))),
            ("nothing older came", ask(Some(80), Some(2)), &[80, 80], Some((80, 8))),
            ("far too many of one date", ask(Some(80), Some(1_000)), &[80; 1_000], Some((79, 1_000))),
            ("everything was asked for", ask(None, None), &[90, 80], None),
        ] {
            let next = asked.next_page(&dated(page), at(50));
            assert_eq!(next, expected.map(|(until, count)| ask(Some(until), Some(count))), "{name}");
        }
    }
}
