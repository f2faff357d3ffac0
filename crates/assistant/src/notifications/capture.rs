//! Listens while the feature is on, and is the only writer of what is received.
//!
//! Everything that arrives during a write goes into the next transaction together, so a burst costs a few commits and
//! not one each. Receipts are sent after the commit. A failed write is retried until it succeeds.
//!
//! Each source has a task and a channel of its own: one that hangs, or has no permission, holds up no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::port::{Delivery, Ear, Heard, Source};
use super::repeats::RepeatsSms;
use super::sources::{BySource, Sources};
use super::{store, toggle};
use crate::access::Access;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::source::SourceId;

/// Runs in the daemon: captures the notifications of every source, from when it is added until it is removed.
#[derive(Clone)]
pub struct Captures {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub sources: Arc<Sources>,
    pub repeats_sms: Arc<RepeatsSms>,
}

/// The capture of a source. It stays after its end, so that the next one of the same source can wait for it.
struct Running {
    source: Arc<Source>,
    /// Dropping it ends the capture.
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    fn listens_to(&self, source: &Arc<Source>) -> bool {
        self.stop.is_some() && Arc::ptr_eq(&self.source, source)
    }
}

impl Captures {
    /// Captures until `stop` completes, and then until everything that was received is written.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut listed = self.sources.watch();
        let mut running = BTreeMap::new();
        loop {
            let now = listed.borrow_and_update().clone();
            self.follow(&mut running, now);
            tokio::select! {
                () = &mut stop => break,
                // The registry lives as long as this does.
                _ = listed.changed() => {}
            }
        }
        for capture in running.values_mut() {
            capture.stop = None;
        }
        join_all(running.into_iter().map(|(id, capture)| ended(id, capture.task))).await;
    }

    /// Ends the captures of sources that are gone, and begins those of sources that are new.
    fn follow(&self, running: &mut BTreeMap<SourceId, Running>, listed: BySource) {
        for (id, capture) in running.iter_mut() {
            if !listed.get(id).is_some_and(|source| capture.listens_to(source)) {
                capture.stop = None;
            }
        }
        for (id, source) in listed {
            if running.get(&id).is_none_or(|capture| capture.stop.is_none()) {
                let before = running.remove(&id).map(|capture| capture.task);
                running.insert(id, self.begin(source, before));
            }
        }
    }

    /// Begins to capture a source, once the capture that did so before has written its last.
    fn begin(&self, source: Arc<Source>, before: Option<JoinHandle<()>>) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        let capture = Capture {
            db: self.db.clone(),
            clock: Arc::clone(&self.clock),
            source: Arc::clone(&source),
            repeats_sms: Arc::clone(&self.repeats_sms),
        };
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                ended(capture.source.id, before).await;
            }
            capture.run(async { drop(stopped.await) }).await;
        });
        Running { source, stop: Some(stop), task }
    }
}

async fn ended(source: SourceId, task: JoinHandle<()>) {
    if let Err(error) = task.await {
        tracing::warn!(%error, source = source.0, "a listener for notifications broke down");
    }
}

/// Listens to one source and stores what it reports.
#[derive(Clone)]
pub struct Capture {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub source: Arc<Source>,
    pub repeats_sms: Arc<RepeatsSms>,
}

/// The most deliveries in one transaction, so that other writers do not wait too long.
const BATCH: usize = 256;
/// The pause before a failed write is retried, or a listener that gave up is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often the settings are read even without a change signal, at the latest: neither an import sends one, nor a
/// command that began before the daemon. The latter is why they are read more often at first.
const LOOK: Duration = Duration::from_mins(1);

/// Why a listening session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    TurnedOff,
    Stopped,
}

impl Capture {
    /// Listens whenever the source is allowed, until `stop` completes.
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
                    () = self.listen(&ear) => End::TurnedOff,
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

    /// Listens until the listener gives up, which it should not do. A pause keeps it from being asked without rest.
    async fn listen(&self, ear: &Ear) {
        self.source.listener.listen(ear.clone()).await;
        tokio::time::sleep(AGAIN).await;
    }

    /// Waits until the source may be listened to (`true`) or may not (`false`).
    async fn until(&self, on: bool) {
        let mut pause = AGAIN;
        loop {
            match self.is_on().await {
                Ok(is) if is == on => return,
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the settings could not be read"),
            }
            tokio::select! {
                () = self.source.changed.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LOOK);
        }
    }

    async fn is_on(&self) -> Result<bool, DbError> {
        let source = self.source.id;
        if source.is_here() {
            toggle::look_while_waiting(&self.db, self.clock.as_ref(), &self.source).await?;
        }
        self.db.read(move |tx| store::is_on(tx, source)).await
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
            let (batch, source, repeats_sms) =
                (Arc::clone(&heard), self.source.id, Arc::clone(&self.repeats_sms));
            let write = self.db.write(move |tx| {
                let batch = batch.iter().map(|(at, heard)| (*at, heard));
                store::hear(tx, source, batch, repeats_sms.as_ref())
            });
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
