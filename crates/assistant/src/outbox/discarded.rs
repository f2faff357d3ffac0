//! Drafts that the user has just discarded. They are in no list and cannot be sent, but the user can take them back for
//! a moment.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Transaction, params};

use super::store::{self, SELECT};
use super::{Draft, DraftId};
use crate::db::DbError;

/// How long the page offers to take it back.
pub const OFFERED: SignedDuration = SignedDuration::from_secs(10);
/// How long it can be taken back: a tap in the last moment arrives later.
const KEPT: SignedDuration = SignedDuration::from_secs(15);

/// The drafts that were discarded together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discarded {
    pub at: Timestamp,
    pub drafts: Vec<Draft>,
}

/// What was discarded a moment ago, the latest first.
pub fn recent(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<Discarded>, DbError> {
    let sql =
        format!("{SELECT} WHERE discarded_at > ?1 AND discarded_at <= ?2 ORDER BY discarded_at DESC, id");
    let mut rows = tx.prepare_cached(&sql)?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>("discarded_at")?, store::draft(row)?));
    let found = rows.query_map(params![before(now, OFFERED), after(now, OFFERED)], row)?;
    let mut all: Vec<Discarded> = vec![];
    for found in found {
        let (at, draft) = found?;
        let at = Timestamp::from_millisecond(at).unwrap_or_default();
        match all.last_mut() {
            Some(last) if last.at == at => last.drafts.push(draft),
            _ => all.push(Discarded { at, drafts: vec![draft] }),
        }
    }
    Ok(all)
}

/// Puts a draft away.
pub(super) fn put(tx: &Transaction<'_>, id: DraftId, now: Timestamp) -> Result<(), DbError> {
    tx.execute("UPDATE drafts SET discarded_at = ?2 WHERE id = ?1", params![id.0, now.as_millisecond()])?;
    Ok(())
}

/// Puts a draft back as it was; false if it is gone for good.
pub(super) fn take(tx: &Transaction<'_>, id: DraftId, now: Timestamp) -> Result<bool, DbError> {
    sweep(tx, now)?;
    let sql = "UPDATE drafts SET discarded_at = NULL WHERE id = ?1 AND discarded_at IS NOT NULL";
    Ok(tx.execute(sql, [id.0])? > 0)
}

/// Deletes for good what can no longer be taken back. One from far in the future is from
/// before the clock was set back.
pub(super) fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    let sql = "DELETE FROM drafts WHERE discarded_at <= ?1 OR discarded_at > ?2";
    tx.execute(sql, params![before(now, KEPT), after(now, KEPT)])?;
    Ok(())
}

fn before(now: Timestamp, span: SignedDuration) -> i64 {
    now.saturating_sub(span).unwrap_or(now).as_millisecond()
}

fn after(now: Timestamp, span: SignedDuration) -> i64 {
    now.saturating_add(span).unwrap_or(now).as_millisecond()
}
