//! The messages of paired phones, kept in the store: such a phone cannot be searched from outside.
//!
//! A message gets a number of its own ([`FIRST_ID`] and up), because phones use theirs again. It is found by its words
//! (`words`, pure; [`find`]). What is archived of each conversation is kept beside the messages, and changes in the
//! same transaction.

pub mod find;
pub mod list;
mod retention;
mod words;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use kai_words::Said;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::fill::{self, Kept, Step};
use super::queue::{QUEUE, Queued, preview};
use super::search::is_like_a_number;
use super::{Sms, SmsId};
use crate::db::{DbError, Migration};
use crate::outbox::number::digits;
use crate::pending::{self, Again, Origin};
use crate::phones::port::{Folder, MessageKind, PhoneMessage, ThreadId};
use crate::phones::{self, Phone};
use crate::settings::{self, SMS_ARCHIVE_DAYS, SMS_ENABLED, Values};
use crate::source::SourceId;
use crate::untrusted::Untrusted;

pub use find::View;
pub use retention::{forget_all, forget_phone, sweep};

pub(crate) const MIGRATION: Migration =
    Migration { name: "sms/archive", sql: include_str!("../../../migrations/sms-archive.sql") };

pub(crate) const INBOX: Migration =
    Migration { name: "sms/inbox", sql: include_str!("../../../migrations/sms-inbox.sql") };

pub(crate) const TERMS: Migration =
    Migration { name: "sms/terms", sql: include_str!("../../../migrations/sms-terms.sql") };

pub(crate) const SETTLED: Migration =
    Migration { name: "sms/settled", sql: include_str!("../../../migrations/sms-settled.sql") };

/// The lowest number of an archived message. Phones' own numbers do not get that high.
pub const FIRST_ID: SmsId = SmsId(10_000_001);

/// What stands in the place of an MMS, so that nobody believes that they saw everything.
pub const MMS: &str = "[picture or group message]";

/// The most characters of an address and of a body that are kept.
const LONGEST_ADDRESS: usize = 200;
const LONGEST_BODY: usize = 40_000;

/// So many messages of one millisecond have a row.
const ROWS_PER_MS: i64 = 1 << 20;
/// Later than any phone's clock says. The rows of all dates up to here are numbers that a store can hold.
const LAST_MS: i64 = (1 << 43) - 1;

/// With nothing to be archived, how long before the newest message of a conversation its messages are still known, in
/// milliseconds. Phones repeat messages, and what is older and not known was let go.
const KNOWN_MS: i64 = 24 * 60 * 60 * 1_000;

/// A message in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub id: SmsId,
    pub source: SourceId,
    pub folder: Folder,
    /// Who sent it, or to whom it was sent.
    pub address: Untrusted,
    pub date: Timestamp,
    pub body: Untrusted,
    /// Read on the phone when it was heard of, or opened in Kai since.
    pub read: bool,
}

impl Stored {
    pub fn into_sms(self) -> Sms {
        let Self { id, address, date, body, read, .. } = self;
        Sms { id, address, date, body, read }
    }
}

const COLUMNS: &str = "a.id, a.source, a.folder, a.address, a.date, a.body, a.read OR a.opened";

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        id: SmsId(row.get(0)?),
        source: row.get(1)?,
        folder: if row.get::<_, i64>(2)? == folder_number(Folder::Inbox) {
            Folder::Inbox
        } else {
            Folder::Sent
        },
        address: Untrusted::new(row.get::<_, String>(3)?),
        date: Timestamp::from_millisecond(row.get(4)?).unwrap_or_default(),
        body: Untrusted::new(row.get::<_, String>(5)?),
        read: row.get(6)?,
    })
}

fn folder_number(folder: Folder) -> i64 {
    match folder {
        Folder::Inbox => 1,
        Folder::Sent => 2,
    }
}

fn kind_number(kind: MessageKind) -> i64 {
    match kind {
        MessageKind::Sms => 1,
        MessageKind::Mms => 2,
    }
}

