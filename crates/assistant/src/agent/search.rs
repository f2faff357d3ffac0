//! Finds conversations by words that were said in them, or that their names have.
//!
//! A conversation is found if it has every word, perhaps in different messages. What is found comes with the message
//! that has the words ([`Hit`]), so that the page can lead there. A frequent word is looked for in one conversation
//! after the other until enough are found, a rare one leads to its conversations: neither goes through all messages, unless
//! one conversation lasted from the first to the last.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::conversation::{Conversation, ConversationId};
use super::listing::{self, Listed};
use crate::db::DbError;
use crate::terms::Terms;

/// How many words of a search are used; nobody types more on purpose.
const MOST_WORDS: usize = 10;
/// How many words of a message are shown around those that were found.
const SNIPPET_WORDS: usize = 14;
/// What the index puts around the words that it found, so that they can be told from the rest.
const MARKS: (char, char) = ('\u{2}', '\u{3}');
/// A word that more messages have than these is frequent.
const FEW: usize = 1_000;

const TERMS: Terms = Terms("chat_terms");

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

/// Conversations that have all words of `text`, matched by prefix, in their messages or their name; at most `most`, the
/// last updated first.
pub fn search(tx: &Transaction<'_>, text: &str, most: usize) -> Result<Listed<Found>, DbError> {
    let words = words(text).map(|word| Word::find(tx, &word)).collect::<Result<Vec<_>, _>>()?;
    let mut rows = vec![];
    for id in possible(tx, &words)? {
        rows.extend(found(tx, id, &words)?);
        // One more than is shown tells whether there are more.
        if rows.len() > most {
            break;
        }
    }
    Ok(Listed::cut(rows, most))
}

/// The words of a search.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(MOST_WORDS).map(str::to_owned)
}

/// A word of a search, and where it is.
struct Word {
    /// As the index is asked for it.
    query: String,
    /// The conversations whose names have it.
    named: BTreeSet<i64>,
    /// The messages that have it, in order; `None` if it is frequent.
    places: Option<Vec<i64>>,
}

impl Word {
    fn find(tx: &Transaction<'_>, word: &str) -> Result<Self, DbError> {
        let begins = format!("\"{word}\" *");
        // Only the index knows how it writes other letters than these.
        let named = if word.is_ascii() { TERMS.query(tx, &[word.to_ascii_lowercase()])? } else { None };
        let query = named.unwrap_or_else(|| begins.clone());
        let named = "SELECT rowid FROM conversation_names WHERE conversation_names MATCH ?1 LIMIT ?2";
        let named = rows(tx, named, &begins, usize::MAX)?.into_iter().collect();
        let places = "SELECT rowid FROM entries_text WHERE entries_text MATCH ?1 ORDER BY rowid LIMIT ?2";
        let places = Some(rows(tx, places, &query, FEW + 1)?).filter(|places| places.len() <= FEW);
        Ok(Self { query, named, places })
    }

    /// The conversations that have it, unless it is frequent.
    fn conversations(&self, tx: &Transaction<'_>) -> Result<Option<BTreeSet<i64>>, DbError> {
        let Some(places) = &self.places else { return Ok(None) };
        let mut all = self.named.clone();
        for place in places {
            all.extend(conversation_of(tx, *place)?);
        }
        Ok(Some(all))
    }

