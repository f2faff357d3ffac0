//! Packets as plain values, and how they are written and read. Pure.

use jiff::Timestamp;
use kai_assistant::phones::port::ContactStamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::contacts::{self, Card};
use super::envelope::{Malformed, body, line, type_of};
use super::lenient::{Flag, List, Number, Text, texts};
use super::notification::{self, Change};
use super::sms::{self, Conversation, Messages, Outgoing};

/// A packet between two paired devices, or about pairing them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// Asks to be paired, agrees, refuses or ends it.
    Pair(Pair),
    /// Makes a device show that it can be reached.
    Ping,

    /// Asks a phone for the newest message of each conversation.
    RequestConversations,
    /// Asks a phone for messages of one conversation, newest first.
    RequestConversation(Conversation),
    /// Makes a phone send a text message at once. There is no answer.
    SendSms(Outgoing),
    /// Messages from a phone.
    Messages(Messages),

    /// Asks a device for all notifications that it shows.
    RequestNotifications,
    /// Dismisses the notification with this key.
    DismissNotification(String),
    /// Answers a notification. The id is the `reply_id` of the notification and works once.
    ReplyNotification { reply_id: String, text: String },
    /// Presses a button of a notification.
    PressNotification { key: String, action: String },
    /// A notification was posted, updated or removed.
    Notification(Change),

    /// Asks a phone for the ids of its contacts.
    RequestContacts,
    /// The ids of a phone's contacts, and when each was last changed.
    Contacts(Vec<ContactStamp>),
    /// Asks a phone for these contacts.
    RequestCards(Vec<String>),
    /// Contacts as vCards.
    Cards(Vec<Card>),

    /// Makes a phone open an address, such as `sms:+15550142?body=Hello`.
    Open(String),

    /// A packet of another type, which is ignored.
    Other(String),
}

/// The body of a pairing packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    pub pair: bool,
    /// When pairing was requested, in seconds since 1970. Only requests have it, and only since version 8.
    pub timestamp: Option<i64>,
}

/// Most ids that a request for contacts may name.
const MOST_IDS: usize = 20_000;

impl Packet {
    /// The packet as a line to send.
    pub(super) fn line(&self, now: Timestamp) -> Vec<u8> {
        line(self.type_name(), &self.body(), now.as_millisecond())
    }

    fn type_name(&self) -> &str {
        match self {
            Self::Pair(_) => "kdeconnect.pair",
            Self::Ping => "kdeconnect.ping",
            Self::RequestConversations => "kdeconnect.sms.request_conversations",
            Self::RequestConversation(_) => "kdeconnect.sms.request_conversation",
            Self::SendSms(_) => "kdeconnect.sms.request",
            Self::Messages(_) => "kdeconnect.sms.messages",
            Self::RequestNotifications | Self::DismissNotification(_) => "kdeconnect.notification.request",
            Self::ReplyNotification { .. } => "kdeconnect.notification.reply",
            Self::PressNotification { .. } => "kdeconnect.notification.action",
            Self::Notification(_) => "kdeconnect.notification",
            Self::RequestContacts => "kdeconnect.contacts.request_all_uids_timestamps",
            Self::Contacts(_) => "kdeconnect.contacts.response_uids_timestamps",
            Self::RequestCards(_) => "kdeconnect.contacts.request_vcards_by_uid",
            Self::Cards(_) => "kdeconnect.contacts.response_vcards",
            Self::Open(_) => "kdeconnect.share.request",
            Self::Other(name) => name,
        }
    }

