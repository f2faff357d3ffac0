//! Files that the user attaches to a message: pictures and text files.
//!
//! The walk of a file: [`prepare`] takes it as it came and makes what Kai keeps of it, without metadata ([`picture`])
//! and under a harmless name ([`name`]); [`store::stage`] keeps that until its message is sent; [`store::attach`] ties
//! it to the message; and [`sent`] puts it into a request. It goes with the last message that has it.

pub mod base64;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod name;
pub mod picture;
pub mod sent;
pub mod store;
mod text;

use std::time::Duration;

use kai_llm::Media;
use kai_words::{Said, said};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::db::Migration;
use crate::hex;

pub(crate) const MIGRATION: Migration =
    Migration { name: "attachments/1", sql: include_str!("../../migrations/attachments.sql") };

/// How many files a message may have.
pub const MOST: usize = 4;
/// The largest file that is accepted, in bytes.
pub const LARGEST: usize = 10 * 1024 * 1024;
/// The longest text file, in bytes: about what the largest context windows hold.
pub const LONGEST_TEXT: usize = 1024 * 1024;
/// How long a picture may take to be read.
const PATIENCE: Duration = Duration::from_mins(1);

/// A file of a message, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// SHA-256 of the bytes that are kept, in hexadecimal.
    pub hash: String,
    /// The file's name, made harmless.
    pub name: String,
    #[serde(flatten)]
    pub kind: FileKind,
    /// How many bytes are kept.
    pub size: usize,
}

impl Attachment {
    pub fn is_picture(&self) -> bool {
        matches!(self.kind, FileKind::Picture { .. })
    }

    /// The same file with other bytes.
    #[must_use]
    pub fn with_bytes(&self, bytes: &[u8]) -> Self {
        Self { hash: hash(bytes), size: bytes.len(), ..self.clone() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileKind {
    Text,
    Picture { media: Media, width: u32, height: u32 },
}

impl FileKind {
    /// The content type, of which there are exactly these.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Picture { media, .. } => media.as_str(),
        }
    }
}

/// A file that Kai keeps, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    pub file: Attachment,
    pub bytes: Vec<u8>,
}

impl Prepared {
    fn new(name: &str, kind: FileKind, bytes: Vec<u8>) -> Self {
        let hash = hash(&bytes);
        Self { file: Attachment { hash, name: name.to_owned(), kind, size: bytes.len() }, bytes }
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

/// Why a file is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    TooBig {
        name: String,
    },
    TooMany,
    Empty {
        name: String,
    },
    /// It claims to be a picture and cannot be read as one.
    Broken {
        name: String,
    },
    /// It would need too much memory or time: large by mistake, or made to do harm.
    TooMuch {
        name: String,
    },
    TextTooLong {
        name: String,
    },
    /// Neither a picture that Kai can read, nor text.
    UnknownKind {
        name: String,
    },
    /// It was attached too long ago, or removed.
    Gone,
}

impl Refused {
    /// The reason in the user's language.
    pub fn said(&self) -> Said {
        match self {
            Self::TooBig { name } => said::attach_too_big(name, LARGEST >> 20),
            Self::TooMany => said::attach_too_many(MOST),
            Self::Empty { name } => said::attach_empty(name),
            Self::Broken { name } => said::attach_broken(name),
            Self::TooMuch { name } => said::attach_too_much(name),
            Self::TextTooLong { name } => said::attach_text_too_long(name, LONGEST_TEXT >> 20),
            Self::UnknownKind { name } => said::attach_unknown_kind(name),
            Self::Gone => said::attach_gone(),
        }
    }
}

/// Makes what Kai keeps of a file, or says why it is not accepted. The name and the bytes may be anybody's. This takes
/// time and memory; see [`prepare`].
pub fn read(name: &str, bytes: &[u8]) -> Result<Prepared, Refused> {
    let name = name::harmless(name);
    if bytes.is_empty() {
        return Err(Refused::Empty { name });
    }
    if bytes.len() > LARGEST {
        return Err(Refused::TooBig { name });
    }
    if let Some(format) = picture::format(bytes) {
        return match picture::read(format, bytes) {
            Ok(picture) => Ok(Prepared::new(&name, picture.kind(), picture.bytes)),
            Err(picture::Flaw::Broken) => Err(Refused::Broken { name }),
            Err(picture::Flaw::TooMuch) => Err(Refused::TooMuch { name }),
        };
    }
    match text::read(bytes) {
        Ok(text) => Ok(Prepared::new(&name, FileKind::Text, text.as_bytes().to_vec())),
        Err(text::Flaw::TooLong) => Err(Refused::TextTooLong { name }),
        Err(text::Flaw::Blank) => Err(Refused::Empty { name }),
        Err(text::Flaw::NoText) => Err(Refused::UnknownKind { name }),
    }
}

/// One picture at a time, so that several large ones do not need their memory together.
static ONE: Semaphore = Semaphore::const_new(1);

/// [`read`] on a thread of its own. A decoder that panics or takes too long is the file's fault.
pub async fn prepare(name: String, bytes: Vec<u8>) -> Result<Prepared, Refused> {
    let harmless = name::harmless(&name);
    let turn = ONE.acquire().await;
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        read(&name, &bytes)
    });
    match tokio::time::timeout(PATIENCE, reading).await {
        Ok(Ok(read)) => read,
        Ok(Err(_panicked)) => Err(Refused::Broken { name: harmless }),
        Err(_late) => Err(Refused::TooMuch { name: harmless }),
    }
}

/// Whether bytes from an import file are what their description says. Kai made them once, so anything else was altered.
pub(crate) fn fits(file: &Attachment, bytes: &[u8]) -> bool {
    let is_kind = match file.kind {
        FileKind::Text => bytes.len() <= LONGEST_TEXT && text::read(bytes).is_ok(),
        FileKind::Picture { media, width, height } => picture::header(bytes) == Some((media, width, height)),
    };
    is_kind && bytes.len() <= LARGEST && file.size == bytes.len() && file.hash == hash(bytes)
}

#[cfg(test)]
mod tests;
