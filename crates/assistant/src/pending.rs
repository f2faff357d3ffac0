//! The bounded queues of what waits for the next heartbeat. The oldest gives way when one is full, and every drop is
//! counted; only what was shown is forgotten, by a number that is never used twice.

use rusqlite::{Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::{self, DbError, Migration};

pub(crate) const MIGRATION: Migration =
    Migration { name: "pending/1", sql: include_str!("../migrations/pending.sql") };

/// The name of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue(pub &'static str);

pub const CAPACITY: u32 = 100;

/// An entry and the number by which exactly it is forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<E> {
    pub seq: i64,
    pub entry: E,
}

/// What to do with an entry whose identity waits already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It is the same thing: once is enough.
    Skip,
    /// It has changed: the new one takes its place at the end, and a number of its own, so that whoever was shown
    /// the old one does not forget the new one.
    Renew,
}

/// Puts an entry at the end. Returns whether it is in the queue now because of this call.
pub fn push<E: Serialize>(
    tx: &Transaction<'_>,
    queue: Queue,
    identity: &str,
    source: &str,
    entry: &E,
    again: Again,
) -> Result<bool, DbError> {
    let json = db::json(entry)?;
    if again == Again::Renew {
        tx.prepare_cached("DELETE FROM pending WHERE queue = ?1 AND identity = ?2")?
            .execute(params![queue.0, identity])?;
    }
    let added = tx
        .prepare_cached(
            "INSERT OR IGNORE INTO pending (queue, identity, source, entry) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![queue.0, identity, source, json])?;
    if added > 0 {
        make_room(tx, queue)?;
    }
    Ok(added > 0)
}

fn make_room(tx: &Transaction<'_>, queue: Queue) -> Result<(), DbError> {
    while count(tx, queue)? > CAPACITY {
        let (seq, source): (i64, String) = tx
            .prepare_cached("SELECT seq, source FROM pending WHERE queue = ?1 ORDER BY seq LIMIT 1")?
            .query_row([queue.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        tx.prepare_cached("DELETE FROM pending WHERE seq = ?1")?.execute([seq])?;
        tx.prepare_cached(
            "INSERT INTO pending_dropped (queue, source, count) VALUES (?1, ?2, 1)
             ON CONFLICT (queue, source) DO UPDATE SET count = count + 1",
        )?
        .execute(params![queue.0, source])?;
    }
    Ok(())
}

/// Everything that waits, oldest first. What a later Kai wrote and this one cannot read is left out, not lost.
pub fn waiting<E: DeserializeOwned>(tx: &Transaction<'_>, queue: Queue) -> Result<Vec<Waiting<E>>, DbError> {
    let mut rows = tx.prepare_cached("SELECT seq, entry FROM pending WHERE queue = ?1 ORDER BY seq")?;
    let rows = rows.query_map([queue.0], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    let rows: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
    let read = |(seq, json): (i64, String)| Some(Waiting { seq, entry: serde_json::from_str(&json).ok()? });
    Ok(rows.into_iter().filter_map(read).collect())
}

/// The entry of that identity, if it waits.
pub fn find<E: DeserializeOwned>(
    tx: &Transaction<'_>,
    queue: Queue,
    identity: &str,
) -> Result<Option<Waiting<E>>, DbError> {
    let mut row = tx.prepare_cached("SELECT seq, entry FROM pending WHERE queue = ?1 AND identity = ?2")?;
    let mut found = row.query(params![queue.0, identity])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let (seq, json): (i64, String) = (row.get(0)?, row.get(1)?);
    Ok(serde_json::from_str(&json).ok().map(|entry| Waiting { seq, entry }))
}

pub fn count(tx: &Transaction<'_>, queue: Queue) -> Result<u32, DbError> {
    let mut row = tx.prepare_cached("SELECT count(*) FROM pending WHERE queue = ?1")?;
    Ok(row.query_row([queue.0], |row| row.get(0))?)
}

/// Forgets exactly these. One that was renewed meanwhile has another number and stays.
pub fn forget(tx: &Transaction<'_>, queue: Queue, shown: &[i64]) -> Result<usize, DbError> {
    let mut delete = tx.prepare_cached("DELETE FROM pending WHERE queue = ?1 AND seq = ?2")?;
    shown.iter().try_fold(0, |gone, seq| Ok(gone + delete.execute(params![queue.0, seq])?))
}

/// The person empties the queue, drops and all. Returns how many waited.
pub fn clear(tx: &Transaction<'_>, queue: Queue) -> Result<usize, DbError> {
    tx.execute("DELETE FROM pending_dropped WHERE queue = ?1", [queue.0])?;
    Ok(tx.execute("DELETE FROM pending WHERE queue = ?1", [queue.0])?)
}

/// How many were dropped since this was last told, by source.
pub fn dropped(tx: &Transaction<'_>, queue: Queue) -> Result<Vec<(String, u32)>, DbError> {
    let mut rows =
        tx.prepare_cached("SELECT source, count FROM pending_dropped WHERE queue = ?1 ORDER BY source")?;
    let rows = rows.query_map([queue.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// These drops have been told; what was dropped since then stays counted.
pub fn told(tx: &Transaction<'_>, queue: Queue, drops: &[(String, u32)]) -> Result<(), DbError> {
    for (source, count) in drops {
        tx.execute(
            "UPDATE pending_dropped SET count = count - ?3 WHERE queue = ?1 AND source = ?2",
            params![queue.0, source, count],
        )?;
    }
    tx.execute("DELETE FROM pending_dropped WHERE queue = ?1 AND count <= 0", [queue.0])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    const Q: Queue = Queue("q");

    #[tokio::test]
    async fn the_oldest_gives_way_and_every_drop_is_counted() {
        let db = Db::in_memory(&[MIGRATION]).unwrap();
        let checked = db.write(|tx| {
            for n in 0..150_u32 {
                let source = if n % 2 == 0 { "even" } else { "odd" };
                assert!(push(tx, Q, &n.to_string(), source, &n, Again::Skip)?);
                assert!(!push(tx, Q, &n.to_string(), source, &n, Again::Skip)?, "once is enough");
            }
            let left: Vec<u32> = waiting(tx, Q)?.into_iter().map(|w| w.entry).collect();
            assert_eq!(left, (50..150).collect::<Vec<_>>());
            assert_eq!(dropped(tx, Q)?, [("even".to_owned(), 25), ("odd".to_owned(), 25)]);
            let shown = dropped(tx, Q)?;
            push(tx, Q, "150", "even", &150, Again::Skip)?;
            told(tx, Q, &shown)?;
            assert_eq!(dropped(tx, Q)?, [("even".to_owned(), 1)], "what was dropped meanwhile stays counted");
            assert_eq!(count(tx, Queue("other"))?, 0);
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn only_what_was_shown_is_forgotten() {
        let db = Db::in_memory(&[MIGRATION]).unwrap();
        let checked = db.write(|tx| {
            for n in 0..3_u32 {
                push(tx, Q, &n.to_string(), "", &n, Again::Skip)?;
            }
            let shown: Vec<i64> = waiting::<u32>(tx, Q)?.iter().map(|w| w.seq).collect();
            push(tx, Q, "1", "", &11, Again::Renew)?;
            push(tx, Q, "3", "", &3, Again::Skip)?;
            assert_eq!(forget(tx, Q, &shown)?, 2);
            let left: Vec<u32> = waiting(tx, Q)?.into_iter().map(|w| w.entry).collect();
            assert_eq!(left, [11, 3], "what changed and what came meanwhile stays");
            assert_eq!(find::<u32>(tx, Q, "3")?.map(|w| w.entry), Some(3));
            assert_eq!((clear(tx, Q)?, count(tx, Q)?), (2, 0));
            push(tx, Q, "4", "", &4, Again::Skip)?;
            assert!(waiting::<u32>(tx, Q)?.iter().all(|w| !shown.contains(&w.seq)), "no number twice");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