    fn body(&self) -> Value {
        match self {
            Self::Pair(Pair { pair, timestamp: None }) => json!({ "pair": pair }),
            Self::Pair(Pair { pair, timestamp: Some(at) }) => json!({ "pair": pair, "timestamp": at }),
            Self::Ping | Self::RequestConversations | Self::RequestContacts | Self::Other(_) => json!({}),
            Self::RequestConversation(conversation) => conversation.body(),
            Self::SendSms(outgoing) => outgoing.body(),
            Self::Messages(messages) => messages.body(),
            Self::RequestNotifications => json!({ "request": true }),
            Self::DismissNotification(key) => json!({ "cancel": key }),
            Self::ReplyNotification { reply_id, text } => {
                json!({ "requestReplyId": reply_id, "message": text })
            }
            Self::PressNotification { key, action } => json!({ "key": key, "action": action }),
            Self::Notification(change) => change.body(),
            Self::Contacts(stamps) => contacts::stamps_body(stamps),
            Self::RequestCards(ids) => json!({ "uids": ids }),
            Self::Cards(cards) => contacts::cards_body(cards),
            Self::Open(url) => json!({ "url": url }),
        }
    }

    /// Parses a line.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Malformed> {
        let name = type_of(line)?;
        Ok(match name.as_str() {
            "kdeconnect.pair" => Self::Pair(body::<WirePair>(line)?.understood()?),
            "kdeconnect.ping" => Self::Ping,
            "kdeconnect.sms.request_conversations" => Self::RequestConversations,
            "kdeconnect.sms.request_conversation" => {
                Self::RequestConversation(body::<sms::WireConversation>(line)?.understood()?)
            }
            "kdeconnect.sms.request" => Self::SendSms(body::<sms::WireOutgoing>(line)?.understood()?),
            "kdeconnect.sms.messages" => Self::Messages(body::<sms::WireMessages>(line)?.understood()),
            "kdeconnect.notification.request" => body::<WireNotificationRequest>(line)?.understood()?,
            "kdeconnect.notification.reply" => body::<WireReply>(line)?.understood()?,
            "kdeconnect.notification.action" => body::<WirePress>(line)?.understood()?,
            "kdeconnect.notification" => Self::Notification(body::<notification::Wire>(line)?.understood()?),
            "kdeconnect.contacts.request_all_uids_timestamps" => Self::RequestContacts,
            "kdeconnect.contacts.response_uids_timestamps" => {
                Self::Contacts(body::<contacts::Wire>(line)?.into_stamps())
            }
            "kdeconnect.contacts.request_vcards_by_uid" => {
                Self::RequestCards(body::<WireIds>(line)?.uids.items)
            }
            "kdeconnect.contacts.response_vcards" => Self::Cards(body::<contacts::Wire>(line)?.into_cards()),
            "kdeconnect.share.request" => Self::Open(body::<WireOpen>(line)?.url.0.ok_or(Malformed)?),
            _ => Self::Other(name),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WirePair {
    pair: Flag,
    timestamp: Number,
}

impl WirePair {
    fn understood(self) -> Result<Pair, Malformed> {
        Ok(Pair { pair: self.pair.0.ok_or(Malformed)?, timestamp: self.timestamp.0 })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireNotificationRequest {
    request: Flag,
    cancel: Text,
}

impl WireNotificationRequest {
    fn understood(self) -> Result<Packet, Malformed> {
        match (self.cancel.0, self.request.0) {
            (Some(key), _) => Ok(Packet::DismissNotification(key)),
            (None, Some(true)) => Ok(Packet::RequestNotifications),
            (None, _) => Err(Malformed),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WireReply {
    request_reply_id: Text,
    message: Text,
}

impl WireReply {
    fn understood(self) -> Result<Packet, Malformed> {
        let (Some(reply_id), Some(text)) = (self.request_reply_id.0, self.message.0) else {
            return Err(Malformed);
        };
        Ok(Packet::ReplyNotification { reply_id, text })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WirePress {
    key: Text,
    action: Text,
}

impl WirePress {
    fn understood(self) -> Result<Packet, Malformed> {
        let (Some(key), Some(action)) = (self.key.0, self.action.0) else { return Err(Malformed) };
        Ok(Packet::PressNotification { key, action })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireIds {
    #[serde(deserialize_with = "texts")]
    uids: List<String, MOST_IDS>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireOpen {
    url: Text,
}
