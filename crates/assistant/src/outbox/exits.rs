//! The phones that SMS can leave by.

use rusqlite::Transaction;

use super::route::{self, Exit};
use crate::db::DbError;
use crate::phones;
use crate::source::SourceId;

/// The phones that SMS can leave by: the one that Kai runs on, if it can send, and the paired ones that may.
pub fn exits(tx: &Transaction<'_>, here: bool) -> Result<Vec<Exit>, DbError> {
    let paired = phones::store::all(tx)?;
    let own = Exit { source: SourceId::HERE, name: route::HERE.to_owned(), by_default: false };
    let may_send = paired
        .into_iter()
        .filter(|phone| phone.is_paired() && (phone.switches.send_sms || phone.switches.composer));
    let others = may_send.map(|phone| Exit {
        source: phone.source,
        name: phone.name,
        by_default: phone.sends_by_default,
    });
    Ok(here.then_some(own).into_iter().chain(others).collect())
}
