//! The one writer of what is heard, and the loop that listens while the person wants it.
//!
//! What was told while the disk was busy goes into the next transaction together, so a burst costs a few commits and
//! not one each. A receipt is given after the commit; a write that fails is tried again until it is done.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;

use super::port::{Delivery, Ear, Heard, Source};
use super::{store, toggle};
use crate::access::Access;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::settings::{self, NOTIFICATIONS_ENABLED};

/// Listens and writes, in the daemon.
#[derive(Clone)]
pub struct Capture {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub source: Arc<Source>,
}

/// So many at most in one transaction: others wait for the store too.
const BATCH: usize = 256;
/// A write that failed is tried again after so long.
const AGAIN: Duration = Duration::from_secs(1);
/// The settings are looked at this often even if nobody said that they changed: an import does not.
const LOOK: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    TurnedOff,
    Stopped,
}

impl Capture {
    /// Listens whenever the person wants it, until `stop`.
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

    /// Waits until the feature is on, or off.
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

    /// Writes what is told until nobody can tell any more.
    pub async fn write(&self, mut deliveries: Receiver<Delivery>) {
        let mut batch = Vec::new();
        while deliveries.recv_many(&mut batch, BATCH).await > 0 {
            let (heard, receipts): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|delivery| ((delivery.at, delivery.heard), delivery.written)).unzip();
            if self.keep(heard.into()).await {
                for receipt in receipts {
                    // Whoever does not wait for it does not mind.
                    let _ = receipt.send(());
                }
            }
        }
    }

    /// Until it is durable; false if the store is closing.
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
