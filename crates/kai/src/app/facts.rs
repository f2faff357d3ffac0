//! What the daemon remembers from one run to the next: when it last ticked, where its page was.

use kai_assistant::db::{DbError, Migration};
use kai_assistant::home::Home;
use rusqlite::{OptionalExtension, Transaction, params};

pub(crate) const MIGRATION: Migration =
    Migration { name: "daemon/1", sql: include_str!("../../migrations/daemon.sql") };

/// Where the page is unless told otherwise; a few more are tried if somebody else is there.
pub(crate) const PORT: u16 = 8787;

pub(crate) const PAGE: &str = "page";

pub(crate) fn remember(tx: &Transaction<'_>, fact: &str, value: &str) -> Result<(), DbError> {
    let sql = "INSERT INTO daemon (fact, value) VALUES (?1, ?2) ON CONFLICT (fact) DO UPDATE SET value = ?2";
    tx.prepare_cached(sql)?.execute(params![fact, value])?;
    Ok(())
}

pub(crate) fn recall(tx: &Transaction<'_>, fact: &str) -> Result<Option<String>, DbError> {
    let mut row = tx.prepare_cached("SELECT value FROM daemon WHERE fact = ?1")?;
    Ok(row.query_row([fact], |row| row.get(0)).optional()?)
}

/// Where the page was when the daemon last ran.
pub(crate) fn last_page(tx: &Transaction<'_>) -> Result<String, DbError> {
    Ok(recall(tx, PAGE)?.unwrap_or_else(|| format!("http://127.0.0.1:{PORT}")))
}

/// The command for a sign-in link to this home's page.
pub(crate) fn link_command(home: &Home) -> &'static str {
    if home.is_demo() { "kai link --demo" } else { "kai link" }
}
