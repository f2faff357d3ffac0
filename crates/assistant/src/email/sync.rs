//! Stores how far the inbox of each account was read, how the last poll went, and how many automatic mails were only
//! counted. A poll updates them, the queue and the kept mails in one transaction.

use jiff::Timestamp;
use kai_words::Said;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::port::{Header, Mark};
use super::queue::{QUEUE, Queued};
use super::{EmailId, kept};
use crate::db::DbError;
use crate::pending::{self, Again, Origin};
use crate::settings::{EMAIL_BULK_ENABLED, Values};
use crate::source::SourceId;

/// How far an inbox was read, and how the last poll went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sync {
    /// `None` until the first poll, which only marks where the inbox is.
    pub mark: Option<Mark>,
    /// The last poll came back full.
    pub more: bool,
    pub last_sync: Option<Timestamp>,
    pub last_attempt: Option<Timestamp>,
    /// Since when every poll has failed.
    pub failing_since: Option<Timestamp>,
    /// How many of the new mails of the last successful poll were unread.
    pub unread: u32,
    pub last_error: Option<Said>,
}

pub fn sync(tx: &Transaction<'_>, account: SourceId) -> Result<Sync, DbError> {
    let sql = "SELECT seeded, validity, uid, more, last_sync, last_attempt, failing_since, unread, last_error
               FROM email_sync WHERE account = ?1";
    let row = |row: &Row<'_>| {
        let moment = |column| {
            let at: Option<i64> = row.get(column)?;
            Ok::<_, rusqlite::Error>(at.and_then(|ms| Timestamp::from_millisecond(ms).ok()))
        };
        let mark = Mark { validity: row.get(1)?, uid: row.get(2)? };
        Ok(Sync {
            mark: row.get::<_, bool>(0)?.then_some(mark),
            more: row.get(3)?,
            last_sync: moment(4)?,
            last_attempt: moment(5)?,
            failing_since: moment(6)?,
            unread: row.get(7)?,
            last_error: row.get::<_, Option<String>>(8)?.map(|kept| Said::from_stored(&kept)),
        })
    };
    Ok(tx.prepare_cached(sql)?.query_row([account], row).optional()?.unwrap_or_default())
}

/// What a poll found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// Where the inbox was read to.
    pub(super) mark: Mark,
    pub(super) fresh: Vec<Header>,
    pub(super) more: bool,
}

/// Records a successful poll: queues or counts the new mails, keeps what is known of them and moves the mark, in the
/// same transaction.
pub(super) fn polled(
    tx: &Transaction<'_>,
    account: SourceId,
    taken: &Taken,
    values: &Values,
    now: Timestamp,
) -> Result<(), DbError> {
    let Mark { validity, uid } = taken.mark;
    kept::index_some(tx)?;
    for header in &taken.fresh {
        arrived(tx, EmailId { account, validity, uid: header.uid }, header, values, now)?;
    }
    let unread = u32::try_from(taken.fresh.iter().filter(|mail| !mail.seen).count()).unwrap_or(u32::MAX);
    tx.execute(
        "INSERT INTO email_sync (account, seeded, validity, uid, more, last_sync, last_attempt, unread)
         VALUES (?1, 1, ?2, ?3, ?4, ?5, ?5, ?6)
         ON CONFLICT (account) DO UPDATE SET
             seeded = 1, validity = ?2, uid = ?3, more = ?4, last_sync = ?5, last_attempt = ?5, unread = ?6,
             failing_since = NULL, last_error = NULL",
        params![account, validity, uid, taken.more, now.as_millisecond(), unread],
    )?;
    Ok(())
}

fn arrived(
    tx: &Transaction<'_>,
    id: EmailId,
    header: &Header,
    values: &Values,
    now: Timestamp,
) -> Result<(), DbError> {
    // A mail that comes again, because its server went back and forth, was told before.
    if !kept::keep(tx, id, header, now)? {
        return Ok(());
    }
    if header.bulk && !values.on(&EMAIL_BULK_ENABLED) {
        return count_bulk(tx, id.account);
    }
    let (entry, identity) = (Queued::of(id, header, values), id.identity());
    let origin = Origin { identity: &identity, phone: id.account, source: "" };
    // Whatever waits under this number is not that mail any more.
    pending::push(tx, QUEUE, origin, &entry, Again::Renew)?;
    Ok(())
}

/// Records a failed poll. The mark, the queue and the time of the last success stay as they were.
pub(super) fn failed(
    tx: &Transaction<'_>,
    account: SourceId,
    why: &Said,
    now: Timestamp,
) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO email_sync (account, last_attempt, failing_since, last_error) VALUES (?1, ?2, ?2, ?3)
         ON CONFLICT (account) DO UPDATE SET
             last_attempt = ?2, failing_since = coalesce(failing_since, ?2), last_error = ?3",
        params![account, now.as_millisecond(), why.stored()],
    )?;
    Ok(())
}

/// Removes what is known of an account's polls.
pub(super) fn forget(tx: &Transaction<'_>, account: SourceId) -> Result<(), DbError> {
    tx.execute("DELETE FROM email_sync WHERE account = ?1", [account])?;
    tx.execute("DELETE FROM email_bulk WHERE account = ?1", [account])?;
    Ok(())
}

fn count_bulk(tx: &Transaction<'_>, account: SourceId) -> Result<(), DbError> {
    tx.execute(
        "INSERT INTO email_bulk (account, count) VALUES (?1, 1) ON CONFLICT (account) DO UPDATE SET count = count + 1",
        [account],
    )?;
    Ok(())
}

/// How many automatic mails of the account were only counted since a heartbeat told it.
pub fn bulk(tx: &Transaction<'_>, account: SourceId) -> Result<u32, DbError> {
    let mut row = tx.prepare_cached("SELECT count FROM email_bulk WHERE account = ?1")?;
    Ok(row.query_row([account], |row| row.get(0)).optional()?.unwrap_or_default())
}

/// Notes that a heartbeat that begins tells how many automatic mails were counted.
pub fn tell_bulk(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("UPDATE email_bulk SET telling = count", [])?;
    Ok(())
}

/// Takes off what an answered heartbeat told. What was counted since it began stays.
pub fn told_bulk(tx: &Transaction<'_>) -> Result<(), DbError> {
    tx.execute("UPDATE email_bulk SET count = count - telling, telling = 0", [])?;
    tx.execute("DELETE FROM email_bulk WHERE count <= 0", [])?;
    Ok(())
}
