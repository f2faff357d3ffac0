//! What is read of a section for an export.

use serde::Serialize;

use crate::db::{self, DbError};

/// What is read of a section at once.
pub(super) enum Share {
    /// All of it, as JSON.
    Whole(String),
    /// The next items, each as JSON with its place in the store. None: there are no more.
    Items(Vec<(i64, String)>),
}

/// JSON as it is written into the file.
pub(super) fn pretty(value: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string_pretty(value).map_err(db::not_json)
}
