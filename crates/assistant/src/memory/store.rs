//! The rows of what is remembered.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{Category, Memory, MemoryKey};
use crate::db::DbError;
use crate::gate::Taint;

/// Was it new, or was there one under that key already?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    New,
    Updated,
}

/// Keeps `content` under `key`. The same key again is an update: hits and the first time stay.
pub fn keep(
    tx: &Transaction<'_>,
    key: &MemoryKey,
    content: &str,
    category: Category,
    taint: Taint,
    now: Timestamp,
) -> Result<Stored, DbError> {
    let known = tx.prepare_cached("SELECT 1 FROM memories WHERE key = ?1")?.exists([key.as_str()])?;
    tx.prepare_cached(
        "INSERT INTO memories (key, content, category, source, tainted, created_at, updated_at)
         VALUES (?1, ?2, ?3, 'chat', ?5, ?4, ?4)
         ON CONFLICT (key) DO UPDATE SET content = ?2, category = ?3, tainted = ?5, updated_at = ?4",
    )?
    .execute(params![
        key.as_str(),
        content,
        category.as_str(),
        now.as_millisecond(),
        taint == Taint::Tainted
    ])?;
    Ok(if known { Stored::Updated } else { Stored::New })
}

/// One hit more; returns how many there are now, or `None` if there is no such memory.
pub fn reinforce(tx: &Transaction<'_>, key: &MemoryKey) -> Result<Option<u32>, DbError> {
    let sql = "UPDATE memories SET hits = hits + 1 WHERE key = ?1 RETURNING hits";
    Ok(tx.prepare_cached(sql)?.query_row([key.as_str()], |row| row.get(0)).optional()?)
}

/// Puts a memory back as it was, hits included.
pub fn restore(tx: &Transaction<'_>, memory: &Memory, now: Timestamp) -> Result<(), DbError> {
    let taint = if memory.tainted { Taint::Tainted } else { Taint::Clean };
    keep(tx, &memory.key, &memory.content, memory.category, taint, now)?;
    let sql = "UPDATE memories SET hits = ?2, updated_at = (SELECT max(updated_at) + 1 FROM memories) WHERE key = ?1";
    tx.prepare_cached(sql)?.execute(params![memory.key.as_str(), memory.hits])?;
    Ok(())
}

pub fn clear(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("DELETE FROM memories", [])?;
    Ok(())
}

/// Deletes the memory under exactly that key; false if there was none.
pub fn forget(tx: &Transaction<'_>, key: &MemoryKey) -> Result<bool, DbError> {
    Ok(tx.prepare_cached("DELETE FROM memories WHERE key = ?1")?.execute([key.as_str()])? > 0)
}

/// Everything remembered, newest first.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Memory>, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT key, content, category, hits, tainted FROM memories ORDER BY updated_at DESC, key",
    )?;
    let memories = rows.query_map([], |row| {
        Ok(Memory {
            key: MemoryKey(row.get(0)?),
            content: row.get(1)?,
            category: Category::from_stored(&row.get::<_, String>(2)?),
            hits: row.get(3)?,
            tainted: row.get(4)?,
        })
    })?;
    Ok(memories.collect::<rusqlite::Result<_>>()?)
}

pub fn count(tx: &Transaction<'_>) -> Result<u32, DbError> {
    Ok(tx.query_row("SELECT count(*) FROM memories", [], |row| row.get(0))?)
}