/// What of a phone's messages is kept, and what is news.
pub(super) struct Rules {
    pub(super) source: SourceId,
    pub(super) days: u32,
    /// Nothing before it is kept, in epoch milliseconds.
    pub(super) horizon: i64,
    read_since: i64,
    values: Values,
}

impl Rules {
    /// The rules now, or `None` if the phone's messages are not to be read.
    pub(super) fn now(
        tx: &Transaction<'_>,
        source: SourceId,
        now: Timestamp,
    ) -> Result<Option<Self>, DbError> {
        let values = settings::load(tx)?;
        let phone = phones::store::get(tx, source)?.filter(|phone| phone.switches.read_sms);
        let since = phone.and_then(|phone| phone.read_since).filter(|_| values.on(&SMS_ENABLED));
        Ok(since.map(|since| Self::since(source, since, values, now)))
    }

    fn since(source: SourceId, since: Timestamp, values: Values, now: Timestamp) -> Self {
        let days = values.number(&SMS_ARCHIVE_DAYS);
        let horizon = fill::horizon(days, since, now);
        Self { source, days, horizon, read_since: since.as_millisecond(), values }
    }

    /// Whether a message is kept, or was, by what is archived of its conversation.
    fn keeps(&self, message: &PhoneMessage, kept: Option<&Kept>) -> bool {
        let date = message.date.as_millisecond();
        let let_go = |kept: &Kept| kept.from < date && date < kept.to.saturating_sub(KNOWN_MS);
        date >= self.horizon && !(self.days == 0 && kept.is_some_and(let_go))
    }

    fn is_news(&self, message: &PhoneMessage, step: &Step) -> bool {
        let since = message.date.as_millisecond() >= self.read_since;
        message.folder == Folder::Inbox && (since || step.is_live(message))
    }
}

/// The date and the text of a message that was queued just now.
pub type News = (Timestamp, Untrusted);

/// Archives messages, queues those that are news, and notes how far their conversations are archived now. Returns the
/// news.
pub(super) fn take(
    tx: &Transaction<'_>,
    rules: &Rules,
    list: &[PhoneMessage],
    step: &Step,
    now: Timestamp,
) -> Result<Vec<News>, DbError> {
    let before = if rules.days == 0 { marks(tx, rules.source)? } else { BTreeMap::new() };
    let mut news = vec![];
    // The phone lists the newest first, and the queue holds the oldest first.
    for message in list.iter().rev() {
        if rules.keeps(message, before.get(&message.thread))
            && archive(tx, rules, &bounded(message), rules.is_news(message, step))?
        {
            news.push((message.date, message.body.clone()));
        }
    }
    step.marks.iter().try_for_each(|(thread, kept)| mark(tx, rules.source, *thread, *kept))?;
    note_sync(tx, rules.source, now)?;
    Ok(news)
}

fn bounded(message: &PhoneMessage) -> PhoneMessage {
    let cut = |text: &Untrusted, longest: usize| text.map(|text| text.chars().take(longest).collect());
    let body = match message.kind {
        MessageKind::Sms => cut(&message.body, LONGEST_BODY),
        MessageKind::Mms => Untrusted::new(MMS),
    };
    PhoneMessage { address: cut(&message.address, LONGEST_ADDRESS), body, ..message.clone() }
}

/// Archives one message, and queues it if it is news. Returns whether it did.
fn archive(tx: &Transaction<'_>, rules: &Rules, message: &PhoneMessage, news: bool) -> Result<bool, DbError> {
    let kept = rules.days > 0 || news;
    if let Some(known) = known(tx, rules.source, message)? {
        known_again(tx, &known, message, rules.days > 0)?;
        return Ok(false);
    }
    let Some(row) = free_row(tx, message.date)? else {
        tracing::warn!("a phone has more messages of one moment than can be kept");
        return Ok(false);
    };
    let id = SmsId(
        tx.prepare_cached("UPDATE sms_ids SET last = last + 1 RETURNING last")?
            .query_row([], |row| row.get(0))?,
    );
    insert(tx, row, id, rules.source, message, kept)?;
    if kept {
        index(tx, row, message)?;
    }
    if news {
        queue(tx, rules, id, message)?;
    }
    Ok(news)
}

