//! The sources of notifications while Kai runs: this machine's own, and those of paired phones, which come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use rusqlite::Transaction;
use tokio::sync::watch;

use super::port::Source;
use super::store;
use crate::access::Access;
use crate::db::{Db, DbError};
use crate::lock::lock;
use crate::source::SourceId;

/// The sources by number.
pub(super) type BySource = BTreeMap<SourceId, Arc<Source>>;

/// The registry of sources. A source that is added is listened to, one that is removed is not any more: see
/// [`Captures`](super::capture::Captures).
pub struct Sources {
    all: watch::Sender<BySource>,
    /// The paired phones that Kai may read, as last read from the store. They may be away.
    allowed: Mutex<BTreeSet<SourceId>>,
}

/// How long a paired phone may take to answer, so that one that hangs does not keep the user waiting. This machine's own
/// listener limits itself.
const PHONE_PATIENCE: Duration = Duration::from_secs(2);

impl Sources {
    /// With this machine's own source, if it has one.
    pub fn new(here: Option<Arc<Source>>) -> Self {
        let all = here.into_iter().map(|source| (source.id, source)).collect();
        Self { all: watch::Sender::new(all), allowed: Mutex::default() }
    }

    /// Adds a source. It takes the place of one with the same number.
    pub fn add(&self, source: Arc<Source>) {
        self.all.send_modify(|all| drop(all.insert(source.id, source)));
    }

    /// Removes a source. Returns whether there was one.
    pub fn remove(&self, id: SourceId) -> bool {
        self.all.send_if_modified(|all| all.remove(&id).is_some())
    }

    pub fn get(&self, id: SourceId) -> Option<Arc<Source>> {
        self.all.borrow().get(&id).cloned()
    }

    /// This machine's own source.
    pub fn here(&self) -> Option<Arc<Source>> {
        self.get(SourceId::HERE)
    }

    /// All sources, in the order of their numbers.
    pub fn all(&self) -> Vec<Arc<Source>> {
        self.all.borrow().values().cloned().collect()
    }

    pub(super) fn watch(&self) -> watch::Receiver<BySource> {
        self.all.subscribe()
    }

    /// Tells every capture that a setting of this feature, or a phone's switch, changed.
    pub fn changed(&self) {
        self.all().iter().for_each(|source| source.changed());
    }

    /// Learns which phones Kai may read, and asks the sources for their permission.
    pub async fn probe_access(&self, db: &Db, now: Timestamp) -> Result<(), DbError> {
        let allowed = db.read(store::allowed_phones).await?;
        *lock(&self.allowed) = allowed;
        self.ask(now).await;
        Ok(())
    }

    /// Learns which phones Kai may read.
    pub(super) fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        *lock(&self.allowed) = store::allowed_phones(tx)?;
        Ok(())
    }

    /// Asks the sources that Kai may read for their permission, all at once.
    pub(super) async fn ask(&self, now: Timestamp) {
        let allowed = lock(&self.allowed).clone();
        let sources =
            self.all().into_iter().filter(|source| source.id.is_here() || allowed.contains(&source.id));
        join_all(sources.map(|source| async move {
            if source.id.is_here() {
                source.access(now).await;
            } else {
                drop(tokio::time::timeout(PHONE_PATIENCE, source.access(now)).await);
            }
        }))
        .await;
    }

    /// Makes the sources check now, all at once. This machine's own gets as long as `patience`; phones push, so those
    /// that are connected are only given a moment.
    pub async fn check_now(&self, patience: Duration) {
        let sources = self.all().into_iter().filter(|source| source.id.is_here() || source.is_bound());
        join_all(sources.map(|source| async move {
            let patience = if source.id.is_here() { patience } else { PHONE_PATIENCE.min(patience) };
            source.check_now(patience).await;
        }))
        .await;
    }

    /// The last known permission of every source that Kai may read; `None` for one that was never asked or is away.
    pub(super) fn known(&self) -> Vec<Option<Access>> {
        let all = self.all.borrow();
        let here = all.get(&SourceId::HERE).map(|source| source.known());
        let allowed = lock(&self.allowed);
        let phones = allowed.iter().map(|id| all.get(id).and_then(|source| source.known()));
        here.into_iter().chain(phones).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Puppet;
    use super::*;

    fn source(id: i64) -> Arc<Source> {
        Arc::new(Source::of(SourceId(id), Arc::new(Puppet::with(Access::Granted, vec![]))))
    }

    #[test]
    fn sources_come_and_go() {
        let sources = Sources::new(None);
        assert!(sources.here().is_none());
        let mut seen = sources.watch();
        sources.add(source(3));
        sources.add(source(1));
        let ids = || sources.all().iter().map(|source| source.id.0).collect::<Vec<_>>();
        assert_eq!((ids(), sources.here().is_some()), (vec![1, 3], true));
        assert!(seen.has_changed().unwrap_or_default());
        seen.mark_unchanged();
        assert!(!sources.remove(SourceId(2)) && !seen.has_changed().unwrap_or_default());
        let again = source(3);
        sources.add(Arc::clone(&again));
        assert!(sources.get(SourceId(3)).is_some_and(|now| Arc::ptr_eq(&now, &again)), "it took the place");
        assert!(sources.remove(SourceId(3)));
        assert_eq!(ids(), [1]);
    }
}
