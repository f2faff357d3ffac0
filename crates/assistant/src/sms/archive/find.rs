//! Finds archived messages: by number, by words, by sender.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::words::{self, Column};
use super::{COLUMNS, Stored, stored};
use crate::db::DbError;
use crate::outbox::number::same;
use crate::sms::SmsId;
use crate::sms::search::Wanted;
use crate::terms::Terms;
use crate::tool::Eyes;

/// Who looks at the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A model: received messages only, of phones that may be read.
    Model(Eyes),
    /// The user, who looks at what was received.
    Inbox,
    /// The user, who looks at both sides of their conversations.
    Everything,
}

/// What a model may see: nothing that was sent, and nothing of a phone whose switch is off.
const FOR_MODELS: &str = "a.folder = 1 AND a.source NOT IN (SELECT source FROM phones WHERE read_sms = 0)";

/// Most senders whose messages one search looks at.
const MOST_SENDERS: usize = 50;

impl View {
    fn rows(self) -> &'static str {
        match self {
            Self::Model(_) => FOR_MODELS,
            Self::Inbox => "a.folder = 1",
            Self::Everything => "1",
        }
    }

    fn column(self) -> Column {
        match self {
            Self::Model(Eyes::NoCodes) => Column::Redacted,
            Self::Model(Eyes::All) | Self::Inbox | Self::Everything => Column::Whole,
        }
    }
}

/// The message with this number.
pub fn message(tx: &Transaction<'_>, view: View, id: SmsId) -> Result<Option<Stored>, DbError> {
    let mut row = tx.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sms_archive a WHERE a.id = ?1 AND a.body IS NOT NULL AND {}",
        view.rows()
    ))?;
    Ok(row.query_row([id.0], stored).optional()?)
}

/// The newest messages that match, newest first.
pub fn search(
    tx: &Transaction<'_>,
    view: View,
    wanted: &Wanted,
    most: usize,
) -> Result<Vec<Stored>, DbError> {
    let mut found = by_words(tx, view, wanted, most)?;
    for number in senders(tx, wanted)? {
        found.extend(by_sender(tx, view, &number, most)?);
    }
    found.sort_by_key(|(row, _)| std::cmp::Reverse(*row));
    found.dedup_by_key(|(row, _)| *row);
    found.truncate(most);
    Ok(found.into_iter().map(|(_, stored)| stored).collect())
}

/// The words of both columns. A model learns nothing from it: what it searches for is looked up in its own column.
const TERMS: Terms = Terms("sms_terms");

/// The index's query for a search.
pub(super) fn query(
    tx: &Transaction<'_>,
    wanted: &Wanted,
    column: Column,
) -> Result<Option<String>, DbError> {
    words::query(wanted, column, |words| TERMS.query(tx, words))
}

fn with_row(row: &Row<'_>) -> rusqlite::Result<(i64, Stored)> {
    Ok((row.get("row")?, stored(row)?))
}

fn by_words(
    tx: &Transaction<'_>,
    view: View,
    wanted: &Wanted,
    most: usize,
) -> Result<Vec<(i64, Stored)>, DbError> {
    let Some(query) = query(tx, wanted, view.column())? else { return Ok(vec![]) };
    let mut rows = tx.prepare_cached(&format!(
        "SELECT {COLUMNS}, a.row FROM sms_words CROSS JOIN sms_archive a ON a.row = sms_words.rowid
         WHERE sms_words MATCH ?1 AND {} ORDER BY sms_words.rowid DESC LIMIT ?2",
        view.rows()
    ))?;
    let rows = rows.query_map(params![query, limit(most)], with_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn by_sender(
    tx: &Transaction<'_>,
    view: View,
    number: &str,
    most: usize,
) -> Result<Vec<(i64, Stored)>, DbError> {
    let mut rows = tx.prepare_cached(&format!(
        "SELECT {COLUMNS}, a.row FROM sms_archive a WHERE a.number = ?1 AND a.body IS NOT NULL AND {}
         ORDER BY a.row DESC LIMIT ?2",
        view.rows()
    ))?;
    let rows = rows.query_map(params![number, limit(most)], with_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// The numbers in the archive that hold the digits of the query, or belong to a contact whose name matches.
pub(super) fn senders(tx: &Transaction<'_>, wanted: &Wanted) -> Result<Vec<String>, DbError> {
    if wanted.number().is_none() && wanted.senders().is_empty() {
        return Ok(vec![]);
    }
    let is_wanted = |number: &String| {
        wanted.number().is_some_and(|digits| number.contains(digits)) || wanted.is_from(number)
    };
    Ok(numbers(tx)?.into_iter().filter(is_wanted).take(MOST_SENDERS).collect())
}

/// Every number in the archive once.
fn numbers(tx: &Transaction<'_>) -> Result<Vec<String>, DbError> {
    let mut rows = tx.prepare_cached("SELECT number FROM sms_numbers")?;
    Ok(rows.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Whether this number has written to the user.
pub fn wrote_before(tx: &Transaction<'_>, number: &str) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached(&format!(
        "SELECT EXISTS (SELECT 1 FROM sms_archive a WHERE a.number = ?1 AND a.body IS NOT NULL AND {FOR_MODELS})"
    ))?;
    for known in numbers(tx)?.iter().filter(|known| same(known, number)) {
        if row.query_row([known], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}
