//! The phones that can send right now, by source. Bridges come and go while Kai runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::Sender;
use crate::access::Known;
use crate::lock::lock;
use crate::source::SourceId;

/// The senders that are there now. A paired phone's sender is there while the phone is connected.
#[derive(Default)]
pub struct Senders(Mutex<BTreeMap<SourceId, Entry>>);

/// A sender, with what its last attempts showed about the permission to send.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) sender: Arc<dyn Sender>,
    pub(super) access: Arc<Known>,
}

impl Senders {
    /// Registers the sender of a source. It replaces the one that is there; an attempt that uses the old one goes on
    /// with it.
    pub fn register(&self, source: SourceId, sender: Arc<dyn Sender>) {
        let mut all = lock(&self.0);
        let access = all.get(&source).map(|entry| Arc::clone(&entry.access)).unwrap_or_default();
        all.insert(source, Entry { sender, access });
    }

    /// Removes this sender. One that has replaced it stays: the end of an old connection may be noticed late.
    pub fn remove(&self, source: SourceId, sender: &Arc<dyn Sender>) {
        let mut all = lock(&self.0);
        if all.get(&source).is_some_and(|entry| Arc::ptr_eq(&entry.sender, sender)) {
            all.remove(&source);
        }
    }

    /// Whether the source can send right now.
    pub fn has(&self, source: SourceId) -> bool {
        lock(&self.0).contains_key(&source)
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// What is known about the source's permission to send; `None` if its sender is not there.
    pub fn access(&self, source: SourceId) -> Option<Arc<Known>> {
        self.get(source).map(|entry| entry.access)
    }

    pub(super) fn get(&self, source: SourceId) -> Option<Entry> {
        lock(&self.0).get(&source).cloned()
    }
}
