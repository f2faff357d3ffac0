//! Stores drafts and the attempts to send them.

use jiff::Timestamp;
use kai_words::Said;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Channel, Draft, DraftId, NewDraft, Status, number, origin_from, origin_name};
use crate::db::DbError;
use crate::gate::RunKind;
use crate::ledger::{self, Record};
use crate::untrusted::Untrusted;

/// The most drafts in the outbox. Needing more would mean that a model is out of control.
pub const CAPACITY: u32 = 20;

/// Why a draft was not staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error(
        "{CAPACITY} drafts are already waiting for the user, which is the limit. Ask the user to send or discard some."
    )]
    Full,
    #[error(transparent)]
    Store(#[from] DbError),
}

/// Stages a draft for the user to send. If the outbox is full, old drafts are deleted to make room, sent ones before
/// failed ones; one that waits or may have been sent never is.
pub fn stage(tx: &Transaction<'_>, new: &NewDraft, now: Timestamp) -> Result<Draft, StageError> {
    if let Some(waiting) = again(tx, new)? {
        return Ok(waiting);
    }
    make_room(tx)?;
    let first_contact = !new.known_contact && !reached_before(tx, &new.to)?;
    tx.execute(
        "INSERT INTO drafts
             (channel, recipient, body, in_reply_to, quoted, first_contact, origin, conversation, created_at, status)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'PENDING')",
        params![
            new.channel.as_str(),
            new.to,
            new.body,
            new.in_reply_to,
            new.quoted.as_ref().and_then(quotation),
            first_contact,
            origin_name(new.origin),
            new.conversation,
            now.as_millisecond(),
        ],
    )
    .map_err(DbError::from)?;
    let draft = get(tx, DraftId(tx.last_insert_rowid()))?
        .ok_or(DbError::Other(rusqlite::Error::QueryReturnedNoRows))?;
    let record = Record::Draft {
        draft: draft.id.0,
        channel: draft.channel.as_str().to_owned(),
        to: draft.to.clone(),
        digest: draft.digest(),
        conversation: draft.conversation,
    };
    ledger::append(tx, &record, now)?;
    Ok(draft)
}

/// How many characters of an answered message are kept with its draft.
pub const QUOTED: usize = 500;

/// The beginning of an answered message, with "…" if it was cut; `None` if the message is blank.
fn quotation(text: &Untrusted) -> Option<String> {
    let text = text.as_written().replace("\r\n", "\n");
    let text = text.trim();
    let kept: String = text.chars().take(QUOTED).collect();
    let more = if kept.len() < text.len() { "…" } else { "" };
    (!kept.is_empty()).then_some(kept + more)
}

/// The same draft, if it already waits from an earlier unattended run. Such a run is repeated if it fails, and must not
/// stage its draft twice.
fn again(tx: &Transaction<'_>, new: &NewDraft) -> Result<Option<Draft>, DbError> {
    if new.origin == RunKind::Chat {
        return Ok(None);
    }
    let open = |draft: &Draft| draft.status == Status::Pending;
    let same =
        |draft: &Draft| (&draft.to, &draft.body, draft.in_reply_to) == (&new.to, &new.body, new.in_reply_to);
    Ok(all(tx)?.into_iter().find(|draft| open(draft) && same(draft)))
}

fn make_room(tx: &Transaction<'_>) -> Result<(), StageError> {
    while count(tx)? >= CAPACITY {
        let finished =
            "SELECT id FROM drafts WHERE status IN ('SENT', 'FAILED') ORDER BY status DESC, id LIMIT 1";
        let oldest: Option<i64> =
            tx.query_row(finished, [], |row| row.get(0)).optional().map_err(DbError::from)?;
        let Some(id) = oldest else { return Err(StageError::Full) };
        tx.execute("DELETE FROM drafts WHERE id = ?1", [id]).map_err(DbError::from)?;
    }
    Ok(())
}

fn count(tx: &Transaction<'_>) -> Result<u32, DbError> {
    Ok(tx.query_row("SELECT count(*) FROM drafts", [], |row| row.get(0))?)
}

/// Whether a message to this number was sent before.
fn reached_before(tx: &Transaction<'_>, to: &str) -> Result<bool, DbError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM attempts WHERE recipient = ?1 AND outcome = 'sent')";
    Ok(tx.query_row(sql, [to], |row| row.get(0))?)
}

const COLUMNS: &str =
    "SELECT id, channel, recipient, body, in_reply_to, first_contact, origin, conversation, created_at,
                              status, reason, attempts, quoted FROM drafts";

/// All drafts, oldest first.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Draft>, DbError> {
    let mut rows = tx.prepare_cached(&format!("{COLUMNS} ORDER BY id"))?;
    Ok(rows.query_map([], draft)?.collect::<rusqlite::Result<_>>()?)
}

const UNWATCHED: &str = "status = 'PENDING' AND origin IN ('heartbeat', 'task')";

/// The waiting drafts that unattended runs (heartbeats and tasks) staged, oldest first.
pub fn unwatched(tx: &Transaction<'_>) -> Result<Vec<Draft>, DbError> {
    let mut rows = tx.prepare_cached(&format!("{COLUMNS} WHERE {UNWATCHED} ORDER BY id"))?;
    Ok(rows.query_map([], draft)?.collect::<rusqlite::Result<_>>()?)
}

