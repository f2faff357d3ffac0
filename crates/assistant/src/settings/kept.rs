//! The database rows of settings that the user changed.

use rusqlite::Transaction;

use super::Values;
use crate::db::{DbError, Migration};

pub(crate) const MIGRATION: Migration =
    Migration { name: "settings/1", sql: include_str!("../../migrations/settings.sql") };

/// Loads all stored settings.
pub fn load(tx: &Transaction<'_>) -> Result<Values, DbError> {
    let mut rows = tx.prepare_cached("SELECT key, value FROM settings")?;
    let pairs = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Values(pairs.collect::<rusqlite::Result<_>>()?))
}

/// Whether the user has changed no setting yet.
pub fn are_untouched(tx: &Transaction<'_>) -> Result<bool, DbError> {
    Ok(tx.query_row("SELECT NOT EXISTS (SELECT 1 FROM settings)", [], |row| row.get(0))?)
}

/// Stores a value that [`super::Setting::accept`] returned.
pub fn store(tx: &Transaction<'_>, key: &str, value: &str) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO settings (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
        [key, value],
    )?;
    Ok(())
}

/// Resets all settings to their defaults, except secrets.
pub fn clear(tx: &Transaction<'_>) -> Result<(), DbError> {
    for key in load(tx)?.plain().keys() {
        tx.execute("DELETE FROM settings WHERE key = ?1", [key])?;
    }
    Ok(())
}
