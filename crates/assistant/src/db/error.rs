//! The store's errors, with messages that say what to do.

use std::path::PathBuf;

use rusqlite::ErrorCode;

use crate::home::KeyError;

/// A failed read or write on an open store.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    #[error("The disk is full, so nothing was changed. Free some space and try again.")]
    Full,
    #[error("Another Kai process kept the store busy for too long. Try again in a moment.")]
    Busy,
    #[error("The store cannot be written (read-only disk or folder), so nothing was changed.")]
    ReadOnly,
    #[error(
        "The store is damaged. Stop Kai (kai stop) and put back a copy from the `copies` folder of its home."
    )]
    Damaged,
    #[error("Kai is stopping, so this was not done.")]
    Stopping,
    #[error("This machine gave no random numbers, so this was not done. Try again in a moment.")]
    NoRandomness,
    #[error("The store refused: {0}")]
    Other(rusqlite::Error),
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
         Nothing was changed. Put back kai.db and kai.key from the same backup, or a file from the folder `copies`.",
        .0.display()
    )]
    WrongKeyOrDamaged(PathBuf),
    #[error(
        "{} is damaged (cut off or overwritten in part). Nothing was changed. \
         Put back a backup, or a file from the folder `copies` beside it.",
        .0.display()
    )]
    Damaged(PathBuf),
    #[error(
        "{} was written by a newer Kai or another edition (it knows {unknown}). \
         Nothing was changed. Use that Kai, or another home with --home.",
        .path.display()
    )]
    Newer { path: PathBuf, unknown: String },
    #[error("{} is there but is no store (a folder, or a link to a disk that is not mounted?). Nothing was changed.", .0.display())]
    NotAFile(PathBuf),
    #[error(
        "{} is missing, although its key is here, so this home had a store. Nothing was changed. \
         Put kai.db back from your backup, or a file from the folder `copies` under that name; \
         to begin anew with an empty store, run: kai erase",
        .0.display()
    )]
    Gone(PathBuf),
    #[error("{0}")]
    Key(KeyError),
    #[error("The folder {} cannot be written, so the store was not opened. Check its owner and whether the disk is mounted read-only.", .0.display())]
    ReadOnly(PathBuf),
    #[error("The disk that holds {} is full, so the store was not opened. Free some space and try again.", .0.display())]
    Full(PathBuf),
    #[error("Another Kai process keeps the store {} busy. Try again in a moment.", .0.display())]
    Busy(PathBuf),
    #[error("A step of the store's upgrade failed ({name}): {cause}. Nothing was changed.")]
    Migration { name: &'static str, cause: rusqlite::Error },
    #[error("The store could not be opened: {0}")]
    Unexpected(DbError),
    #[error("{} could not be used: {cause}", .path.display())]
    File { path: PathBuf, cause: std::io::Error },
}
