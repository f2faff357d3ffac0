//! The store edition's twin of `sms.rs`: it has no such queue.

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
