//! The twin of `archive.rs` for the edition without SMS: nothing is exported on request.

use rusqlite::Transaction;
use serde_json::Value;

use crate::db::DbError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnRequest {}

impl OnRequest {
    pub(super) const ALL: &[Self] = &[];

    pub(super) fn name(self) -> &'static str {
        match self {}
    }

    pub(super) fn read(self, _: &Transaction<'_>) -> Result<Value, DbError> {
        match self {}
    }
}