    /// Whether a conversation has it whose messages are among these.
    fn is_in(
        &self,
        tx: &Transaction<'_>,
        id: ConversationId,
        messages: &RangeInclusive<i64>,
    ) -> Result<bool, DbError> {
        if self.named.contains(&id.0) {
            return Ok(true);
        }
        let Some(places) = &self.places else { return self.is_said(tx, id, messages) };
        let first = places.partition_point(|place| place < messages.start());
        for place in places[first..].iter().take_while(|place| messages.contains(place)) {
            if conversation_of(tx, *place)? == Some(id.0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_said(
        &self,
        tx: &Transaction<'_>,
        id: ConversationId,
        messages: &RangeInclusive<i64>,
    ) -> Result<bool, DbError> {
        let mut row = tx.prepare_cached(
            "SELECT 1 FROM entries_text WHERE entries_text MATCH ?1 AND rowid BETWEEN ?3 AND ?4
               AND (SELECT conversation FROM entries WHERE id = entries_text.rowid) = ?2 LIMIT 1",
        )?;
        Ok(row.exists(params![self.query, id.0, messages.start(), messages.end()])?)
    }
}

fn rows(tx: &Transaction<'_>, sql: &str, query: &str, most: usize) -> Result<Vec<i64>, DbError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut rows = tx.prepare_cached(sql)?;
    Ok(rows.query_map(params![query, most], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn conversation_of(tx: &Transaction<'_>, entry: i64) -> Result<Option<i64>, DbError> {
    let mut row = tx.prepare_cached("SELECT conversation FROM entries WHERE id = ?1")?;
    Ok(row.query_row([entry], |row| row.get(0)).optional()?)
}

/// The conversations that may have all words, the last updated first: those that have the rarest of them.
fn possible(tx: &Transaction<'_>, words: &[Word]) -> Result<Vec<ConversationId>, DbError> {
    let rarest = words.iter().filter(|word| word.places.is_some());
    let rarest = rarest.min_by_key(|word| word.places.as_ref().map(Vec::len));
    let among = rarest.map_or(Ok(None), |word| word.conversations(tx))?;
    if words.is_empty() || among.as_ref().is_some_and(BTreeSet::is_empty) {
        return Ok(vec![]);
    }
    let mut all = tx.prepare_cached("SELECT id FROM conversations ORDER BY updated_at DESC, id DESC")?;
    let all = all.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    let is_among = |id: &i64| among.as_ref().is_none_or(|among| among.contains(id));
    Ok(all.into_iter().filter(is_among).map(ConversationId).collect())
}

/// The conversation, if it has all words.
fn found(tx: &Transaction<'_>, id: ConversationId, words: &[Word]) -> Result<Option<Found>, DbError> {
    let messages = messages(tx, id)?;
    for word in words {
        if !word.is_in(tx, id, &messages)? {
            return Ok(None);
        }
    }
    let Some(chat) = listing::get(tx, id)? else { return Ok(None) };
    Ok(Some(Found { hit: hit(tx, id, &messages, words)?, chat }))
}

/// A conversation's messages lie between its first and its last, where the index can look at once.
#[expect(clippy::reversed_empty_ranges, reason = "it has no messages")]
fn messages(tx: &Transaction<'_>, id: ConversationId) -> Result<RangeInclusive<i64>, DbError> {
    let mut row = tx.prepare_cached(
        "SELECT (SELECT min(id) FROM entries WHERE conversation = ?1),
                (SELECT max(id) FROM entries WHERE conversation = ?1)",
    )?;
    let ends: (Option<i64>, Option<i64>) = row.query_row([id.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match ends {
        (Some(first), Some(last)) => first..=last,
        _ => 1..=0,
    })
}

/// The newest message of a conversation that has all words, or else any of them.
fn hit(
    tx: &Transaction<'_>,
    id: ConversationId,
    messages: &RangeInclusive<i64>,
    words: &[Word],
) -> Result<Option<Hit>, DbError> {
    let sql = format!(
        "SELECT t.rowid, snippet(entries_text, 0, ?3, ?4, '…', {SNIPPET_WORDS}) FROM entries_text t
         WHERE entries_text MATCH ?1 AND t.rowid BETWEEN ?5 AND ?6
           AND (SELECT conversation FROM entries WHERE id = t.rowid) = ?2
         ORDER BY t.rowid DESC LIMIT 1"
    );
    let (begins, ends) = (MARKS.0.to_string(), MARKS.1.to_string());
    let queries: Vec<&str> = words.iter().map(|word| word.query.as_str()).collect();
    for joint in [" AND ", " OR "] {
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
        let asked = params![queries.join(joint), id.0, begins, ends, messages.start(), messages.end()];
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kai_llm::Message;

    use super::super::conversation::{append, create, delete, restore, whole};
    use super::super::listing::{PAGE, list, placed, position, set_name, set_pinned};
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
    /// Words that very many messages have, and such that few have, beside each other and apart.
    #[test]
    fn frequent_words_are_found_like_rare_ones() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            let often = |word: &str, count| (0..count).map(|_| user(word)).collect::<Vec<_>>();
            let tea = chat(tx, &often("tea and Käse", FEW), 4)?;
            let both = chat(tx, &[often("milk", FEW), vec![user("teapot"), user("käse")]].concat(), 3)?;
            let milk = chat(tx, &[user("milkshake"), user("heron")], 2)?;
            set_name(tx, milk, Some("Tea later"))?;
            let empty = create(tx, NOW)?;
            set_name(tx, empty, Some("Milk"))?;
            // Its messages lie around those of others.
            append(tx, milk, &[user("the end")], None, Timestamp::from_second(2).unwrap())?;
            for (text, expected) in [
                ("tea", vec![tea, both, milk]),
                ("t", vec![tea, both, milk]),
                ("käse", vec![tea, both]),
                ("milk", vec![both, milk, empty]),
                ("milk tea", vec![both, milk]),
                ("tea milk käse", vec![both]),
                ("tea heron", vec![milk]),
                ("heron käse", vec![]),
                ("milks tea", vec![milk]),
                ("coffee tea", vec![]),
            ] {
                assert_eq!(found(tx, text)?, expected, "{text}");
            }
            let first = search(tx, "tea", 1)?;
            assert_eq!((first.rows.len(), first.more, first.rows[0].chat.id), (1, true, tea));
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }
}
