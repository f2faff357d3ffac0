//! Guests: other programs that ask Kai over MCP. A guest may read and draft what the user enabled, once the user allows
//! it; only the user's tap sends.
//!
//! The path of a guest: it introduces itself, and its claimed name is stored as *asked* ([`rules`], pure; [`store`]) →
//! the user allows or blocks it → each of its calls passes the gate as [`RunKind::Guest`](crate::gate::RunKind), is
//! recorded in the ledger, and leaves a [`Deed`] that the page shows.
//!
//! It stands below the outbox, which limits the drafts of each guest and keeps its name with them.

pub mod rules;
pub mod store;

use jiff::Timestamp;
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

use crate::db::Migration;

pub(crate) const MIGRATION: Migration =
    Migration { name: "guests/1", sql: include_str!("../../migrations/guests.sql") };

/// The number of a guest. It is never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GuestId(pub i64);

impl ToSql for GuestId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for GuestId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self)
    }
}

/// A program that introduced itself, or that the user made a token for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub id: GuestId,
    /// The name that it claims. A stranger's text, on one short line.
    pub name: String,
    pub state: GuestState,
    pub first_seen: Timestamp,
    /// `None` if it was never here.
    pub last_seen: Option<Timestamp>,
    /// It has a token to come over HTTP.
    pub has_token: bool,
}

/// What the user decided about a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestState {
    /// Nothing yet.
    Asked,
    Allowed,
    Blocked,
}

impl GuestState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Allowed => "allowed",
            Self::Blocked => "blocked",
        }
    }

    /// The state with that stored name. What has no known name is not allowed anything.
    fn stored(name: &str) -> Self {
        let known = [Self::Asked, Self::Allowed].into_iter().find(|state| state.as_str() == name);
        known.unwrap_or(Self::Blocked)
    }
}

/// One thing that a guest did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    pub at: Timestamp,
    pub tool: String,
    pub what: Did,
}

/// What a call of a guest came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", content = "number", rename_all = "snake_case")]
pub enum Did {
    /// It got the text of this many messages.
    Read(i64),
    /// It staged the draft with this number.
    Drafted(i64),
    /// Nothing.
    Failed,
}

impl Did {
    /// The stored name and number.
    fn stored(self) -> (&'static str, i64) {
        match self {
            Self::Read(messages) => ("read", messages),
            Self::Drafted(draft) => ("drafted", draft),
            Self::Failed => ("failed", 0),
        }
    }

    fn of_stored(name: &str, number: i64) -> Self {
        match name {
            "read" => Self::Read(number),
            "drafted" => Self::Drafted(number),
            _ => Self::Failed,
        }
    }
}
