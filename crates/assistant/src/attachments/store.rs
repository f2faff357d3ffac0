//! Stores attachments, each once, for as long as a message has them or is about to.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::{Attachment, FileKind, MOST, Prepared, Refused};
use crate::db::{self, DbError};
use crate::hex;

/// A file that waits for its message to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StagedId(pub i64);

/// How long a file waits.
const LIFE: SignedDuration = SignedDuration::from_hours(24);
/// How many files wait at most; the oldest go first.
const MOST_STAGED: i64 = 40;

/// Keeps a file until its message is sent. Files that waited too long are deleted.
pub fn stage(tx: &Transaction<'_>, prepared: &Prepared, now: Timestamp) -> Result<StagedId, DbError> {
    keep(tx, &prepared.file.hash, &prepared.bytes)?;
    let sql = "INSERT INTO staged_attachments (hash, name, kind, size, at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let Attachment { hash, name, kind, size } = &prepared.file;
    tx.prepare_cached(sql)?.execute(params![
        digest(hash),
        name,
        db::json(kind)?,
        stored(*size),
        now.as_millisecond()
    ])?;
    let id = StagedId(tx.last_insert_rowid());
    sweep(tx, now)?;
    Ok(id)
}

/// Deletes files whose message was never sent. Those of queued messages wait with them.
pub fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let oldest = now.checked_sub(LIFE).unwrap_or(now).as_millisecond();
    let sql =
        "DELETE FROM staged_attachments WHERE (at < ?1 OR id <= (SELECT max(id) FROM staged_attachments) - ?2)
             AND id NOT IN (SELECT value FROM queued, json_each(queued.files))";
    tx.execute(sql, params![oldest, MOST_STAGED])?;
    Ok(())
}

/// Deletes a file that the user took back before sending. One that a queued message has by now stays with that.
pub fn take_back(tx: &Transaction<'_>, id: StagedId) -> Result<(), DbError> {
    let sql = "DELETE FROM staged_attachments WHERE id = ?1
                   AND id NOT IN (SELECT value FROM queued, json_each(queued.files))";
    tx.execute(sql, [id.0])?;
    Ok(())
}

/// Deletes a file whose message was sent, or never will be.
pub fn unstage(tx: &Transaction<'_>, id: StagedId) -> Result<(), DbError> {
    tx.execute("DELETE FROM staged_attachments WHERE id = ?1", [id.0])?;
    Ok(())
}

/// The files of a message that is being sent, in order; refused if there are too many, or one is gone.
pub fn staged(tx: &Transaction<'_>, ids: &[StagedId]) -> Result<Result<Vec<Attachment>, Refused>, DbError> {
    if ids.len() > MOST {
        return Ok(Err(Refused::TooMany));
    }
    let mut find =
        tx.prepare_cached("SELECT hash, name, kind, size FROM staged_attachments WHERE id = ?1")?;
    let mut files = vec![];
    for id in ids {
        match find.query_row([id.0], |row| attachment(row, 0)).optional()? {
            Some(file) => files.push(file),
            None => return Ok(Err(Refused::Gone)),
        }
    }
    Ok(Ok(files))
}

/// Ties files to a message.
pub fn attach(tx: &Transaction<'_>, entry: i64, files: &[Attachment]) -> Result<(), DbError> {
    let sql = "INSERT INTO entry_attachments (entry, place, hash, name, kind, size) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = tx.prepare_cached(sql)?;
    for (place, Attachment { hash, name, kind, size }) in (0_i64..).zip(files) {
        insert.execute(params![entry, place, digest(hash), name, db::json(kind)?, stored(*size)])?;
    }
    Ok(())
}

/// Stores bytes under their hash, once.
pub fn keep(tx: &Transaction<'_>, hash: &str, bytes: &[u8]) -> Result<(), DbError> {
    let sql = "INSERT OR IGNORE INTO attachments (hash, bytes) VALUES (?1, ?2)";
    tx.prepare_cached(sql)?.execute(params![digest(hash), bytes])?;
    Ok(())
}

/// The files of a conversation's messages, by the id of the entry.
pub fn of_conversation(
    tx: &Transaction<'_>,
    conversation: i64,
) -> Result<BTreeMap<i64, Vec<Attachment>>, DbError> {
    let sql = "SELECT a.entry, a.hash, a.name, a.kind, a.size FROM entry_attachments a
               JOIN entries e ON e.id = a.entry WHERE e.conversation = ?1 ORDER BY a.entry, a.place";
    let mut rows = tx.prepare_cached(sql)?;
    let mut files: BTreeMap<i64, Vec<Attachment>> = BTreeMap::new();
    for row in rows.query_map([conversation], |row| Ok((row.get(0)?, attachment(row, 1)?)))? {
        let (entry, file) = row?;
        files.entry(entry).or_default().push(file);
    }
    Ok(files)
}

pub fn bytes(tx: &Transaction<'_>, hash: &str) -> Result<Option<Vec<u8>>, DbError> {
    let mut find = tx.prepare_cached("SELECT bytes FROM attachments WHERE hash = ?1")?;
    Ok(find.query_row([digest(hash)], |row| row.get(0)).optional()?)
}

/// A file with its bytes, whether its message is sent or not.
pub fn find(tx: &Transaction<'_>, hash: &str) -> Result<Option<Prepared>, DbError> {
    let sql = "SELECT hash, name, kind, size FROM entry_attachments WHERE hash = ?1
               UNION ALL SELECT hash, name, kind, size FROM staged_attachments WHERE hash = ?1 LIMIT 1";
    let file = tx.prepare_cached(sql)?.query_row([digest(hash)], |row| attachment(row, 0)).optional()?;
    let Some(file) = file else { return Ok(None) };
    Ok(bytes(tx, hash)?.map(|bytes| Prepared { file, bytes }))
}

fn digest(hash: &str) -> Vec<u8> {
    hex::decode(hash).unwrap_or_default()
}

/// Reads hash, name, kind and size, which begin at column `from`.
fn attachment(row: &Row<'_>, from: usize) -> rusqlite::Result<Attachment> {
    let (hash, kind): (Vec<u8>, String) = (row.get(from)?, row.get(from + 2)?);
    let unreadable = |error| {
        rusqlite::Error::FromSqlConversionFailure(from + 2, rusqlite::types::Type::Text, Box::new(error))
    };
    let kind: FileKind = serde_json::from_str(&kind).map_err(unreadable)?;
    let size = usize::try_from(row.get::<_, i64>(from + 3)?).unwrap_or_default();
    Ok(Attachment { hash: hex::encode(&hash), name: row.get(from + 1)?, kind, size })
}

fn stored(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
