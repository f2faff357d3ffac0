//! Stores what the user typed while an answer was being written, until it is sent.
//!
//! Taking a message out and adding it to the conversation is one transaction (`opening`), so each is sent at most once,
//! however many pages are open. Nothing here sends by itself.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::conversation::{self, ConversationId};
use super::opening::Saying;
use crate::attachments::store::{StagedId, staged, unstage};
use crate::db::{self, DbError, Migration};
use crate::lease;

pub(crate) const MIGRATION: Migration =
    Migration { name: "queued/1", sql: include_str!("../../migrations/queued.sql") };

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    Queued,
    /// Nobody is answering in the conversation, so the message can be sent at once. It was not queued.
    NotNeeded,
    /// Too many wait already.
    Full,
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
    Ok(Queued { id: QueuedId(row.get(0)?), text: row.get(1)?, held: row.get(2)?, files, names: vec![] })
}

/// Takes the first message out; `None` if there is none, or if the user is editing it.
pub(super) fn take_first(
    tx: &Transaction<'_>,
    conversation: ConversationId,
) -> Result<Option<Saying>, DbError> {
    let Some(first) = first(tx, conversation)?.filter(|first| !first.held) else { return Ok(None) };
    delete(tx, conversation, first.id)?;
    Ok(Some(Saying { files: first.files, ..Saying::from(first.text) }))
}

fn first(tx: &Transaction<'_>, conversation: ConversationId) -> Result<Option<Queued>, DbError> {
    let sql = "SELECT id, text, held, files FROM queued WHERE conversation = ?1 ORDER BY id LIMIT 1";
    Ok(tx.prepare_cached(sql)?.query_row([conversation.0], queued).optional()?)
}

/// Holds a message back while the user edits it; returns false if it does not wait any more.
pub fn hold(tx: &Transaction<'_>, conversation: ConversationId, id: QueuedId) -> Result<bool, DbError> {
    let sql = "UPDATE queued SET held = 1 WHERE conversation = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![conversation.0, id.0])? > 0)
}

/// Lets go of a message that was held, with other words if there are some; returns false if it does not wait any more.
pub fn release(
    tx: &Transaction<'_>,
    conversation: ConversationId,
    id: QueuedId,
    text: Option<&str>,
) -> Result<bool, DbError> {
    let sql = "UPDATE queued SET held = 0, text = coalesce(?3, text) WHERE conversation = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![conversation.0, id.0, text])? > 0)
}

/// Removes a message and its files; returns false if it does not wait any more.
pub fn remove(tx: &Transaction<'_>, conversation: ConversationId, id: QueuedId) -> Result<bool, DbError> {
    let removed = all(tx, conversation)?.into_iter().find(|queued| queued.id == id);
    for file in removed.into_iter().flat_map(|removed| removed.files) {
        unstage(tx, file)?;
    }
    delete(tx, conversation, id)
}

fn delete(tx: &Transaction<'_>, conversation: ConversationId, id: QueuedId) -> Result<bool, DbError> {
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
            assert_eq!(take_first(tx, chat)?, None, "it is being edited, and nothing overtakes it");
            assert!(release(tx, chat, first, Some("uno"))?);
            assert_eq!(take_first(tx, chat)?, Some(Saying::from("uno".to_owned())));
            assert!(!release(tx, chat, first, Some("late"))? && !remove(tx, chat, first)?, "it is gone");
            let second = all(tx, chat)?[0].id;
            assert!(hold(tx, chat, second)? && release(tx, chat, second, None)?);
            assert_eq!(texts(tx, chat)?, ["two", "three"], "editing was given up");
            assert!(remove(tx, chat, second)?);
            assert_eq!(take_first(tx, chat)?, Some(Saying::from("three".to_owned())));
            assert_eq!(take_first(tx, chat)?, None);
            conversation::delete(tx, other)?;
            assert_eq!(texts(tx, other)?, Vec::<String>::new(), "it goes with its conversation");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn files_wait_with_their_message() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let (one, two) = (prepared("a.txt").await, prepared("b.txt").await);
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
            let first = take_first(tx, chat)?.map(|said| said.files);
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
