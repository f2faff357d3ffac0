//! Lists conversations; pins and names them.
//!
//! A list goes as far as the caller asks, so that the page stays small however many conversations there are.

use rusqlite::{OptionalExtension, Params, Row, Transaction, params};

use super::conversation::{Conversation, ConversationId, Kind};
use crate::db::DbError;

/// How many conversations a list has at first, and how many more each time it goes on.
pub const PAGE: usize = 60;

/// A part of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shelf {
    /// Everything but what lies on the other shelf: what is pinned, then the others, each newest first.
    Chats,
    /// Questions of a command line, which nobody continued or pinned.
    Asked,
}

impl Shelf {
    fn condition(self) -> &'static str {
        match self {
            Self::Chats => "(asked = 0 OR pinned <> 0)",
            Self::Asked => "asked <> 0 AND pinned = 0",
        }
    }
}

/// The beginning of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    pub rows: Vec<T>,
    /// There are more.
    pub more: bool,
}

impl<T> Listed<T> {
    /// Keeps `most` of rows that were read one further.
    pub(super) fn cut(mut rows: Vec<T>, most: usize) -> Self {
        let more = rows.len() > most;
        rows.truncate(most);
        Self { rows, more }
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { rows: vec![], more: false }
    }
}

/// All conversations, the last updated first.
pub fn list(tx: &Transaction<'_>) -> Result<Vec<Conversation>, DbError> {
    chosen(tx, "1 ORDER BY updated_at DESC, id DESC", [])
}

/// The beginning of a shelf, at most `most` conversations.
pub fn shelf(tx: &Transaction<'_>, shelf: Shelf, most: usize) -> Result<Listed<Conversation>, DbError> {
    let order = "ORDER BY pinned DESC, updated_at DESC, id DESC";
    let rows = chosen(tx, &format!("{} {order} LIMIT {}", shelf.condition(), one_more(most)), [])?;
    Ok(Listed::cut(rows, most))
}

