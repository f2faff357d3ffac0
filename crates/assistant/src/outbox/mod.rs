//! The one way out: everything that another person will receive is a draft here, and only a person's tap sends it.
//!
//! A tool stages a [`Draft`] ([`store`]) → a face shows it whole, with what is remarkable about it ([`remarks`], pure)
//! → the person taps, and the tap carries the hash of what was shown → [`door`] makes the one
//! [`Approved`](door::Approved) of that tap and hands it to a sender → the draft becomes sent, failed, or, if nobody
//! lived to see it, unknown.

pub mod door;
pub(crate) mod number;
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

/// By which way it would leave.
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

/// What a tool wants to have sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDraft {
    pub channel: Channel,
    pub to: String,
    pub body: String,
    /// The message that is answered.
    pub in_reply_to: Option<i64>,
    /// What it says; kept only to be shown beside the draft.
    pub quoted: Option<Untrusted>,
    /// The answered message came from there, or something did before.
    pub known_contact: bool,
    pub origin: RunKind,
    /// 0 for none.
    pub conversation: i64,
}

/// A message that waits for its person, or what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub id: DraftId,
    pub channel: Channel,
    pub to: String,
    pub body: String,
    pub in_reply_to: Option<i64>,
    /// The beginning of what is answered, for the person's eyes: no part of the digest, the ledger or a tool's result.
    pub quoted: Option<Untrusted>,
    /// Nothing was ever exchanged with this number, as far as we know.
    pub first_contact: bool,
    pub origin: RunKind,
    pub conversation: i64,
    pub created_at: Timestamp,
    pub status: Status,
    /// How often it was handed to a phone.
    pub attempts: u32,
}

/// Where a draft stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Pending,
    Sending,
    /// The phone took it; the rest is what else is known.
    Sent(String),
    /// It certainly did not leave; why.
    Failed(String),
    /// It may have left: nobody lived to see, or the phone did not answer.
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
    /// Where it came from: a chat without a conversation was a call by hand.
    pub fn came_from(&self) -> DraftOrigin {
        match (self.origin, self.conversation) {
            (RunKind::Chat, 0) => DraftOrigin::Command,
            (RunKind::Chat, _) => DraftOrigin::Chat,
            (RunKind::Heartbeat, _) => DraftOrigin::Heartbeat,
            (RunKind::Task, _) => DraftOrigin::Task,
        }
    }

    /// The hash of what is shown and what is sent. A tap carries it, so that nobody approves one thing and sends
    /// another. Each part is preceded by its length, so that no two drafts run together to the same bytes.
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

/// Who had it made, as it is stored.
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
