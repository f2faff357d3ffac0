//! The mails that a heartbeat tells about, and how the accounts are.

use jiff::Timestamp;
use rusqlite::Transaction;

use super::arrivals::{Arrival, Arrivals};
use crate::db::DbError;
use crate::email::queue::{self, Queued, shown};
use crate::email::{self, sync};
use crate::outbox::{self, Channel};
use crate::pending::{self, Queue, Waiting};
use crate::settings::{EMAIL_ENABLED, Values};
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

pub(super) const QUEUE: Option<Queue> = Some(queue::QUEUE);

/// How many characters of a sender are told: as many as a prompt shows.
const SENDER: usize = 80;

pub(super) fn is_on(values: &Values) -> bool {
    values.on(&EMAIL_ENABLED)
}

/// How an account is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountStatus {
    /// The user's own address.
    pub address: String,
    /// How many of its mails wait.
    pub waiting: u32,
    /// How many automatic mails were counted and not queued.
    pub bulk: u32,
    /// Since when its server could not be reached.
    pub failing_since: Option<Timestamp>,
}

pub(super) fn waiting(tx: &Transaction<'_>, values: &Values) -> Result<Arrivals, DbError> {
    let waiting = pending::waiting::<Queued>(tx, queue::QUEUE)?;
    let items = waiting.into_iter().map(|waiting| arrival(tx, waiting, values)).collect::<Result<_, _>>()?;
    Ok(Arrivals { items, dropped: pending::dropped(tx, queue::QUEUE)? })
}

fn arrival(
    tx: &Transaction<'_>,
    Waiting { seq, entry }: Waiting<Queued>,
    values: &Values,
) -> Result<Arrival, DbError> {
    // Redacted again, because redaction may have been disabled when the mail was queued.
    let [name, title, text] =
        email::redacted(Eyes::of_model(values), [&entry.name, &entry.subject, &entry.preview]);
    Ok(Arrival {
        seq,
        identity: entry.identity(),
        personal: entry.is_personal(),
        known: outbox::store::has_written_to(tx, Channel::Email, entry.address.as_written())?,
        who: Untrusted::new(shown(&name, &entry.address, SENDER)),
        title,
        id: entry.id.to_string(),
        text,
        sensitive: false,
    })
}

/// The accounts that there is something to say about.
pub(super) fn status(tx: &Transaction<'_>) -> Result<Vec<AccountStatus>, DbError> {
    let shares = pending::by_phone(tx, queue::QUEUE)?;
    let mut told = vec![];
    for account in email::store::all(tx)? {
        let share = shares.iter().find(|share| share.phone == account.source);
        let status = AccountStatus {
            waiting: share.map_or(0, |share| share.waiting),
            bulk: sync::bulk(tx, account.source)?,
            failing_since: sync::sync(tx, account.source)?.failing_since,
            address: account.address,
        };
        if status.waiting > 0 || status.bulk > 0 || status.failing_since.is_some() {
            told.push(status);
        }
    }
    Ok(told)
}

/// Notes what a run that begins tells about automatic mails.
pub(super) fn begin(tx: &Transaction<'_>) -> Result<(), DbError> {
    sync::tell_bulk(tx)
}

/// Notes that the run was answered.
pub(super) fn told(tx: &Transaction<'_>) -> Result<(), DbError> {
    sync::told_bulk(tx)
}
