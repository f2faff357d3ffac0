//! Is the ledger what it was? Every record's hash covers the one before, the end is kept outside of the chain, and every
//! byte that left has a hash of its own.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use sha2::{Digest, Sha256};

use super::read::each;
use super::{Record, chained};
use crate::db::DbError;
use crate::hex;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// So many records, each what it was.
    Whole { records: usize },
    /// The first place where it is not, and what is wrong there.
    Broken { seq: i64, what: String },
}

pub fn verify(tx: &Transaction<'_>) -> Result<Verified, DbError> {
    let begin = edge(tx, "ledger_checkpoint")?;
    let (mut seq, mut hash) = begin.unwrap_or_default();
    let mut records = 0;
    let mut rows = tx.prepare_cached("SELECT seq, at, record, hash FROM ledger ORDER BY seq")?;
    for row in rows.query_map([], stored)? {
        let row = row?;
        let broken = |what: &str| Ok(Verified::Broken { seq: row.seq, what: what.to_owned() });
        if row.seq != seq + 1 {
            return broken("a record before it is missing");
        }
        let Ok(at) = Timestamp::from_millisecond(row.at) else { return broken("its time was altered") };
        if chained(&hash, at, &row.record)[..] != row.hash {
            return broken("it was altered, or one before it");
        }
        if let Some(what) = bytes_differ(tx, &row.record)? {
            return broken(&what);
        }
        (seq, hash, records) = (row.seq, row.hash, records + 1);
    }
    match edge(tx, "ledger_head")? {
        Some((last, _)) if last != seq => Ok(Verified::Broken {
            seq: last,
            what: "records at the end are missing, or came from elsewhere".to_owned(),
        }),
        Some((_, end)) if end != hash => {
            Ok(Verified::Broken { seq, what: "the end is not what was noted".to_owned() })
        }
        _ => Ok(Verified::Whole { records }),
    }
}

/// A row as it is stored.
struct Stored {
    seq: i64,
    at: i64,
    record: String,
    hash: Vec<u8>,
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored { seq: row.get(0)?, at: row.get(1)?, record: row.get(2)?, hash: row.get(3)? })
}

