//! Stores the mark, the state of the last poll and the queued messages. A poll updates them in one transaction.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kai_words::Said;
use rusqlite::{Row, Transaction, params};

use super::mark::{Identity, Mark};
use super::queue::{QUEUE, Queued};
use super::{Sms, SmsId, archive};
use crate::db::DbError;
use crate::pending::{self, Again, Origin};
use crate::source::SourceId;
use crate::untrusted::Untrusted;

/// The mark, and how the last poll went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sync {
    pub mark: Mark,
    pub last_sync: Option<Timestamp>,
    pub last_attempt: Option<Timestamp>,
    /// How many of the new messages of the last successful poll were unread.
    pub unread: u32,
    pub last_error: Option<Said>,
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
            last_error: row.get::<_, Option<String>>(9)?.map(|kept| Said::from_stored(&kept)),
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

/// Records a successful poll: queues the new messages and moves the mark, in the same transaction. `preview` makes the
/// text that the queue holds.
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
            source: SourceId::HERE,
            address: sms.address.clone(),
            date: sms.date.as_millisecond(),
            read: sms.read,
            preview: preview(&sms.body),
        };
        let identity = name(&sms.identity());
        let origin = Origin { identity: &identity, phone: SourceId::HERE, source: "" };
        pending::push(tx, QUEUE, origin, &queued, Again::Skip)?;
    }
    move_mark(tx, mark)?;
    let unread = u32::try_from(fresh.iter().filter(|sms| !sms.read).count()).unwrap_or(u32::MAX);
    tx.execute(
        "UPDATE sms_sync SET last_sync = ?1, last_attempt = ?1, unread = ?2, last_error = NULL",
        params![now.as_millisecond(), unread],
    )?;
    Ok(())
}

/// Records a failed poll. The mark, the queue and the time of the last success stay as they were.
pub fn failed(tx: &Transaction<'_>, why: &Said, now: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE sms_sync SET last_attempt = ?1, last_error = ?2";
    tx.execute(sql, params![now.as_millisecond(), why.stored()])?;
    Ok(())
}

/// Deletes everything stored about messages: the queue, the drop counts, the archive, the mark and the state of the last
/// poll. Returns how many messages were queued. Call it only while SMS is disabled: otherwise the next poll would
/// initialise the mark again and skip the messages that arrived since.
pub fn forget_all(tx: &Transaction<'_>) -> Result<usize, DbError> {
    let waited = pending::clear(tx, QUEUE)?;
    archive::forget_all(tx)?;
    tx.execute_batch("DELETE FROM sms_seen; DELETE FROM sms_handled;")?;
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
            failed(tx, &"no".into(), Timestamp::UNIX_EPOCH)?;
            assert!(!pending::dropped(tx, QUEUE)?.is_empty() && sync(tx)? != Sync::default());
            assert_eq!(forget_all(tx)?, 100);
            assert_eq!((pending::count(tx, QUEUE)?, pending::dropped(tx, QUEUE)?), (0, vec![]));
            assert_eq!(sync(tx)?, Sync::default());
            Ok::<_, DbError>(())
        });
        checked.await.unwrap();
    }
}
