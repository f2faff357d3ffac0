//! Ends a pairing in the store. Whoever unpairs a phone does it by this, with or without the network, so that the ledger
//! has it either way.

use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::ledger::{self, PhoneEvent, Record};
use kai_assistant::phones::{SourceId, store};
use rusqlite::Transaction;

use super::order::StoredMessages;

/// Ends a pairing, with its record and with what becomes of the phone's messages, in one transaction. `forget` deletes
/// those. Returns whether there was such a phone.
pub(crate) fn unpair(
    tx: &Transaction<'_>,
    source: SourceId,
    messages: StoredMessages,
    forget: impl FnOnce(&Transaction<'_>, SourceId) -> Result<(), DbError>,
    now: Timestamp,
) -> Result<bool, DbError> {
    let Some(phone) = store::get(tx, source)? else { return Ok(false) };
    // A phone that ended the pairing itself has its record already.
    if phone.is_paired() {
        let name = phone.name.clone();
        let record = Record::Phone { phone: source.0, name, event: PhoneEvent::Unpaired };
        ledger::append(tx, &record, now)?;
    }
    match messages {
        StoredMessages::Keep => store::end_pairing(tx, source)?,
        StoredMessages::Forget => {
            forget(tx, source)?;
            store::remove(tx, source)?;
        }
    }
    Ok(true)
}
