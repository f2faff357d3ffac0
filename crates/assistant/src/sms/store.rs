//! The mark, the state of the last poll, and the queue: what belongs together moves in one transaction.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rusqlite::{Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::mark::{Identity, Mark};
use super::{Sms, SmsId};
use crate::db::DbError;
use crate::pending::{self, Again, Queue};
use crate::untrusted::Untrusted;

pub const QUEUE: Queue = Queue("sms");
/// Characters of a message that its queue entry holds; the rest stays on the phone.
pub const PREVIEW: usize = 200;

/// A message that waits for the next heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub id: SmsId,
    pub address: Untrusted,
    /// Epoch milliseconds.
    pub date: i64,
    /// Had the person seen it when it was queued?
    pub read: bool,
    pub preview: Untrusted,
}

impl Queued {
    /// What the ledger calls it.
    pub fn identity(&self) -> String {
        super::identity_name(self.id.0, self.date, self.address.as_written())
    }
}

/// Does a message of somebody else wait under the id of this one? Phones give the id of a deleted message away again, and
/// whoever was told of the one must not be handed the other.
pub fn is_another(tx: &Transaction<'_>, sms: &Sms) -> Result<bool, DbError> {
    let waiting = pending::waiting::<Queued>(tx, QUEUE)?;
    Ok(waiting.iter().any(|one| one.entry.id == sms.id && one.entry.address != sms.address))
}

/// How the last poll went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sync {
    pub mark: Mark,
    pub last_sync: Option<Timestamp>,
    pub last_attempt: Option<Timestamp>,
    /// Unread among the messages that the last poll brought.
    pub unread: u32,
    pub last_error: Option<String>,
}

pub fn sync(tx: &Transaction<'_>) -> Result<Sync, DbError> {
    let sql =
        "SELECT seeded, mark_id, mark_date, mark_address, newest, more, last_sync, last_attempt, unread,
                      last_error FROM sms_sync";
    let row = |row: &Row<'_>| {
        let moment = |at: Option<i64>| at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let top =
            row.get::<_, Option<i64>>(1)?.zip(moment(row.get(2)?)).zip(row.get::<_, Option<String>>(3)?);
        let identity =
            |((id, date), address)| Identity { id: SmsId(id), date, address: Untrusted::new(address) };
        Ok(Sync {
            mark: Mark {
                seeded: row.get(0)?,
                top: top.map(identity),
                newest: moment(row.get(4)?),
                seen: BTreeSet::new(),
                more: row.get(5)?,
            },
            last_sync: moment(row.get(6)?),
            last_attempt: moment(row.get(7)?),
            unread: row.get(8)?,
            last_error: row.get(9)?,
        })
    };
    let mut sync = tx.prepare_cached(sql)?.query_row([], row)?;
    sync.mark.seen = seen(tx)?;
    Ok(sync)
}

fn seen(tx: &Transaction<'_>) -> Result<BTreeSet<Identity>, DbError> {
    let mut rows = tx.prepare_cached("SELECT id, date, address FROM sms_seen")?;
    let identity = |row: &Row<'_>| {
        Ok(Identity {
            id: SmsId(row.get(0)?),
            date: Timestamp::from_millisecond(row.get(1)?).unwrap_or_default(),
            address: Untrusted::new(row.get::<_, String>(2)?),
        })
    };
    Ok(rows.query_map([], identity)?.collect::<rusqlite::Result<_>>()?)
}

