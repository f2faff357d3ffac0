//! Stores the heartbeat's state and the log of its runs.

use jiff::Timestamp;
use jiff::civil::Date;
use kai_words::Said;
use rusqlite::{Row, Transaction, params};
use sha2::{Digest, Sha256};

use super::due::ScheduleState;
use super::{Outcome, OutcomeKind};
use crate::db::DbError;
use crate::hex;

pub use crate::agent::reports::{banner, lower, raised, take_unnotified};

/// The report of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    pub at: Timestamp,
    pub said: String,
}

/// How many runs the log keeps.
const KEPT: u32 = 50;
/// How many earlier reports a prompt includes.
const TOLD: u32 = 3;

/// A run in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    pub at: Timestamp,
    pub outcome: OutcomeKind,
    /// Empty if it did not fail.
    pub reason: Said,
    pub tokens: u64,
    /// At least a part of `tokens` is an estimate.
    pub estimated: bool,
    pub ms: u64,
}

/// The state that the schedule depends on. Tokens spent on earlier days do not count.
pub fn standing(tx: &Transaction<'_>, today: Date) -> Result<ScheduleState, DbError> {
    let row = |row: &Row<'_>| {
        let moment = |ms: Option<i64>| ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let is_today = row.get::<_, String>(4)? == today.to_string();
        let spent = u64::try_from(row.get::<_, i64>(3)?).unwrap_or_default();
        Ok(ScheduleState {
            last_done: moment(row.get(0)?),
            last_try: moment(row.get(1)?),
            failures: row.get(2)?,
            spent: if is_today { spent } else { 0 },
        })
    };
    let sql = "SELECT last_done, last_try, failures, spent, day FROM heartbeat";
    Ok(tx.prepare_cached(sql)?.query_row([], row)?)
}

/// The digest of the tasks and candidates that the last answered run saw.
pub fn seen(tx: &Transaction<'_>) -> Result<String, DbError> {
    Ok(tx.prepare_cached("SELECT answered FROM heartbeat")?.query_row([], |row| row.get(0))?)
}

/// Resets the token count if a new day has begun.
pub fn begin_day(tx: &Transaction<'_>, today: Date) -> Result<(), DbError> {
    let today = today.to_string();
    tx.execute("UPDATE heartbeat SET day = ?1, spent = 0 WHERE day <> ?1", [today])?;
    Ok(())
}

/// The mark around untrusted text in the next run's prompt. It derives from a secret in the store, so nobody else can
/// guess it, and a dry run shows the same mark.
pub fn next_mark(tx: &Transaction<'_>) -> Result<String, DbError> {
    let (secret, runs): (Vec<u8>, i64) =
        tx.query_row("SELECT secret, runs FROM heartbeat", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut hash = Sha256::new();
    hash.update(secret);
    hash.update(runs.to_be_bytes());
    Ok(hex::encode(&hash.finalize()[..8]))
}

/// What a run cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    pub tokens: u64,
    pub estimated: bool,
    pub ms: u64,
}

/// Records a run: the log entry, the timestamps, the count of failures and the tokens.
pub(super) fn record(
    tx: &Transaction<'_>,
    outcome: &Outcome,
    cost: Cost,
    now: Timestamp,
) -> Result<(), DbError> {
    let (reason, report) = match outcome {
        Outcome::Report(said) => (String::new(), said.as_str()),
        Outcome::Failed(why) => (why.stored(), ""),
        Outcome::Ok | Outcome::NothingNew => (String::new(), ""),
    };
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    tx.execute(
        "INSERT INTO heartbeat_log (at, outcome, reason, report, tokens, ms, estimated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            now.as_millisecond(),
            outcome.kind().as_str(),
            reason,
            report,
            number(cost.tokens),
            number(cost.ms),
            cost.estimated
        ],
    )?;
    // The reports that the next prompts include are kept, however many runs found nothing since.
    tx.execute(
        "DELETE FROM heartbeat_log
         WHERE id NOT IN (SELECT id FROM heartbeat_log ORDER BY id DESC LIMIT ?1)
           AND id NOT IN (SELECT id FROM heartbeat_log WHERE outcome = 'report' ORDER BY id DESC LIMIT ?2)",
        [KEPT, TOLD],
    )?;
    let failed = matches!(outcome, Outcome::Failed(_));
    tx.execute(
        "UPDATE heartbeat SET last_try = ?1, spent = spent + ?2, runs = runs + 1,
                              failures = CASE WHEN ?3 THEN failures + 1 ELSE 0 END,
                              last_done = CASE WHEN ?3 THEN last_done ELSE ?1 END",
        params![now.as_millisecond(), number(cost.tokens), failed],
    )?;
    Ok(())
}

/// Stores the digest of the tasks and candidates that an answered run saw.
pub(super) fn answered(tx: &Transaction<'_>, digest: &str) -> Result<(), DbError> {
    tx.execute("UPDATE heartbeat SET answered = ?1", [digest])?;
    Ok(())
}

/// The latest reports, newest first.
pub(super) fn previous(tx: &Transaction<'_>) -> Result<Vec<Previous>, DbError> {
    let sql = "SELECT at, report FROM heartbeat_log WHERE outcome = 'report' ORDER BY id DESC LIMIT ?1";
    let mut rows = tx.prepare_cached(sql)?;
    let row = |row: &Row<'_>| {
        let at = Timestamp::from_millisecond(row.get(0)?).unwrap_or_default();
        Ok(Previous { at, said: row.get(1)? })
    };
    Ok(rows.query_map([TOLD], row)?.collect::<rusqlite::Result<_>>()?)
}

/// The last runs, newest first.
pub fn log(tx: &Transaction<'_>) -> Result<Vec<Logged>, DbError> {
    let sql =
        "SELECT at, outcome, reason, tokens, ms, estimated FROM heartbeat_log ORDER BY id DESC LIMIT ?1";
    let mut rows = tx.prepare_cached(sql)?;
    let row = |row: &Row<'_>| {
        let number = |column| row.get::<_, i64>(column).map(|n| u64::try_from(n).unwrap_or_default());
        Ok(Logged {
            at: Timestamp::from_millisecond(row.get(0)?).unwrap_or_default(),
            outcome: OutcomeKind::from_stored(&row.get::<_, String>(1)?),
            reason: Said::from_stored(&row.get::<_, String>(2)?),
            tokens: number(3)?,
            ms: number(4)?,
            estimated: row.get(5)?,
        })
    };
    Ok(rows.query_map([KEPT], row)?.collect::<rusqlite::Result<_>>()?)
}