/// A message that was heard of before.
struct Known {
    row: i64,
    emptied: bool,
}

fn known(tx: &Transaction<'_>, source: SourceId, message: &PhoneMessage) -> Result<Option<Known>, DbError> {
    let mut row = tx.prepare_cached(
        "SELECT row, body IS NULL FROM sms_archive
         WHERE source = ?1 AND kind = ?2 AND native_id = ?3 AND date = ?4 AND address = ?5",
    )?;
    let identity = params![
        source,
        kind_number(message.kind),
        message.native_id,
        message.date.as_millisecond(),
        message.address.as_written()
    ];
    Ok(row.query_row(identity, |row| Ok(Known { row: row.get(0)?, emptied: row.get(1)? })).optional()?)
}

fn known_again(
    tx: &Transaction<'_>,
    known: &Known,
    message: &PhoneMessage,
    archives: bool,
) -> Result<(), DbError> {
    if message.read {
        tx.prepare_cached("UPDATE sms_archive SET read = 1 WHERE row = ?1 AND read = 0")?
            .execute([known.row])?;
    }
    if known.emptied && archives {
        tx.execute(
            "UPDATE sms_archive SET body = ?2 WHERE row = ?1",
            params![known.row, message.body.as_written()],
        )?;
        index(tx, known.row, message)?;
    }
    Ok(())
}

/// A row of its own for a message of that date.
fn free_row(tx: &Transaction<'_>, date: Timestamp) -> Result<Option<i64>, DbError> {
    let first = first_row(date.as_millisecond());
    let last = first + (ROWS_PER_MS - 1);
    let highest: Option<i64> = tx
        .prepare_cached("SELECT max(row) FROM sms_archive WHERE row BETWEEN ?1 AND ?2")?
        .query_row([first, last], |row| row.get(0))?;
    Ok(Some(highest.map_or(first, |row| row + 1)).filter(|row| *row <= last))
}

/// The first row of a date.
fn first_row(date: i64) -> i64 {
    date.clamp(0, LAST_MS) * ROWS_PER_MS
}

fn insert(
    tx: &Transaction<'_>,
    row: i64,
    id: SmsId,
    source: SourceId,
    message: &PhoneMessage,
    kept: bool,
) -> Result<(), DbError> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO sms_archive (row, id, source, kind, native_id, thread, folder, date, address, number, body, read)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    insert.execute(params![
        row,
        id.0,
        source,
        kind_number(message.kind),
        message.native_id,
        message.thread.0,
        folder_number(message.folder),
        message.date.as_millisecond(),
        message.address.as_written(),
        number(message.address.as_written()).unwrap_or_default(),
        kept.then(|| message.body.as_written()),
        message.read,
    ])?;
    Ok(())
}

/// The digits of an address, if it is a phone number.
fn number(address: &str) -> Option<String> {
    is_like_a_number(address).then(|| digits(address)).filter(|digits| !digits.is_empty())
}

fn index(tx: &Transaction<'_>, row: i64, message: &PhoneMessage) -> Result<(), DbError> {
    let (address, body) = (message.address.as_written(), message.body.as_written());
    let redacted = words::indexed(address, &kai_codes::redact(body));
    tx.prepare_cached("INSERT INTO sms_words (rowid, redacted, whole) VALUES (?1, ?2, ?3)")?
        .execute(params![row, redacted, words::indexed(address, body)])?;
    Ok(())
}

fn queue(tx: &Transaction<'_>, rules: &Rules, id: SmsId, message: &PhoneMessage) -> Result<(), DbError> {
    let queued = Queued {
        id,
        source: rules.source,
        address: message.address.clone(),
        date: message.date.as_millisecond(),
        read: message.read,
        preview: preview(&message.body, &rules.values),
    };
    let identity = queued.identity();
    let origin = Origin { identity: &identity, phone: rules.source, source: "" };
    pending::push(tx, QUEUE, origin, &queued, Again::Skip)?;
    Ok(())
}

