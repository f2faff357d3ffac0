//! Lists conversations and finds them by words; pins and names them.
//!
//! A list goes as far as the caller asks, so that the page stays small however many conversations there are. What is
//! found comes with the message that has the words ([`Hit`]), so that the page can lead there.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::conversation::{Conversation, ConversationId, Kind};
use crate::db::DbError;

/// How many conversations a list has at first, and how many more each time it goes on.
pub const PAGE: usize = 60;
/// How many words of a search are used; nobody types more on purpose.
const MOST_WORDS: usize = 10;
/// How many words of a message are shown around those that were found.
const SNIPPET_WORDS: usize = 14;
/// What the index puts around the words that it found, so that they can be told from the rest.
const MARKS: (char, char) = ('\u{2}', '\u{3}');

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
    fn cut(mut rows: Vec<T>, most: usize) -> Self {
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

/// A conversation that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub chat: Conversation,
    /// The message that has the words; `None` if only its name has them.
    pub hit: Option<Hit>,
}

/// A message that has words of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The number of the message in the store.
    pub entry: i64,
    /// A piece of its text around the words.
    pub snippet: Vec<Piece>,
}

/// A part of a snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// Is it what was searched for?
    pub is_hit: bool,
}

/// All conversations, the last updated first.
pub fn list(tx: &Transaction<'_>) -> Result<Vec<Conversation>, DbError> {
    chosen(tx, "1 ORDER BY updated_at DESC, id DESC", &[])
}

/// The beginning of a shelf, at most `most` conversations.
pub fn shelf(tx: &Transaction<'_>, shelf: Shelf, most: usize) -> Result<Listed<Conversation>, DbError> {
    let order = "ORDER BY pinned DESC, updated_at DESC, id DESC";
    let rows = chosen(tx, &format!("{} {order} LIMIT {}", shelf.condition(), one_more(most)), &[])?;
    Ok(Listed::cut(rows, most))
}

/// How many conversations lie on a shelf.
pub fn count(tx: &Transaction<'_>, shelf: Shelf) -> Result<usize, DbError> {
    let sql = format!("SELECT count(*) FROM conversations WHERE {}", shelf.condition());
    let count = tx.prepare_cached(&sql)?.query_row([], |row| row.get::<_, i64>(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Conversations that have all words of `text`, matched by prefix, in their messages or their name; at most `most`, the
/// last updated first.
pub fn search(tx: &Transaction<'_>, text: &str, most: usize) -> Result<Listed<Found>, DbError> {
    let words = words(text);
    if words.is_empty() {
        return Ok(Listed::default());
    }
    // One condition per word, because the words may be in different messages.
    let has = |n| {
        format!(
            "(id IN (SELECT conversation FROM entries e JOIN entries_text t ON t.rowid = e.id
                     WHERE entries_text MATCH ?{n})
              OR id IN (SELECT rowid FROM conversation_names WHERE conversation_names MATCH ?{n}))"
        )
    };
    let all = (1..=words.len()).map(has).collect::<Vec<_>>().join(" AND ");
    let order = "ORDER BY updated_at DESC, id DESC";
    let rows = chosen(tx, &format!("{all} {order} LIMIT {}", one_more(most)), &words)?;
    let Listed { rows, more } = Listed::cut(rows, most);
    let found = |chat: Conversation| Ok(Found { hit: hit(tx, chat.id, &words)?, chat });
    Ok(Listed { rows: rows.into_iter().map(found).collect::<Result<_, DbError>>()?, more })
}

/// The words of a search, as the index reads them: each is the beginning of a word, whatever it contains.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(MOST_WORDS).map(|word| format!("\"{word}\"*")).collect()
}

/// The newest message of a conversation that has all words, or else any of them.
fn hit(tx: &Transaction<'_>, id: ConversationId, words: &[String]) -> Result<Option<Hit>, DbError> {
    // A conversation's messages lie between its first and its last, where the index can look at once.
    let sql = format!(
        "SELECT t.rowid, snippet(entries_text, 0, ?3, ?4, '…', {SNIPPET_WORDS}) FROM entries_text t
         WHERE entries_text MATCH ?1
           AND t.rowid BETWEEN (SELECT min(id) FROM entries WHERE conversation = ?2)
                           AND (SELECT max(id) FROM entries WHERE conversation = ?2)
           AND (SELECT conversation FROM entries WHERE id = t.rowid) = ?2
         ORDER BY t.rowid DESC LIMIT 1"
    );
    let (begins, ends) = (MARKS.0.to_string(), MARKS.1.to_string());
    for joint in [" AND ", " OR "] {
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
        let asked = params![words.join(joint), id.0, begins, ends];
        if let Some((entry, text)) = tx.prepare_cached(&sql)?.query_row(asked, row).optional()? {
            return Ok(Some(Hit { entry, snippet: pieces(&text) }));
        }
    }
    Ok(None)
}

/// Splits what the index returned into what it found and what stands around that, in one line.
fn pieces(marked: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = vec![];
    let mut is_hit = false;
    for part in marked.split_inclusive([MARKS.0, MARKS.1]) {
        let text = part.trim_end_matches([MARKS.0, MARKS.1]);
        let line = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect::<String>();
        if !line.is_empty() {
            pieces.push(Piece { text: line, is_hit });
        }
        is_hit = part.ends_with(MARKS.0);
    }
    pieces
}

