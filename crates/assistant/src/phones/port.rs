//! The port to a paired phone: what it tells, and what it can be asked. A bridge implements [`PhoneLink`] and reports
//! what the phone says as [`FromPhone`].

use std::pin::Pin;

use jiff::Timestamp;

use crate::untrusted::Untrusted;

/// The number of a conversation on the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub i64);

/// The two kinds of messages. Each numbers its messages on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    Sms,
    /// With pictures or to a group. Kai shows that there is one, and not what it holds.
    Mms,
}

/// The folders whose messages Kai looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Folder {
    Inbox,
    Sent,
}

/// A message on a paired phone. Ids of deleted messages are used again, so a message is identified by kind, id, date and
/// address together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhoneMessage {
    pub kind: MessageKind,
    pub native_id: i64,
    pub thread: ThreadId,
    pub folder: Folder,
    pub read: bool,
    pub date: Timestamp,
    /// Who sent it, or to whom it was sent. May be empty.
    pub address: Untrusted,
    pub body: Untrusted,
}

/// A draft, or a message that did not leave. Kai does not look at it, but it shows that there is its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsent {
    pub thread: ThreadId,
    pub date: Timestamp,
}

/// Messages as a phone tells them together, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageList {
    pub messages: Vec<PhoneMessage>,
    pub unsent: Vec<Unsent>,
}

/// A contact of the phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// The phone's own id of it.
    pub uid: String,
    pub name: Untrusted,
    pub numbers: Vec<Untrusted>,
}

/// When a contact was last changed, by the phone's clock. Only good for comparing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactStamp {
    pub uid: String,
    pub changed: i64,
}

/// What a paired phone tells about its messages and contacts. Its notifications travel as those of every platform do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromPhone {
    /// There is a connection now. It replaces an older one, and nothing was asked on it yet.
    Connected,
    /// The connection ended.
    Lost,
    /// An answer, or news. The phone does not say which.
    Messages(MessageList),
    /// All its contacts, by id.
    ContactList(Vec<ContactStamp>),
    Contacts(Vec<Contact>),
}

/// What Kai asks a paired phone for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// The newest message of every conversation. The phone sends news only after this was asked on its connection.
    Threads,
    /// So many messages of a conversation, newest first, dated `until` or before.
    Thread {
        thread: ThreadId,
        until: Option<Timestamp>,
        count: u32,
    },
    /// All contacts, by id.
    ContactList,
    Contacts {
        uids: Vec<String>,
    },
}

/// Why something did not reach the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReached {
    /// The phone is not connected, so nothing was sent.
    NotConnected,
    /// The phone takes what it is sent too slowly, so nothing was sent.
    Busy,
    /// The connection broke while it was being sent. The phone may or may not have it.
    Unsure,
}

/// The future that the methods of a link return.
pub type Reaching<'a> = Pin<Box<dyn Future<Output = Result<(), NotReached>> + Send + 'a>>;

/// A paired phone, connected or not.
pub trait PhoneLink: Send + Sync {
    fn is_connected(&self) -> bool;
    /// Asks for something. The answer comes as [`FromPhone`].
    fn ask(&self, ask: Ask) -> Reaching<'_>;
}
