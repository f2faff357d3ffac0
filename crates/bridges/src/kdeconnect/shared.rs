//! What all tasks of an endpoint share.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use kai_assistant::clock::Clock;
use kai_assistant::lock::lock;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::discovery::{self, Announcements, UDP_PORT};
use super::event::{Event, Pin};
use super::identity::{DeviceId, Identity, Occasion};
use super::limits::Limits;
use super::refusal::Refused;
use super::registry::Registry;
use super::tls::Tls;

pub(super) struct Shared {
    pub(super) me: Identity,
    pub(super) public_key: Vec<u8>,
    pub(super) tls: Tls,
    pub(super) limits: Limits,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) registry: Mutex<Registry>,
    /// Where we listen.
    pub(super) port: u16,
    pub(super) udp: Option<Udp>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// The socket for announcements.
pub(super) struct Udp {
    pub(super) socket: UdpSocket,
    pub(super) hears: bool,
    pub(super) announcements: Announcements,
}

impl Udp {
    /// If the port cannot be shared, we can still speak, but not hear.
    pub(super) fn open(address: IpAddr, announcements: Announcements) -> Option<Self> {
        let shared = discovery::open(address, announcements.port).ok();
        let hears = shared.is_some();
        let socket = shared.or_else(|| discovery::open(address, 0).ok())?;
        Some(Self { socket, hears, announcements })
    }
}

impl Shared {
    /// The state. Never held while waiting for anything.
    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    pub(super) fn pin(&self, device: &DeviceId) -> Option<Pin> {
        self.registry().pin(device).cloned()
    }

    pub(super) fn identity_line(&self, occasion: Occasion<'_>) -> Vec<u8> {
        self.me.line(occasion, self.clock.now().as_millisecond())
    }

    pub(super) fn longest_line(&self, paired: bool) -> usize {
        if paired { self.limits.longest_packet } else { self.limits.longest_identity }
    }

    /// Hands an event to the caller, unless the endpoint is closing.
    pub(super) async fn tell(&self, event: Event) {
        tokio::select! {
            sent = self.events.send(event) => drop(sent),
            () = self.stop.cancelled() => {}
        }
    }

    /// Reports a refusal, unless the same was reported a moment ago.
    pub(super) async fn report(&self, from: IpAddr, refused: &Refused) {
        let times = self.registry().reports(refused, self.clock.now());
        if let Some(times) = times {
            self.tell(Event::Refused { from, refused: refused.clone(), times }).await;
        }
    }

    pub(super) async fn announce_to(&self, address: IpAddr) -> io::Result<()> {
        let port = self.udp.as_ref().map_or(UDP_PORT, |udp| udp.announcements.port);
        self.announce(&[SocketAddr::new(address, port)]).await
    }

    /// Announces us. Fails if no announcement could be sent.
    pub(super) async fn announce(&self, to: &[SocketAddr]) -> io::Result<()> {
        let Some(udp) = &self.udp else { return Err(io::ErrorKind::Unsupported.into()) };
        let line = self.identity_line(Occasion::Announcing { port: self.port });
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for address in to {
            let sent = udp.socket.send_to(&line, address).await.map(drop);
            if sent.is_ok() || outcome.is_err() {
                outcome = sent;
            }
        }
        outcome
    }
}
