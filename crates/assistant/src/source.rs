//! Numbers the sources of messages: anything that messages come from and leave by.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

/// The number of a source of messages. It is never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(pub i64);

impl SourceId {
    /// The phone that Kai runs on, or the simulated one. Everything stored before phones could be paired is its.
    pub const HERE: Self = Self(1);

    pub fn is_here(self) -> bool {
        self == Self::HERE
    }
}

impl Default for SourceId {
    fn default() -> Self {
        Self::HERE
    }
}

impl ToSql for SourceId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for SourceId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self)
    }
}