/// What is archived of a phone's conversations.
pub(super) fn marks(tx: &Transaction<'_>, source: SourceId) -> Result<BTreeMap<ThreadId, Kept>, DbError> {
    let sql = "SELECT thread, complete_from, complete_to, done, settled FROM sms_threads WHERE source = ?1";
    let mut rows = tx.prepare_cached(sql)?;
    let kept = |row: &Row<'_>| {
        let kept = Kept { from: row.get(1)?, to: row.get(2)?, end: row.get(3)?, settled: row.get(4)? };
        Ok((ThreadId(row.get(0)?), kept))
    };
    Ok(rows.query_map([source], kept)?.collect::<rusqlite::Result<_>>()?)
}

fn mark(tx: &Transaction<'_>, source: SourceId, thread: ThreadId, kept: Option<Kept>) -> Result<(), DbError> {
    let Some(kept) = kept else {
        // A phone does not repeat what it no longer has.
        for gone in ["sms_threads WHERE", "sms_archive WHERE body IS NULL AND"] {
            let sql = format!("DELETE FROM {gone} source = ?1 AND thread = ?2");
            tx.execute(&sql, params![source, thread.0])?;
        }
        return Ok(());
    };
    tx.prepare_cached(
        "INSERT INTO sms_threads (source, thread, complete_from, complete_to, done, settled)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (source, thread)
         DO UPDATE SET complete_from = ?3, complete_to = ?4, done = ?5, settled = ?6",
    )?
    .execute(params![source, thread.0, kept.from, kept.to, kept.end, kept.settled])?;
    Ok(())
}

fn note_sync(tx: &Transaction<'_>, source: SourceId, now: Timestamp) -> Result<(), DbError> {
    tx.prepare_cached(
        "INSERT INTO sms_phones (source, last_sync) VALUES (?1, ?2)
         ON CONFLICT (source) DO UPDATE SET last_sync = ?2",
    )?
    .execute(params![source, now.as_millisecond()])?;
    Ok(())
}

/// Notes what went wrong with a phone, or that nothing is wrong any more.
pub(super) fn note_error(
    tx: &Transaction<'_>,
    source: SourceId,
    error: Option<&Said>,
) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO sms_phones (source, last_error) VALUES (?1, ?2)
         ON CONFLICT (source) DO UPDATE SET last_error = ?2 WHERE last_error IS NOT ?2",
        params![source, error.map(Said::stored)],
    )?;
    Ok(())
}

/// How far a phone's messages are archived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhoneState {
    /// How many conversations are known, and how many of them are archived as far back as they shall be.
    pub threads: u32,
    pub done: u32,
    /// How many messages are archived, and how many of them nobody has read.
    pub messages: u64,
    pub unread: u32,
    /// How much of what shall be archived is, by time.
    pub per_mille: u16,
    pub last_sync: Option<Timestamp>,
    /// What is wrong, and what to do about it.
    pub last_error: Option<Said>,
}

pub fn phone_state(tx: &Transaction<'_>, source: SourceId, now: Timestamp) -> Result<PhoneState, DbError> {
    let mut state = counted(tx, source)?;
    let kept = marks(tx, source)?;
    let phone: Option<Phone> = phones::store::get(tx, source)?;
    let since = phone.and_then(|phone| phone.read_since).unwrap_or(now);
    let horizon = fill::horizon(settings::load(tx)?.number(&SMS_ARCHIVE_DAYS), since, now);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    state.threads = count(kept.len());
    state.done = count(kept.values().filter(|kept| kept.is_done(horizon)).count());
    let shares: u64 = kept.values().map(|kept| u64::from(kept.per_mille(horizon))).sum();
    let average = shares.checked_div(u64::from(state.threads)).unwrap_or_default();
    state.per_mille = u16::try_from(average).unwrap_or(1_000);
    Ok(state)
}

/// The indexes by their names, or it would look through the messages of all phones.
const NEWEST: &str = "SELECT id FROM sms_archive WHERE row = max(
    coalesce((SELECT row FROM sms_archive INDEXED BY sms_archive_received
              WHERE source = ?1 AND folder = 1 AND body IS NOT NULL ORDER BY row DESC LIMIT 1), 0),
    coalesce((SELECT row FROM sms_archive INDEXED BY sms_archive_without_text
              WHERE source = ?1 AND folder = 1 AND body IS NULL ORDER BY row DESC LIMIT 1), 0))";

