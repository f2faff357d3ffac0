//! Deletes archived messages: those that are old, those of a phone, all.

use jiff::Timestamp;
use rusqlite::{Transaction, params};

use super::{KNOWN_MS, first_row};
use crate::db::DbError;
use crate::pending;
use crate::settings::{self, SMS_ARCHIVE_DAYS};
use crate::sms::fill;
use crate::sms::queue::QUEUE;
use crate::source::SourceId;

/// How many messages one sweep deletes at most, so that others get at the store in between.
const AT_ONCE: u32 = 2_000;

/// Deletes what is older than the setting allows; called on every tick. Returns how many messages it deleted.
pub fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<usize, DbError> {
    match settings::load(tx)?.number(&SMS_ARCHIVE_DAYS) {
        0 => sweep_all_but_queued(tx),
        days => sweep_before(tx, fill::horizon(days, now, now)),
    }
}

fn sweep_before(tx: &Transaction<'_>, horizon: i64) -> Result<usize, DbError> {
    let old = "DELETE FROM sms_archive
               WHERE row IN (SELECT row FROM sms_archive WHERE row < ?1 ORDER BY row LIMIT ?2)";
    let deleted = tx.prepare_cached(old)?.execute(params![first_row(horizon), AT_ONCE])?;
    if deleted > 0 {
        // If the setting is raised later, what was deleted is asked for again.
        tx.execute(
            "UPDATE sms_threads SET complete_from = ?1, done = 0 WHERE complete_from < ?1",
            [horizon - 1],
        )?;
    }
    Ok(deleted)
}

/// Empties messages that are not queued, and forgets those that no phone repeats any more.
fn sweep_all_but_queued(tx: &Transaction<'_>) -> Result<usize, DbError> {
    let emptied = tx.execute(
        "UPDATE sms_archive SET body = NULL WHERE row IN (
             SELECT row FROM sms_archive WHERE body IS NOT NULL AND id NOT IN (
                 SELECT json_extract(entry, '$.id') FROM pending WHERE queue = ?1 AND phone <> 1) LIMIT ?2)",
        params![QUEUE.0, AT_ONCE],
    )?;
    tx.execute(
        "DELETE FROM sms_archive WHERE row IN (
             SELECT a.row FROM sms_archive a JOIN sms_threads t ON t.source = a.source AND t.thread = a.thread
             WHERE a.body IS NULL AND a.date > t.complete_from AND a.date < t.complete_to - ?1 LIMIT ?2)",
        params![KNOWN_MS, AT_ONCE],
    )?;
    Ok(emptied)
}

/// Deletes everything of a phone: its messages, what is known of its conversations, its part of the queue, its
/// contacts.
pub fn forget_phone(tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError> {
    pending::clear_phone(tx, QUEUE, source)?;
    for table in ["sms_archive", "sms_threads", "sms_phones", "contacts", "contact_numbers", "contact_reads"]
    {
        tx.execute(&format!("DELETE FROM {table} WHERE source = ?1"), [source])?;
    }
    Ok(())
}

/// Deletes everything that is archived of any phone. Names stay: they have a switch of their own.
pub fn forget_all(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute_batch("DELETE FROM sms_archive; DELETE FROM sms_threads; DELETE FROM sms_phones;")?;
    Ok(())
}
