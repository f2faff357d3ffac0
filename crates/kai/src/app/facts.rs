//! Facts that the daemon stores between runs: when it last ticked and the address of its page.

use kai_assistant::db::{DbError, Migration};
use kai_assistant::hex;
use kai_assistant::home::Home;
use rusqlite::{OptionalExtension, Transaction, params};

pub(crate) const MIGRATION: Migration =
    Migration { name: "daemon/1", sql: include_str!("../../migrations/daemon.sql") };

/// The default port of the page. If it is in use, the daemon tries the next few.
pub(crate) const PORT: u16 = 8787;

pub(crate) const PAGE: &str = "page";
/// The user has seen the welcome, or skipped it.
pub(crate) const WELCOMED: &str = "welcome";
const STATES_KEY: &str = "states_key";

pub(crate) fn remember(tx: &Transaction<'_>, fact: &str, value: &str) -> Result<(), DbError> {
    let sql = "INSERT INTO daemon (fact, value) VALUES (?1, ?2) ON CONFLICT (fact) DO UPDATE SET value = ?2";
    tx.prepare_cached(sql)?.execute(params![fact, value])?;
    Ok(())
}

pub(crate) fn recall(tx: &Transaction<'_>, fact: &str) -> Result<Option<String>, DbError> {
    let mut row = tx.prepare_cached("SELECT value FROM daemon WHERE fact = ?1")?;
    Ok(row.query_row([fact], |row| row.get(0)).optional()?)
}

/// The key of the states of prompts that the engine keeps on the disk, made when it is first needed.
pub(crate) fn states_key(tx: &Transaction<'_>) -> Result<[u8; 32], DbError> {
    let known = recall(tx, STATES_KEY)?.and_then(|key| hex::decode(&key)).and_then(|key| key.try_into().ok());
    if let Some(key) = known {
        return Ok(key);
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|_| DbError::NoRandomness)?;
    remember(tx, STATES_KEY, &hex::encode(&key))?;
    Ok(key)
}

/// The address of the page when the daemon last ran, or the default address.
pub(crate) fn last_page(tx: &Transaction<'_>) -> Result<String, DbError> {
    Ok(recall(tx, PAGE)?.unwrap_or_else(|| format!("http://127.0.0.1:{PORT}")))
}

/// The command that prints a sign-in link for this home.
pub(crate) fn link_command(home: &Home) -> &'static str {
    if home.is_demo() { "kai demo link" } else { "kai link" }
}