/// How many conversations lie on a shelf.
pub fn count(tx: &Transaction<'_>, shelf: Shelf) -> Result<usize, DbError> {
    let sql = format!("SELECT count(*) FROM conversations WHERE {}", shelf.condition());
    let count = tx.prepare_cached(&sql)?.query_row([], |row| row.get::<_, i64>(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// One more than is shown tells whether there are more.
fn one_more(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1)
}

/// The conversation with this number.
pub(super) fn get(tx: &Transaction<'_>, id: ConversationId) -> Result<Option<Conversation>, DbError> {
    Ok(chosen(tx, "id = ?1", [id.0])?.pop())
}

fn chosen(tx: &Transaction<'_>, condition: &str, values: impl Params) -> Result<Vec<Conversation>, DbError> {
    // First the choice, then the count: otherwise the messages of all would be counted to list a few.
    let sql = format!(
        "WITH chosen AS MATERIALIZED (SELECT * FROM conversations WHERE {condition})
         SELECT id, title, kind, updated_at, (SELECT count(*) FROM entries WHERE conversation = c.id),
                name, pinned, asked
         FROM chosen c"
    );
    let mut rows = tx.prepare_cached(&sql)?;
    let row = |row: &Row<'_>| {
        Ok(Conversation {
            id: ConversationId(row.get(0)?),
            title: row.get(1)?,
            kind: Kind::from_stored(&row.get::<_, String>(2)?),
            updated_at: row.get(3)?,
            entries: row.get(4)?,
            name: row.get(5)?,
            pinned: row.get(6)?,
            asked: row.get(7)?,
        })
    };
    let found = rows.query_map(values, row)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// The name that the user gave the conversation, and whether it is pinned.
pub fn placed(tx: &Transaction<'_>, id: ConversationId) -> Result<(Option<String>, bool), DbError> {
    let sql = "SELECT name, pinned FROM conversations WHERE id = ?1";
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    Ok(tx.prepare_cached(sql)?.query_row([id.0], row).optional()?.unwrap_or_default())
}

/// Names a conversation, or takes its name away; returns false if it does not exist.
pub fn set_name(tx: &Transaction<'_>, id: ConversationId, name: Option<&str>) -> Result<bool, DbError> {
    Ok(tx.execute("UPDATE conversations SET name = ?2 WHERE id = ?1", params![id.0, name])? > 0)
}

/// Pins a conversation, or unpins it; returns false if it does not exist.
pub fn set_pinned(tx: &Transaction<'_>, id: ConversationId, pinned: bool) -> Result<bool, DbError> {
    Ok(tx.execute("UPDATE conversations SET pinned = ?2 WHERE id = ?1", params![id.0, pinned])? > 0)
}

/// How many messages stand before this one in the conversation; `None` if it is not in there.
pub fn position(tx: &Transaction<'_>, id: ConversationId, entry: i64) -> Result<Option<usize>, DbError> {
    let sql = "SELECT (SELECT count(*) FROM entries WHERE conversation = ?1 AND id < ?2)
               FROM entries WHERE conversation = ?1 AND id = ?2";
    let row = |row: &Row<'_>| row.get::<_, i64>(0);
    let before = tx.prepare_cached(sql)?.query_row(params![id.0, entry], row).optional()?;
    Ok(before.and_then(|before| usize::try_from(before).ok()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kai_llm::Message;

    use super::super::conversation::{Which, append, create, delete, find_or_begin, restore, whole};
    use super::*;
    use crate::db::Db;

    fn user(text: &str) -> Message {
        Message::user(text)
    }

    fn assistant(text: &str) -> Message {
        Message::Assistant { text: text.to_owned(), calls: vec![], signature: None }
    }

    fn chat(tx: &Transaction<'_>, said: &[Message], seconds: i64) -> Result<ConversationId, DbError> {
        let now = Timestamp::from_second(seconds).unwrap();
        let id = create(tx, now)?;
        append(tx, id, said, None, now)?;
        Ok(id)
    }

    fn ids(rows: &[Conversation]) -> Vec<ConversationId> {
        rows.iter().map(|row| row.id).collect()
    }

    #[tokio::test]
    async fn what_is_pinned_comes_first_and_questions_of_a_command_line_lie_apart() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let question = |tx: &Transaction<'_>, seconds| {
                let now = Timestamp::from_second(seconds).unwrap();
                let id = find_or_begin(tx, Which::Question, now)?.ok_or(DbError::Stopping)?;
                append(tx, id, &[user("what day is it?"), assistant("Monday.")], None, now)?;
                Ok::<_, DbError>(id)
            };
            let old = chat(tx, &[user("old")], 1)?;
            let (first, second, third) = (question(tx, 2)?, question(tx, 3)?, question(tx, 4)?);
            let new = chat(tx, &[user("new")], 5)?;
            let rows = |on, most| shelf(tx, on, most).map(|listed| (ids(&listed.rows), listed.more));
            assert_eq!(rows(Shelf::Chats, 9)?, (vec![new, old], false));
            assert_eq!(rows(Shelf::Asked, 2)?, (vec![third, second], true));
            assert_eq!(count(tx, Shelf::Asked)?, 3);
            set_pinned(tx, old, true)?;
            set_pinned(tx, first, true)?;
            append(tx, second, &[user("and tomorrow?")], None, Timestamp::from_second(6).unwrap())?;
            assert_eq!(rows(Shelf::Chats, 9)?, (vec![first, old, second, new], false), "one was continued");
            assert_eq!(rows(Shelf::Chats, 3)?, (vec![first, old, second], true));
            assert_eq!(rows(Shelf::Asked, 9)?, (vec![third], false));
            let kept = whole(tx, third)?.ok_or(DbError::Stopping)?;
            delete(tx, third)?;
            let back = restore(tx, &kept)?;
            assert_eq!(rows(Shelf::Asked, 9)?.0, [back]);
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
