//! This machine as a device on the network: what a caller holds.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use kai_assistant::clock::Clock;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::certificate::{BadCredentials, Credentials, Peer};
use super::connections;
use super::discovery::{Announcements, Audience, UDP_PORT};
use super::event::{Device, Event, Pin, SendError};
use super::identity::{DeviceId, Identity, PORTS};
use super::limits::{Limits, is_local};
use super::packet::Packet;
use super::pairing::Tap;
use super::refusal::{Refusal, Refused};
use super::registry::{Order, Registry, Strangers};
use super::shared::{Shared, Udp};
use super::tls::Tls;

/// How many events wait for the caller. Beyond that, devices are not read from.
const EVENTS: usize = 64;

/// What an endpoint needs to start.
pub struct Setup {
    pub me: Identity,
    pub credentials: Credentials,
    /// The devices that are paired.
    pub pins: Vec<Pin>,
    pub strangers: Strangers,
    pub reach: Reach,
    pub limits: Limits,
    pub clock: Arc<dyn Clock>,
}

/// Where an endpoint listens and announces itself.
#[derive(Debug, Clone)]
pub struct Reach {
    pub address: IpAddr,
    /// The first free one is taken.
    pub ports: RangeInclusive<u16>,
    /// Whether and how it hears announcements and makes its own.
    pub announcements: Option<Announcements>,
}

impl Default for Reach {
    /// The whole local network, on the ports that every device uses.
    fn default() -> Self {
        Self {
            address: Ipv4Addr::UNSPECIFIED.into(),
            ports: PORTS,
            announcements: Some(Announcements { port: UDP_PORT, to: Audience::Network }),
        }
    }
}

/// Why an endpoint could not be opened.
#[derive(Debug)]
pub enum OpenError {
    Credentials(BadCredentials),
    /// None of the ports is free, or the machine does not allow listening.
    Listen(io::Error),
}

/// This machine as a device. Stops listening and ends all links when dropped.
pub struct Endpoint {
    shared: Arc<Shared>,
}

impl Endpoint {
    /// Starts to listen, and to hear announcements. Must be called within a Tokio runtime.
    pub async fn open(setup: Setup) -> Result<(Self, mpsc::Receiver<Event>), OpenError> {
        let tls = Tls::new(&setup.credentials).map_err(OpenError::Credentials)?;
        let own = Peer::read(setup.credentials.certificate());
        let unreadable =
            || OpenError::Credentials(BadCredentials("the certificate cannot be read".to_owned()));
        let public_key = own.ok_or_else(unreadable)?.public_key;
        let listener = listen(&setup.reach).await.map_err(OpenError::Listen)?;
        let port = listener.local_addr().map_err(OpenError::Listen)?.port();
        let udp = setup.reach.announcements.and_then(|how| Udp::open(setup.reach.address, how));
        let (events, received) = mpsc::channel(EVENTS);
        let registry = Mutex::new(Registry::new(setup.pins, setup.strangers, &setup.limits));
        let (me, limits, clock) = (setup.me, setup.limits, setup.clock);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let shared = Shared { me, public_key, tls, limits, clock, events, registry, port, udp, stop, tasks };
        let endpoint = Self { shared: Arc::new(shared) };
        let shared = &endpoint.shared;
        shared.spawn(connections::accept(shared.clone(), listener));
        if endpoint.hears() {
            shared.spawn(connections::hear(shared.clone()));
        }
        Ok((endpoint, received))
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.shared.port
    }

    /// Whether it hears announcements. It does not if another program has the port to itself.
    pub fn hears(&self) -> bool {
        self.shared.udp.as_ref().is_some_and(|udp| udp.hears)
    }

    /// Announces this machine to the network, so that devices connect. Announcements get lost: repeat it every few
    /// seconds while somebody looks for devices. Fails if none could be sent.
    pub async fn announce(&self) -> io::Result<()> {
        let Some(udp) = &self.shared.udp else { return Err(io::ErrorKind::Unsupported.into()) };
        self.shared.announce(&udp.announcements.addresses()).await
    }

