//! The bounded queues of items that wait for the next heartbeat. A full queue drops the oldest item of the phone with
//! most waiting, and counts the drop. Only items that were shown are removed, by a sequence number that is never reused. Every item that arrived
//! ends up as exactly one of shown, waiting, dropped or cleared by the user.

use rusqlite::{Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::{self, DbError, Migration};
use crate::source::SourceId;

pub(crate) const MIGRATION: Migration =
    Migration { name: "pending/1", sql: include_str!("../migrations/pending.sql") };
pub(crate) const SHOWING: Migration =
    Migration { name: "pending/showing", sql: include_str!("../migrations/pending-showing.sql") };
pub(crate) const PHONES: Migration =
    Migration { name: "pending/phones", sql: include_str!("../migrations/pending-phones.sql") };

/// The name of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue(pub &'static str);

pub const CAPACITY: u32 = 100;

/// A waiting entry, with the sequence number by which it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<E> {
    pub seq: i64,
    pub entry: E,
}

/// What to do if an entry with the same identity is waiting already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Keep the waiting entry: the new one is the same.
    Skip,
    /// Replace it: the new entry goes to the end with a new sequence number, so that a run that showed the old entry
    /// does not remove the new one.
    Renew,
}

/// Where an entry comes from, and what makes it the same as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    pub identity: &'a str,
    pub phone: SourceId,
    /// Whom a drop is counted for, such as an app; may be empty.
    pub source: &'a str,
}

