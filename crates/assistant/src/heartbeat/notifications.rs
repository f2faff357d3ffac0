//! The notifications of other apps that a heartbeat tells about.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::Transaction;

use super::arrivals::{Arrival, Arrivals};
use crate::db::DbError;
use crate::notifications::view::Item;
use crate::notifications::{self, Record, store};
use crate::pending::{self, Queue};
use crate::settings::{NOTIFICATIONS_ENABLED, Values};
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

pub(super) const QUEUE: Option<Queue> = Some(notifications::QUEUE);

pub(super) fn is_on(values: &Values) -> bool {
    values.on(&NOTIFICATIONS_ENABLED)
}

pub(super) fn waiting(tx: &Transaction<'_>, values: &Values) -> Result<Arrivals, DbError> {
    let eyes = Eyes::of_model(values);
    let names = store::phone_names(tx)?;
    let items = pending::waiting::<Record>(tx, notifications::QUEUE)?.into_iter().map(|waiting| {
        let item = Item::of(&waiting.entry, &names, &TimeZone::UTC, eyes);
        Arrival {
            seq: waiting.seq,
            personal: waiting.entry.is_personal(),
            known: false,
            who: beside(&item.app_label, item.phone.as_ref()),
            title: item.title,
            identity: item.id.identity(),
            id: item.id.as_str().to_owned(),
            text: item.preview,
            sensitive: item.sensitive,
        }
    });
    Ok(Arrivals { items: items.collect(), dropped: pending::dropped(tx, notifications::QUEUE)? })
}

/// The app, and the phone that it runs on if that has to be told.
fn beside(app: &Untrusted, phone: Option<&Untrusted>) -> Untrusted {
    phone.map_or_else(|| app.clone(), |phone| app.map(|app| format!("{app} ({})", phone.as_written())))
}

/// Removes old notifications. The daemon's tick does this as well, but a heartbeat can run without the daemon.
pub(super) fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    store::sweep(tx, now)
}
