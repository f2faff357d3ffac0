//! Export and import of the user's data as one JSON file with sections.
//!
//! A file is read leniently: a section that cannot be parsed is reported and skipped, an unknown one is ignored, and
//! everything else is written in one transaction. The file contains secrets only if the user asks for them, and then
//! encrypted with a passphrase. It is written piece by piece ([`piece`]) and read at once. Mail accounts are not in it: each is its password more than anything else, and adding one
//! signs in to its servers anyway.

#[cfg(feature = "sms")]
mod archive;
#[cfg(not(feature = "sms"))]
#[path = "no_archive.rs"]
mod archive;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod pieces;
mod share;
mod store;
mod tasks;

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_words::Lang;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::archive::OnRequest;
pub use self::pieces::{Bookmark, Piece, end, piece};
use crate::agent::conversation::{ConversationId, Whole};
use crate::db::DbError;
use crate::home::{Passphrase, Sealed};
use crate::settings::Setting;

/// The newest version of the file format. Older ones can be read too.
pub const VERSION: u32 = 1;

/// A part of the user's data that can be exported on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Settings,
    Memory,
    Models,
    Tasks,
    Conversations,
    /// Exported only if it is named, and never imported.
    OnRequest(OnRequest),
}

impl Section {
    /// What is exported if nothing else is said, and what can be imported.
    pub const ALL: [Self; 5] = [Self::Settings, Self::Memory, Self::Models, Self::Tasks, Self::Conversations];

    pub fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Memory => "memory",
            Self::Models => "models",
            Self::Tasks => "tasks",
            Self::Conversations => "conversations",
            Self::OnRequest(extra) => extra.name(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|section| section.name() == name)
    }

    /// Every section, with those that are exported only if they are named.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain(OnRequest::ALL.iter().copied().map(Self::OnRequest))
    }
}

/// The file. Sections stay raw JSON, so that each can be parsed on its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    pub kai_export: u32,
    /// Epoch milliseconds.
    #[serde(default)]
    pub exported_at: i64,
    #[serde(default)]
    pub sections: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Sealed>,
}

/// A model as it is exported, without its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlainModel {
    name: String,
    preset: String,
    base_url: String,
    model: String,
    /// The context window that the user set, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<usize>,
    /// Whether it can see pictures, if the user said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sees: Option<bool>,
}

/// The part of the file that is encrypted: model keys by the model's name, and secret settings.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    #[serde(default)]
    model_keys: BTreeMap<String, String>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

/// One conversation as it may be written into a file: codes that the model was shown are redacted. `None` if it does not
/// exist.
pub fn conversation(tx: &Transaction<'_>, id: ConversationId) -> Result<Option<Whole>, DbError> {
    store::one(tx, id)
}

/// The secrets of this store, to be encrypted with [`Secrets::sealed`].
pub fn secrets(tx: &Transaction<'_>) -> Result<Secrets, DbError> {
    store::secrets(tx)
}

/// Why an export or import failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("This is not a file that Kai exported ({0}).")]
    Unreadable(String),
    #[error(
        "This file was made by a newer Kai (format {0}; this one reads up to {VERSION}). Update Kai first."
    )]
    Newer(u32),
    #[error("The file contains encrypted keys. Enter their passphrase, or leave them out with --no-secrets.")]
    PassphraseNeeded,
    #[error("That passphrase does not open the keys in this file. Nothing was changed.")]
    WrongPassphrase,
    #[error("{0}")]
    Store(#[from] DbError),
}

impl Export {
    pub fn parse(text: &str) -> Result<Self, TransferError> {
        let unreadable = |e: serde_json::Error| TransferError::Unreadable(e.to_string());
        let fields: serde_json::Map<String, Value> = serde_json::from_str(text).map_err(unreadable)?;
        let export: Self = serde_json::from_value(Value::Object(fields)).map_err(unreadable)?;
        if export.kai_export > VERSION { Err(TransferError::Newer(export.kai_export)) } else { Ok(export) }
    }

    /// Decrypts the secrets; without a passphrase there are none. As slow as [`Secrets::sealed`].
    pub fn opened(&self, passphrase: Option<&Passphrase>) -> Result<Secrets, TransferError> {
        let (Some(sealed), Some(passphrase)) = (&self.secrets, passphrase) else {
            return Ok(Secrets::default());
        };
        let plain = sealed.open(passphrase).map_err(|_| TransferError::WrongPassphrase)?;
        serde_json::from_slice(&plain).map_err(|e| TransferError::Unreadable(e.to_string()))
    }
}

impl Secrets {
    /// The secrets, encrypted with the passphrase. Deriving the key is slow on purpose, so do not call this inside a
    /// transaction, where others would have to wait for it.
    pub fn sealed(&self, passphrase: &Passphrase) -> Result<Sealed, TransferError> {
        let unreadable = |e: &dyn std::fmt::Display| TransferError::Unreadable(e.to_string());
        let plain = serde_json::to_vec(self).map_err(|e| unreadable(&e))?;
        Sealed::seal(&plain, passphrase).map_err(|e| unreadable(&e))
    }
}

/// How an import treats existing data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Existing items are kept; items with the same key are updated, except conversations and tasks, which stay.
    Merge,
    /// Each section of the file replaces the existing one.
    Replace,
}

/// What an import did, or would do, with one section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub section: String,
    pub new: usize,
    pub changed: usize,
    pub same: usize,
    /// How many items [`Mode::Replace`] deleted.
    pub removed: usize,
    /// One line for each new or changed item.
    #[serde(default)]
    pub changes: Vec<String>,
    /// Items that were skipped, each with the reason.
    pub skipped: Vec<String>,
    /// Why the whole section was skipped, if it was.
    pub problem: Option<String>,
}

/// The input of an import.
pub struct Import<'a> {
    pub export: &'a Export,
    /// The sections to import; empty means all sections of the file.
    pub sections: &'a [Section],
    pub mode: Mode,
    /// The decrypted secrets of the file.
    pub secrets: &'a Secrets,
    /// All known settings, to check values against.
    pub settings: &'a [Setting],
    /// The current time, which decides whether a task is still to come.
    pub now: Timestamp,
    /// The user's time zone, for the times of tasks.
    pub zone: &'a TimeZone,
    /// The language of what the outcomes say about each item.
    pub lang: Lang,
}

/// Imports the file in the caller's transaction. A preview is an import that is rolled back.
pub fn import(tx: &Transaction<'_>, import: &Import<'_>) -> Result<Vec<Outcome>, DbError> {
    let wanted = |section: &Section| import.sections.is_empty() || import.sections.contains(section);
    let mut outcomes = Vec::new();
    for section in Section::ALL.into_iter().filter(wanted) {
        if let Some(value) = import.export.sections.get(section.name()) {
            outcomes.push(store::write(tx, section, value, import)?);
        }
    }
    Ok(outcomes)
}

impl Outcome {
    fn of(section: Section) -> Self {
        Self {
            section: section.name().to_owned(),
            new: 0,
            changed: 0,
            same: 0,
            removed: 0,
            changes: vec![],
            skipped: vec![],
            problem: None,
        }
    }

    /// Counts an imported item as new, changed or the same, compared with the existing one of the same name. `told`
    /// describes a new or changed item.
    fn count<T: PartialEq + ?Sized>(&mut self, before: Option<&T>, comes: &T, told: impl FnOnce() -> String) {
        match before {
            Some(there) if there == comes => {
                self.same += 1;
                return;
            }
            None => self.new += 1,
            Some(_) => self.changed += 1,
        }
        self.changes.push(told());
    }
}

#[cfg(test)]
mod tests;
