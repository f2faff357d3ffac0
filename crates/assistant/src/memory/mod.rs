//! Memories: what Kai remembers across conversations.
//!
//! A model calls a tool (`tools`), the tool stores one row per key ([`store`]), and the user lists and deletes them
//! with `kai memory`. A memory from a request that contains text by others waits until the user confirms its words;
//! until then it is in no prompt. A memory that proved useful often enough may be proposed as an addition to the soul
//! text ([`promotion`]).

pub mod promotion;
pub mod store;
mod tools;

use kai_words::{Said, said};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::db::Migration;
use crate::hex;
use crate::untrusted::Untrusted;

pub use tools::{MemoryForget, MemoryLearn, MemoryReinforce, MemoryStore};

pub(crate) const MIGRATION: Migration =
    Migration { name: "memory/1", sql: include_str!("../../migrations/memory.sql") };
pub(crate) const TAINT: Migration =
    Migration { name: "memory/2", sql: include_str!("../../migrations/memory2.sql") };
pub(crate) const CONFIRMED: Migration =
    Migration { name: "memory/confirmed", sql: include_str!("../../migrations/memory_confirmed.sql") };

/// The name of a memory: short, on one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemoryKey(String);

const KEY_LIMIT: usize = 100;
/// How many characters a memory has at most.
pub const CONTENT_LIMIT: usize = 4_000;

impl MemoryKey {
    /// Trims and checks a key. Returns a sentence that says what is wrong if it is not valid.
    pub fn new(typed: &str) -> Result<Self, Said> {
        let key = typed.trim();
        if key.is_empty() {
            Err(said::memory_wrong_key_empty())
        } else if key.chars().count() > KEY_LIMIT {
            Err(said::memory_wrong_key_long(KEY_LIMIT))
        } else if Untrusted::new(key).line(usize::MAX) != key {
            Err(said::memory_wrong_key_lines())
        } else {
            Ok(Self(key.to_owned()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "MemoryInFile")]
pub struct Memory {
    pub key: MemoryKey,
    pub content: String,
    pub category: Category,
    pub hits: u32,
    /// Whether the user confirmed its words. An unconfirmed memory is in no prompt.
    pub confirmed: bool,
}

/// A memory in an exported file. Older files mark an unconfirmed memory as `tainted` instead.
#[derive(Deserialize)]
struct MemoryInFile {
    key: MemoryKey,
    content: String,
    category: Category,
    hits: u32,
    confirmed: Option<bool>,
    #[serde(default)]
    tainted: bool,
}

impl From<MemoryInFile> for Memory {
    fn from(written: MemoryInFile) -> Self {
        let MemoryInFile { key, content, category, hits, confirmed, tainted } = written;
        Self { key, content, category, hits, confirmed: confirmed.unwrap_or(!tainted) }
    }
}

impl Memory {
    /// The hash of the key and the content. It proves what the user saw when they confirm the memory.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.key.as_str(), &self.content] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(&hash.finalize())
    }

    /// Checks that a tool could have stored this memory. An imported file may contain anything.
    pub fn checked(&self) -> Result<(), Said> {
        let key = MemoryKey::new(self.key.as_str())?;
        let text = content(&self.content)?;
        if key == self.key && text == self.content {
            Ok(())
        } else {
            Err(said::memory_wrong_padded(key.as_str()))
        }
    }
}

/// The kind of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Category {
    General,
    Learning,
    Error,
    Preference,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::General => "GENERAL",
            Self::Learning => "LEARNING",
            Self::Error => "ERROR",
            Self::Preference => "PREFERENCE",
        }
    }

    fn from_stored(text: &str) -> Self {
        match text {
            "LEARNING" => Self::Learning,
            "ERROR" => Self::Error,
            "PREFERENCE" => Self::Preference,
            _ => Self::General,
        }
    }
}

/// Trims and checks the content of a memory, and removes NUL. Returns a sentence that says what is wrong if it is empty
/// or too long.
pub fn content(typed: &str) -> Result<String, Said> {
    let text = typed.trim();
    let length = text.chars().count();
    if text.is_empty() {
        Err(said::memory_wrong_empty())
    } else if length > CONTENT_LIMIT {
        Err(said::memory_wrong_long(length, CONTENT_LIMIT))
    } else {
        Ok(text.replace('\0', ""))
    }
}
