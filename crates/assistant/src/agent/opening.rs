//! What a turn begins with: a new message, a queued one, the last one in other words, or the last answer once more.

use jiff::Timestamp;
use kai_llm::Message;
use rusqlite::Transaction;

use super::conversation::{self, ConversationId, Entry};
use super::queued::QueuedId;
use super::saying::Saying;
use super::{continued, queued};
use crate::attachments::Refused;
use crate::db::DbError;

/// What a turn begins with.
pub(super) enum Opening {
    Said(Saying),
    /// The first message that waits in this conversation. If one is named, it has to be that.
    Queued(Option<QueuedId>),
    /// Other words for the user's last message, which is the one that they saw.
    Rewritten {
        seen: String,
        words: String,
    },
    /// The user's last message is answered again.
    Again,
    /// The answer that the user stopped goes on.
    Continued,
}

impl Opening {
    /// Does it end with a message that the user just sent?
    pub(super) fn is_said_now(&self) -> bool {
        match self {
            Self::Said(_) | Self::Queued(_) | Self::Rewritten { .. } => true,
            Self::Again | Self::Continued => false,
        }
    }

    /// What the model is asked besides the conversation; never stored.
    pub(super) fn request(&self) -> Option<Message> {
        match self {
            Self::Continued => Some(Message::user(continued::GO_ON.to_owned())),
            Self::Said(_) | Self::Queued(_) | Self::Rewritten { .. } | Self::Again => None,
        }
    }

    /// Brings the conversation to where the model is asked.
    pub(super) fn store(
        self,
        tx: &Transaction<'_>,
        id: ConversationId,
        now: Timestamp,
    ) -> Result<Opened, DbError> {
        let is_there = match self {
            Self::Said(said) => return Ok(Opened::of(said.append(tx, id, now)?)),
            Self::Queued(meant) => match queued::take_first(tx, id, meant)? {
                Some(said) => return Ok(Opened::of(said.append(tx, id, now)?)),
                None => false,
            },
            Self::Rewritten { seen, words } => conversation::rewrite(tx, id, &seen, &words, now)?,
            Self::Continued => conversation::entries(tx, id)?.last().is_some_and(Entry::is_stopped),
            Self::Again if !conversation::reopen(tx, id)? => return Ok(Opened::NothingSaid),
            Self::Again => true,
        };
        Ok(if is_there { Opened::Ready } else { Opened::Changed })
    }
}

/// Whether a turn can begin.
pub(super) enum Opened {
    Ready,
    /// There is no message to answer.
    NothingSaid,
    /// The conversation is not as the user saw it any more.
    Changed,
    /// A file cannot be attached.
    Refused(Refused),
}

impl Opened {
    fn of(appended: Result<(), Refused>) -> Self {
        appended.map_or_else(Self::Refused, |()| Self::Ready)
    }
}
