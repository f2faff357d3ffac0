//! The store edition's twin of `notifications.rs`: it has no such queue.

use jiff::Timestamp;
use rusqlite::Transaction;

use super::arrivals::Arrivals;
use crate::db::DbError;
use crate::pending::Queue;
use crate::settings::Values;

pub(super) const QUEUE: Option<Queue> = None;

pub(super) fn is_on(_: &Values) -> bool {
    false
}

#[expect(clippy::unnecessary_wraps, reason = "the foss edition reads the store")]
pub(super) fn waiting(_: &Transaction<'_>, _: &Values) -> Result<Arrivals, DbError> {
    Ok(Arrivals::default())
}

#[expect(clippy::unnecessary_wraps, reason = "the foss edition writes to the store")]
pub(super) fn sweep(_: &Transaction<'_>, _: Timestamp) -> Result<(), DbError> {
    Ok(())
}
