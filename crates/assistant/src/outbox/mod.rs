//! The outbox: the only way for Kai to send a message to another person. Every message is a draft here, and only the
//! user's tap sends it.
//!
//! The path of a draft: a tool stages a [`Draft`] ([`store`]) → the page or the command line shows it in full, with
//! warnings ([`remarks`], pure) → the user taps, and the tap carries the hash of what was shown → [`door`] turns that
//! tap into one [`Approved`](door::Approved) and hands it to a sender → the draft becomes sent, failed, or, if Kai
//! crashed or the phone did not answer, unknown.

pub mod door;
pub mod number;
pub mod remarks;
pub mod segments;
pub mod store;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::db::Migration;
use crate::gate::RunKind;
use crate::hex;
use crate::untrusted::Untrusted;

pub(crate) const MIGRATION: Migration =
    Migration { name: "outbox/1", sql: include_str!("../../migrations/outbox.sql") };
pub(crate) const QUOTES: Migration =
    Migration { name: "outbox/2", sql: include_str!("../../migrations/outbox2.sql") };
pub(crate) const ANNOUNCED: Migration =
    Migration { name: "outbox/3", sql: include_str!("../../migrations/outbox3.sql") };

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DraftId(pub i64);

/// How a draft is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Sms,
}

impl Channel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sms => "sms",
        }
    }
}

/// A message that a tool wants to send, before it is staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDraft {
    pub channel: Channel,
    pub to: String,
    pub body: String,
    /// The id of the message that it answers.
    pub in_reply_to: Option<i64>,
    /// The text of the message that it answers, kept only to be shown beside the draft.
    pub quoted: Option<Untrusted>,
    /// Whether the recipient has written to the user: the answered message or an earlier one.
    pub known_contact: bool,
    pub origin: RunKind,
    /// The conversation in which it was drafted; 0 for none.
    pub conversation: i64,
}

/// A message that waits for the user to send it, or that was sent or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub id: DraftId,
    pub channel: Channel,
    pub to: String,
    pub body: String,
    pub in_reply_to: Option<i64>,
    /// The beginning of the answered message, shown to the user only: it is not part of the digest, the ledger or a
    /// tool result.
    pub quoted: Option<Untrusted>,
    /// As far as Kai knows, no message was ever exchanged with this number.
    pub first_contact: bool,
    pub origin: RunKind,
    pub conversation: i64,
    pub created_at: Timestamp,
    pub status: Status,
    /// How often Kai tried to send it.
    pub attempts: u32,
}

/// The status of a draft, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Pending,
    Sending,
    /// The phone accepted it. The text holds any further detail and may be empty.
    Sent(String),
    /// It was certainly not sent. The text says why.
    Failed(String),
    /// It may have been sent: Kai stopped while sending it, or the phone did not answer.
    Unknown(String),
}

/// A [`Status`] without its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DraftState {
    Pending,
    Sending,
    Sent,
    Failed,
    Unknown,
}

impl DraftState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Sending => "SENDING",
            Self::Sent => "SENT",
            Self::Failed => "FAILED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl Status {
    pub fn state(&self) -> DraftState {
        match self {
            Self::Pending => DraftState::Pending,
            Self::Sending => DraftState::Sending,
            Self::Sent(_) => DraftState::Sent,
            Self::Failed(_) => DraftState::Failed,
            Self::Unknown(_) => DraftState::Unknown,
        }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Pending | Self::Sending => None,
            Self::Sent(more) => Some(more.as_str()).filter(|more| !more.is_empty()),
            Self::Failed(why) | Self::Unknown(why) => Some(why),
        }
    }
}

/// Who staged a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DraftOrigin {
    Command,
    Chat,
    Heartbeat,
    Task,
}

impl DraftOrigin {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Chat => "chat",
            Self::Heartbeat => "heartbeat",
            Self::Task => "task",
        }
    }
}

impl Draft {
    /// Who staged the draft. A chat run without a conversation is a tool call from the command line.
    pub fn came_from(&self) -> DraftOrigin {
        match (self.origin, self.conversation) {
            (RunKind::Chat, 0) => DraftOrigin::Command,
            (RunKind::Chat, _) => DraftOrigin::Chat,
            (RunKind::Heartbeat, _) => DraftOrigin::Heartbeat,
            (RunKind::Task, _) => DraftOrigin::Task,
        }
    }

    /// The hash of everything that is shown and sent. A tap carries it, so that the user cannot approve one text and
    /// send another. Each part is prefixed with its length, so that no two drafts hash the same bytes.
    pub fn digest(&self) -> String {
        let reply = self.in_reply_to.map(|id| id.to_string()).unwrap_or_default();
        let mut hash = Sha256::new();
        for part in [self.channel.as_str(), &self.to, &self.body, &reply] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(&hash.finalize())
    }
}

/// The stored name of the kind of run that staged a draft.
fn origin_name(origin: RunKind) -> &'static str {
    match origin {
        RunKind::Chat => "chat",
        RunKind::Heartbeat => "heartbeat",
        RunKind::Task => "task",
    }
}

fn origin_from(stored: &str) -> RunKind {
    match stored {
        "heartbeat" => RunKind::Heartbeat,
        "task" => RunKind::Task,
        _ => RunKind::Chat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_that_is_shown_changes_the_hash() {
        let draft = Draft {
            id: DraftId(1),
            channel: Channel::Sms,
            to: "+15550100".to_owned(),
            body: "Hi".to_owned(),
            in_reply_to: None,
            quoted: None,
            first_contact: false,
            origin: RunKind::Chat,
            conversation: 0,
            created_at: Timestamp::UNIX_EPOCH,
            status: Status::Pending,
            attempts: 0,
        };
        let changed = [
            Draft { to: "+15550101".to_owned(), ..draft.clone() },
            Draft { body: "Hi ".to_owned(), ..draft.clone() },
            Draft { in_reply_to: Some(7), ..draft.clone() },
            Draft { to: "+1555010".to_owned(), body: "0Hi".to_owned(), ..draft.clone() },
        ];
        for other in changed {
            assert_ne!(other.digest(), draft.digest(), "{other:?}");
        }
        let sent = Draft { status: Status::Sent(String::new()), attempts: 1, ..draft.clone() };
        assert_eq!(sent.digest(), draft.digest(), "what is shown is the same");
        let quoting = Draft { quoted: Some(Untrusted::new("Dinner?")), ..draft.clone() };
        assert_eq!(quoting.digest(), draft.digest(), "what is quoted is not sent");
        assert_eq!(draft.digest().len(), 64);
    }
}
