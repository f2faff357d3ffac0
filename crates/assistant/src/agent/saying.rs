//! A message of the user's: words, files, and the messages that it quotes.

use jiff::Timestamp;
use rusqlite::Transaction;

use super::conversation::{self, ConversationId};
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

    /// Appends it to a conversation; refused if one of its files cannot be attached.
    pub(super) fn append(
        self,
        tx: &Transaction<'_>,
        id: ConversationId,
        now: Timestamp,
    ) -> Result<Result<(), Refused>, DbError> {
        let files = match attachments::store::staged(tx, &self.files)? {
            Ok(files) => files,
            Err(refused) => return Ok(Err(refused)),
        };
        if self.model.is_some() {
            conversation::set_model(tx, id, self.model.as_deref())?;
        }
        conversation::append_said(tx, id, self.text, self.quotes, &files, now)?;
        self.files.iter().try_for_each(|file| attachments::store::unstage(tx, *file))?;
        Ok(Ok(()))
    }
}
