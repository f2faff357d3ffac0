//! Stores memories, one row per key.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Category, Memory, MemoryKey};
use crate::db::DbError;

/// Whether a memory was added, or replaced one under the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    New,
    Updated,
}

/// Whether the user confirmed the words of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Confirmed,
    /// It is stored, but is in no prompt until the user confirms it.
    Unconfirmed,
}

impl Standing {
    fn of(confirmed: bool) -> Self {
        if confirmed { Self::Confirmed } else { Self::Unconfirmed }
    }
}

/// Stores `content` under `key`. If the key exists, this updates the memory: its hits and creation time stay, but
/// `standing` is replaced, because the user confirmed the old words and not these.
pub fn keep(
    tx: &Transaction<'_>,
    key: &MemoryKey,
    content: &str,
    category: Category,
    standing: Standing,
    now: Timestamp,
) -> Result<Stored, DbError> {
    let known = tx.prepare_cached("SELECT 1 FROM memories WHERE key = ?1")?.exists([key.as_str()])?;
    tx.prepare_cached(
        "INSERT INTO memories (key, content, category, source, confirmed, created_at, updated_at)
         VALUES (?1, ?2, ?3, 'chat', ?5, ?4, ?4)
         ON CONFLICT (key) DO UPDATE SET content = ?2, category = ?3, confirmed = ?5, updated_at = ?4",
    )?
    .execute(params![
        key.as_str(),
        content,
        category.as_str(),
        now.as_millisecond(),
        standing == Standing::Confirmed
    ])?;
    Ok(if known { Stored::Updated } else { Stored::New })
}

/// Adds one hit. Returns the new number of hits, or `None` if there is no such memory.
pub fn reinforce(tx: &Transaction<'_>, key: &MemoryKey) -> Result<Option<u32>, DbError> {
    let sql = "UPDATE memories SET hits = hits + 1 WHERE key = ?1 RETURNING hits";
    Ok(tx.prepare_cached(sql)?.query_row([key.as_str()], |row| row.get(0)).optional()?)
}

/// Stores an imported memory with its hits, as the newest one.
pub fn restore(tx: &Transaction<'_>, memory: &Memory, now: Timestamp) -> Result<(), DbError> {
    let standing = Standing::of(memory.confirmed);
    keep(tx, &memory.key, &memory.content, memory.category, standing, now)?;
    let sql = "UPDATE memories SET hits = ?2, updated_at = (SELECT max(updated_at) + 1 FROM memories) WHERE key = ?1";
    tx.prepare_cached(sql)?.execute(params![memory.key.as_str(), memory.hits])?;
    Ok(())
}

pub fn clear(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("DELETE FROM memories", [])?;
    Ok(())
}

/// Replaces the content of a memory, which stays confirmed or unconfirmed. Returns false if there is no such memory.
pub fn rewrite(
    tx: &Transaction<'_>,
    key: &MemoryKey,
    content: &str,
    now: Timestamp,
) -> Result<bool, DbError> {
    let sql = "UPDATE memories SET content = ?2, updated_at = ?3 WHERE key = ?1";
    Ok(tx.prepare_cached(sql)?.execute(params![key.as_str(), content, now.as_millisecond()])? > 0)
}

/// The outcome of confirming a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirming {
    Done(Memory),
    /// The memory is no longer what the user saw.
    Changed,
    Unknown,
}

/// Marks a memory as confirmed by the user. `seen` is the digest of what they saw; without it, the current words are
/// confirmed, whatever they are.
pub fn confirm(tx: &Transaction<'_>, key: &MemoryKey, seen: Option<&str>) -> Result<Confirming, DbError> {
    let Some(memory) = all(tx)?.into_iter().find(|memory| memory.key == *key) else {
        return Ok(Confirming::Unknown);
    };
    if seen.is_some_and(|seen| seen != memory.digest()) {
        return Ok(Confirming::Changed);
    }
    tx.prepare_cached("UPDATE memories SET confirmed = 1 WHERE key = ?1")?.execute([key.as_str()])?;
    Ok(Confirming::Done(Memory { confirmed: true, ..memory }))
}

/// Deletes the memory under exactly that key. Returns false if there was none.
pub fn forget(tx: &Transaction<'_>, key: &MemoryKey) -> Result<bool, DbError> {
    Ok(remove(tx, key)?.is_some())
}

/// A deleted memory, with what is needed to put it back in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub memory: Memory,
    source: String,
    created_at: i64,
    updated_at: i64,
}