/// One more than is shown tells whether there are more.
fn one_more(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1)
}

fn chosen(tx: &Transaction<'_>, condition: &str, words: &[String]) -> Result<Vec<Conversation>, DbError> {
    let sql = format!(
        "SELECT id, title, kind, updated_at, (SELECT count(*) FROM entries WHERE conversation = c.id),
                name, pinned, asked
         FROM conversations c WHERE {condition}"
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
    let found = rows.query_map(rusqlite::params_from_iter(words), row)?;
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

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

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

    fn found(tx: &Transaction<'_>, text: &str) -> Result<Vec<ConversationId>, DbError> {
        Ok(search(tx, text, PAGE)?.rows.into_iter().map(|found| found.chat.id).collect())
    }

    #[tokio::test]
    async fn conversations_are_found_by_words_and_gone_when_deleted() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let tea = chat(tx, &[user("Wann öffnet der Teeladen?"), assistant("Um neun.")], 0)?;
            let ships = chat(tx, &[user("ships")], 0)?;
            assert_eq!(found(tx, "ÖFFNET tee")?, [tea]);
            assert_eq!(found(tx, "neun")?, [tea]);
            assert_eq!(found(tx, "teeladen neun")?, [tea], "one word is the person's, one the model's");
            assert_eq!(found(tx, "tee ships")?, []);
            assert_eq!(found(tx, "\" OR *")?, [], "what the index would read as syntax is just words");
            assert_eq!(found(tx, "  ")?, []);
            assert_eq!(ids(&list(tx)?), [ships, tea]);
            assert!(delete(tx, tea)? && !delete(tx, tea)?);
            assert_eq!(found(tx, "neun")?, []);
            let left: i64 = tx.query_row("SELECT count(*) FROM entries_text", [], |row| row.get(0))?;
            assert_eq!(left, 1, "nothing of a deleted conversation stays in the index");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_found_comes_with_the_message_that_has_it() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let green = format!("{} green\ntea {}", "before ".repeat(30), "after ".repeat(30));
            let first = chat(tx, &[user("tea"), assistant(&green), user("tea again")], 1)?;
            let other = chat(tx, &[user("about green things and tea")], 2)?;
            append(tx, first, &[assistant("something else")], None, NOW)?;
            let at = |text: &str, id: ConversationId| -> Result<(Option<usize>, Vec<Piece>), DbError> {
                let all = search(tx, text, PAGE)?.rows;
                let hit = all.into_iter().find(|found| found.chat.id == id).and_then(|found| found.hit);
                let hit = hit.ok_or(DbError::Stopping)?;
                Ok((position(tx, id, hit.entry)?, hit.snippet))
            };
            let (where_all, snippet) = at("green tea", first)?;
            assert_eq!(
                where_all,
                Some(1),
                "all words in one message are better than a newer one with one of them"
            );
            let text: String = snippet.iter().map(|piece| piece.text.as_str()).collect();
            assert!(text.starts_with('…') && text.ends_with('…') && text.contains("green tea"), "{text}");
            let hits: Vec<&str> =
                snippet.iter().filter(|piece| piece.is_hit).map(|piece| piece.text.as_str()).collect();
            assert!(hits.concat().contains("green") && hits.concat().contains("tea"), "{hits:?}");
            assert_eq!(at("tea", first)?.0, Some(2), "the newest");
            assert_eq!(at("tea", other)?.0, Some(0), "the other's messages are not its own");
            assert_eq!(position(tx, other, 1)?, None, "nor are they counted there");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }

    #[tokio::test]
    async fn a_name_is_found_and_comes_back_with_a_pin() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let id = chat(tx, &[user("hello")], 0)?;
            assert!(set_name(tx, id, Some("Grüner Tee"))? && set_pinned(tx, id, true)?);
            let hit = search(tx, "grun tee", PAGE)?.rows.pop().ok_or(DbError::Stopping)?;
            assert_eq!((hit.chat.called(), hit.chat.title.as_str(), hit.hit), ("Grüner Tee", "hello", None));
            assert_eq!(found(tx, "gruner hello")?, [id], "one word is in the name, one was said");
            let kept = whole(tx, id)?.ok_or(DbError::Stopping)?;
            delete(tx, id)?;
            assert_eq!(found(tx, "tee")?, []);
            let back = restore(tx, &kept)?;
            let row = list(tx)?.pop().ok_or(DbError::Stopping)?;
            assert_eq!((row.id, row.called(), row.pinned), (back, "Grüner Tee", true));
            assert_eq!(found(tx, "tee")?, [back]);
            set_name(tx, back, None)?;
            assert_eq!((placed(tx, back)?, found(tx, "tee")?), ((None, true), vec![]));
            assert!(!set_name(tx, id, None)? && !set_pinned(tx, id, true)?, "there is none");
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
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

    #[test]
    fn a_snippet_is_one_line_of_pieces() {
        let piece = |text: &str, is_hit| Piece { text: text.to_owned(), is_hit };
        for (marked, expected) in [
            ("", vec![]),
            ("plain", vec![piece("plain", false)]),
            ("a \u{2}b\u{3} c\nd", vec![piece("a ", false), piece("b", true), piece(" c d", false)]),
            ("\u{2}b\u{3}\u{2}c", vec![piece("b", true), piece("c", true)]),
        ] {
            assert_eq!(pieces(marked), expected, "{marked:?}");
        }
    }
}
