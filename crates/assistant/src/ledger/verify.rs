//! Verifies that the ledger was not altered, and prunes old records. Every record's hash covers the one before, the end
//! is stored apart from the chain, and every chunk of a request has a hash of its own.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use sha2::{Digest, Sha256};

use super::read::{each, edge};
use super::{Record, chained, hours};
use crate::db::DbError;
use crate::hex;

/// The result of a finished check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// All `records` are unaltered. Before them, `let_go` records were pruned by age.
    Whole { records: usize, let_go: i64 },
    /// The number of the first record that is wrong, and what is wrong with it.
    Broken { seq: i64, what: Said },
}

/// How far a check has come: the last record verified, its hash, and how many were verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    seq: i64,
    hash: Vec<u8>,
    records: usize,
}

/// The state of a check: in progress, or finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    On(Reached),
    Over(Verified),
}

/// Continues a check for at most `most` records. A long ledger is checked in pieces, so that others can use the store
/// in between. Records appended in the meantime are checked too. If the ledger was pruned past the point reached, the
/// check continues from the checkpoint and restarts its count.
pub fn verify(tx: &Transaction<'_>, from: Reached, most: usize) -> Result<Check, DbError> {
    let mut at = match edge(tx, "ledger_checkpoint")? {
        Some((seq, hash)) if seq > from.seq => Reached { seq, hash, records: 0 },
        _ => from,
    };
    let mut rows =
        tx.prepare_cached("SELECT seq, at, record, hash FROM ledger WHERE seq > ?1 ORDER BY seq")?;
    for (looked, row) in rows.query_map([at.seq], stored)?.enumerate() {
        if looked == most {
            return Ok(Check::On(at));
        }
        let row = row?;
        if let Some(what) = broken(tx, &at, &row)? {
            return Ok(Check::Over(Verified::Broken { seq: row.seq, what }));
        }
        at = Reached { seq: row.seq, hash: row.hash, records: at.records + 1 };
    }
    ends(tx, &at).map(Check::Over)
}

/// What is wrong with the record that follows `before`, or `None` if it is intact.
fn broken(tx: &Transaction<'_>, before: &Reached, row: &Stored) -> Result<Option<Said>, DbError> {
    if row.seq != before.seq + 1 {
        return Ok(Some(said::ledger_broken_missing()));
    }
    let Ok(at) = Timestamp::from_millisecond(row.at) else {
        return Ok(Some(said::ledger_broken_time()));
    };
    if chained(&before.hash, at, &row.record)[..] != row.hash {
        return Ok(Some(said::ledger_broken_altered()));
    }
    bytes_differ(tx, &row.record)
}

/// Finishes a check: compares the last record with the stored head of the chain.
fn ends(tx: &Transaction<'_>, at: &Reached) -> Result<Verified, DbError> {
    let Reached { seq, hash, records } = at;
    match edge(tx, "ledger_head")? {
        Some((last, _)) if last != *seq => {
            Ok(Verified::Broken { seq: last, what: said::ledger_broken_end() })
        }
        Some((_, end)) if end != *hash => {
            Ok(Verified::Broken { seq: *seq, what: said::ledger_broken_last() })
        }
        _ => {
            let let_go = edge(tx, "ledger_checkpoint")?.map_or(0, |(seq, _)| seq);
            Ok(Verified::Whole { records: *records, let_go })
        }
    }
}

/// A row of the ledger, not parsed.
struct Stored {
    seq: i64,
    at: i64,
    record: String,
    hash: Vec<u8>,
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored { seq: row.get(0)?, at: row.get(1)?, record: row.get(2)?, hash: row.get(3)? })
}