/// A poll that worked: what was fresh is queued, and the mark moves, in the same transaction. `preview` makes the line
/// that waits.
pub fn polled(
    tx: &Transaction<'_>,
    fresh: &[Sms],
    mark: &Mark,
    preview: impl Fn(&Untrusted) -> Untrusted,
    now: Timestamp,
) -> Result<(), DbError> {
    for sms in fresh {
        let queued = Queued {
            id: sms.id,
            address: sms.address.clone(),
            date: sms.date.as_millisecond(),
            read: sms.read,
            preview: preview(&sms.body),
        };
        pending::push(tx, QUEUE, &name(&sms.identity()), "", &queued, Again::Skip)?;
    }
    move_mark(tx, mark)?;
    let unread = u32::try_from(fresh.iter().filter(|sms| !sms.read).count()).unwrap_or(u32::MAX);
    tx.execute(
        "UPDATE sms_sync SET last_sync = ?1, last_attempt = ?1, unread = ?2, last_error = NULL",
        params![now.as_millisecond(), unread],
    )?;
    Ok(())
}

/// A poll that did not: the mark, the queue and the last success stay as they were.
pub fn failed(tx: &Transaction<'_>, why: &str, now: Timestamp) -> Result<(), DbError> {
    tx.execute("UPDATE sms_sync SET last_attempt = ?1, last_error = ?2", params![now.as_millisecond(), why])?;
    Ok(())
}

/// Erases all that is kept of the phone's messages: what waits, what was dropped, the mark and how the last poll went.
/// Returns how many waited. Only while reading is off: a poll would take the inbox for new to it, and seed again.
pub fn forget_all(tx: &Transaction<'_>) -> Result<usize, DbError> {
    let waited = pending::clear(tx, QUEUE)?;
    tx.execute("DELETE FROM sms_seen", [])?;
    tx.execute(
        "UPDATE sms_sync SET seeded = 0, mark_id = NULL, mark_date = NULL, mark_address = NULL, newest = NULL, more = 0,
                last_sync = NULL, last_attempt = NULL, unread = 0, last_error = NULL",
        [],
    )?;
    Ok(waited)
}

fn move_mark(tx: &Transaction<'_>, mark: &Mark) -> Result<(), DbError> {
    let top = mark.top.as_ref();
    tx.execute(
        "UPDATE sms_sync SET seeded = ?1, mark_id = ?2, mark_date = ?3, mark_address = ?4, newest = ?5, more = ?6",
        params![
            mark.seeded,
            top.map(|top| top.id.0),
            top.map(|top| top.date.as_millisecond()),
            top.map(|top| top.address.as_written()),
            mark.newest.map(Timestamp::as_millisecond),
            mark.more,
        ],
    )?;
    tx.execute("DELETE FROM sms_seen", [])?;
    let mut insert = tx.prepare_cached("INSERT INTO sms_seen (id, date, address) VALUES (?1, ?2, ?3)")?;
    for Identity { id, date, address } in &mark.seen {
        insert.execute(params![id.0, date.as_millisecond(), address.as_written()])?;
    }
    Ok(())
}

fn name(identity: &Identity) -> String {
    let Identity { id, date, address } = identity;
    super::identity_name(id.0, date.as_millisecond(), address.as_written())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    #[tokio::test]
    async fn forgetting_all_leaves_nothing_of_any_message() {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        let checked = db.write(|tx| {
            let sms = |id: i64| Sms {
                id: SmsId(id),
                address: Untrusted::new("+15550100"),
                date: Timestamp::from_second(id).unwrap_or_default(),
                body: Untrusted::new("hi"),
                read: false,
            };
            let fresh: Vec<Sms> = (1..=150).map(sms).collect();
            let mark = Mark::seed(fresh.last(), &fresh, Timestamp::UNIX_EPOCH);
            polled(tx, &fresh, &mark, Clone::clone, Timestamp::UNIX_EPOCH)?;
            failed(tx, "no", Timestamp::UNIX_EPOCH)?;
            assert!(!pending::dropped(tx, QUEUE)?.is_empty() && sync(tx)? != Sync::default());
            assert_eq!(forget_all(tx)?, 100);
            assert_eq!((pending::count(tx, QUEUE)?, pending::dropped(tx, QUEUE)?), (0, vec![]));
            assert_eq!(sync(tx)?, Sync::default());
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
