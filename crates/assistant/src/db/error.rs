//! The store's errors, with messages that say what to do.

use std::path::PathBuf;

use kai_words::{Said, said};
use rusqlite::ErrorCode;

use crate::home::KeyError;

/// A failed read or write on an open store.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum DbError {
    /// The disk is full.
    Full,
    /// Another process kept the store busy for too long.
    Busy,
    /// The disk or folder of the store is read-only.
    ReadOnly,
    /// The store is damaged.
    Damaged,
    /// Kai is shutting down.
    Stopping,
    /// The machine could not provide random numbers.
    NoRandomness,
    Other(rusqlite::Error),
}

impl DbError {
    /// The error in the user's language: what happened and what to do.
    pub fn said(&self) -> Said {
        match self {
            Self::Full => said::store_full(),
            Self::Busy => said::store_busy(),
            Self::ReadOnly => said::store_read_only(),
            Self::Damaged => said::store_damaged(),
            Self::Stopping => said::store_stopping(),
            Self::NoRandomness => said::store_no_randomness(),
            Self::Other(error) => said::store_other(error),
        }
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            _ => Self::Other(error),
        }
    }
}

/// Why a store could not be opened. In every case the file is left unchanged.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{} cannot be read with this home's key: the file is damaged, or the key belongs to another store. \
         Nothing was changed; restore kai.db and kai.key from the same backup, or a file from the `copies` folder.",
        .0.display()
    )]
    WrongKeyOrDamaged(PathBuf),
    #[error(
        "{} is damaged (cut off or partly overwritten). Nothing was changed; \
         restore a backup, or a file from the `copies` folder beside it.",
        .0.display()
    )]
    Damaged(PathBuf),
    #[error(
        "{} was written by a newer Kai or another edition (it contains {unknown}). \
         Nothing was changed; use that Kai, or another home with --home.",
        .path.display()
    )]
    Newer { path: PathBuf, unknown: String },
    #[error("{} exists but is not a store; it may be a folder, or a link to a disk that is not mounted. Nothing was changed.", .0.display())]
    NotAFile(PathBuf),
    #[error(
        "{} is missing, although its key is here, so this home had a store. Nothing was changed; \
         restore kai.db from your backup, or copy a file from the `copies` folder to that name. \
         To start over with an empty store: kai erase",
        .0.display()
    )]
    Gone(PathBuf),
    #[error("{0}")]
    Key(KeyError),
    #[error("Kai cannot write to the folder {}, so the store was not opened. Check its owner and whether the disk is read-only.", .0.display())]
    ReadOnly(PathBuf),
    #[error("The disk that holds {} is full, so the store was not opened. Free some space and try again.", .0.display())]
    Full(PathBuf),
    #[error("Another Kai process is keeping the store {} busy. Try again in a moment.", .0.display())]
    Busy(PathBuf),
    #[error("Upgrading the store failed at the step {name}: {cause}. Nothing was changed.")]
    Migration { name: &'static str, cause: rusqlite::Error },
    #[error("The store could not be opened: {0}")]
    Unexpected(DbError),
    #[error("{} could not be used: {cause}", .path.display())]
    File { path: PathBuf, cause: std::io::Error },
}
