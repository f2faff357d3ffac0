//! Leases: locks that work across all processes of a home, stored as rows in the database.
//!
//! A lease ends when it is released, when it expires, or when the process that held it is gone, so a crash does not
//! block anything for long. Within its own process it is held for as long as the [`Lease`] value exists, whatever the
//! clock says: the machine may sleep past the expiry, and a holder that failed to give it back has dropped it.

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

/// Proof of holding a lease; released with [`give_back`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    name: String,
    holder: Arc<Holder>,
}

/// The identity of a holder; registered in this process until the last clone of its [`Lease`] is dropped.
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

/// Takes the lease `name` for `life`; `None` if a living holder has it.
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

/// Whether a living holder has the lease `name`.
pub fn held(tx: &Transaction<'_>, name: &str, now: Timestamp) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT holder, pid, until FROM leases WHERE name = ?1")?;
    Ok(row.query_row([name], |row| living(row, now)).optional()?.unwrap_or(false))
}

/// Whether a living holder has any lease whose name has this prefix.
pub fn any_held(tx: &Transaction<'_>, beginning: &str, now: Timestamp) -> Result<bool, DbError> {
    let mut rows =
        tx.prepare_cached("SELECT holder, pid, until FROM leases WHERE substr(name, 1, ?2) = ?1")?;
    let length = i64::try_from(beginning.chars().count()).unwrap_or(i64::MAX);
    let leases = rows.query_map(params![beginning, length], |row| living(row, now))?;
    let leases: Vec<bool> = leases.collect::<rusqlite::Result<_>>()?;
    Ok(leases.contains(&true))
}

/// Milliseconds by which the end of a lease may be off before [`renew`] writes it again.
const CLOSE_ENOUGH: i64 = 60_000;

/// Extends the lease by `life` from now, give or take a minute: a turn of many rounds need not write it in each. Returns
/// false if another holder took it over; then nothing more may be done under it.
#[must_use = "a lease that was taken over protects nothing"]
pub fn renew(
    tx: &Transaction<'_>,
    lease: &Lease,
    now: Timestamp,
    life: SignedDuration,
) -> Result<bool, DbError> {
    let sql = "UPDATE leases SET until = ?3 WHERE name = ?1 AND holder = ?2 AND abs(until - ?3) > ?4";
    let end = params![lease.name, lease.holder.0, until(now, life), CLOSE_ENOUGH];
    tx.prepare_cached(sql)?.execute(end)?;
    Ok(!taken_over(tx, lease)?)
}

/// Whether another holder took the lease. One that was given back and that nobody took since does not count.
pub fn taken_over(tx: &Transaction<'_>, lease: &Lease) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT 1 FROM leases WHERE name = ?1 AND holder <> ?2")?;
    Ok(row.exists(params![lease.name, lease.holder.0])?)
}

/// Ends the lease `name`, whoever holds it.
pub fn end(tx: &Transaction<'_>, name: &str) -> Result<(), DbError> {
    tx.prepare_cached("DELETE FROM leases WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// Whether we still hold the lease. It may have expired and been taken by another holder.
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

/// The identity of this process; see [`life`].
static LIFE: LazyLock<String> =
    LazyLock::new(|| life(std::process::id()).unwrap_or_else(|| UNKNOWN_LIFE.to_owned()));
/// Used where the system does not reveal it.
const UNKNOWN_LIFE: &str = "?";

/// Identifies a process beyond its pid, which is reused: its start time and the boot id.
fn life(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name before it may contain anything, including spaces and parentheses.
    let began = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    let machine = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{began}-{}", machine.trim()))
}

/// Whether the holder in this row still counts: its process lives and the lease has not expired. In our own process
/// only the registry counts.
fn living(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<bool> {
    let (holder, pid, until): (String, i32, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let Ok(number) = u32::try_from(pid) else { return Ok(false) };
    if number == std::process::id() {
        return Ok(known().contains(&holder));
    }
    let of = holder.split_once('/').map_or("", |(life, _)| life);
    Ok(until > now.as_millisecond() && alive(pid) && may_be(of, life(number).as_deref()))
}

/// Whether the process that now has the holder's pid may be the holder itself. Where the system hides that (Android
/// does, and `hidepid` on Linux), assume so: a lease that is honoured for too long expires, but one that is taken from
/// a living holder causes work to be done twice.
fn may_be(holder: &str, now: Option<&str>) -> bool {
    holder == UNKNOWN_LIFE || now.is_none_or(|now| now == holder)
}

/// Whether a process with this pid exists. One that we are not permitted to signal does.
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

    /// Another process holds a lease while it lives, is still the same process, and the lease has not expired.
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
