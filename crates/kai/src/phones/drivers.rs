//! Those who work with a paired phone: they store its messages and notifications and send by it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kai_assistant::clock::Clock;
use kai_assistant::db::{Db, DbError};
use kai_assistant::lock::lock;
use kai_assistant::notifications::{self, Source, Sources};
use kai_assistant::outbox::door::{Sender, Senders};
use kai_assistant::phones::port::FromPhone;
use kai_assistant::sms::{self, Gather};
use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::PairedPhone;
use rusqlite::Transaction;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

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
    /// A phone is connected. It may have been before: then a new connection took the place of the old one.
    fn connected(&self, source: SourceId, phone: &Arc<PairedPhone>);
    /// The connection with a phone ended.
    fn lost(&self, source: SourceId, phone: &Arc<PairedPhone>);
    /// Kai is about to stop: no draft leaves by a phone any more, whichever connects. What is being sent goes on.
    fn retire(&self);
    /// The user wants to know now what is new on a phone.
    fn look(&self, source: SourceId);
    /// A phone is no longer paired, or Kai stops.
    fn stop(&self, source: SourceId);
    /// Deletes what is stored of a phone's messages.
    fn forget(&self, tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError>;
}

/// The features: each phone's messages are gathered by a task of its own, its notifications are heard, and drafts leave
/// by it while it is connected.
pub(crate) struct Features {
    db: Db,
    clock: Arc<dyn Clock>,
    senders: Arc<Senders>,
    /// The phones among them; `None` once nothing more may leave by one.
    exits: Mutex<Option<BTreeMap<SourceId, Arc<dyn Sender>>>>,
    sources: Arc<Sources>,
    gathering: Mutex<BTreeMap<SourceId, Gathering>>,
}

/// The task that gathers a phone's messages.
struct Gathering {
    task: AbortHandle,
    /// Makes it ask the phone what is new.
    asked: Arc<Notify>,
}

impl Features {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>, senders: Arc<Senders>, sources: Arc<Sources>) -> Self {
        let exits = Mutex::new(Some(BTreeMap::new()));
        Self { db, clock, senders, exits, sources, gathering: Mutex::default() }
    }
}

impl Drivers for Features {
    fn start(&self, joined: Joined) {
        let Joined { source, phone, told } = joined;
        self.sources.add(Arc::new(Source::of(source, Arc::clone(&phone) as _)));
        let asked = Arc::<Notify>::default();
        let gather = Gather::new(self.db.clone(), Arc::clone(&self.clock), source, phone)
            .telling(notifications::store::sms_came)
            .asked_by(Arc::clone(&asked));
        let task = tokio::spawn(gather.run(told)).abort_handle();
        if let Some(before) = lock(&self.gathering).insert(source, Gathering { task, asked }) {
            before.task.abort();
        }
    }

    fn connected(&self, source: SourceId, phone: &Arc<PairedPhone>) {
        let sender = Arc::clone(phone) as Arc<dyn Sender>;
        if let Some(exits) = lock(&self.exits).as_mut() {
            self.senders.register(source, Arc::clone(&sender));
            exits.insert(source, sender);
        }
    }

    fn lost(&self, source: SourceId, phone: &Arc<PairedPhone>) {
        let sender = Arc::clone(phone) as Arc<dyn Sender>;
        if let Some(exits) = lock(&self.exits).as_mut() {
            exits.retain(|of, exit| *of != source || !Arc::ptr_eq(exit, &sender));
        }
        self.senders.remove(source, &sender);
    }

    fn retire(&self) {
        let exits = lock(&self.exits).take().unwrap_or_default();
        for (source, sender) in &exits {
            self.senders.remove(*source, sender);
        }
    }

    fn look(&self, source: SourceId) {
        if let Some(gathering) = lock(&self.gathering).get(&source) {
            gathering.asked.notify_one();
        }
    }

    fn stop(&self, source: SourceId) {
        self.sources.remove(source);
        // It holds the phone, which holds its channel, so it would never end by itself.
        if let Some(gathering) = lock(&self.gathering).remove(&source) {
            gathering.task.abort();
        }
    }

    fn forget(&self, tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError> {
        forget(tx, source)
    }
}

/// Deletes what is stored of a phone's messages and notifications.
pub(crate) fn forget(tx: &Transaction<'_>, source: SourceId) -> Result<(), DbError> {
    sms::forget_phone(tx, source)?;
    notifications::store::forget_phone(tx, source).map(drop)
}
