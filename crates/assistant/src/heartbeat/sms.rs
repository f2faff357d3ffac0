//! The SMS that a heartbeat tells about.

use rusqlite::Transaction;

use super::arrivals::{Arrival, Arrivals};
use crate::db::DbError;
use crate::pending::{self, Queue};
use crate::settings::{SMS_ENABLED, Values};
use crate::sms::store;
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

pub(super) const QUEUE: Option<Queue> = Some(store::QUEUE);

pub(super) fn is_on(values: &Values) -> bool {
    values.on(&SMS_ENABLED)
}

pub(super) fn waiting(tx: &Transaction<'_>, values: &Values) -> Result<Arrivals, DbError> {
    let items = pending::waiting::<store::Queued>(tx, store::QUEUE)?.into_iter().map(|waiting| Arrival {
        seq: waiting.seq,
        identity: waiting.entry.identity(),
        personal: crate::sms::is_personal(waiting.entry.address.as_written()),
        who: waiting.entry.address,
        title: Untrusted::default(),
        id: waiting.entry.id.0.to_string(),
        // Redacted again, because redaction may have been disabled when the message was queued.
        text: Eyes::of_model(values).see(&waiting.entry.preview),
        sensitive: false,
    });
    Ok(Arrivals { items: items.collect(), dropped: pending::dropped(tx, store::QUEUE)? })
}
