//! A lease: one thing at a time across all processes of a home. A row in the store, not a lock in memory.
//!
//! It ends when it is given back, when its time is over, or when the process that held it is gone, so that a
//! crash blocks nothing for long.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::db::{DbError, Migration};
use crate::hex;

pub(crate) const MIGRATION: Migration =
    Migration { name: "leases/1", sql: include_str!("../migrations/leases.sql") };

/// Proof that we hold something; given back with [`give_back`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    name: String,
    holder: String,
}

/// Takes `name` for `life`, or `None` if somebody living has it.
pub fn take(
    tx: &Transaction<'_>,
    name: &str,
    now: Timestamp,
    life: SignedDuration,
) -> Result<Option<Lease>, DbError> {
    if held(tx, name, now)? {
        return Ok(None);
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| DbError::NoRandomness)?;
    let lease = Lease { name: name.to_owned(), holder: format!("{}-{}", *LIFE, hex::encode(&random)) };
    tx.prepare_cached("INSERT OR REPLACE INTO leases (name, holder, pid, until) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![lease.name, lease.holder, std::process::id(), until(now, life)])?;
    Ok(Some(lease))
}

/// Has somebody living taken `name`?
pub fn held(tx: &Transaction<'_>, name: &str, now: Timestamp) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT holder, pid, until FROM leases WHERE name = ?1")?;
    Ok(row.query_row([name], |row| living(row, now)).optional()?.unwrap_or(false))
}

/// Has somebody living taken anything whose name begins like this?
pub fn any_held(tx: &Transaction<'_>, beginning: &str, now: Timestamp) -> Result<bool, DbError> {
    let mut rows =
        tx.prepare_cached("SELECT holder, pid, until FROM leases WHERE substr(name, 1, ?2) = ?1")?;
    let length = i64::try_from(beginning.chars().count()).unwrap_or(i64::MAX);
    let leases = rows.query_map(params![beginning, length], |row| living(row, now))?;
    let leases: Vec<bool> = leases.collect::<rusqlite::Result<_>>()?;
    Ok(leases.contains(&true))
}

/// Holds on for another `life`.
pub fn renew(
    tx: &Transaction<'_>,
    lease: &Lease,
    now: Timestamp,
    life: SignedDuration,
) -> Result<(), DbError> {
    tx.prepare_cached("UPDATE leases SET until = ?3 WHERE name = ?1 AND holder = ?2")?.execute(params![
        lease.name,
        lease.holder,
        until(now, life)
    ])?;
    Ok(())
}

/// Whoever held it does not need it any more.
pub fn end(tx: &Transaction<'_>, name: &str) -> Result<(), DbError> {
    tx.prepare_cached("DELETE FROM leases WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// Is it still ours? It may have run out and gone to somebody else.
pub fn ours(tx: &Transaction<'_>, lease: &Lease) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT holder FROM leases WHERE name = ?1")?;
    let holder: Option<String> = row.query_row([&lease.name], |row| row.get(0)).optional()?;
    Ok(holder.is_some_and(|holder| holder == lease.holder))
}

pub fn give_back(tx: &Transaction<'_>, lease: &Lease) -> Result<(), DbError> {
    tx.prepare_cached("DELETE FROM leases WHERE name = ?1 AND holder = ?2")?
        .execute(params![lease.name, lease.holder])?;
    Ok(())
}

fn until(now: Timestamp, life: SignedDuration) -> i64 {
    now.saturating_add(life).unwrap_or(now).as_millisecond()
}

/// This life of this process. In a container that is started again, every life has the same number.
static LIFE: LazyLock<String> = LazyLock::new(|| {
    let mut random = [0; 8];
    // Without randomness no lease is taken either.
    let _ = getrandom::fill(&mut random);
    hex::encode(&random)
});

/// Has whoever holds this still time, and is it there?
fn living(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<bool> {
    let (holder, pid, until): (String, i32, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let ours = u32::try_from(pid).is_ok_and(|pid| pid == std::process::id());
    Ok(until > now.as_millisecond() && if ours { holder.starts_with(LIFE.as_str()) } else { alive(pid) })
}

/// A process that we may not signal is there all the same.
fn alive(pid: i32) -> bool {
    let Some(pid) = rustix::process::Pid::from_raw(pid) else { return false };
    rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    const MINUTE: SignedDuration = SignedDuration::from_mins(1);

    #[tokio::test]
    async fn one_at_a_time_until_given_back_over_or_dead() {
        let db = Db::in_memory(&[MIGRATION]).unwrap();
        let checked = db.write(|tx| {
            let at = |seconds| Timestamp::from_second(seconds).unwrap();
            let first = take(tx, "x", at(0), MINUTE)?.unwrap();
            assert_eq!(take(tx, "x", at(59), MINUTE)?, None);
            assert!(take(tx, "y", at(0), MINUTE)?.is_some(), "another name is another thing");
            renew(tx, &first, at(59), MINUTE)?;
            assert_eq!(take(tx, "x", at(100), MINUTE)?, None);
            let second = take(tx, "x", at(119), MINUTE)?.unwrap();
            give_back(tx, &first)?;
            assert!(held(tx, "x", at(120))?, "who lost it cannot give it away");
            give_back(tx, &second)?;
            assert!(!held(tx, "x", at(120))?);
            take(tx, "x", at(0), MINUTE)?.unwrap();
            tx.execute("UPDATE leases SET pid = 999999999", [])?;
            assert!(take(tx, "x", at(1), MINUTE)?.is_some(), "the dead hold nothing");
            tx.execute("UPDATE leases SET holder = 'before-1'", [])?;
            assert!(take(tx, "x", at(2), MINUTE)?.is_some(), "nor does whoever had our number before");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
