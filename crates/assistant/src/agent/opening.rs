//! What a turn begins with: a new message, a queued one, the last one in other words, or the last answer once more.

use jiff::Timestamp;
use kai_llm::Message;
use rusqlite::Transaction;

use super::conversation::{self, ConversationId, Entry};
use super::{continued, queued};
use crate::attachments::store::StagedId;
use crate::attachments::{self, Refused};
use crate::db::DbError;

/// A message of the user's that begins a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saying {
    pub text: String,
    /// The ledger identities of the messages that it quotes.
    pub quotes: Vec<String>,
    /// The files that are attached to it.
    pub files: Vec<StagedId>,
    /// The model that the user chose for the conversation that begins with it.
    pub model: Option<String>,
}

impl From<String> for Saying {
    fn from(text: String) -> Self {
        Self { text, quotes: vec![], files: vec![], model: None }
    }
}

impl Saying {
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.files.is_empty()
    }

    fn append(self, tx: &Transaction<'_>, id: ConversationId, now: Timestamp) -> Result<Opened, DbError> {
        if self.model.is_some() {
            conversation::set_model(tx, id, self.model.as_deref())?;
        }
        if !self.quotes.is_empty() {
            conversation::append_quoting(tx, id, self.text, self.quotes, now)?;
            return Ok(Opened::Ready);
        }
        let files = match attachments::store::staged(tx, &self.files)? {
            Ok(files) => files,
            Err(refused) => return Ok(Opened::Refused(refused)),
        };
        conversation::append_with_files(tx, id, self.text, &files, now)?;
        self.files.iter().try_for_each(|file| attachments::store::unstage(tx, *file))?;
        Ok(Opened::Ready)
    }
}

/// What a turn begins with.
pub(super) enum Opening {
    Said(Saying),
    /// The first message that waits in this conversation.
    Queued,
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
            Self::Said(_) | Self::Queued | Self::Rewritten { .. } => true,
            Self::Again | Self::Continued => false,
        }
    }

    /// What the model is asked besides the conversation; never stored.
    pub(super) fn request(&self) -> Option<Message> {
        match self {
            Self::Continued => Some(Message::user(continued::GO_ON.to_owned())),
            Self::Said(_) | Self::Queued | Self::Rewritten { .. } | Self::Again => None,
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
            Self::Said(said) => return said.append(tx, id, now),
            Self::Queued => match queued::take_first(tx, id)? {
                Some(said) => return said.append(tx, id, now),
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
