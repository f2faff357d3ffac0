//! The messages that wait for the next heartbeat, whichever phone received them.

use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use super::{Sms, SmsId};
use crate::db::DbError;
use crate::pending::{self, Queue};
use crate::settings::Values;
use crate::source::SourceId;
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

pub const QUEUE: Queue = Queue("sms");
/// How many characters of a message its queue entry holds. The rest stays on the phone.
pub const PREVIEW: usize = 200;

/// A message that waits for the next heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub id: SmsId,
    /// The phone that received it.
    #[serde(default, skip_serializing_if = "is_here")]
    pub source: SourceId,
    pub address: Untrusted,
    /// Epoch milliseconds.
    pub date: i64,
    /// Whether the user had read it on the phone when it was queued.
    pub read: bool,
    pub preview: Untrusted,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_here(source: &SourceId) -> bool {
    source.is_here()
}

impl Queued {
    /// The name under which the ledger records it.
    pub fn identity(&self) -> String {
        super::identity_name(self.id.0, self.date, self.address.as_written())
    }
}

/// Whether a message from another sender is queued under the same id. Phones reuse the ids of deleted messages, and a
/// model that was shown the queued one must not get this one instead.
pub fn id_was_reused(tx: &Transaction<'_>, sms: &Sms) -> Result<bool, DbError> {
    let waiting = pending::waiting::<Queued>(tx, QUEUE)?;
    Ok(waiting.iter().any(|one| one.entry.id == sms.id && one.entry.address != sms.address))
}

/// The preview that is stored in the queue. Codes are redacted before the text is cut, or half of one could remain.
pub(super) fn preview(body: &Untrusted, values: &Values) -> Untrusted {
    Untrusted::new(Eyes::of_model(values).see(body).line(PREVIEW))
}
