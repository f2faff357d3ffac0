//! A lease: one thing at a time across all processes of a home. A row in the store, not a lock in memory.
//!
//! It ends when it is given back, when its time is over, or when the process that held it is gone, so that a
//! crash blocks nothing for long. In its own process it is held as long as somebody has the [`Lease`], whatever the
//! clock says: a machine may sleep through its time, and whoever fails to give it back has dropped it.

use crate::lock::lock;
use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

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
    holder: Arc<Holder>,
}

/// Known in this process until nobody has it any more.
#[derive(Debug, PartialEq, Eq)]
struct Holder(String);

impl Holder {
    fn new(name: String) -> Arc<Self> {
        known().insert(name.clone());
        Arc::new(Self(name))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        known().remove(&self.0);
    }
}

fn known() -> MutexGuard<'static, BTreeSet<String>> {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    lock(&KNOWN)
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
    let holder = Holder::new(format!("{}/{}", *LIFE, hex::encode(&random)));
    let lease = Lease { name: name.to_owned(), holder };
    tx.prepare_cached("INSERT OR REPLACE INTO leases (name, holder, pid, until) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![lease.name, lease.holder.0, std::process::id(), until(now, life)])?;
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

/// Holds on for another `life`; false if somebody else took it over meanwhile, and nothing may be done under it any
/// more.
#[must_use = "a lease that was taken over protects nothing"]
pub fn renew(
    tx: &Transaction<'_>,
    lease: &Lease,
    now: Timestamp,
    life: SignedDuration,
) -> Result<bool, DbError> {
    tx.prepare_cached("UPDATE leases SET until = ?3 WHERE name = ?1 AND holder = ?2")?.execute(params![
        lease.name,
        lease.holder.0,
        until(now, life)
    ])?;
    Ok(!taken_over(tx, lease)?)
}

/// Has somebody else taken it? One that was given back and that nobody took since is not taken over.
pub fn taken_over(tx: &Transaction<'_>, lease: &Lease) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT 1 FROM leases WHERE name = ?1 AND holder <> ?2")?;
    Ok(row.exists(params![lease.name, lease.holder.0])?)
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
    Ok(holder.is_some_and(|holder| holder == lease.holder.0))
}

pub fn give_back(tx: &Transaction<'_>, lease: &Lease) -> Result<(), DbError> {
    tx.prepare_cached("DELETE FROM leases WHERE name = ?1 AND holder = ?2")?
        .execute(params![lease.name, lease.holder.0])?;
    Ok(())
}

fn until(now: Timestamp, life: SignedDuration) -> i64 {
    now.saturating_add(life).unwrap_or(now).as_millisecond()
}

/// This life of this process.
static LIFE: LazyLock<String> =
    LazyLock::new(|| life(std::process::id()).unwrap_or_else(|| UNKNOWN_LIFE.to_owned()));
/// Where the system does not tell.
const UNKNOWN_LIFE: &str = "?";

/// What tells a process from the next one that gets its number: when it began, and since which start of the machine.
fn life(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, blanks and parentheses too.
    let began = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    let machine = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{began}-{}", machine.trim()))
}

/// Has whoever holds this still time, and is it there?
fn living(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<bool> {
    let (holder, pid, until): (String, i32, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let Ok(number) = u32::try_from(pid) else { return Ok(false) };
    if number == std::process::id() {
        return Ok(known().contains(&holder));
    }
    let of = holder.split_once('/').map_or("", |(life, _)| life);
    Ok(until > now.as_millisecond() && alive(pid) && may_be(of, life(number).as_deref()))
}

/// May the process that has a holder's number now be the holder itself? Where the system hides it (Android does, and
/// `hidepid` on Linux), it counts as that: a lease that is believed too long ends by its time, but one that is taken from
/// a living holder has things done twice.
fn may_be(holder: &str, now: Option<&str>) -> bool {
    holder == UNKNOWN_LIFE || now.is_none_or(|now| now == holder)
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

    #[test]
    fn a_holder_that_the_system_hides_counts_as_living() {
        for (holder, now, expected) in [
            ("100-a", Some("100-a"), true),
            ("100-a", Some("200-a"), false),
            ("100-a", None, true),
            (UNKNOWN_LIFE, Some("200-a"), true),
        ] {
            assert_eq!(may_be(holder, now), expected, "{holder} {now:?}");
        }
    }

    const MINUTE: SignedDuration = SignedDuration::from_mins(1);

    #[tokio::test]
    async fn one_at_a_time_until_given_back_over_or_dead() {
        let db = Db::in_memory(&[MIGRATION]).unwrap();
        let checked = db.write(|tx| {
            let at = |seconds| Timestamp::from_second(seconds).unwrap();
            let first = take(tx, "x", at(0), MINUTE)?.unwrap();
            assert_eq!(take(tx, "x", at(59), MINUTE)?, None);
            assert!(take(tx, "y", at(0), MINUTE)?.is_some(), "another name is another thing");
            assert_eq!(take(tx, "x", at(9_999), MINUTE)?, None, "a machine may have slept; the holder lives");
            give_back(tx, &first)?;
            let second = take(tx, "x", at(60), MINUTE)?.unwrap();
            give_back(tx, &first)?;
            assert!(held(tx, "x", at(61))?, "who lost it cannot give it away");
            drop(second);
            assert!(!held(tx, "x", at(61))?, "nor does it stay with somebody who dropped it");
            let _third = take(tx, "x", at(62), MINUTE)?.unwrap();
            tx.execute("UPDATE leases SET holder = 'before/1'", [])?;
            assert!(!held(tx, "x", at(63))?, "whoever had our number before is gone");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    /// What other processes hold: as long as they are there, are who they were, and have time.
    #[tokio::test]
    async fn others_hold_it_while_they_live_and_have_time() {
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, began) = (other.id(), life(other.id()).unwrap());
        let db = Db::in_memory(&[MIGRATION]).unwrap();
        let checked = db.write(move |tx| {
            let at = |seconds| Timestamp::from_second(seconds).unwrap();
            let holds = |pid: u32, holder: &str, seconds| {
                tx.execute(
                    "INSERT OR REPLACE INTO leases (name, holder, pid, until) VALUES ('x', ?1, ?2, 60000)",
                    params![holder, pid],
                )?;
                held(tx, "x", at(seconds))
            };
            assert!(holds(pid, &format!("{began}/1"), 59)?);
            assert!(!holds(pid, &format!("{began}/1"), 60)?, "its time is over");
            assert!(!holds(pid, "1-of-another-start/1", 59)?, "another process got its number");
            assert!(holds(pid, "?/1", 59)?, "where nobody can tell, it counts");
            assert!(!holds(999_999_999, &format!("{began}/1"), 59)?, "the dead hold nothing");
            Ok::<_, DbError>(())
        });
        let checked = checked.await;
        other.kill().and_then(|()| other.wait()).unwrap();
        checked.unwrap();
    }
}
