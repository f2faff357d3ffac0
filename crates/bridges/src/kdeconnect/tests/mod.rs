//! Our side of the protocol against the simulated handset and against hostile peers, over real connections on this
//! machine.

mod hostile;
mod links;
#[cfg(feature = "notifications")]
mod phone;
mod talk;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::clock::{Clock, ManualClock};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::simulated::{Handset, HandsetSetup, OnPairing};

/// Beyond this a test has failed. Nothing waits for it otherwise.
const LONG: Duration = Duration::from_secs(30);

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_second(1_794_702_151).unwrap()))
}

/// Kai's side: an endpoint and its events.
struct Kai {
    endpoint: Endpoint,
    events: mpsc::Receiver<Event>,
    id: DeviceId,
}

fn local() -> Reach {
    Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None }
}

/// Limits under which a test need not wait for anything to be forgotten.
fn quick() -> Limits {
    Limits {
        between_connections: Duration::ZERO,
        between_reports: Duration::ZERO,
        silence_of_7: Duration::from_millis(300),
        ..Limits::default()
    }
}

fn setup(clock: Arc<dyn Clock>) -> Setup {
    let id = DeviceId::from_random([1; 16]);
    let capabilities = Capabilities::of_computer(&Use::ALL);
    Setup {
        me: Identity {
            id: id.clone(),
            name: DeviceName::clean("Kai"),
            kind: DeviceKind::Desktop,
            protocol: Protocol::V8,
            incoming: capabilities.incoming,
            outgoing: capabilities.outgoing,
        },
        credentials: Credentials::make(&id, clock.now()).unwrap(),
        pins: vec![],
        strangers: Strangers::Welcome,
        reach: local(),
        limits: quick(),
        clock,
    }
}

impl Kai {
    async fn start(setup: Setup) -> Self {
        let id = setup.me.id.clone();
        let (endpoint, events) = Endpoint::open(setup).await.unwrap();
        Self { endpoint, events, id }
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.endpoint.port()))
    }

    /// The next event.
    async fn next(&mut self) -> Event {
        timeout(LONG, self.events.recv()).await.expect("an event in time").expect("an event")
    }

    /// The first event that is wanted. Others are skipped.
    async fn until<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(&self.next().await) {
                return found;
            }
        }
    }

    async fn key(&mut self) -> String {
        self.until(|event| match event {
            Event::PairingRequested { key, .. } | Event::PairingAsked { key, .. } => Some(key.clone()),
            _ => None,
        })
        .await
    }

    async fn pin(&mut self) -> Pin {
        self.until(|event| match event {
            Event::Paired(pin) => Some(pin.clone()),
            _ => None,
        })
        .await
    }

    async fn packet(&mut self) -> Packet {
        self.until(|event| match event {
            Event::Packet(_, packet) => Some(packet.clone()),
            _ => None,
        })
        .await
    }

    async fn messages(&mut self) -> Vec<Message> {
        match self.packet().await {
            Packet::Messages(messages) => messages.list,
            other => panic!("{other:?}"),
        }
    }

    async fn lost(&mut self) -> Refusal {
        self.until(|event| match event {
            Event::Lost { why, .. } => Some(*why),
            _ => None,
        })
        .await
    }

    async fn refused(&mut self) -> Refused {
        self.until(|event| match event {
            Event::Refused { refused, .. } => Some(refused.clone()),
            _ => None,
        })
        .await
    }
}

fn handset_setup(clock: Arc<dyn Clock>) -> HandsetSetup {
    HandsetSetup { limits: quick(), ..HandsetSetup::local("Pixel", clock).unwrap() }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.expect("it happens in time")
}

/// Kai and a handset, paired, and Kai's pin of it.
async fn paired() -> (Kai, Handset, Pin) {
    let clock = clock();
    let mut kai = Kai::start(setup(clock.clone())).await;
    let handset = Handset::start(handset_setup(clock)).await.unwrap();
    kai.endpoint.connect(handset.address().unwrap()).await.unwrap();
    kai.endpoint.request_pairing(handset.id()).unwrap();
    let pin = kai.pin().await;
    (kai, handset, pin)
}
