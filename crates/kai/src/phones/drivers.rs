//! Those who work with a paired phone: they store its messages and notifications and send by it.

use std::sync::Arc;

use kai_assistant::db::DbError;
use kai_assistant::phones::port::FromPhone;
use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::PairedPhone;
use rusqlite::Transaction;
use tokio::sync::mpsc;

/// A paired phone, as it is handed over. It is a `PhoneLink`, a `Sender` and a `Listener`.
pub(crate) struct Joined {
    pub(crate) source: SourceId,
    pub(crate) phone: Arc<PairedPhone>,
    /// What the phone tells about its messages and contacts.
    pub(crate) told: mpsc::Receiver<FromPhone>,
}

/// Those who work with paired phones. They are told on the network's own task, so they must not wait.
pub(crate) trait Drivers: Send + Sync {
    /// A phone is paired, connected or not. Also called for every paired phone when Kai starts.
    fn start(&self, joined: Joined);
    /// A phone is no longer paired, or Kai stops.
    fn stop(&self, source: SourceId);
    /// Deletes what is stored of a phone's messages.
    fn forget(&self, tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError>;
}

/// Nobody: what phones tell is dropped.
pub(crate) struct NoDrivers;

impl Drivers for NoDrivers {
    fn start(&self, joined: Joined) {
        tracing::debug!(
            source = joined.source.0,
            connected = !joined.told.is_closed(),
            "nobody works with this phone"
        );
        drop(joined.phone);
    }

    fn stop(&self, _: SourceId) {}

    fn forget(&self, _: &Transaction<'_>, _: SourceId) -> Result<(), DbError> {
        Ok(())
    }
}
