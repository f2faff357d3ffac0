//! Copies of sent mails that still have to be put into the Sent folder. A copy is stored in the transaction that marks
//! its draft as sent, so that a crash does not lose it.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Row, Transaction, params};

use super::mail::Mail;
use crate::db::{self, DbError};
use crate::source::SourceId;

/// A copy that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    pub id: i64,
    pub account: SourceId,
    pub mail: Mail,
}

/// How long Kai tries to put a copy into the Sent folder.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long it waits after a failure.
const LATER: SignedDuration = SignedDuration::from_mins(15);

/// Keeps a copy of a mail that was sent.
pub(super) fn keep(
    tx: &Transaction<'_>,
    account: SourceId,
    mail: &Mail,
    now: Timestamp,
) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO mail_copies (account, mail, sent_at, due_at) VALUES (?1, ?2, ?3, ?3)",
        params![account, db::json(mail)?, now.as_millisecond()],
    )?;
    Ok(())
}

/// The copies whose time has come, oldest first. One from the future is from before the clock was set back.
pub fn due(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<Copy>, DbError> {
    let oldest = now.saturating_sub(KEPT).unwrap_or(now).as_millisecond();
    tx.execute("DELETE FROM mail_copies WHERE sent_at < ?1", [oldest])?;
    let later = now.saturating_add(LATER).unwrap_or(now).as_millisecond();
    let mut rows = tx.prepare_cached(
        "SELECT id, account, mail FROM mail_copies WHERE due_at <= ?1 OR due_at > ?2 ORDER BY id",
    )?;
    let copy = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?));
    let rows: Vec<(i64, SourceId, String)> =
        rows.query_map([now.as_millisecond(), later], copy)?.collect::<rusqlite::Result<_>>()?;
    let read = |(id, account, json): (i64, SourceId, String)| {
        serde_json::from_str(&json).ok().map(|mail| Copy { id, account, mail })
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

/// Notes that a copy is in the Sent folder, or can never be put there.
pub fn done(tx: &Transaction<'_>, id: i64) -> Result<(), DbError> {
    tx.execute("DELETE FROM mail_copies WHERE id = ?1", [id])?;
    Ok(())
}

/// Notes that a copy could not be put into the Sent folder now.
pub fn later(tx: &Transaction<'_>, id: i64, now: Timestamp) -> Result<(), DbError> {
    let at = now.saturating_add(LATER).unwrap_or(now).as_millisecond();
    tx.execute("UPDATE mail_copies SET due_at = ?2 WHERE id = ?1", params![id, at])?;
    Ok(())
}

/// Drops the copies of an account that is gone.
pub fn forget(tx: &Transaction<'_>, account: SourceId) -> Result<(), DbError> {
    tx.execute("DELETE FROM mail_copies WHERE account = ?1", [account])?;
    Ok(())
}
