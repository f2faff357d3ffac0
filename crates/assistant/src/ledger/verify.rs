//! Is the ledger what it was? Every record's hash covers the one before, the end is kept outside of the chain, and every
//! byte that left has a hash of its own.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use sha2::{Digest, Sha256};

use super::read::{each, edge};
use super::{Record, chained};
use crate::db::DbError;
use crate::hex;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// So many records, each what it was; and before them so many that were let go by their age.
    Whole { records: usize, let_go: i64 },
    /// The first place where it is not, and what is wrong there.
    Broken { seq: i64, what: String },
}

/// How far a check has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    seq: i64,
    hash: Vec<u8>,
    records: usize,
}

/// A check goes on, or is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    On(Reached),
    Over(Verified),
}

/// Goes on with a check for at most so many records: a long ledger is checked in pieces, so that others get at the
/// store between them. What is appended meanwhile is checked too; what is let go meanwhile counts no more.
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

/// What is wrong with a record that follows what was checked.
fn broken(tx: &Transaction<'_>, before: &Reached, row: &Stored) -> Result<Option<String>, DbError> {
    if row.seq != before.seq + 1 {
        return Ok(Some("a record before it is missing".to_owned()));
    }
    let Ok(at) = Timestamp::from_millisecond(row.at) else {
        return Ok(Some("its time was altered".to_owned()));
    };
    if chained(&before.hash, at, &row.record)[..] != row.hash {
        return Ok(Some("it was altered, or one before it".to_owned()));
    }
    bytes_differ(tx, &row.record)
}

/// Is the last record the one that was noted as the end?
fn ends(tx: &Transaction<'_>, at: &Reached) -> Result<Verified, DbError> {
    let Reached { seq, hash, records } = at;
    match edge(tx, "ledger_head")? {
        Some((last, _)) if last != *seq => Ok(Verified::Broken {
            seq: last,
            what: "records at the end are missing, or came from elsewhere".to_owned(),
        }),
        Some((_, end)) if end != *hash => {
            Ok(Verified::Broken { seq: *seq, what: "the end is not what was noted".to_owned() })
        }
        _ => {
            let let_go = edge(tx, "ledger_checkpoint")?.map_or(0, |(seq, _)| seq);
            Ok(Verified::Whole { records: *records, let_go })
        }
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

    /// All of it, in pieces that are as small as pieces can be wrong.
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
