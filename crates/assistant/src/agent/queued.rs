//! Stores what the user typed while an answer was being written, until it is sent.
//!
//! Taking a message out and adding it to the conversation is one transaction (`opening`), so each is sent at most once,
//! however many pages are open. Nothing here sends by itself.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::conversation::{self, ConversationId};
use super::saying::Saying;
use crate::attachments::Refused;
use crate::attachments::store::{StagedId, staged};
use crate::db::{self, DbError, Migration};
use crate::lease;

pub(crate) const MIGRATION: Migration =
    Migration { name: "queued/1", sql: include_str!("../../migrations/queued.sql") };

/// The user is editing a message.
const HELD: i64 = 1;
/// The same, and the answer that it waited for has ended meanwhile.
const HELD_AND_DUE: i64 = 2;

/// How many messages can wait in one conversation.
pub const MOST: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedId(pub i64);

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub id: QueuedId,
    pub text: String,
    pub files: Vec<StagedId>,
    /// The names of the files.
    pub names: Vec<String>,
    /// The user is editing it, so it is not sent yet.
    pub held: bool,
}

/// What became of a message that was to be queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    Queued,
    /// Nobody is answering in the conversation, so the message can be sent at once. It was not queued.
    NotNeeded,
    /// Too many wait already.
    Full,
    /// A file cannot be attached.
    Refused(Refused),
}

/// Queues a message if the conversation is being answered right now. That is checked in the same transaction: the
/// answer's end, which sends what is queued, comes after it.
pub fn offer(
    tx: &Transaction<'_>,
    conversation: ConversationId,
    text: &str,
    files: &[StagedId],
    now: Timestamp,
) -> Result<Offered, DbError> {
    if !conversation::exists(tx, conversation)? || !lease::held(tx, &conversation.lease(), now)? {
        return Ok(Offered::NotNeeded);
    }
    if all(tx, conversation)?.len() >= MOST {
        return Ok(Offered::Full);
    }
    if let Err(refused) = staged(tx, files)? {
        return Ok(Offered::Refused(refused));
    }
    add(tx, conversation, text, files)?;
    Ok(Offered::Queued)
}

/// Adds a message to the end.
pub fn add(
    tx: &Transaction<'_>,
    conversation: ConversationId,
    text: &str,
    files: &[StagedId],
) -> Result<(), DbError> {
    let sql = "INSERT INTO queued (conversation, text, files) VALUES (?1, ?2, ?3)";
    tx.prepare_cached(sql)?.execute(params![conversation.0, text, db::json(&files)?])?;
    Ok(())
}

/// All messages that wait in a conversation, in the order in which they are sent.
pub fn all(tx: &Transaction<'_>, conversation: ConversationId) -> Result<Vec<Queued>, DbError> {
    let sql = "SELECT id, text, held, files FROM queued WHERE conversation = ?1 ORDER BY id";
    let mut rows = tx.prepare_cached(sql)?;
    let mut all = rows.query_map([conversation.0], queued)?.collect::<rusqlite::Result<Vec<_>>>()?;
    for one in &mut all {
        let files = staged(tx, &one.files)?.unwrap_or_default();
        one.names = files.into_iter().map(|file| file.name).collect();
    }
    Ok(all)
}

fn queued(row: &Row<'_>) -> rusqlite::Result<Queued> {
    let files: String = row.get(3)?;
    let files = serde_json::from_str(&files).unwrap_or_default();
    let held = row.get::<_, i64>(2)? != 0;
    Ok(Queued { id: QueuedId(row.get(0)?), text: row.get(1)?, held, files, names: vec![] })
}

/// Takes the first message out; `None` if there is none, if it is not the one that is meant, or if the user is editing
/// it.
pub(super) fn take_first(
    tx: &Transaction<'_>,
    conversation: ConversationId,
    meant: Option<QueuedId>,
) -> Result<Option<Saying>, DbError> {
    let is_it = |first: &Queued| !first.held && meant.is_none_or(|meant| meant == first.id);
    let Some(first) = first(tx, conversation)?.filter(is_it) else { return Ok(None) };
    // The files stay for the message that is being sent.
    tx.execute("UPDATE queued SET files = '[]' WHERE id = ?1", [first.id.0])?;
    remove(tx, conversation, first.id)?;
    Ok(Some(Saying { files: first.files, ..Saying::from(first.text) }))
}

fn first(tx: &Transaction<'_>, conversation: ConversationId) -> Result<Option<Queued>, DbError> {
    let sql = "SELECT id, text, held, files FROM queued WHERE conversation = ?1 ORDER BY id LIMIT 1";
    Ok(tx.prepare_cached(sql)?.query_row([conversation.0], queued).optional()?)
}

/// Whether the first message is to be sent, now that the answer has ended. If the user is editing it, that is noted
/// instead: it is sent when they are done.
pub fn turn_comes(tx: &Transaction<'_>, conversation: ConversationId) -> Result<bool, DbError> {
    let Some(first) = first(tx, conversation)? else { return Ok(false) };
    if first.held {
        tx.execute("UPDATE queued SET held = ?2 WHERE id = ?1", params![first.id.0, HELD_AND_DUE])?;
    }
    Ok(!first.held)
}

/// Holds a message back while the user edits it; returns false if it does not wait any more.
pub fn hold(tx: &Transaction<'_>, conversation: ConversationId, id: QueuedId) -> Result<bool, DbError> {
    let sql = "UPDATE queued SET held = max(held, ?3) WHERE conversation = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![conversation.0, id.0, HELD])? > 0)
}

/// What became of a message that was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It does not wait any more.
    Gone,
    Waits,
    /// Its turn came while it was held.
    Due,
}