/// Deletes a memory, and returns it so that [`put_back`] can undo that.
pub fn remove(tx: &Transaction<'_>, key: &MemoryKey) -> Result<Option<Removed>, DbError> {
    let sql = "DELETE FROM memories WHERE key = ?1
               RETURNING key, content, category, hits, confirmed, source, created_at, updated_at";
    let row = |row: &Row<'_>| {
        let (source, created_at, updated_at) = (row.get(5)?, row.get(6)?, row.get(7)?);
        Ok(Removed { memory: memory(row)?, source, created_at, updated_at })
    };
    Ok(tx.prepare_cached(sql)?.query_row([key.as_str()], row).optional()?)
}

/// Puts a deleted memory back in its place, unless another one was stored under its key in the meantime.
pub fn put_back(tx: &Transaction<'_>, removed: &Removed) -> Result<(), DbError> {
    let Removed { memory, source, created_at, updated_at } = removed;
    tx.prepare_cached(
        "INSERT OR IGNORE INTO memories (key, content, category, hits, confirmed, source, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        memory.key.as_str(),
        memory.content,
        memory.category.as_str(),
        memory.hits,
        memory.confirmed,
        source,
        created_at,
        updated_at
    ])?;
    Ok(())
}

/// All memories, newest first.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Memory>, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT key, content, category, hits, confirmed FROM memories ORDER BY updated_at DESC, key",
    )?;
    Ok(rows.query_map([], memory)?.collect::<rusqlite::Result<_>>()?)
}

/// The memories that a prompt may contain: those that the user confirmed, newest first.
pub fn confirmed(tx: &Transaction<'_>) -> Result<Vec<Memory>, DbError> {
    Ok(all(tx)?.into_iter().filter(|memory| memory.confirmed).collect())
}

fn memory(row: &Row<'_>) -> rusqlite::Result<Memory> {
    Ok(Memory {
        key: MemoryKey(row.get(0)?),
        content: row.get(1)?,
        category: Category::from_stored(&row.get::<_, String>(2)?),
        hits: row.get(3)?,
        confirmed: row.get(4)?,
    })
}

pub fn count(tx: &Transaction<'_>) -> Result<u32, DbError> {
    Ok(tx.query_row("SELECT count(*) FROM memories", [], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    #[tokio::test]
    async fn a_memory_that_was_taken_away_comes_back_to_its_place() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let key = |name: &str| MemoryKey::new(name).unwrap();
            let at = |seconds| Timestamp::from_second(seconds).unwrap();
            for (name, seconds) in [("a", 1), ("b", 2), ("c", 3)] {
                keep(tx, &key(name), "x", Category::Preference, Standing::Unconfirmed, at(seconds))?;
            }
            reinforce(tx, &key("b"))?;
            let before = all(tx)?;
            let removed = remove(tx, &key("b"))?.unwrap();
            assert_eq!(all(tx)?.len(), 2);
            put_back(tx, &removed)?;
            assert_eq!(all(tx)?, before);
            // A newer memory under its key is not overwritten.
            rewrite(tx, &key("b"), "newer", at(9))?;
            put_back(tx, &removed)?;
            assert_eq!((all(tx)?[0].content.as_str(), all(tx)?[0].confirmed), ("newer", false));
            assert_eq!((rewrite(tx, &key("z"), "x", at(9))?, remove(tx, &key("z"))?), (false, None));
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn only_what_the_person_saw_is_confirmed() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let (key, now) = (MemoryKey::new("a").unwrap(), Timestamp::UNIX_EPOCH);
            keep(tx, &key, "x", Category::General, Standing::Unconfirmed, now)?;
            assert!(confirmed(tx)?.is_empty(), "it waits");
            let seen = all(tx)?[0].digest();
            rewrite(tx, &key, "y", now)?;
            assert_eq!(confirm(tx, &key, Some(&seen))?, Confirming::Changed);
            assert_eq!(confirm(tx, &MemoryKey::new("b").unwrap(), None)?, Confirming::Unknown);
            assert!(confirmed(tx)?.is_empty(), "it still waits");
            rewrite(tx, &key, "x", now)?;
            assert!(matches!(confirm(tx, &key, Some(&seen))?, Confirming::Done(memory) if memory.confirmed));
            assert_eq!(confirmed(tx)?, all(tx)?);
            keep(tx, &key, "z", Category::General, Standing::Unconfirmed, now)?;
            assert!(confirmed(tx)?.is_empty(), "other words wait again");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
