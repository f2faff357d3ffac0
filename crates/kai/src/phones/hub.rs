//! The network as the page, the commands and the daemon hold it.

mod played;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kai_assistant::clock::Clock;
use kai_assistant::db::Db;
use kai_assistant::lock::lock;
use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::{DeviceId, PairedPhone, typed_address};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::drivers::Drivers;
use super::order::{NotDone, Order, Reply, StoredMessages};
use super::running::{Around, Network, Running};
use super::state::{Nearby, NetworkState};

/// How many orders wait.
const ORDERS: usize = 16;
/// How soon a change in the store is noticed. There are many while messages are stored, and few concern phones.
const NOTICING: Duration = Duration::from_secs(1);

/// The network of paired phones. Does nothing until it is run, and then only listens if it has to.
pub(crate) struct Hub {
    around: Around,
    state: watch::Sender<NetworkState>,
    phones: Mutex<BTreeMap<SourceId, Arc<PairedPhone>>>,
    /// Set while it runs.
    orders: Mutex<Option<mpsc::Sender<Order>>>,
    woken: Notify,
}

impl Hub {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>, drivers: Arc<dyn Drivers>, network: Network) -> Self {
        Self {
            around: Around { db, clock, drivers, network },
            state: watch::Sender::default(),
            phones: Mutex::default(),
            orders: Mutex::default(),
            woken: Notify::new(),
        }
    }

    /// Runs until told to stop.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        let (orders, mut ordered) = mpsc::channel(ORDERS);
        *lock(&self.orders) = Some(orders);
        let mut running = Running::new(&self.around);
        let mut changes = self.around.db.changes();
        running.reload().await;
        let mut noticed = Instant::now();
        loop {
            running.settle().await;
            self.publish(&mut running);
            let change = async {
                sleep_until(noticed + NOTICING).await;
                changes.changed().await
            };
            tokio::select! {
                () = stop.cancelled() => break,
                Some(order) = ordered.recv() => running.obey(order).await,
                happened = running.next() => running.on(happened).await,
                () = self.woken.notified() => running.reload().await,
                Ok(()) = change => {
                    noticed = Instant::now();
                    running.reload().await;
                }
            }
        }
        *lock(&self.orders) = None;
        running.end().await;
        lock(&self.phones).clear();
        self.state.send_replace(NetworkState::default());
    }

    fn publish(&self, running: &mut Running<'_>) {
        *lock(&self.phones) = running.phones();
        let state = running.state();
        self.state.send_if_modified(|before| {
            let changed = *before != state;
            *before = state;
            changed
        });
    }

    /// How it stands, and notice of every change.
    pub(crate) fn watch(&self) -> watch::Receiver<NetworkState> {
        self.state.subscribe()
    }

    /// The connected phones on which the user wants to be told that something waits.
    pub(crate) fn told_phones(&self) -> Vec<Arc<PairedPhone>> {
        lock(&self.phones).values().filter(|phone| phone.can_be_told()).cloned().collect()
    }

    /// Lets nothing more leave by paired phones, because Kai is about to let go of them. What is being sent goes on: each
    /// phone stays connected until the network is told to stop.
    pub(crate) fn retire(&self) {
        self.around.drivers.retire();
    }

    /// A paired phone, connected or not.
    #[cfg(test)]
    pub(crate) fn phone(&self, source: SourceId) -> Option<Arc<PairedPhone>> {
        lock(&self.phones).get(&source).cloned()
    }

    /// Makes it look at the store and at the clock now. Changes in the store are noticed anyway, a second later.
    pub(crate) fn look(&self) {
        self.woken.notify_one();
    }

    /// Asks a connected phone what is new on it. What it has arrives as if it had told by itself.
    pub(crate) fn ask_for_news(&self, source: SourceId) {
        self.around.drivers.look(source);
    }

    /// Looks for phones for five minutes, or five more. Until then phones that are not paired can connect.
    pub(crate) async fn search(&self) -> Result<(), NotDone> {
        self.order(Order::BeginSearch).await
    }

    pub(crate) async fn end_search(&self) -> Result<(), NotDone> {
        self.order(Order::EndSearch).await
    }

    /// Connects to a phone by the address that the user typed, and searches on.
    pub(crate) async fn connect(&self, typed: &str) -> Result<Nearby, NotDone> {
        let address = typed_address(typed).await.map_err(|_| NotDone::NoAddress)?;
        self.order(|reply| Order::Connect(address, reply)).await
    }

    /// Asks a device in reach to pair. The state then shows the key.
    pub(crate) async fn pair(&self, device: &DeviceId) -> Result<(), NotDone> {
        self.order(|reply| Order::Pair(device.clone(), reply)).await
    }

    /// The user says that the phone shows this key. Nothing is paired without it, whoever asked.
    pub(crate) async fn accept(&self, device: &DeviceId, key: &str) -> Result<(), NotDone> {
        self.order(|reply| Order::Accept(device.clone(), key.to_owned(), reply)).await
    }

    /// The user refuses to pair, or withdraws the request.
    pub(crate) async fn refuse(&self, device: &DeviceId) -> Result<(), NotDone> {
        self.order(|reply| Order::Refuse(device.clone(), reply)).await
    }

    /// Ends a pairing, or clears up after one that the phone ended.
    pub(crate) async fn unpair(&self, source: SourceId, messages: StoredMessages) -> Result<(), NotDone> {
        self.order(|reply| Order::Unpair(source, messages, reply)).await
    }

    async fn order<T>(&self, order: impl FnOnce(Reply<T>) -> Order) -> Result<T, NotDone> {
        let orders = lock(&self.orders).clone().ok_or(NotDone::NotRunning)?;
        let (reply, done) = oneshot::channel();
        orders.send(order(reply)).await.map_err(|_| NotDone::NotRunning)?;
        done.await.unwrap_or(Err(NotDone::NotRunning))
    }
}