pub(super) fn edge(tx: &Transaction<'_>, table: &str) -> Result<Option<(i64, Vec<u8>)>, DbError> {
    let sql = format!("SELECT seq, hash FROM {table}");
    Ok(tx.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// The bytes of a request, by the hashes that name them.
fn bytes_differ(tx: &Transaction<'_>, record: &str) -> Result<Option<String>, DbError> {
    let Ok(Record::Request { chunks, .. }) = serde_json::from_str(record) else { return Ok(None) };
    let mut find = tx.prepare_cached("SELECT bytes FROM ledger_chunks WHERE hash = ?1")?;
    for name in chunks {
        let hash = hex::decode(&name).unwrap_or_default();
        let bytes: Option<Vec<u8>> = find.query_row([&hash], |row| row.get(0)).optional()?;
        match bytes {
            None => return Ok(Some("bytes that it sent are missing".to_owned())),
            Some(bytes) if Sha256::digest(&bytes)[..] != hash[..] => {
                return Ok(Some("bytes that it sent were altered".to_owned()));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

/// Lets go of records older than `days`, and of the bytes only they named. What stays is still a chain: it begins at a
/// checkpoint. Returns how many went.
pub fn prune(tx: &Transaction<'_>, days: u32, now: Timestamp) -> Result<usize, DbError> {
    let span = SignedDuration::from_hours(24 * i64::from(days));
    let before = now.saturating_sub(span).unwrap_or(Timestamp::MIN).as_millisecond();
    // Up to the first that is young enough: a clock that went back must not tear a hole.
    let first_young: Option<i64> =
        tx.query_row("SELECT min(seq) FROM ledger WHERE at >= ?1", [before], |row| row.get(0))?;
    let newest: Option<i64> = tx.query_row("SELECT max(seq) FROM ledger", [], |row| row.get(0))?;
    let Some(last) = first_young.map(|seq| seq - 1).or(newest) else { return Ok(0) };
    let end = "SELECT seq, hash FROM ledger WHERE seq = ?1";
    let Some((seq, hash)) =
        tx.query_row(end, [last], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))).optional()?
    else {
        return Ok(0);
    };
    tx.execute(
        "INSERT OR REPLACE INTO ledger_checkpoint (one, seq, hash) VALUES (1, ?1, ?2)",
        params![seq, hash],
    )?;
    let gone = tx.execute("DELETE FROM ledger WHERE seq <= ?1", [last])?;
    forget_bytes(tx)?;
    Ok(gone)
}

fn forget_bytes(tx: &Transaction<'_>) -> Result<(), DbError> {
    let mut named = BTreeSet::new();
    each(tx, |kept| {
        if let Record::Request { chunks, .. } = kept.record {
            named.extend(chunks);
        }
    })?;
    let mut all = tx.prepare_cached("SELECT hash FROM ledger_chunks")?;
    let hashes: Vec<Vec<u8>> = all.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut delete = tx.prepare_cached("DELETE FROM ledger_chunks WHERE hash = ?1")?;
    for hash in hashes.into_iter().filter(|hash| !named.contains(&hex::encode(hash))) {
        delete.execute([hash])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::ledger::{append, request};

    fn click(n: usize) -> Record {
        Record::Click { conversation: 1, tool: format!("t{n}"), arguments: "{}".to_owned(), allowed: true }
    }

    async fn filled() -> Db {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let fill = db.write(|tx| {
            for n in 0..10_usize {
                let at = Timestamp::from_second(i64::try_from(n).unwrap() * 86_400).unwrap();
                append(tx, &click(n), at)?;
                request(tx, 1, "m", &format!("body {n}").repeat(500).into_bytes(), &[], at)?;
            }
            Ok::<_, DbError>(())
        });
        fill.await.unwrap();
        db
    }

    async fn after(change: &'static str) -> Verified {
        let db = filled().await;
        let changed = db.write(move |tx| {
            tx.execute_batch(change)?;
            verify(tx)
        });
        changed.await.unwrap()
    }

    #[tokio::test]
    async fn whatever_is_changed_is_found() {
        assert_eq!(after("").await, Verified::Whole { records: 20 });
        for (name, change, seq) in [
            ("altered", "UPDATE ledger SET record = replace(record, 't3', 't4') WHERE seq = 7", 7),
            ("another time", "UPDATE ledger SET at = at + 1 WHERE seq = 7", 7),
            ("another hash", "UPDATE ledger SET hash = zeroblob(32) WHERE seq = 7", 7),
            ("one dropped", "DELETE FROM ledger WHERE seq = 7", 8),
            ("the first dropped", "DELETE FROM ledger WHERE seq = 1", 2),
            ("the last dropped", "DELETE FROM ledger WHERE seq = 20", 20),
            ("all dropped", "DELETE FROM ledger", 20),
            (
                "two exchanged",
                "UPDATE ledger SET seq = 100 WHERE seq = 5; UPDATE ledger SET seq = 5 WHERE seq = 6;
                 UPDATE ledger SET seq = 6 WHERE seq = 100",
                5,
            ),
            ("one added", "INSERT INTO ledger (at, record, hash) VALUES (0, '{}', zeroblob(32))", 21),
            ("bytes altered", "UPDATE ledger_chunks SET bytes = zeroblob(5)", 2),
            ("bytes gone", "DELETE FROM ledger_chunks", 2),
        ] {
            let Verified::Broken { seq: found, .. } = after(change).await else {
                panic!("{name} was not found")
            };
            assert_eq!(found, seq, "{name}");
        }
    }

    #[tokio::test]
    async fn what_is_pruned_leaves_a_chain() {
        let db = filled().await;
        let now = Timestamp::from_second(10 * 86_400).unwrap();
        let pruned = db.write(move |tx| {
            let gone = prune(tx, 5, now)?;
            let kept: i64 = tx.query_row("SELECT count(*) FROM ledger_chunks", [], |row| row.get(0))?;
            Ok::<_, DbError>((gone, verify(tx)?, kept, prune(tx, 5, now)?))
        });
        let (gone, verified, chunks, again) = pruned.await.unwrap();
        assert_eq!((gone, verified, again), (10, Verified::Whole { records: 10 }, 0));
        assert!(chunks < 10 && chunks > 0, "{chunks}");
        let all = db.write(move |tx| {
            prune(tx, 0, now)?;
            append(tx, &click(1), now)?;
            verify(tx)
        });
        assert_eq!(all.await.map_err(|e: DbError| e).unwrap(), Verified::Whole { records: 1 });
        let db_hole = filled().await;
        let hole = db_hole.write(move |tx| {
            prune(tx, 5, now)?;
            tx.execute("DELETE FROM ledger WHERE seq = 11", [])?;
            verify(tx)
        });
        let found = hole.await.map_err(|e: DbError| e).unwrap();
        assert!(matches!(found, Verified::Broken { seq: 12, .. }), "the first after a checkpoint: {found:?}");
    }
}
