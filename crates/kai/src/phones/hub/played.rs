//! The network of a demo: one simulated phone, as if it were paired and connected. There is no endpoint, so nothing
//! listens and nobody can be searched for.

use std::sync::Arc;
use std::time::Duration;

use kai_assistant::db::DbError;
use kai_assistant::lock::lock;
use kai_assistant::phones::store;
use kai_assistant::settings;
use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::{PairedPhone, PhoneLimits};
use kai_bridges::simulated::WiredPhone;
use rusqlite::Transaction;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::drivers::Joined;
use super::super::running::in_force;
use super::super::state::{LinkState, NetworkState};
use super::{Hub, NOTICING};

/// A simulated phone answers at once, so nobody has to wait whether it says more.
const LIMITS: PhoneLimits = PhoneLimits {
    quiet: Duration::from_millis(50),
    list: Duration::from_secs(1),
    sent: Duration::from_secs(10),
    waiting: 1024 * 1024,
};

impl Hub {
    /// Keeps a simulated phone connected until told to stop. It has to be in the store. Orders are refused as if the
    /// network did not run.
    pub(crate) async fn play(&self, simulated: &Arc<WiredPhone>, stop: CancellationToken) {
        let device = simulated.id().to_string();
        let found = self.around.db.read(move |tx| store::of_device(tx, &device)).await;
        let Ok(Some(source)) = found.map(|row| row.map(|row| row.source)) else { return };
        let mut changes = self.around.db.changes();
        let clock = Arc::clone(&self.around.clock);
        let (phone, told) = PairedPhone::new(simulated.id().clone(), clock, LIMITS);
        self.keep_to_switches(source, &phone).await;
        self.around.drivers.start(Joined { source, phone: Arc::clone(&phone), told });
        // Nothing was told yet, so there is room.
        let _ = simulated.link(&phone);
        self.around.drivers.connected(source, &phone);
        lock(&self.phones).insert(source, Arc::clone(&phone));
        let connected = LinkState { connected: Some(self.around.clock.now()), trouble: None };
        self.state.send_modify(|state| {
            state.links.insert(source, connected);
        });
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = changes.changed() => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(NOTICING) => self.keep_to_switches(source, &phone).await,
            }
        }
        phone.lost();
        self.around.drivers.lost(source, &phone);
        self.around.drivers.stop(source);
        lock(&self.phones).clear();
        self.state.send_replace(NetworkState::default());
    }

    /// Lets the phone be used for what is on for it now.
    async fn keep_to_switches(&self, source: SourceId, phone: &PairedPhone) {
        let read = move |tx: &Transaction<'_>| {
            let on = store::get(tx, source)?.map(|row| row.switches).unwrap_or_default();
            Ok::<_, DbError>(in_force(on, &settings::load(tx)?))
        };
        match self.around.db.read(read).await {
            Ok(allowed) => {
                // It holds a handful of messages, for which there is always room.
                let _ = phone.allow(allowed);
            }
            Err(error) => tracing::warn!(%error, "the simulated phone's switches could not be read"),
        }
    }
}
