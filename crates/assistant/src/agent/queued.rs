//! Stores what the user typed while an answer was being written, until it is sent.
//!
//! Taking a message out and adding it to the conversation is one transaction (`opening`), so each is sent at most once,
//! however many pages are open. Nothing here sends by itself.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::conversation::{self, ConversationId};
use crate::db::{DbError, Migration};
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
    now: Timestamp,
) -> Result<Offered, DbError> {
    if !conversation::exists(tx, conversation)? || !lease::held(tx, &conversation.lease(), now)? {
        return Ok(Offered::NotNeeded);
    }
    if all(tx, conversation)?.len() >= MOST {
        return Ok(Offered::Full);
    }
    add(tx, conversation, text)?;
    Ok(Offered::Queued)
}

/// Adds a message to the end.
pub fn add(tx: &Transaction<'_>, conversation: ConversationId, text: &str) -> Result<(), DbError> {
    let sql = "INSERT INTO queued (conversation, text) VALUES (?1, ?2)";
    tx.prepare_cached(sql)?.execute(params![conversation.0, text])?;
    Ok(())
}

/// All messages that wait in a conversation, in the order in which they are sent.
pub fn all(tx: &Transaction<'_>, conversation: ConversationId) -> Result<Vec<Queued>, DbError> {
    let sql = "SELECT id, text, held FROM queued WHERE conversation = ?1 ORDER BY id";
    let mut rows = tx.prepare_cached(sql)?;
    let all = rows.query_map([conversation.0], queued)?;
    Ok(all.collect::<rusqlite::Result<_>>()?)
}

fn queued(row: &Row<'_>) -> rusqlite::Result<Queued> {
    Ok(Queued { id: QueuedId(row.get(0)?), text: row.get(1)?, held: row.get(2)? })
}

/// Takes the first message out; `None` if there is none, or if the user is editing it.
pub(super) fn take_first(
    tx: &Transaction<'_>,
    conversation: ConversationId,
) -> Result<Option<String>, DbError> {
    let sql = "SELECT id, text, held FROM queued WHERE conversation = ?1 ORDER BY id LIMIT 1";
    let first = tx.prepare_cached(sql)?.query_row([conversation.0], queued).optional()?;
    let Some(first) = first.filter(|first| !first.held) else { return Ok(None) };
    remove(tx, conversation, first.id)?;
    Ok(Some(first.text))
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

/// Removes a message; returns false if it does not wait any more.
pub fn remove(tx: &Transaction<'_>, conversation: ConversationId, id: QueuedId) -> Result<bool, DbError> {
    let sql = "DELETE FROM queued WHERE conversation = ?1 AND id = ?2";
    Ok(tx.execute(sql, params![conversation.0, id.0])? > 0)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
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
            assert_eq!(offer(tx, chat, "now", NOW)?, Offered::NotNeeded);
            assert_eq!(offer(tx, ConversationId(99), "nowhere", NOW)?, Offered::NotNeeded);
            let held = lease::take(tx, &chat.lease(), NOW, SignedDuration::from_mins(1))?;
            for n in 0..MOST {
                assert_eq!(offer(tx, chat, &n.to_string(), NOW)?, Offered::Queued);
            }
            assert_eq!(offer(tx, chat, "too many", NOW)?, Offered::Full);
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
                add(tx, chat, text)?;
            }
            add(tx, other, "elsewhere")?;
            let first = all(tx, chat)?[0].id;
            assert!(hold(tx, chat, first)? && !hold(tx, other, first)?);
            assert_eq!(take_first(tx, chat)?, None, "it is being edited, and nothing overtakes it");
            assert!(release(tx, chat, first, Some("uno"))?);
            assert_eq!(take_first(tx, chat)?.as_deref(), Some("uno"));
            assert!(!release(tx, chat, first, Some("late"))? && !remove(tx, chat, first)?, "it is gone");
            let second = all(tx, chat)?[0].id;
            assert!(hold(tx, chat, second)? && release(tx, chat, second, None)?);
            assert_eq!(texts(tx, chat)?, ["two", "three"], "editing was given up");
            assert!(remove(tx, chat, second)?);
            assert_eq!(take_first(tx, chat)?.as_deref(), Some("three"));
            assert_eq!(take_first(tx, chat)?, None);
            conversation::delete(tx, other)?;
            assert_eq!(texts(tx, other)?, Vec::<String>::new(), "it goes with its conversation");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