    /// Announces this machine to one address.
    pub async fn announce_to(&self, address: IpAddr) -> io::Result<()> {
        self.shared.announce_to(address).await
    }

    /// Connects to a device by its address. Its port is usually 1716.
    pub async fn connect(&self, address: SocketAddr) -> Result<Device, Refused> {
        if !is_local(address.ip()) {
            return Err(Refusal::NotLocal.into());
        }
        let started = self.shared.clock.now();
        let mut outcome = self.dial(address).await;
        if matches!(&outcome, Err(refused) if refused.why.is_passing()) {
            // A device drops one of two connections, such as when it connected to us at the same moment.
            sleep(self.shared.limits.between_connections).await;
            let linked = self.shared.registry().linked_since(started, address.ip());
            outcome = match linked {
                Some(device) => Ok(device),
                None => self.dial(address).await,
            };
        }
        if let Err(refused @ Refused { device: Some(device), .. }) = &outcome
            && self.shared.pin(device).is_some()
        {
            self.shared.report(address.ip(), refused).await;
        }
        outcome
    }

    /// Sets whether unpaired devices may connect. When they may not, those that are there have to leave.
    pub fn set_strangers(&self, strangers: Strangers) {
        self.shared.registry().set_strangers(strangers);
    }

    /// All devices with which there is a link now.
    pub fn devices(&self) -> Vec<Device> {
        self.shared.registry().devices()
    }

    /// Asks a device to pair. The events say what comes of it.
    pub fn request_pairing(&self, device: &DeviceId) -> Result<(), SendError> {
        self.order(device, Order::Tap(Tap::Request))
    }

    /// Agrees to the request of a device, after a person compared the keys. `key` is the one that the person saw:
    /// nothing happens if the request that waits now has another one.
    pub fn accept_pairing(&self, device: &DeviceId, key: &str) -> Result<(), SendError> {
        self.order(device, Order::Accept { key: key.to_owned() })
    }

    /// Refuses the request of a device, or withdraws our own.
    pub fn refuse_pairing(&self, device: &DeviceId) -> Result<(), SendError> {
        self.order(device, Order::Tap(Tap::Reject))
    }

    /// Ends a pairing. A device with which there is no link learns it when it connects while strangers are welcome.
    pub fn unpair(&self, device: &DeviceId) {
        if self.order(device, Order::Tap(Tap::Reject)).is_err() {
            self.shared.registry().cut_off(device);
        }
    }

    /// Ends the link with a device, which stays paired and may come back.
    pub fn disconnect(&self, device: &DeviceId) {
        self.shared.registry().hang_up(device);
    }

    /// Sends a packet to a paired device, and returns when it was handed to the network.
    pub async fn send(&self, device: &DeviceId, packet: Packet) -> Result<(), SendError> {
        let (done, outcome) = oneshot::channel();
        self.order(device, Order::Send(packet, done))?;
        outcome.await.unwrap_or(Err(SendError::NotConnected))
    }

    /// Stops listening, ends all links and waits until that is done.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// Dials in a task of its own, so that it ends properly even if nobody waits for it.
    async fn dial(&self, address: SocketAddr) -> Result<Device, Refused> {
        let dialling = connections::dial(self.shared.clone(), address, None);
        let dialled = self.shared.tasks.spawn(dialling).await;
        dialled.unwrap_or_else(|_| Err(Refusal::Closed.into()))
    }

    fn order(&self, device: &DeviceId, order: Order) -> Result<(), SendError> {
        self.shared.registry().order(device, order)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

async fn listen(reach: &Reach) -> io::Result<TcpListener> {
    let mut failed = io::ErrorKind::AddrInUse.into();
    for port in reach.ports.clone() {
        match TcpListener::bind((reach.address, port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
