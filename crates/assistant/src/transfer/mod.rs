//! Export and import: what a person keeps in Kai as one JSON file, section by section.
//!
//! A file from elsewhere is read leniently: a section that makes no sense is reported and skipped, an unknown one
//! is ignored, and nothing is written before all that can be read has been. Secrets are only in the file when
//! asked for, and then sealed with a passphrase.

#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod store;
mod tasks;

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::db::DbError;
use crate::home::{Passphrase, Sealed};
use crate::settings::Setting;

/// The newest form of the file. Older ones are read as well.
pub const VERSION: u32 = 1;

/// A part of what Kai keeps that can be taken along on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Settings,
    Memory,
    Models,
    Tasks,
    Conversations,
}

impl Section {
    pub const ALL: [Self; 5] = [Self::Settings, Self::Memory, Self::Models, Self::Tasks, Self::Conversations];

    pub fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Memory => "memory",
            Self::Models => "models",
            Self::Tasks => "tasks",
            Self::Conversations => "conversations",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.name() == name)
    }
}

/// The file. Sections stay raw until each has been read on its own.
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

/// A model without its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlainModel {
    name: String,
    preset: String,
    base_url: String,
    model: String,
    /// The window that the person set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<usize>,
}

/// What is sealed: keys of models, by the model's name, and settings that are secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    #[serde(default)]
    model_keys: BTreeMap<String, String>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

/// Takes the sections along, without what is secret in them.
pub fn export(tx: &Transaction<'_>, sections: &[Section], now: Timestamp) -> Result<Export, DbError> {
    let mut taken = BTreeMap::new();
    for section in sections {
        taken.insert(section.name().to_owned(), store::read(tx, *section)?);
    }
    Ok(Export { kai_export: VERSION, exported_at: now.as_millisecond(), sections: taken, secrets: None })
}

/// What is secret here, to be sealed.
pub fn secrets(tx: &Transaction<'_>) -> Result<Secrets, DbError> {
    store::secrets(tx)
}

/// Why nothing was taken along or in.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("This is not an export of Kai ({0}).")]
    Unreadable(String),
    #[error(
        "This export was made by a newer Kai (form {0}, this one reads up to {VERSION}). Update Kai first."
    )]
    Newer(u32),
    #[error("The export holds secrets. Give their passphrase, or leave them out with --no-secrets.")]
    PassphraseNeeded,
    #[error("That passphrase does not open the secrets of this export. Nothing was changed.")]
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

    /// With the secrets in it. A passphrase is slow on purpose: nobody else shall wait for it, so no store is held.
    pub fn sealed(self, secrets: &Secrets, passphrase: &Passphrase) -> Result<Self, TransferError> {
        let unreadable = |e: &dyn std::fmt::Display| TransferError::Unreadable(e.to_string());
        let plain = serde_json::to_vec(secrets).map_err(|e| unreadable(&e))?;
        let sealed = Sealed::seal(&plain, passphrase).map_err(|e| unreadable(&e))?;
        Ok(Self { secrets: Some(sealed), ..self })
    }

    /// The secrets in it; without a passphrase none. As slow as [`Export::sealed`].
    pub fn opened(&self, passphrase: Option<&Passphrase>) -> Result<Secrets, TransferError> {
        let (Some(sealed), Some(passphrase)) = (&self.secrets, passphrase) else {
            return Ok(Secrets::default());
        };
        let plain = sealed.open(passphrase).map_err(|_| TransferError::WrongPassphrase)?;
        serde_json::from_slice(&plain).map_err(|e| TransferError::Unreadable(e.to_string()))
    }
}

/// How an import treats what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What is there stays; the same key is updated.
    Merge,
    /// Each section of the file takes the place of what was there.
    Replace,
}

/// What an import did, or would do, with one section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub section: String,
    pub new: usize,
    pub changed: usize,
    pub same: usize,
    /// Taken away by [`Mode::Replace`].
    pub removed: usize,
    /// What is new or changed, each in a line.
    #[serde(default)]
    pub changes: Vec<String>,
    /// Single things that were left out, with the reason.
    pub skipped: Vec<String>,
    /// The whole section was left out, because of this.
    pub problem: Option<String>,
}

/// What an import takes in.
pub struct Import<'a> {
    pub export: &'a Export,
    /// Only these; empty means all of the file.
    pub sections: &'a [Section],
    pub mode: Mode,
    /// Those of the file, opened.
    pub secrets: &'a Secrets,
    /// All settings there are, to check values against.
    pub settings: &'a [Setting],
    /// What tasks go by: when and where it is taken in.
    pub now: Timestamp,
    pub zone: &'a TimeZone,
}

/// Takes the file in, in the caller's transaction: a preview is an import that is rolled back.
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

    /// Compares what comes with what was there under the same name; `told` says what it is.
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
