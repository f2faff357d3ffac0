//! The database rows of alarms that have not rung.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Alarm, AlarmId};
use crate::db::DbError;

/// Adds an alarm, or returns `None` if `most` are already pending.
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

/// Deletes all alarms that are due and returns them, earliest first. From then on they count as rung.
pub(super) fn take_due(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<Alarm>, DbError> {
    let mut rows = tx.prepare_cached("DELETE FROM alarms WHERE due_at <= ?1 RETURNING id, due_at, label")?;
    let alarms = rows.query_map([now.as_millisecond()], alarm)?;
    let mut alarms: Vec<Alarm> = alarms.collect::<rusqlite::Result<_>>()?;
    alarms.sort_by_key(|alarm| (alarm.due, alarm.id));
    Ok(alarms)
}

fn alarm(row: &Row<'_>) -> rusqlite::Result<Alarm> {
    // A timestamp out of range counts as long past.
    let due = Timestamp::from_millisecond(row.get(1)?).unwrap_or(Timestamp::MIN);
    Ok(Alarm { id: AlarmId(row.get(0)?), due, label: row.get(2)? })
}

/// All pending alarms, the next one first.
pub fn waiting(tx: &Transaction<'_>) -> Result<Vec<Alarm>, DbError> {
    let mut rows = tx.prepare_cached("SELECT id, due_at, label FROM alarms ORDER BY due_at, id")?;
    Ok(rows.query_map([], alarm)?.collect::<rusqlite::Result<_>>()?)
}

/// Deletes a pending alarm and returns it; `None` if it has already rung or never existed.
pub fn cancel(tx: &Transaction<'_>, id: AlarmId) -> Result<Option<Alarm>, DbError> {
    let sql = "DELETE FROM alarms WHERE id = ?1 RETURNING id, due_at, label";
    Ok(tx.prepare_cached(sql)?.query_row([id.0], alarm).optional()?)
}

/// Inserts an alarm again: one that failed to ring, or one that the user cancelled and wants back. One that is there
/// already stays as it is, because the ringer and the stop of the daemon may both put back the same one.
pub fn put_back(tx: &Transaction<'_>, alarm: &Alarm) -> Result<(), DbError> {
    tx.execute(
        "INSERT OR IGNORE INTO alarms (id, due_at, label) VALUES (?1, ?2, ?3)",
        params![alarm.id.0, alarm.due.as_millisecond(), alarm.label],
    )?;
    Ok(())
}

/// When the first alarm after `now` is due.
pub(super) fn next(tx: &Transaction<'_>, now: Timestamp) -> Result<Option<Timestamp>, DbError> {
    let sql = "SELECT min(due_at) FROM alarms WHERE due_at > ?1";
    let due: Option<i64> =
        tx.prepare_cached(sql)?.query_row([now.as_millisecond()], |row| row.get(0)).optional()?.flatten();
    Ok(due.and_then(|ms| Timestamp::from_millisecond(ms).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    #[tokio::test]
    async fn what_has_not_rung_is_listed_taken_away_and_put_back() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        let checked = db.write(move |tx| {
            for (seconds, label) in [(90, "Cake"), (60, "Tea"), (30, "Egg")] {
                add(tx, at(seconds), label, 9)?;
            }
            take_due(tx, at(40))?;
            let labels = |all: Vec<Alarm>| all.into_iter().map(|alarm| alarm.label).collect::<Vec<_>>();
            assert_eq!(labels(waiting(tx)?), ["Tea", "Cake"], "the next first, and none that rang");
            let tea = cancel(tx, AlarmId(2))?;
            assert_eq!(tea.as_ref().map(|tea| (tea.id, tea.due)), Some((AlarmId(2), at(60))));
            assert_eq!((cancel(tx, AlarmId(2))?, cancel(tx, AlarmId(3))?), (None, None), "gone, and rung");
            assert_eq!(labels(take_due(tx, at(70))?), Vec::<String>::new());
            tea.iter().try_for_each(|tea| put_back(tx, tea))?;
            assert_eq!(labels(waiting(tx)?), ["Tea", "Cake"]);
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
