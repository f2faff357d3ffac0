//! The SMS that a heartbeat tells about.

use rusqlite::Transaction;

use super::arrivals::{Arrival, Arrivals};
use crate::db::DbError;
use crate::outbox::{self, Channel};
use crate::pending::{self, Queue, Waiting};
use crate::settings::{SMS_ENABLED, Values};
use crate::sms::names;
use crate::sms::queue::{self, Queued};
use crate::sms::received::PhoneNames;
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

pub(super) const QUEUE: Option<Queue> = Some(queue::QUEUE);

pub(super) fn is_on(values: &Values) -> bool {
    values.on(&SMS_ENABLED)
}

pub(super) fn waiting(tx: &Transaction<'_>, values: &Values) -> Result<Arrivals, DbError> {
    let phones = PhoneNames::of(tx)?;
    let waiting = pending::waiting::<Queued>(tx, queue::QUEUE)?.into_iter();
    let items = waiting.map(|waiting| arrival(tx, waiting, &phones, values)).collect::<Result<_, _>>()?;
    Ok(Arrivals { items, dropped: pending::dropped(tx, queue::QUEUE)? })
}

fn arrival(
    tx: &Transaction<'_>,
    waiting: Waiting<Queued>,
    phones: &PhoneNames,
    values: &Values,
) -> Result<Arrival, DbError> {
    let Waiting { seq, entry } = waiting;
    let name = names::beside(tx, entry.address.as_written())?;
    let known =
        name.is_some() || outbox::store::has_written_to(tx, Channel::Sms, entry.address.as_written())?;
    Ok(Arrival {
        seq,
        identity: entry.identity(),
        personal: crate::sms::is_personal(entry.address.as_written()),
        known,
        who: entry.address,
        title: beside(name, phones.name(entry.source)),
        id: entry.id.0.to_string(),
        // Redacted again, because redaction may have been disabled when the message was queued.
        text: Eyes::of_model(values).see(&entry.preview),
        sensitive: false,
    })
}

/// What stands after the number: whose it is, and which phone received the message.
fn beside(name: Option<Untrusted>, phone: Option<String>) -> Untrusted {
    let name = name.unwrap_or_default();
    match phone {
        Some(phone) if name.is_blank() => Untrusted::new(format!("on {phone}")),
        Some(phone) => name.map(|name| format!("{name}, on {phone}")),
        None => name,
    }
}
