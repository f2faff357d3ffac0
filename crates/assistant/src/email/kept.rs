//! Keeps what is known of received mails for some weeks: for the inbox page, and for searching while a server is away.
//! Texts stay on the servers.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Row, Transaction, params};

use super::port::{Header, Mailbox};
use super::queue::PREVIEW;
use super::{EmailId, FIRST_ACCOUNT};
use crate::db::DbError;
use crate::outbox::address::spelling;
use crate::settings::{self, EMAIL_KEEP_DAYS};
use crate::source::SourceId;
use crate::untrusted::Untrusted;

/// The most mails that are kept, whatever the settings say. The newest are.
const MOST: u32 = 50_000;
/// How many characters of a name, an address and a subject are kept.
const NAME: usize = 200;
const ADDRESS: usize = 254;
const SUBJECT: usize = 500;

/// A mail as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub id: EmailId,
    pub from: Mailbox,
    pub subject: Untrusted,
    /// The beginning of its text with all codes, for the user's own eyes.
    pub beginning: Untrusted,
    pub received: Timestamp,
    /// The user had read it elsewhere when Kai saw it first.
    pub seen: bool,
    /// The user opened it in Kai.
    pub opened: bool,
    /// The user dismissed it.
    pub away: bool,
}

impl Kept {
    pub fn is_unread(&self) -> bool {
        !(self.seen || self.opened || self.away)
    }
}

/// Keeps a mail. Returns whether it is new here.
pub(super) fn keep(
    tx: &Transaction<'_>,
    id: EmailId,
    header: &Header,
    now: Timestamp,
) -> Result<bool, DbError> {
    let address = header.from.address.line(ADDRESS);
    let mut insert = tx.prepare_cached(
        "INSERT OR IGNORE INTO email_kept (account, validity, uid, from_name, from_address, spelling, subject, beginning,
                                           received, kept_at, bulk, seen)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let added = insert.execute(params![
        id.account,
        id.validity,
        id.uid,
        header.from.name.line(NAME),
        address,
        spelling(&address),
        header.subject.line(SUBJECT),
        header.beginning.line(PREVIEW),
        // A date in the future would stand above everything that arrives later.
        header.received.min(now).as_millisecond(),
        now.as_millisecond(),
        header.bulk,
        header.seen,
    ])?;
    Ok(added > 0)
}

const COLUMNS: &str =
    "account, validity, uid, from_name, from_address, subject, beginning, received, seen, opened,
                       away";

fn row(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let text = |column| row.get::<_, String>(column).map(Untrusted::new);
    Ok(Kept {
        id: EmailId { account: row.get(0)?, validity: row.get(1)?, uid: row.get(2)? },
        from: Mailbox { name: text(3)?, address: text(4)? },
        subject: text(5)?,
        beginning: text(6)?,
        received: Timestamp::from_millisecond(row.get(7)?).unwrap_or_default(),
        seen: row.get(8)?,
        opened: row.get(9)?,
        away: row.get(10)?,
    })
}

pub fn get(tx: &Transaction<'_>, id: EmailId) -> Result<Option<Kept>, DbError> {
    let sql = format!("SELECT {COLUMNS} FROM email_kept WHERE account = ?1 AND validity = ?2 AND uid = ?3");
    let mut rows = tx.prepare_cached(&sql)?;
    let mut found = rows.query_map(params![id.account, id.validity, id.uid], row)?;
    Ok(found.next().transpose()?)
}

/// The newest mails that `choose` takes, newest first, at most `most`. Only mails of this account, if one is named, and
/// none that came after `until`.
pub fn newest(
    tx: &Transaction<'_>,
    account: Option<SourceId>,
    until: Option<i64>,
    most: usize,
    mut choose: impl FnMut(&Kept) -> bool,
) -> Result<Vec<Kept>, DbError> {
    // The columns after the date order mails of one millisecond as the inbox orders their ids: by length first.
    let sql = format!(
        "SELECT {COLUMNS} FROM email_kept WHERE received <= ?1 AND (?2 IS NULL OR account = ?2)
         ORDER BY received DESC, length((account - {FIRST_ACCOUNT}) || '.' || validity || '.' || uid) DESC,
                  (account - {FIRST_ACCOUNT}) || '.' || validity || '.' || uid DESC"
    );
    let mut rows = tx.prepare_cached(&sql)?;
    let mut found = vec![];
    for kept in rows.query_map(params![until.unwrap_or(i64::MAX), account], row)? {
        let kept = kept?;
        if found.len() == most {
            break;
        }
        if choose(&kept) {
            found.push(kept);
        }
    }
    Ok(found)
}

/// How many mails nobody has read. Counts no further than `most`.
pub fn unread(tx: &Transaction<'_>, most: usize) -> Result<usize, DbError> {
    let sql =
        "SELECT count(*) FROM (SELECT 1 FROM email_kept WHERE seen = 0 AND opened = 0 AND away = 0 LIMIT ?1)";
    let count: i64 =
        tx.prepare_cached(sql)?.query_row([i64::try_from(most).unwrap_or(i64::MAX)], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Notes that the user opened a mail in Kai.
pub fn open(tx: &Transaction<'_>, id: EmailId) -> Result<(), DbError> {
    let sql = "UPDATE email_kept SET opened = 1 WHERE account = ?1 AND validity = ?2 AND uid = ?3";
    tx.execute(sql, params![id.account, id.validity, id.uid])?;
    Ok(())
}

/// Notes that the user dismissed a mail, or wants it back.
pub fn put_away(tx: &Transaction<'_>, id: EmailId, away: bool) -> Result<(), DbError> {
    let sql = "UPDATE email_kept SET away = ?4, opened = 1 WHERE account = ?1 AND validity = ?2 AND uid = ?3";
    tx.execute(sql, params![id.account, id.validity, id.uid, away])?;
    Ok(())
}

/// Whether a mail from this address was received.
pub fn wrote_before(tx: &Transaction<'_>, address: &str) -> Result<bool, DbError> {
    let mut row = tx.prepare_cached("SELECT 1 FROM email_kept WHERE spelling = ?1")?;
    Ok(row.exists([spelling(address)])?)
}

/// The accounts that mails are kept of.
pub fn accounts(tx: &Transaction<'_>) -> Result<Vec<SourceId>, DbError> {
    let mut rows = tx.prepare_cached("SELECT DISTINCT account FROM email_kept")?;
    Ok(rows.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Removes what is older than the user wants it kept.
pub fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let days = i64::from(settings::load(tx)?.number(&EMAIL_KEEP_DAYS));
    let oldest = now.saturating_sub(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::MIN);
    tx.execute("DELETE FROM email_kept WHERE kept_at < ?1", [oldest.as_millisecond()])?;
    tx.execute(
        "DELETE FROM email_kept
         WHERE received < (SELECT received FROM email_kept ORDER BY received DESC LIMIT 1 OFFSET ?1)",
        [MOST],
    )?;
    Ok(())
}

/// Removes what is kept of an account.
pub(super) fn forget(tx: &Transaction<'_>, account: SourceId) -> Result<(), DbError> {
    tx.execute("DELETE FROM email_kept WHERE account = ?1", [account])?;
    Ok(())
}