/// All of [`unwatched`] if the user has not been notified of at least one of them, otherwise nothing. Marks them as
/// announced at once, before the notification is shown: it is better to miss one than to repeat it every minute.
pub fn take_unannounced(tx: &Transaction<'_>) -> Result<Vec<Draft>, DbError> {
    let told = format!("UPDATE drafts SET announced = 1 WHERE announced = 0 AND {UNWATCHED}");
    if tx.execute(&told, [])? == 0 { Ok(vec![]) } else { unwatched(tx) }
}

pub fn get(tx: &Transaction<'_>, id: DraftId) -> Result<Option<Draft>, DbError> {
    let mut row = tx.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    Ok(row.query_row([id.0], draft).optional()?)
}

fn draft(row: &Row<'_>) -> rusqlite::Result<Draft> {
    let (status, reason): (String, String) = (row.get(9)?, row.get(10)?);
    let reason = Said::from_stored(&reason);
    Ok(Draft {
        id: DraftId(row.get(0)?),
        channel: Channel::Sms,
        to: row.get(2)?,
        body: row.get(3)?,
        in_reply_to: row.get(4)?,
        quoted: row.get::<_, Option<String>>(12)?.map(Untrusted::new),
        first_contact: row.get(5)?,
        origin: origin_from(&row.get::<_, String>(6)?),
        conversation: row.get(7)?,
        created_at: Timestamp::from_millisecond(row.get(8)?).unwrap_or_default(),
        status: match status.as_str() {
            "PENDING" => Status::Pending,
            "SENDING" => Status::Sending,
            "SENT" => Status::Sent(reason),
            "FAILED" => Status::Failed(reason),
            _ => Status::Unknown(reason),
        },
        attempts: row.get(11)?,
    })
}

pub(super) fn set_status(tx: &Transaction<'_>, id: DraftId, status: &Status) -> Result<(), DbError> {
    tx.prepare_cached("UPDATE drafts SET status = ?2, reason = ?3 WHERE id = ?1")?.execute(params![
        id.0,
        status.state().as_str(),
        status.reason().map(Said::stored).unwrap_or_default()
    ])?;
    Ok(())
}

pub(super) fn delete(tx: &Transaction<'_>, id: DraftId) -> Result<(), DbError> {
    tx.execute("DELETE FROM drafts WHERE id = ?1", [id.0])?;
    Ok(())
}

/// One attempt to send a draft, from a tap that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) id: i64,
    pub(super) draft: DraftId,
    pub(super) at: Timestamp,
}

/// Marks the draft as SENDING and records the attempt, before the phone is called.
pub(super) fn begin(tx: &Transaction<'_>, draft: &Draft, now: Timestamp) -> Result<Attempt, DbError> {
    tx.execute(
        "UPDATE drafts SET status = 'SENDING', reason = '', attempts = attempts + 1 WHERE id = ?1",
        [draft.id.0],
    )?;
    tx.execute(
        "INSERT INTO attempts (draft, recipient, digest, at) VALUES (?1, ?2, ?3, ?4)",
        params![draft.id.0, draft.to, draft.digest(), now.as_millisecond()],
    )?;
    Ok(Attempt { id: tx.last_insert_rowid(), draft: draft.id, at: now })
}

/// Stores the outcome of an attempt. Updates the draft's status too, unless the draft has a newer attempt or is no
/// longer SENDING or UNKNOWN.
pub(super) fn end(tx: &Transaction<'_>, attempt: Attempt, status: &Status) -> Result<(), DbError> {
    let outcome = match status {
        Status::Sent(_) => "sent",
        Status::Failed(_) => "not_sent",
        Status::Unknown(_) | Status::Pending | Status::Sending => "unknown",
    };
    tx.execute("UPDATE attempts SET outcome = ?2 WHERE id = ?1", params![attempt.id, outcome])?;
    let ours = last_attempt(tx, attempt.draft)?.is_some_and(|last| last.id == attempt.id);
    let open = get(tx, attempt.draft)?
        .is_some_and(|draft| matches!(draft.status, Status::Sending | Status::Unknown(_)));
    if ours && open { set_status(tx, attempt.draft, status) } else { Ok(()) }
}

pub(super) fn last_attempt(tx: &Transaction<'_>, draft: DraftId) -> Result<Option<Attempt>, DbError> {
    let mut row =
        tx.prepare_cached("SELECT id, at FROM attempts WHERE draft = ?1 ORDER BY id DESC LIMIT 1")?;
    let attempt = |row: &Row<'_>| {
        let at = Timestamp::from_millisecond(row.get(1)?).unwrap_or_default();
        Ok(Attempt { id: row.get(0)?, draft, at })
    };
    Ok(row.query_row([draft.0], attempt).optional()?)
}

/// Counts the other attempts at about the same time, with the same text to the same number, that may have been sent.
/// Their messages in the sent box do not belong to this attempt, so in doubt the draft stays unknown.
pub(super) fn others(tx: &Transaction<'_>, draft: &Draft, attempt: Attempt) -> Result<usize, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT a.recipient, d.body FROM attempts a LEFT JOIN drafts d ON d.id = a.draft
         WHERE a.id <> ?1 AND abs(a.at - ?2) <= 120000 AND a.outcome IS NOT 'not_sent'",
    )?;
    let about_then = rows.query_map(params![attempt.id, attempt.at.as_millisecond()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
    })?;
    let about_then: Vec<(String, Option<String>)> = about_then.collect::<rusqlite::Result<_>>()?;
    // The text of a deleted draft is unknown, so it counts as the same text.
    let rivals = about_then.iter().filter(|(to, body)| {
        number::same(to, &draft.to) && body.as_ref().is_none_or(|body| body.trim() == draft.body.trim())
    });
    Ok(rivals.count())
}
