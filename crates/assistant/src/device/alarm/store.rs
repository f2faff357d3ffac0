//! The rows of alarms that have not rung.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{Alarm, AlarmId};
use crate::db::DbError;

/// Keeps one more; `None` if there are `most` already.
pub(super) fn add(
    tx: &Transaction<'_>,
    due: Timestamp,
    label: &str,
    most: u32,
) -> Result<Option<AlarmId>, DbError> {
    let waiting: u32 = tx.query_row("SELECT count(*) FROM alarms", [], |row| row.get(0))?;
    if waiting >= most {
        return Ok(None);
    }
    tx.execute("INSERT INTO alarms (due_at, label) VALUES (?1, ?2)", params![due.as_millisecond(), label])?;
    Ok(Some(AlarmId(tx.last_insert_rowid())))
}

/// Takes all that are due, earliest first. Afterwards they count as rung.
pub(super) fn take_due(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<Alarm>, DbError> {
    let mut rows = tx.prepare_cached("DELETE FROM alarms WHERE due_at <= ?1 RETURNING id, due_at, label")?;
    let alarms = rows.query_map([now.as_millisecond()], |row| {
        // A moment no clock can show is one long past.
        let due = Timestamp::from_millisecond(row.get(1)?).unwrap_or(Timestamp::MIN);
        Ok(Alarm { id: AlarmId(row.get(0)?), due, label: row.get(2)? })
    })?;
    let mut alarms: Vec<Alarm> = alarms.collect::<rusqlite::Result<_>>()?;
    alarms.sort_by_key(|alarm| (alarm.due, alarm.id));
    Ok(alarms)
}

/// Puts one back that did not ring after all.
pub(super) fn put_back(tx: &Transaction<'_>, alarm: &Alarm) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO alarms (id, due_at, label) VALUES (?1, ?2, ?3)",
        params![alarm.id.0, alarm.due.as_millisecond(), alarm.label],
    )?;
    Ok(())
}

/// When the first one after `now` is due.
pub(super) fn next(tx: &Transaction<'_>, now: Timestamp) -> Result<Option<Timestamp>, DbError> {
    let sql = "SELECT min(due_at) FROM alarms WHERE due_at > ?1";
    let due: Option<i64> =
        tx.prepare_cached(sql)?.query_row([now.as_millisecond()], |row| row.get(0)).optional()?.flatten();
    Ok(due.and_then(|ms| Timestamp::from_millisecond(ms).ok()))
}
