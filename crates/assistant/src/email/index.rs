//! The index of kept mails: finds those that have certain words without reading all of them.
//!
//! It only narrows down what is read: whether a mail is found is decided by looking at it with the eyes of its reader. So
//! the index may hold what a model must not see.

use rusqlite::{OptionalExtension, Transaction, params};

use super::EmailId;
use super::search::Wanted;
use crate::db::{DbError, Migration};
use crate::indexed::words;
use crate::terms::Terms;
use crate::untrusted::{Untrusted, folded};

pub(crate) const MIGRATION: Migration =
    Migration { name: "email/words", sql: include_str!("../../migrations/email-words.sql") };

const TERMS: Terms = Terms("email_terms");

/// How many mails of one millisecond have a row of their own.
const ROWS_PER_MS: i64 = 1 << 20;
/// The largest date that has rows.
const LAST_MS: i64 = i64::MAX / ROWS_PER_MS - 1;

/// Adds a mail with these texts, received at that millisecond.
pub(super) fn add(
    tx: &Transaction<'_>,
    id: EmailId,
    received: i64,
    texts: &[&Untrusted],
) -> Result<(), DbError> {
    let (row, EmailId { account, validity, uid }) = (free_row(tx, received)?, id);
    let words: Vec<String> = texts.iter().flat_map(|text| words(&folded(text.as_written()))).collect();
    tx.prepare_cached("INSERT INTO email_rows (row, account, validity, uid) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![row, account, validity, uid])?;
    tx.prepare_cached("INSERT INTO email_words (rowid, words) VALUES (?1, ?2)")?
        .execute(params![row, words.join(" ")])?;
    Ok(())
}

/// The first free row among those of this millisecond.
fn free_row(tx: &Transaction<'_>, received: i64) -> Result<i64, DbError> {
    let first = first_row(received);
    let mut last = tx.prepare_cached("SELECT max(row) FROM email_rows WHERE row BETWEEN ?1 AND ?2")?;
    let last: Option<i64> = last.query_row([first, first + ROWS_PER_MS - 1], |row| row.get(0))?;
    Ok(last.map_or(first, |last| last + 1))
}

fn first_row(date: i64) -> i64 {
    date.clamp(0, LAST_MS) * ROWS_PER_MS
}

/// The last row that a mail of this date can have.
pub(super) fn last_row(date: i64) -> i64 {
    first_row(date) + ROWS_PER_MS - 1
}

/// How mails with certain words are found.
pub(super) enum Way {
    /// By this query of the index.
    Query(String),
    /// Every mail has to be looked at: there are no words, or the index is not complete yet.
    Look,
    /// No mail has them.
    None,
}

/// How the mails of a search are found.
pub(super) fn way(tx: &Transaction<'_>, wanted: &Wanted) -> Result<Way, DbError> {
    let parts: Vec<_> = wanted.words().iter().map(|part| words(part)).collect();
    if parts.iter().any(Vec::is_empty) || !is_complete(tx)? {
        return Ok(Way::Look);
    }
    let phrases = parts.iter().map(|words| TERMS.query(tx, words)).collect::<Result<Option<Vec<_>>, _>>()?;
    Ok(phrases.map_or(Way::None, |phrases| Way::Query(phrases.join(" AND "))))
}

/// Whether everything that is kept is in the index. What was kept before there was one is added bit by bit.
pub(super) fn is_complete(tx: &Transaction<'_>) -> Result<bool, DbError> {
    let told = tx
        .prepare_cached("SELECT complete FROM email_indexed")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(told.unwrap_or(false))
}

/// Notes that everything that is kept is in the index.
pub(super) fn set_complete(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("UPDATE email_indexed SET complete = 1", [])?;
    Ok(())
}
