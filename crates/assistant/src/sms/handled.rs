//! What the user did in Kai with messages of the phone that Kai runs on: opened them, dismissed them.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Row, Transaction, params};

use super::mark::Identity;
use super::{Sms, SmsId};
use crate::db::DbError;
use crate::untrusted::Untrusted;

/// The most messages that this is kept for. The newest are.
const MOST: u32 = 2_000;

/// What the user did with messages, by the messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Handled(BTreeMap<Identity, bool>);

impl Handled {
    pub(super) fn load(tx: &Transaction<'_>) -> Result<Self, DbError> {
        let mut rows = tx.prepare_cached("SELECT id, date, address, away FROM sms_handled")?;
        let row = |row: &Row<'_>| {
            let date = jiff::Timestamp::from_millisecond(row.get(1)?).unwrap_or_default();
            let (id, address) = (SmsId(row.get(0)?), Untrusted::new(row.get::<_, String>(2)?));
            Ok((Identity { id, date, address }, row.get(3)?))
        };
        Ok(Self(rows.query_map([], row)?.collect::<rusqlite::Result<_>>()?))
    }

    pub(super) fn is_away(&self, identity: &Identity) -> bool {
        self.0.get(identity) == Some(&true)
    }

    /// The messages that the user dismissed.
    pub(super) fn away(&self) -> BTreeSet<Identity> {
        let is_away = |(identity, away): (&Identity, &bool)| away.then(|| identity.clone());
        self.0.iter().filter_map(is_away).collect()
    }

    /// Whether the message was read neither on the phone nor here.
    pub(super) fn is_unread(&self, sms: &Sms) -> bool {
        !sms.read && !self.0.contains_key(&sms.identity())
    }
}

/// Notes that the user opened a message, or dismissed it, or wants a dismissed one back.
pub(super) fn note(tx: &Transaction<'_>, identity: &Identity, away: Option<bool>) -> Result<(), DbError> {
    let Identity { id, date, address } = identity;
    tx.execute(
        "INSERT INTO sms_handled (id, date, address, away) VALUES (?1, ?2, ?3, coalesce(?4, 0))
         ON CONFLICT (id, date, address) DO UPDATE SET away = coalesce(?4, away)",
        params![id.0, date.as_millisecond(), address.as_written(), away],
    )?;
    tx.execute(
        "DELETE FROM sms_handled WHERE date < (SELECT date FROM sms_handled ORDER BY date DESC LIMIT 1 OFFSET ?1)",
        [MOST],
    )?;
    Ok(())
}
