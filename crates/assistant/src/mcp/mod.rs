//! MCP servers: other people's tools. A server's descriptions and results are a stranger's text, so a tool is offered
//! only as the user approved it, and every result raises the level.
//!
//! [`port`] is the way to a server, [`Hub`](hub::Hub) keeps the connections, [`store`] holds what the user added and
//! approved. The rest decides: [`naming`], [`text`], [`finding`], [`import`].

pub mod finding;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod hub;
pub mod import;
pub mod naming;
pub mod port;
pub mod store;
pub mod text;
pub mod tools;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

use crate::db::Migration;
use crate::gate::ForeignRights;

pub use text::ToolText;

pub(crate) const MIGRATION: Migration =
    Migration { name: "mcp", sql: include_str!("../../migrations/mcp.sql") };

/// The number of a server that the user added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerId(pub i64);

impl ToSql for ServerId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for ServerId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self)
    }
}

/// A server that the user added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub id: ServerId,
    pub name: String,
    pub transport: port::Transport,
    /// The names of its headers or environment variables. The values are never shown again.
    pub secret_names: Vec<String>,
    pub enabled: bool,
    /// The user has signed in to it.
    pub signed_in: bool,
}

/// A tool of a server, as the user approved it and as the server describes it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    pub server: ServerId,
    pub server_name: String,
    /// The name under which a model is offered the tool.
    pub offered_as: String,
    pub approved: Option<ToolText>,
    /// `None` if the server no longer has the tool.
    pub latest: Option<ToolText>,
    pub enabled: bool,
    /// The user lets it run without a click in a request that has read nothing.
    pub dont_ask: bool,
    /// The user lets tasks use it.
    pub in_tasks: bool,
}

/// Where a tool stands between what the user approved and what the server says now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The user has not approved it yet.
    New,
    /// As the user approved it.
    #[serde(rename = "approved")]
    Agreed,
    /// The server describes it differently since the user approved it.
    Changed,
    /// The server no longer has it.
    Gone,
}

impl KnownTool {
    /// The name that the server uses.
    pub fn name(&self) -> &str {
        self.approved.as_ref().or(self.latest.as_ref()).map_or("", |text| &text.name)
    }

    pub fn standing(&self) -> Standing {
        match (&self.approved, &self.latest) {
            (_, None) => Standing::Gone,
            (None, Some(_)) => Standing::New,
            (Some(approved), Some(latest)) if approved.digest() == latest.digest() => Standing::Agreed,
            (Some(_), Some(_)) => Standing::Changed,
        }
    }

    /// The approved text, if a model may be offered the tool at all.
    pub fn usable(&self) -> Option<&ToolText> {
        self.approved.as_ref().filter(|_| self.enabled && self.standing() == Standing::Agreed)
    }

    /// What the gate goes by.
    pub fn rights(&self) -> ForeignRights {
        let read_only = self.approved.as_ref().is_some_and(|text| text.read_only);
        ForeignRights { asks: !(read_only || self.dont_ask), in_tasks: read_only && self.in_tasks }
    }
}
