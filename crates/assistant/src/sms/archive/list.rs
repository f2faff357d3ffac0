//! Lists the received messages of the archive, newest first, from any date back.

use rusqlite::{Params, Row, Transaction, params};

use super::find::{query, senders};
use super::words::Column;
use super::{COLUMNS, LAST_MS, ROWS_PER_MS, Stored, first_row, stored};
use crate::db::DbError;
use crate::inbox::Show;
use crate::sms::SmsId;
use crate::sms::search::Wanted;
use crate::source::SourceId;

/// Which messages are listed.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a> {
    /// The only phone whose messages are.
    pub phone: Option<SourceId>,
    pub search: Option<&'a Wanted>,
    pub show: Show,
    /// The latest date, in epoch milliseconds.
    pub until: i64,
}

/// A message in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub stored: Stored,
    /// The user dismissed it.
    pub away: bool,
}

/// The newest messages of a slice that are admitted, newest first, at most `most`.
pub fn list(
    tx: &Transaction<'_>,
    slice: Slice<'_>,
    most: usize,
    admits: impl Fn(&Stored) -> bool,
) -> Result<Vec<Listed>, DbError> {
    let mut found = match slice.search {
        Some(wanted) => searched(tx, slice, wanted, most, &admits)?,
        None => received(tx, slice, most, &admits)?,
    };
    found.sort_by_key(|(row, _)| std::cmp::Reverse(*row));
    found.dedup_by_key(|(row, _)| *row);
    found.truncate(most);
    Ok(found.into_iter().map(|(_, listed)| listed).collect())
}

type Rows = Vec<(i64, Listed)>;

/// The phones that messages are archived of.
pub fn phones(tx: &Transaction<'_>) -> Result<Vec<SourceId>, DbError> {
    let mut rows = tx.prepare_cached("SELECT source FROM sms_phones WHERE messages > 0 ORDER BY source")?;
    Ok(rows.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Of each phone in turn, because each index begins with the phone and goes on by date.
fn received(
    tx: &Transaction<'_>,
    slice: Slice<'_>,
    most: usize,
    admits: &impl Fn(&Stored) -> bool,
) -> Result<Rows, DbError> {
    let sql = sql(slice.show);
    let phones = match slice.phone {
        Some(phone) => vec![phone],
        None => phones(tx)?,
    };
    let mut found = vec![];
    for phone in phones {
        found.extend(first(tx, &sql, params![phone, last_row(slice.until)], most, admits)?);
    }
    Ok(found)
}

pub(in crate::sms) fn sql(show: Show) -> String {
    format!(
        "SELECT {COLUMNS}, a.put_away, a.row FROM sms_archive a {}
         WHERE a.source = ?1 AND a.row <= ?2 AND a.folder = 1 AND a.body IS NOT NULL AND {}
         ORDER BY a.row DESC",
        index(show),
        condition(show)
    )
}

/// The index that holds just what is shown, so that a few are found among very many.
fn index(show: Show) -> &'static str {
    match show {
        Show::All => "INDEXED BY sms_archive_received",
        Show::Unread => "INDEXED BY sms_archive_unread",
        Show::Away => "INDEXED BY sms_archive_put_away",
        // Found by their numbers: the queue is short.
        Show::Waiting => "",
    }
}

fn condition(show: Show) -> &'static str {
    match show {
        Show::All => "a.put_away = 0",
        Show::Unread => "a.read = 0 AND a.opened = 0 AND a.put_away = 0",
        Show::Away => "a.put_away = 1",
        Show::Waiting => {
            "a.id IN (SELECT json_extract(entry, '$.id') FROM pending WHERE queue = 'sms' AND phone <> 1)"
        }
    }
}

/// By words, and by senders whose number or name matches.
fn searched(
    tx: &Transaction<'_>,
    slice: Slice<'_>,
    wanted: &Wanted,
    most: usize,
    admits: &impl Fn(&Stored) -> bool,
) -> Result<Rows, DbError> {
    let rest = format!("a.folder = 1 AND (?3 IS NULL OR a.source = ?3) AND {}", condition(slice.show));
    let until = last_row(slice.until);
    let mut found = vec![];
    if let Some(query) = query(tx, wanted, Column::Whole)? {
        let sql = format!(
            "SELECT {COLUMNS}, a.put_away, a.row
             FROM sms_words CROSS JOIN sms_archive a ON a.row = sms_words.rowid
             WHERE sms_words MATCH ?1 AND sms_words.rowid <= ?2 AND a.body IS NOT NULL AND {rest}
             ORDER BY sms_words.rowid DESC"
        );
        found.extend(first(tx, &sql, params![query, until, slice.phone], most, admits)?);
    }
    let sql = format!(
        "SELECT {COLUMNS}, a.put_away, a.row FROM sms_archive a INDEXED BY sms_archive_numbers
         WHERE a.number = ?1 AND a.row <= ?2 AND a.body IS NOT NULL AND {rest} ORDER BY a.row DESC"
    );
    for number in senders(tx, wanted)? {
        found.extend(first(tx, &sql, params![number, until, slice.phone], most, admits)?);
    }
    Ok(found)
}

/// The first rows that are admitted. Reads no further than that.
fn first(
    tx: &Transaction<'_>,
    sql: &str,
    values: impl Params,
    most: usize,
    admits: &impl Fn(&Stored) -> bool,
) -> Result<Rows, DbError> {
    let mut rows = tx.prepare_cached(sql)?;
    let mut rows = rows.query(values)?;
    let mut found = vec![];
    while found.len() < most
        && let Some(row) = rows.next()?
    {
        let (number, listed) = listed(row)?;
        if admits(&listed.stored) {
            found.push((number, listed));
        }
    }
    Ok(found)
}

fn listed(row: &Row<'_>) -> rusqlite::Result<(i64, Listed)> {
    Ok((row.get("row")?, Listed { stored: stored(row)?, away: row.get("put_away")? }))
}

/// The last row of a date.
fn last_row(date: i64) -> i64 {
    first_row(date.min(LAST_MS)) + (ROWS_PER_MS - 1)
}

/// Dismisses a message, or takes that back.
pub fn put_away(tx: &Transaction<'_>, id: SmsId, away: bool) -> Result<(), DbError> {
    let sql =
        "UPDATE sms_archive SET put_away = ?2, opened = max(opened, ?2) WHERE id = ?1 AND put_away <> ?2";
    tx.execute(sql, params![id.0, away])?;
    Ok(())
}

/// How many messages of all phones nobody has read. Counts no further than `most`.
pub fn unread(tx: &Transaction<'_>, most: usize) -> Result<usize, DbError> {
    let sql = "SELECT count(*) FROM (
                   SELECT 1 FROM sms_archive INDEXED BY sms_archive_unread
                   WHERE folder = 1 AND read = 0 AND opened = 0 AND body IS NOT NULL LIMIT ?1)";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let count: u32 = tx.prepare_cached(sql)?.query_row([most], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Whether the user dismissed the message.
pub fn is_away(tx: &Transaction<'_>, id: SmsId) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT 1 FROM sms_archive WHERE id = ?1 AND put_away = 1")?;
    Ok(row.exists([id.0])?)
}