/// By name, because the index of all received messages would do, too, and a life has a million.
const COUNT_UNREAD: &str = "SELECT count(*) FROM sms_archive INDEXED BY sms_archive_unread
     WHERE source = ?1 AND folder = 1 AND read = 0 AND opened = 0 AND body IS NOT NULL";

fn counted(tx: &Transaction<'_>, source: SourceId) -> Result<PhoneState, DbError> {
    let unread = tx.prepare_cached(COUNT_UNREAD)?.query_row([source], |row| row.get(0))?;
    let mut row =
        tx.prepare_cached("SELECT messages, last_sync, last_error FROM sms_phones WHERE source = ?1")?;
    let state = |row: &Row<'_>| {
        let moment = |at: Option<i64>| at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        Ok(PhoneState {
            messages: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(),
            unread,
            last_sync: moment(row.get(1)?),
            last_error: row.get::<_, Option<String>>(2)?.map(|kept| Said::from_stored(&kept)),
            ..PhoneState::default()
        })
    };
    Ok(row.query_row([source], state).optional()?.unwrap_or_default())
}

/// The newest message that a phone received, even if its text is not kept.
pub fn newest(tx: &Transaction<'_>, source: SourceId) -> Result<Option<SmsId>, DbError> {
    let mut row = tx.prepare_cached(NEWEST)?;
    Ok(row.query_row([source], |row| row.get(0).map(SmsId)).optional()?)
}

/// Notes that the user opened a message in Kai, so that it is not unread any more.
pub fn open(tx: &Transaction<'_>, id: SmsId) -> Result<(), DbError> {
    tx.execute("UPDATE sms_archive SET opened = 1 WHERE id = ?1 AND opened = 0", [id.0])?;
    Ok(())
}

/// What a phone received between two dates, given in epoch milliseconds.
pub fn received(
    tx: &Transaction<'_>,
    source: SourceId,
    between: &RangeInclusive<i64>,
) -> Result<Vec<(i64, Untrusted)>, DbError> {
    let mut rows = tx.prepare_cached(
        "SELECT date, body FROM sms_archive
         WHERE row BETWEEN ?1 AND ?2 AND source = ?3 AND folder = 1 AND body IS NOT NULL ORDER BY row",
    )?;
    let rows = rows.query_map(
        params![first_row(*between.start()), first_row(*between.end()) + (ROWS_PER_MS - 1), source],
        |row| Ok((row.get(0)?, Untrusted::new(row.get::<_, String>(1)?))),
    )?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What is in the archive after this row, oldest first and at most so much, each with its row.
pub fn after(tx: &Transaction<'_>, row: Option<i64>, most: usize) -> Result<Vec<(i64, Stored)>, DbError> {
    let mut rows = tx.prepare_cached(&format!(
        "SELECT {COLUMNS}, a.row FROM sms_archive a
         WHERE a.row > ?1 AND a.body IS NOT NULL ORDER BY a.row LIMIT ?2"
    ))?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows =
        rows.query_map(params![row.unwrap_or(i64::MIN), most], |row| Ok((row.get(7)?, stored(row)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What a phone has sent since then, oldest first.
pub fn sent_since(tx: &Transaction<'_>, source: SourceId, since: Timestamp) -> Result<Vec<Stored>, DbError> {
    let mut rows = tx.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sms_archive a
         WHERE a.row >= ?1 AND a.source = ?2 AND a.folder = 2 AND a.body IS NOT NULL ORDER BY a.row"
    ))?;
    let rows = rows.query_map(params![first_row(since.as_millisecond()), source], stored)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Archives messages of a phone as one page of it.
#[cfg(test)]
pub(super) fn archive_now(
    tx: &Transaction<'_>,
    source: SourceId,
    list: &[PhoneMessage],
    now: Timestamp,
) -> Result<(), DbError> {
    let rules = Rules::now(tx, source, now)?.unwrap();
    take(tx, &rules, list, &Step::default(), now).map(drop)
}

#[cfg(test)]
mod tests;
