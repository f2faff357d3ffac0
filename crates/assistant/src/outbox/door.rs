//! The door: nothing leaves but through here, and only for a tap.

use std::pin::Pin;

use jiff::Timestamp;

/// A person's approval of one message, for one attempt. Only the door can make one, and a sender takes it by value.
#[derive(Debug)]
pub struct Approved {
    to: String,
    body: String,
}

impl Approved {
    pub fn to(&self) -> &str {
        &self.to
    }

    pub fn body(&self) -> &str {
        &self.body
    }
}

/// How a message that was handed over fared.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + Send + 'a>>;

/// Why a message is not certainly on its way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It certainly did not leave. A sentence.
    #[error("{0}")]
    NotSent(String),
    /// It may have left. A sentence.
    #[error("{0}")]
    Unsure(String),
}

/// Something that was sent, as the phone keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    pub to: String,
    pub body: String,
    /// Bridges may know it to the second only.
    pub at: Timestamp,
}

/// What a look into the sent box brings; `None` where there is none to look into.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Option<Vec<SentMessage>>> + Send + 'a>>;

/// A phone that can send.
pub trait Sender: Send + Sync {
    /// Hands the message over; `Ok` means that the phone took it.
    fn send(&self, approved: Approved) -> Sending<'_>;
    /// What was sent at that moment or later: settles an attempt nobody lived to see the end of.
    fn sent_since(&self, at: Timestamp) -> Looking<'_>;
}
