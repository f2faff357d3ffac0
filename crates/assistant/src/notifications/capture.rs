//! Listens while the feature is on, and is the only writer of what is received.
//!
//! Everything that arrives during a write goes into the next transaction together, so a burst costs a few commits and
//! not one each. Receipts are sent after the commit. A failed write is retried until it succeeds.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;

use super::port::{Delivery, Ear, Heard, Source};
use super::{store, toggle};
use crate::access::Access;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::settings::{self, NOTIFICATIONS_ENABLED};

/// Runs in the daemon: listens for notifications and stores them.
#[derive(Clone)]
pub struct Capture {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub source: Arc<Source>,
}

/// The most deliveries in one transaction, so that other writers do not wait too long.
const BATCH: usize = 256;
/// The pause before a failed write is retried.
const AGAIN: Duration = Duration::from_secs(1);
/// How often the settings are read even without a change signal: an import does not send one.
const LOOK: Duration = Duration::from_mins(1);

/// Why a listening session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    TurnedOff,
    Stopped,
}

impl Capture {
    /// Listens whenever the feature is on, until `stop` completes.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                () = self.until(true) => {}
            }
            let (ear, told) = Ear::new(Arc::clone(&self.source), Arc::clone(&self.clock));
            let listening = async {
                let end = tokio::select! {
                    () = self.source.listener.listen(ear.clone()) => End::TurnedOff,
                    () = self.until(false) => End::TurnedOff,
                    () = &mut stop => End::Stopped,
                };
                if end == End::Stopped {
                    ear.tell(Heard::Unbound(Access::Granted)).await;
                }
                drop(ear);
                end
            };
            let (end, ()) = tokio::join!(listening, self.write(told));
            self.source.unbound();
            if end == End::Stopped {
                return;
            }
        }
    }

    /// Waits until the feature is on (`true`) or off (`false`).
    async fn until(&self, on: bool) {
        loop {
            match self.is_on().await {
                Ok(is) if is == on => return,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the settings could not be read"),
            }
            tokio::select! {
                () = self.source.changed.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn is_on(&self) -> Result<bool, DbError> {
        toggle::look_while_waiting(&self.db, self.clock.as_ref(), &self.source).await?;
        Ok(self.db.read(settings::load).await?.on(&NOTIFICATIONS_ENABLED))
    }

    /// Writes deliveries until every [`Ear`] is dropped.
    pub async fn write(&self, mut deliveries: Receiver<Delivery>) {
        let mut batch = Vec::new();
        while deliveries.recv_many(&mut batch, BATCH).await > 0 {
            let (heard, receipts): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|delivery| ((delivery.at, delivery.heard), delivery.written)).unzip();
            if self.keep(heard.into()).await {
                for receipt in receipts {
                    // Fails if the bridge dropped its receipt, which is fine.
                    let _ = receipt.send(());
                }
            }
        }
    }

    /// Writes a batch, retrying until it is durable. Returns false if the store is closing.
    async fn keep(&self, heard: Arc<[(jiff::Timestamp, Heard)]>) -> bool {
        loop {
            let batch = Arc::clone(&heard);
            let write =
                self.db.write(move |tx| store::hear(tx, batch.iter().map(|(at, heard)| (*at, heard))));
            match write.await {
                Ok(()) => return true,
                Err(DbError::Stopping) => return false,
                Err(error) => {
                    tracing::warn!(%error, "notifications could not be written and are tried again");
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}
