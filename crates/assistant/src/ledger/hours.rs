//! The hours of the ledger: a row for each stretch of records that were made in one hour, so that a day is found without
//! reading all records. If the clock goes back, an hour has several stretches.

use std::ops::Range;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};

use crate::db::DbError;

const HOUR: i64 = 3_600_000;

/// Notes the hour of a new record, if it is another one than that of the record before.
pub(super) fn note(tx: &Transaction<'_>, seq: i64, at: Timestamp) -> Result<(), DbError> {
    let mut newest = newest(tx)?;
    if newest.is_some_and(|(first, _)| first >= seq) {
        // Somebody cut the ledger off before, which `verify` reports. The numbers are used again.
        tx.execute("DELETE FROM ledger_hours WHERE seq >= ?1", [seq])?;
        newest = self::newest(tx)?;
    }
    let hour = at.as_millisecond() / HOUR;
    if newest.is_none_or(|(_, before)| before != hour) {
        let sql = "INSERT INTO ledger_hours (seq, hour) VALUES (?1, ?2)";
        tx.prepare_cached(sql)?.execute(params![seq, hour])?;
    }
    Ok(())
}

/// The newest stretch: its first record and its hour.
fn newest(tx: &Transaction<'_>) -> Result<Option<(i64, i64)>, DbError> {
    let sql = "SELECT seq, hour FROM ledger_hours ORDER BY seq DESC LIMIT 1";
    Ok(tx.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// The first and the last record of the hours that a span of time touches, in epoch milliseconds. Records between them may
/// be outside the span.
pub(super) fn edges(tx: &Transaction<'_>, span: &Range<i64>) -> Result<(i64, i64), DbError> {
    let sql = "SELECT min(seq), max(seq) FROM ledger_hours WHERE hour BETWEEN ?1 AND ?2";
    let hours = [span.start / HOUR, span.end.saturating_sub(1) / HOUR];
    let (first, last): (Option<i64>, Option<i64>) =
        tx.query_row(sql, hours, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some((first, last)) = first.zip(last) else { return Ok((0, -1)) };
    let next = "SELECT min(seq) FROM ledger_hours WHERE seq > ?1";
    let next: Option<i64> = tx.query_row(next, [last], |row| row.get(0))?;
    Ok((first, next.map_or(i64::MAX, |next| next - 1)))
}

/// Forgets the hours of which no record is left, after all records up to `last` were deleted.
pub(super) fn forget(tx: &Transaction<'_>, last: i64) -> Result<(), DbError> {
    let sql = "DELETE FROM ledger_hours WHERE seq < (SELECT max(seq) FROM ledger_hours WHERE seq <= ?1 + 1)";
    tx.execute(sql, [last])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::ledger::{MIGRATION, Record, append, prune};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    /// A ledger with a record at each of these minutes.
    fn made_at(tx: &Transaction<'_>, minutes: &[i64]) -> Result<(), DbError> {
        let record = Record::Codes { conversation: 1, shown: true };
        minutes.iter().try_for_each(|minute| append(tx, &record, at(*minute)))
    }

    fn between(tx: &Transaction<'_>, from: i64, to: i64) -> Result<(i64, i64), DbError> {
        edges(tx, &(at(from).as_millisecond()..at(to).as_millisecond()))
    }

    fn stretches(tx: &Transaction<'_>) -> Result<Vec<(i64, i64)>, DbError> {
        let mut rows = tx.prepare("SELECT seq, hour FROM ledger_hours ORDER BY seq")?;
        let all = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(all.collect::<rusqlite::Result<_>>()?)
    }

    #[test]
    fn a_span_is_found_by_its_hours_even_if_the_clock_went_back() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            // Records 1 and 2, then 3 and 4, then 5 of the first hour again, then 6.
            made_at(tx, &[5, 59, 60, 119, 10, 240])?;
            assert_eq!(stretches(tx)?, [(1, 0), (3, 1), (5, 0), (6, 4)]);
            for (from, to, expected) in [
                (60, 120, (3, 4)),
                (0, 60, (1, 5)),
                (0, 1_000, (1, i64::MAX)),
                (240, 300, (6, i64::MAX)),
                (60, 61, (3, 4)),
                (120, 240, (0, -1)),
                (300, 400, (0, -1)),
            ] {
                assert_eq!(between(tx, from, to)?, expected, "{from} to {to}");
            }
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    #[test]
    fn hours_go_with_their_records_and_begin_anew_after_them() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            let day = 24 * 60;
            made_at(tx, &[5, 65, 70, 3 * day])?;
            prune(tx, 1, at(day + 66))?;
            assert_eq!(stretches(tx)?, [(2, 1), (4, 72)], "record 3 is of an hour that began before it");
            assert_eq!(between(tx, 60, 120)?, (2, 3));
            prune(tx, 1, at(30 * day))?;
            assert_eq!(stretches(tx)?, [(4, 72)]);
            made_at(tx, &[40 * day])?;
            assert_eq!(stretches(tx)?, [(4, 72), (5, 960)]);
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    #[test]
    fn numbers_that_are_used_again_have_their_own_hours() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            made_at(tx, &[5, 65, 125])?;
            tx.execute_batch(
                "DELETE FROM ledger WHERE seq > 1; UPDATE sqlite_sequence SET seq = 1 WHERE name = 'ledger'",
            )?;
            made_at(tx, &[6, 7])?;
            assert_eq!(stretches(tx)?, [(1, 0)]);
            assert_eq!(between(tx, 0, 60)?, (1, i64::MAX));
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    /// An older ledger keeps its bytes, and its hours are found.
    #[test]
    fn an_older_ledger_is_taken_over() {
        let older: Vec<_> =
            crate::MIGRATIONS.iter().copied().filter(|step| step.name != crate::ledger::HOURS.name).collect();
        assert!(older.iter().any(|step| step.name == MIGRATION.name));
        let db = Db::in_memory(&older).unwrap();
        let checked = db.write_now(|tx| {
            for (seq, minute) in [(1, 5), (2, 59), (3, 60), (4, 10), (5, 11)] {
                let at = at(minute).as_millisecond();
                let sql = "INSERT INTO ledger (seq, at, record, hash) VALUES (?1, ?2, '{}', x'00')";
                tx.execute(sql, params![seq, at])?;
            }
            tx.execute(
                "INSERT INTO ledger_chunks (hash, bytes) VALUES (x'0a', x'0102'), (x'0b', x'03')",
                [],
            )?;
            tx.execute_batch(crate::ledger::HOURS.sql)?;
            assert_eq!(stretches(tx)?, [(1, 0), (3, 1), (4, 0)]);
            let bytes = crate::ledger::bytes_of(tx, &["0b".to_owned(), "0a".to_owned()])?;
            assert_eq!(bytes, [3, 1, 2]);
            let again = "INSERT OR IGNORE INTO ledger_chunks (hash, bytes) VALUES (x'0a', x'09')";
            assert_eq!(tx.execute(again, [])?, 0, "a chunk is stored once");
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }
}
