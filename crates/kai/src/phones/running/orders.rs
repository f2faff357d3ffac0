//! Does what a person asked for.

use std::net::SocketAddr;
use std::sync::Arc;

use kai_assistant::phones::SourceId;
use kai_bridges::kdeconnect::{DeviceId, Endpoint, Failure, SendError};
use rusqlite::Transaction;

use super::super::order::{NotDone, Order, Reply, StoredMessages};
use super::super::state::{AskedBy, Nearby, Outcome};
use super::super::unpairing;
use super::{Running, nearby};

impl Running<'_> {
    /// Does what a person asked for.
    pub(in crate::phones) async fn obey(&mut self, order: Order) {
        match order {
            Order::BeginSearch(reply) => {
                self.plan.begin_search(self.now());
                self.settle().await;
                let done = if self.open.is_some() { Ok(()) } else { Err(NotDone::NoNetwork) };
                answer(reply, done);
            }
            Order::EndSearch(reply) => {
                self.plan.end_search();
                self.settle().await;
                answer(reply, Ok(()));
            }
            Order::Connect(address, reply) => self.connect(address, reply).await,
            Order::Pair(device, reply) => answer(reply, self.pair(&device)),
            Order::Accept(device, key, reply) => {
                let done = self.accept(&device, &key).await;
                answer(reply, done);
            }
            Order::Refuse(device, reply) => answer(reply, self.refuse(&device)),
            Order::Unpair(source, messages, reply) => {
                let done = self.unpair(source, messages).await;
                answer(reply, done);
            }
        }
    }

    /// Connects to an address that was typed in. That is a part of searching.
    async fn connect(&mut self, address: SocketAddr, reply: Reply<Nearby>) {
        self.plan.begin_search(self.now());
        self.settle().await;
        let Some(open) = &self.open else { return answer(reply, Err(NotDone::NoNetwork)) };
        let endpoint = Arc::clone(&open.endpoint);
        // It takes its time, and nobody else waits for it.
        tokio::spawn(async move {
            let connected = endpoint.connect(address).await;
            let found = match connected {
                Ok(device) if device.paired => Err(NotDone::PairedAlready),
                Ok(device) => Ok(nearby(device)),
                Err(refused) => Err(NotDone::NotReached(refused.why)),
            };
            answer(reply, found);
        });
    }

    fn endpoint(&self) -> Result<&Endpoint, NotDone> {
        self.open.as_ref().map(|open| &*open.endpoint).ok_or(NotDone::Gone)
    }

    fn pair(&self, device: &DeviceId) -> Result<(), NotDone> {
        if self.source_of(device).is_some() {
            return Err(NotDone::PairedAlready);
        }
        self.endpoint()?.request_pairing(device).map_err(|_: SendError| NotDone::Gone)
    }

    async fn accept(&mut self, device: &DeviceId, key: &str) -> Result<(), NotDone> {
        let now = self.now();
        let asking = self.pairings.get_mut(device).ok_or(NotDone::NotAsked)?;
        if asking.shown.key != key || asking.shown.until <= now {
            return Err(NotDone::NotAsked);
        }
        asking.shown.confirmed = true;
        let (asked_by, pin) = (asking.shown.asked_by, asking.pin.take());
        match (asked_by, pin) {
            (AskedBy::Them, _) => {
                self.endpoint()?.accept_pairing(device, key).map_err(|_: SendError| NotDone::Gone)
            }
            // The phone has not agreed yet.
            (AskedBy::Us, None) => Ok(()),
            (AskedBy::Us, Some(pin)) => {
                self.keep(pin).await;
                Ok(())
            }
        }
    }

    fn refuse(&mut self, device: &DeviceId) -> Result<(), NotDone> {
        let asking = self.pairings.get(device).ok_or(NotDone::NotAsked)?;
        if asking.pin.is_some() {
            self.cut_off(device);
            self.conclude(device, Outcome::Failed(Failure::Withdrawn));
            return Ok(());
        }
        self.endpoint()?.refuse_pairing(device).map_err(|_: SendError| NotDone::Gone)
    }

    async fn unpair(&mut self, source: SourceId, messages: StoredMessages) -> Result<(), NotDone> {
        let (now, drivers) = (self.now(), Arc::clone(&self.around.drivers));
        let unpaired = self.around.db.write(move |tx| {
            let forget = |tx: &Transaction<'_>, source| drivers.forget(tx, source);
            unpairing::unpair(tx, source, messages, forget, now)
        });
        let known = unpaired.await.map_err(|error| {
            tracing::warn!(%error, "a phone could not be unpaired");
            NotDone::NotStored
        })?;
        self.reload().await;
        if known { Ok(()) } else { Err(NotDone::Unknown) }
    }
}

/// Answers whoever asked. They may no longer want to know.
fn answer<T>(reply: Reply<T>, done: Result<T, NotDone>) {
    drop(reply.send(done));
}