/// Lets go of a message that was held, with other words if there are some.
pub fn release(
    tx: &Transaction<'_>,
    conversation: ConversationId,
    id: QueuedId,
    text: Option<&str>,
) -> Result<Released, DbError> {
    let held = "SELECT held FROM queued WHERE conversation = ?1 AND id = ?2";
    let held: Option<i64> = tx.query_row(held, params![conversation.0, id.0], |row| row.get(0)).optional()?;
    let sql = "UPDATE queued SET held = 0, text = coalesce(?3, text) WHERE conversation = ?1 AND id = ?2";
    tx.execute(sql, params![conversation.0, id.0, text])?;
    Ok(match held {
        None => Released::Gone,
        Some(HELD_AND_DUE) => Released::Due,
        Some(_) => Released::Waits,
    })
}

/// Removes a message and its files; returns false if it does not wait any more.
pub fn remove(tx: &Transaction<'_>, conversation: ConversationId, id: QueuedId) -> Result<bool, DbError> {
    let sql = "DELETE FROM queued WHERE conversation = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![conversation.0, id.0])? > 0)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::attachments::store::{stage, sweep};
    use crate::attachments::{self, Prepared};
    use crate::db::Db;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn texts(tx: &Transaction<'_>, chat: ConversationId) -> Result<Vec<String>, DbError> {
        Ok(all(tx, chat)?.into_iter().map(|queued| queued.text).collect())
    }

    #[tokio::test]
    async fn what_is_typed_waits_only_while_an_answer_is_written() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let chat = conversation::create(tx, NOW)?;
            assert_eq!(offer(tx, chat, "now", &[], NOW)?, Offered::NotNeeded);
            assert_eq!(offer(tx, ConversationId(99), "nowhere", &[], NOW)?, Offered::NotNeeded);
            let held = lease::take(tx, &chat.lease(), NOW, SignedDuration::from_mins(1))?;
            for n in 0..MOST {
                assert_eq!(offer(tx, chat, &n.to_string(), &[], NOW)?, Offered::Queued);
            }
            assert_eq!(offer(tx, chat, "too many", &[], NOW)?, Offered::Full);
            assert_eq!(all(tx, chat)?.len(), MOST);
            drop(held);
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn each_is_taken_once_in_order_and_what_is_edited_waits() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let (chat, other) = (conversation::create(tx, NOW)?, conversation::create(tx, NOW)?);
            for text in ["one", "two", "three"] {
                add(tx, chat, text, &[])?;
            }
            add(tx, other, "elsewhere", &[])?;
            let first = all(tx, chat)?[0].id;
            assert!(hold(tx, chat, first)? && !hold(tx, other, first)?);
            assert_eq!(take_first(tx, chat, None)?, None, "it is being edited, and nothing overtakes it");
            assert_eq!(release(tx, chat, first, Some("uno"))?, Released::Waits);
            assert!(hold(tx, chat, first)? && !turn_comes(tx, chat)?);
            assert!(hold(tx, chat, first)?, "another page edits it, too");
            assert_eq!(release(tx, chat, first, None)?, Released::Due, "its turn came meanwhile");
            assert!(turn_comes(tx, chat)?);
            assert_eq!(take_first(tx, chat, Some(QueuedId(99)))?, None, "another one is meant");
            assert_eq!(take_first(tx, chat, None)?, Some(Saying::from("uno".to_owned())));
            assert_eq!(release(tx, chat, first, Some("late"))?, Released::Gone);
            assert!(!remove(tx, chat, first)?, "it is gone");
            let second = all(tx, chat)?[0].id;
            assert!(hold(tx, chat, second)? && release(tx, chat, second, None)? == Released::Waits);
            assert_eq!(texts(tx, chat)?, ["two", "three"], "editing was given up");
            assert!(remove(tx, chat, second)?);
            assert_eq!(take_first(tx, chat, None)?, Some(Saying::from("three".to_owned())));
            assert_eq!(take_first(tx, chat, None)?, None);
            conversation::delete(tx, other)?;
            assert_eq!(texts(tx, other)?, Vec::<String>::new(), "it goes with its conversation");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn files_wait_with_their_message() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let (one, two, three) = (prepared("a.txt").await, prepared("b.txt").await, prepared("c.txt").await);
        let checked = db.write(move |tx| {
            let chat = conversation::create(tx, NOW)?;
            let (one, two) = (stage(tx, &one, NOW)?, stage(tx, &two, NOW)?);
            add(tx, chat, "Look", &[one])?;
            add(tx, chat, "And here", &[two])?;
            sweep(tx, NOW + SignedDuration::from_hours(48))?;
            let waiting = all(tx, chat)?;
            assert_eq!(
                (&waiting[0].names[..], &waiting[1].names[..]),
                (&["a.txt".to_owned()][..], &["b.txt".to_owned()][..]),
                "they are not swept"
            );
            assert!(remove(tx, chat, waiting[1].id)?);
            assert!(staged(tx, &[two])?.is_err(), "a file goes with its message");
            let deleted = conversation::create(tx, NOW)?;
            let three = stage(tx, &three, NOW)?;
            add(tx, deleted, "Bye", &[three])?;
            conversation::delete(tx, deleted)?;
            assert!(staged(tx, &[three])?.is_err(), "and with its conversation");
            let first = take_first(tx, chat, None)?.map(|said| said.files);
            assert_eq!(first, Some(vec![one]));
            assert!(staged(tx, &[one])?.is_ok(), "what is being sent needs its file");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    async fn prepared(name: &str) -> Prepared {
        attachments::prepare(name.to_owned(), name.as_bytes().to_vec()).await.unwrap()
    }
}