/// Appends an entry. Returns whether this call added it.
pub fn push<E: Serialize>(
    tx: &Transaction<'_>,
    queue: Queue,
    origin: Origin<'_>,
    entry: &E,
    again: Again,
) -> Result<bool, DbError> {
    let json = db::json(entry)?;
    let Origin { identity, phone, source } = origin;
    if again == Again::Renew {
        tx.prepare_cached("DELETE FROM pending WHERE queue = ?1 AND identity = ?2")?
            .execute(params![queue.0, identity])?;
    }
    let added = tx
        .prepare_cached(
            "INSERT OR IGNORE INTO pending (queue, identity, phone, source, entry) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![queue.0, identity, phone, source, json])?;
    if added > 0 {
        make_room(tx, queue)?;
    }
    Ok(added > 0)
}

/// The oldest entry of the phone with most waiting goes first; of two with as many, the one whose oldest is older.
const GIVES_WAY: &str = "DELETE FROM pending WHERE seq =
    (SELECT min(seq) FROM pending WHERE queue = ?1 GROUP BY phone ORDER BY count(*) DESC, min(seq) LIMIT 1)
    RETURNING seq, phone, source, showing";

fn make_room(tx: &Transaction<'_>, queue: Queue) -> Result<(), DbError> {
    while count(tx, queue)? > CAPACITY {
        let (seq, phone, source, showing): (i64, SourceId, String, bool) = tx
            .prepare_cached(GIVES_WAY)?
            .query_row([queue.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        tx.prepare_cached(
            "INSERT INTO pending_dropped (queue, phone, source, count) VALUES (?1, ?2, ?3, 1)
             ON CONFLICT (queue, phone, source) DO UPDATE SET count = count + 1",
        )?
        .execute(params![queue.0, phone, source])?;
        if showing {
            tx.prepare_cached(
                "INSERT INTO pending_pushed (seq, queue, phone, source) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![seq, queue.0, phone, source])?;
        }
    }
    Ok(())
}

/// Marks these entries as being shown by a heartbeat that begins. Marks of an earlier heartbeat that died are cleared:
/// its entries were not shown.
pub fn show(tx: &Transaction<'_>, queue: Queue, seqs: &[i64]) -> Result<(), DbError> {
    tx.execute("DELETE FROM pending_pushed WHERE queue = ?1", [queue.0])?;
    tx.execute("UPDATE pending SET showing = 0 WHERE queue = ?1 AND showing = 1", [queue.0])?;
    tx.execute("UPDATE pending_dropped SET telling = count WHERE queue = ?1", [queue.0])?;
    let mut mark = tx.prepare_cached("UPDATE pending SET showing = 1 WHERE queue = ?1 AND seq = ?2")?;
    seqs.iter().try_for_each(|seq| mark.execute(params![queue.0, seq]).map(drop))?;
    Ok(())
}

/// Notes that the heartbeat that showed these entries was answered: those that the full queue dropped meanwhile no
/// longer count as dropped.
pub fn shown(tx: &Transaction<'_>, queue: Queue, seqs: &[i64]) -> Result<(), DbError> {
    let mut pushed = tx
        .prepare_cached("DELETE FROM pending_pushed WHERE queue = ?1 AND seq = ?2 RETURNING phone, source")?;
    for seq in seqs {
        let rows = pushed.query_map(params![queue.0, seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(SourceId, String)> = rows.collect::<rusqlite::Result<_>>()?;
        rows.iter().try_for_each(|(phone, source)| not_dropped(tx, queue, *phone, source))?;
    }
    Ok(())
}

/// All waiting entries, oldest first. Entries that this version cannot read, because a later one wrote them, are left
/// out but kept.
pub fn waiting<E: DeserializeOwned>(tx: &Transaction<'_>, queue: Queue) -> Result<Vec<Waiting<E>>, DbError> {
    let mut rows = tx.prepare_cached("SELECT seq, entry FROM pending WHERE queue = ?1 ORDER BY seq")?;
    let rows = rows.query_map([queue.0], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    let rows: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
    let read = |(seq, json): (i64, String)| Some(Waiting { seq, entry: serde_json::from_str(&json).ok()? });
    Ok(rows.into_iter().filter_map(read).collect())
}

/// The waiting entry with that identity, if there is one.
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

/// Removes exactly these entries; returns how many there were. An entry that was replaced meanwhile has another number
/// and stays.
pub fn forget(tx: &Transaction<'_>, queue: Queue, shown: &[i64]) -> Result<usize, DbError> {
    let mut delete = tx.prepare_cached("DELETE FROM pending WHERE queue = ?1 AND seq = ?2")?;
    shown.iter().try_fold(0, |gone, seq| Ok(gone + delete.execute(params![queue.0, seq])?))
}

/// Empties the queue and its drop counts for the user. Returns how many entries were waiting.
pub fn clear(tx: &Transaction<'_>, queue: Queue) -> Result<usize, DbError> {
    tx.execute("DELETE FROM pending_dropped WHERE queue = ?1", [queue.0])?;
    tx.execute("DELETE FROM pending_pushed WHERE queue = ?1", [queue.0])?;
    Ok(tx.execute("DELETE FROM pending WHERE queue = ?1", [queue.0])?)
}

/// Removes what one phone brought, with its drop counts, for the user. Returns how many entries were waiting.
pub fn clear_phone(tx: &Transaction<'_>, queue: Queue, phone: SourceId) -> Result<usize, DbError> {
    tx.execute("DELETE FROM pending_dropped WHERE queue = ?1 AND phone = ?2", params![queue.0, phone])?;
    tx.execute("DELETE FROM pending_pushed WHERE queue = ?1 AND phone = ?2", params![queue.0, phone])?;
    Ok(tx.execute("DELETE FROM pending WHERE queue = ?1 AND phone = ?2", params![queue.0, phone])?)
}

/// How many entries were dropped since this was last reported, by source.
pub fn dropped(tx: &Transaction<'_>, queue: Queue) -> Result<Vec<(String, u32)>, DbError> {
    let sql =
        "SELECT source, sum(count) FROM pending_dropped WHERE queue = ?1 GROUP BY source ORDER BY source";
    let mut rows = tx.prepare_cached(sql)?;
    let rows = rows.query_map([queue.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// How many entries of each phone wait and were dropped, for the phones that have any.
pub fn by_phone(tx: &Transaction<'_>, queue: Queue) -> Result<Vec<PhoneShare>, DbError> {
    let sql = "SELECT phone, sum(waiting), sum(dropped) FROM (
                   SELECT phone, 1 AS waiting, 0 AS dropped FROM pending WHERE queue = ?1
                   UNION ALL SELECT phone, 0, count FROM pending_dropped WHERE queue = ?1)
               GROUP BY phone ORDER BY phone";
    let mut rows = tx.prepare_cached(sql)?;
    let share =
        |row: &Row<'_>| Ok(PhoneShare { phone: row.get(0)?, waiting: row.get(1)?, dropped: row.get(2)? });
    Ok(rows.query_map([queue.0], share)?.collect::<rusqlite::Result<_>>()?)
}

/// One phone's share of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhoneShare {
    pub phone: SourceId,
    pub waiting: u32,
    pub dropped: u32,
}

/// Subtracts the drops that an answered heartbeat reported. Drops since it began stay counted, even if the user cleared
/// the queue meanwhile.
pub fn forget_reported_drops(tx: &Transaction<'_>, queue: Queue) -> Result<(), DbError> {
    tx.execute(
        "UPDATE pending_dropped SET count = count - telling, telling = 0 WHERE queue = ?1",
        [queue.0],
    )?;
    tx.execute("DELETE FROM pending_dropped WHERE queue = ?1 AND count <= 0", [queue.0])?;
    Ok(())
}

/// Takes one back from the drop counts.
fn not_dropped(tx: &Transaction<'_>, queue: Queue, phone: SourceId, source: &str) -> Result<(), DbError> {
    tx.execute(
        "UPDATE pending_dropped SET count = count - 1 WHERE queue = ?1 AND phone = ?2 AND source = ?3",
        params![queue.0, phone, source],
    )?;
    tx.execute("DELETE FROM pending_dropped WHERE queue = ?1 AND count <= 0", [queue.0])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    const Q: Queue = Queue("q");
    const ALL: &[Migration] = &[MIGRATION, SHOWING, PHONES];

    fn from<'a>(identity: &'a str, source: &'a str) -> Origin<'a> {
        Origin { identity, phone: SourceId::HERE, source }
    }

    #[tokio::test]
    async fn the_oldest_gives_way_and_every_drop_is_counted() {
        let db = Db::in_memory(ALL).unwrap();
        let checked = db.write(|tx| {
            for n in 0..150_u32 {
                let source = if n % 2 == 0 { "even" } else { "odd" };
                assert!(push(tx, Q, from(&n.to_string(), source), &n, Again::Skip)?);
                assert!(!push(tx, Q, from(&n.to_string(), source), &n, Again::Skip)?, "once is enough");
            }
            let left: Vec<u32> = waiting(tx, Q)?.into_iter().map(|w| w.entry).collect();
            assert_eq!(left, (50..150).collect::<Vec<_>>());
            assert_eq!(dropped(tx, Q)?, [("even".to_owned(), 25), ("odd".to_owned(), 25)]);
            show(tx, Q, &[])?;
            push(tx, Q, from("150", "even"), &150, Again::Skip)?;
            forget_reported_drops(tx, Q)?;
            assert_eq!(dropped(tx, Q)?, [("even".to_owned(), 1)], "what was dropped meanwhile stays counted");
            show(tx, Q, &[])?;
            clear(tx, Q)?;
            for n in 200..303_u32 {
                push(tx, Q, from(&n.to_string(), "even"), &n, Again::Skip)?;
            }
            forget_reported_drops(tx, Q)?;
            assert_eq!(dropped(tx, Q)?, [("even".to_owned(), 3)], "what was cleared is not taken off twice");
            assert_eq!(count(tx, Queue("other"))?, 0);
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn only_what_was_shown_is_forgotten() {
        let db = Db::in_memory(ALL).unwrap();
        let checked = db.write(|tx| {
            for n in 0..3_u32 {
                push(tx, Q, from(&n.to_string(), ""), &n, Again::Skip)?;
            }
            let shown: Vec<i64> = waiting::<u32>(tx, Q)?.iter().map(|w| w.seq).collect();
            push(tx, Q, from("1", ""), &11, Again::Renew)?;
            push(tx, Q, from("3", ""), &3, Again::Skip)?;
            assert_eq!(forget(tx, Q, &shown)?, 2);
            let left: Vec<u32> = waiting(tx, Q)?.into_iter().map(|w| w.entry).collect();
            assert_eq!(left, [11, 3], "what changed and what came meanwhile stays");
            assert_eq!(find::<u32>(tx, Q, "3")?.map(|w| w.entry), Some(3));
            assert_eq!((clear(tx, Q)?, count(tx, Q)?), (2, 0));
            push(tx, Q, from("4", ""), &4, Again::Skip)?;
            assert!(waiting::<u32>(tx, Q)?.iter().all(|w| !shown.contains(&w.seq)), "no number twice");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    /// Whatever happens to a run, each entry that arrived counts once.
    #[tokio::test]
    async fn what_made_room_while_it_was_shown_is_dropped_only_if_the_run_was_not_answered() {
        let db = Db::in_memory(ALL).unwrap();
        let checked = db.write(|tx| {
            for (name, answered, cleared, dropped_after) in [
                ("answered", true, false, 0),
                ("failed", false, false, 20),
                ("cleared meanwhile", true, true, 0),
            ] {
                clear(tx, Q)?;
                let arrive = |numbers: std::ops::Range<u32>| {
                    numbers
                        .map(|n| push(tx, Q, from(&n.to_string(), ""), &n, Again::Skip))
                        .collect::<Result<Vec<_>, _>>()
                };
                arrive(0..100)?;
                let seqs: Vec<i64> = waiting::<u32>(tx, Q)?.iter().map(|w| w.seq).collect();
                show(tx, Q, &seqs)?;
                arrive(100..120)?;
                if cleared {
                    assert_eq!(clear(tx, Q)?, 100, "{name}");
                }
                if answered {
                    shown(tx, Q, &seqs)?;
                    forget(tx, Q, &seqs)?;
                }
                let dropped: u32 = dropped(tx, Q)?.iter().map(|(_, count)| count).sum();
                assert_eq!(dropped, dropped_after, "{name}");
                // The next run starts afresh: the marks of the one before do not affect it.
                show(tx, Q, &[])?;
                shown(tx, Q, &seqs)?;
                assert_eq!(
                    super::dropped(tx, Q)?.iter().map(|(_, count)| count).sum::<u32>(),
                    dropped_after,
                    "{name}"
                );
            }
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn the_phone_with_most_waiting_gives_way() {
        let db = Db::in_memory(ALL).unwrap();
        let checked = db.write(|tx| {
            let arrive = |phone: i64, numbers: std::ops::Range<u32>| {
                numbers.into_iter().try_for_each(|n| {
                    let identity = format!("{phone}/{n}");
                    let origin = Origin { identity: &identity, phone: SourceId(phone), source: "" };
                    push(tx, Q, origin, &n, Again::Skip).map(drop)
                })
            };
            let share = |phone, waiting, dropped| PhoneShare { phone: SourceId(phone), waiting, dropped };
            arrive(2, 0..5)?;
            arrive(3, 0..5_000)?;
            assert_eq!(by_phone(tx, Q)?, [share(2, 5, 0), share(3, 95, 4_905)], "a flood is its own");
            arrive(2, 5..95)?;
            assert_eq!(by_phone(tx, Q)?, [share(2, 50, 45), share(3, 50, 4_950)]);
            assert_eq!(clear_phone(tx, Q, SourceId(3))?, 50);
            assert_eq!(by_phone(tx, Q)?, [share(2, 50, 45)], "what was cleared is no drop");
            assert_eq!(dropped(tx, Q)?, [(String::new(), 45)]);
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
