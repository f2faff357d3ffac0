//! The words of an index that begin with another word.
//!
//! For words that only begin like this, an index first puts together all of their places, which takes long where words
//! are frequent. The places of whole words are there already, in order, and a list that wants the newest stops after a
//! few. So a search names the whole words as long as they are few.

use rusqlite::{OptionalExtension, Transaction};

use crate::db::DbError;

/// Beginnings of so many characters have an index of their own.
const INDEXED: usize = 2;
/// More words than these are not named: looking them up would take longer than putting their places together.
const MOST: usize = 32;

/// A table that lists every place of every word of an index, in the order of the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms(pub(crate) &'static str);

impl Terms {
    /// The index's query for words one after the other, the last of which may only begin a longer one. `None` if no word
    /// of the index begins like that.
    pub(crate) fn query(self, tx: &Transaction<'_>, words: &[String]) -> Result<Option<String>, DbError> {
        let Some((last, before)) = words.split_last() else { return Ok(None) };
        let longer = if last.chars().count() > INDEXED { self.longer(tx, last)? } else { None };
        let Some(longer) = longer else { return Ok(Some(format!("\"{}\" *", words.join(" ")))) };
        let whole =
            |word: &String| format!("\"{}\"", [before, std::slice::from_ref(word)].concat().join(" "));
        let any = longer.iter().map(whole).collect::<Vec<_>>().join(" OR ");
        Ok((!longer.is_empty()).then(|| format!("({any})")))
    }

    /// The words that begin with this one; `None` if they are too many to name, or one of them cannot be: the index cuts
    /// very long words off, perhaps within a character.
    fn longer(self, tx: &Transaction<'_>, beginning: &str) -> Result<Option<Vec<String>>, DbError> {
        // Every place is a row, so each word is looked for behind the last one instead of going through its places.
        let sql = format!("SELECT term FROM {} WHERE term >= ?1 LIMIT 1", self.0);
        let mut next = tx.prepare_cached(&sql)?;
        let (mut longer, mut from) = (vec![], beginning.to_owned());
        loop {
            let found = next.query_row([&from], |row| Ok(row.get_ref(0)?.as_bytes()?.to_vec())).optional()?;
            let Some(word) = found.filter(|word| word.starts_with(beginning.as_bytes())) else {
                return Ok(Some(longer));
            };
            let Some(word) = String::from_utf8(word).ok().filter(|_| longer.len() < MOST) else {
                return Ok(None);
            };
            // No word has a blank, so nothing lies between a word and itself with one.
            from = format!("{word} ");
            longer.push(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    const TERMS: Terms = Terms("chat_terms");

    fn query(tx: &Transaction<'_>, words: &str) -> Result<String, DbError> {
        let query = TERMS.query(tx, &words.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
        Ok(query.unwrap_or_default())
    }

    fn found(tx: &Transaction<'_>, words: &str) -> Result<Vec<i64>, DbError> {
        let mut rows = tx.prepare("SELECT rowid FROM entries_text WHERE entries_text MATCH ?1")?;
        let rows = rows.query_map([query(tx, words)?], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn add(tx: &Transaction<'_>, row: i64, text: &str) -> Result<(), DbError> {
        tx.execute("INSERT INTO entries_text (rowid, text) VALUES (?1, ?2)", (row, text))?;
        Ok(())
    }

    #[test]
    fn words_are_named_as_long_as_they_are_few() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            for (row, text) in
                [(1, "the train"), (2, "a training"), (3, "rain, trains, trait"), (4, "東京 zug")]
            {
                add(tx, row, text)?;
            }
            assert_eq!(query(tx, "train")?, "(\"train\" OR \"training\" OR \"trains\")");
            assert_eq!(
                query(tx, "the tra")?,
                "(\"the train\" OR \"the training\" OR \"the trains\" OR \"the trait\")"
            );
            assert_eq!(query(tx, "tr")?, "\"tr\" *", "the index has those by itself");
            assert_eq!(query(tx, "heron")?, "", "there are none");
            assert_eq!(query(tx, "zug")?, "(\"zug\")", "the last of all");
            for (words, rows) in [("train", vec![1, 2, 3]), ("the tra", vec![1]), ("tr", vec![1, 2, 3])] {
                assert_eq!(found(tx, words)?, rows, "{words}");
            }
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    #[test]
    fn very_many_are_left_to_the_index() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            for n in 0..MOST {
                add(tx, i64::try_from(n).unwrap(), &format!("word{n}"))?;
            }
            assert_eq!(query(tx, "word")?.matches(" OR ").count(), MOST - 1);
            assert_eq!(found(tx, "word")?.len(), MOST);
            add(tx, 1_000, "wordy")?;
            assert_eq!(query(tx, "word")?, "\"word\" *");
            assert_eq!(found(tx, "word")?.len(), MOST + 1);
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }

    /// 32,768 bytes are no whole number of these characters after the first three.
    #[test]
    fn a_word_that_the_index_cuts_off_is_left_to_it() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write_now(|tx| {
            add(tx, 1, &format!("kai{}", "東".repeat(12_000)))?;
            add(tx, 2, "kai")?;
            assert_eq!(query(tx, "kai")?, "\"kai\" *");
            assert_eq!(found(tx, "kai")?, [1, 2]);
            Ok::<_, DbError>(())
        });
        checked.unwrap();
    }
}