/// What is wrong with the stored bytes of a request, by comparing them with their hashes.
fn bytes_differ(tx: &Transaction<'_>, record: &str) -> Result<Option<Said>, DbError> {
    let Ok(Record::Request { chunks, .. }) = serde_json::from_str(record) else { return Ok(None) };
    let mut find = tx.prepare_cached("SELECT bytes FROM ledger_chunks WHERE hash = ?1")?;
    for name in chunks {
        let hash = hex::decode(&name).unwrap_or_default();
        let bytes: Option<Vec<u8>> = find.query_row([&hash], |row| row.get(0)).optional()?;
        match bytes {
            None => return Ok(Some(said::ledger_broken_bytes_missing())),
            Some(bytes) if Sha256::digest(&bytes)[..] != hash[..] => {
                return Ok(Some(said::ledger_broken_bytes_altered()));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

/// Deletes records older than `days`, and chunks that only they used. The rest is still a chain, which begins at a
/// checkpoint. Returns how many records were deleted.
pub fn prune(tx: &Transaction<'_>, days: u32, now: Timestamp) -> Result<usize, DbError> {
    let span = SignedDuration::from_hours(24 * i64::from(days));
    let before = now.saturating_sub(span).unwrap_or(Timestamp::MIN).as_millisecond();
    // Stop at the first record that is young enough: if the clock went back, deleting older ones behind it would leave
    // a hole in the chain.
    let young = "SELECT seq FROM ledger WHERE at >= ?1 ORDER BY seq LIMIT 1";
    let first_young: Option<i64> = tx.query_row(young, [before], |row| row.get(0)).optional()?;
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
    hours::forget(tx, last)?;
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
    use crate::ledger::{Held, append, request};

    /// Checks the whole ledger in very small pieces.
    fn whole(tx: &Transaction<'_>) -> Result<Verified, DbError> {
        let mut reached = Reached::default();
        loop {
            match verify(tx, reached, 3)? {
                Check::On(further) => reached = further,
                Check::Over(verified) => return Ok(verified),
            }
        }
    }

    fn click(n: usize) -> Record {
        Record::Click {
            conversation: 1,
            tool: format!("t{n}"),
            arguments: "{}".to_owned(),
            allowed: true,
            unanswered: false,
        }
    }

    async fn filled() -> Db {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let fill = db.write(|tx| {
            for n in 0..10_usize {
                let at = Timestamp::from_second(i64::try_from(n).unwrap() * 86_400).unwrap();
                append(tx, &click(n), at)?;
                request(tx, 1, "m", &format!("body {n}").repeat(500).into_bytes(), Held::default(), at)?;
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
            whole(tx)
        });
        changed.await.unwrap()
    }

    #[tokio::test]
    async fn whatever_is_changed_is_found() {
        assert_eq!(after("").await, Verified::Whole { records: 20, let_go: 0 });
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
            Ok::<_, DbError>((gone, whole(tx)?, kept, prune(tx, 5, now)?))
        });
        let (gone, verified, chunks, again) = pruned.await.unwrap();
        assert_eq!((gone, verified, again), (10, Verified::Whole { records: 10, let_go: 10 }, 0));
        assert!(chunks < 10 && chunks > 0, "{chunks}");
        let all = db.write(move |tx| {
            prune(tx, 0, now)?;
            append(tx, &click(1), now)?;
            whole(tx)
        });
        assert_eq!(all.await.map_err(|e: DbError| e).unwrap(), Verified::Whole { records: 1, let_go: 20 });
        let db_hole = filled().await;
        let hole = db_hole.write(move |tx| {
            prune(tx, 5, now)?;
            tx.execute("DELETE FROM ledger WHERE seq = 11", [])?;
            whole(tx)
        });
        let found = hole.await.map_err(|e: DbError| e).unwrap();
        assert!(matches!(found, Verified::Broken { seq: 12, .. }), "the first after a checkpoint: {found:?}");
    }

    #[tokio::test]
    async fn what_is_let_go_or_appended_between_two_pieces_breaks_nothing() {
        let db = filled().await;
        let now = Timestamp::from_second(10 * 86_400).unwrap();
        let checked = db.write(move |tx| {
            let Check::On(reached) = verify(tx, Reached::default(), 4)? else { panic!("over so soon") };
            prune(tx, 5, now)?;
            append(tx, &click(1), now)?;
            verify(tx, reached, 100)
        });
        let over = checked.await.map_err(|e: DbError| e).unwrap();
        assert_eq!(over, Check::Over(Verified::Whole { records: 11, let_go: 10 }));
    }
}
