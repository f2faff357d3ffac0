//! This machine as a device on the network: listens, announces itself, and keeps links with other devices.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::clock::Clock;
use kai_assistant::lock::lock;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::certificate::{BadCredentials, Credentials, Peer};
use super::discovery::{self, UDP_PORT};
use super::handshake::{self, Established, Refusal, Refused};
use super::identity::{Announced, DeviceId, Identity, Occasion, PORTS, Protocol};
use super::limits::{Limits, Pace, Place, Places, is_local};
use super::link::{Link, Order, WAITING};
use super::packet::Packet;
use super::pairing::{By, Failure, Tap};
use super::tls::Tls;

/// How many events wait for the caller. Beyond that, devices are not read from.
const EVENTS: usize = 64;

/// As long as a link is this young, an announcement of its device changes nothing.
const FRESH: SignedDuration = SignedDuration::from_secs(5);

/// How often a device is asked to connect again after a link that did not last.
const BETWEEN_HEALINGS: Duration = Duration::from_secs(10);

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

/// How devices hear each other.
#[derive(Debug, Clone)]
pub struct Announcements {
    pub port: u16,
    /// Whom our own are sent to.
    pub to: Vec<SocketAddr>,
}

impl Default for Reach {
    /// The whole local network, on the ports that every device uses.
    fn default() -> Self {
        let everyone = SocketAddr::from((Ipv4Addr::BROADCAST, UDP_PORT));
        Self {
            address: Ipv4Addr::UNSPECIFIED.into(),
            ports: PORTS,
            announcements: Some(Announcements { port: UDP_PORT, to: vec![everyone] }),
        }
    }
}

/// Whether devices that are not paired may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strangers {
    Welcome,
    Refused,
}

/// What makes a device recognizable: it must show this certificate and speak this version or a newer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub device: DeviceId,
    pub certificate: Vec<u8>,
    pub protocol: Protocol,
}

/// A device with which there is a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub identity: Identity,
    pub address: SocketAddr,
    pub paired: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// There is a new link with a device. It replaces an older one.
    Linked(Device),
    /// The link with a device ended.
    Lost {
        device: DeviceId,
        why: Refusal,
    },
    /// We asked a device to pair. Both now show this key.
    PairingRequested {
        device: DeviceId,
        key: String,
    },
    /// A device asks to be paired, and shows this key.
    PairingAsked {
        device: DeviceId,
        key: String,
    },
    PairingFailed {
        device: DeviceId,
        why: Failure,
    },
    /// A device is paired. Keep the pin; it is already in force.
    Paired(Pin),
    /// A device is no longer paired. Forget the pin.
    Unpaired {
        device: DeviceId,
        by: By,
    },
    /// A paired device sent something.
    Packet(DeviceId, Packet),
    /// Somebody was refused. Told once a minute for each paired device and reason, and once a minute for all strangers.
    Refused {
        from: IpAddr,
        refused: Refused,
        times: u32,
    },
}

/// Why a packet was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// There is no link with the device, so nothing was sent.
    NotConnected,
    /// The device is not paired, so nothing was sent.
    NotPaired,
    /// The device takes packets too slowly, so nothing was sent.
    Busy,
    /// The link broke while the packet was being sent. The device may or may not have it.
    Unsure,
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

/// What all tasks of an endpoint share.
pub(super) struct Shared {
    pub(super) me: Identity,
    pub(super) public_key: Vec<u8>,
    pub(super) tls: Tls,
    pub(super) limits: Limits,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: mpsc::Sender<Event>,
    state: Mutex<State>,
    /// Where we listen.
    port: u16,
    udp: Option<Udp>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

struct Udp {
    socket: UdpSocket,
    hears: bool,
    announcements: Announcements,
}

struct State {
    pins: HashMap<DeviceId, Pin>,
    strangers: Strangers,
    links: HashMap<DeviceId, Linked>,
    places: Places,
    /// How to end the connections that hold a place.
    holders: HashMap<Place, CancellationToken>,
    /// With whom handshakes are under way.
    shaking: Vec<IpAddr>,
    dialled: Pace<DeviceId>,
    healed: Pace<DeviceId>,
    reported: Pace<(Option<DeviceId>, Option<Refusal>)>,
    next_serial: u64,
}

struct Linked {
    serial: u64,
    device: Device,
    certificate: Vec<u8>,
    since: Timestamp,
    orders: mpsc::Sender<Order>,
    stop: CancellationToken,
    place: Option<Place>,
    /// We opened the connection, so the address is where the device listens.
    dialled: bool,
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
        let state = Mutex::new(State::new(setup.pins, setup.strangers, &setup.limits));
        let (me, limits, clock) = (setup.me, setup.limits, setup.clock);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let shared = Shared { me, public_key, tls, limits, clock, events, state, port, udp, stop, tasks };
        let shared = Arc::new(shared);
        shared.spawn(accept(shared.clone(), listener));
        if shared.udp.as_ref().is_some_and(|udp| udp.hears) {
            shared.spawn(hear(shared.clone()));
        }
        Ok((Self { shared }, received))
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.shared.port
    }

    /// Whether it hears announcements. It does not if another program has the port to itself.
    pub fn hears(&self) -> bool {
        self.shared.udp.as_ref().is_some_and(|udp| udp.hears)
    }

    /// Announces this machine to the network, so that devices connect. Fails if no announcement could be sent.
    pub async fn announce(&self) -> io::Result<()> {
        let to = self.shared.udp.as_ref().map(|udp| udp.announcements.to.clone());
        self.shared.announce(&to.unwrap_or_default()).await
    }

    /// Announces this machine to one address.
    pub async fn announce_to(&self, address: IpAddr) -> io::Result<()> {
        self.shared.announce_to(address).await
    }

    /// Connects to a device by its address. Its port is usually 1716.
    pub async fn connect(&self, address: SocketAddr) -> Result<Device, Refused> {
        let started = self.shared.clock.now();
        let mut outcome = self.dial(address).await;
        if matches!(&outcome, Err(refused) if refused.why.is_passing()) {
            // A device drops one of two connections, such as when it connected to us at the same moment.
            sleep(self.shared.limits.between_connections).await;
            outcome = match self.shared.linked_since(started, address.ip()) {
                Some(device) => Ok(device),
                None => self.dial(address).await,
            };
        }
        if let Err(refused) = &outcome {
            self.shared.report_paired(address.ip(), refused).await;
        }
        outcome
    }

    /// Sets whether unpaired devices may connect. When they may not, those that are there have to leave.
    pub fn set_strangers(&self, strangers: Strangers) {
        let mut state = self.shared.state();
        state.strangers = strangers;
        if strangers == Strangers::Refused {
            state.links.values().filter(|link| !link.device.paired).for_each(|link| link.stop.cancel());
        }
    }

    /// All devices with which there is a link now.
    pub fn devices(&self) -> Vec<Device> {
        self.shared.state().links.values().map(|link| link.device.clone()).collect()
    }

    /// Asks a device to pair. The events say what comes of it.
    pub fn request_pairing(&self, device: &DeviceId) -> Result<(), SendError> {
        self.tap(device, Tap::Request)
    }

    /// Agrees to the request of a device, after a person compared the keys. `key` is the one that the person saw:
    /// nothing happens if the request that waits now has another one.
    pub fn accept_pairing(&self, device: &DeviceId, key: &str) -> Result<(), SendError> {
        self.order(device, Order::Accept { key: key.to_owned() })
    }

    /// Refuses the request of a device, or withdraws our own.
    pub fn refuse_pairing(&self, device: &DeviceId) -> Result<(), SendError> {
        self.tap(device, Tap::Reject)
    }

    /// Ends a pairing. A device with which there is no link is told when it connects the next time.
    pub fn unpair(&self, device: &DeviceId) {
        if self.tap(device, Tap::Reject).is_err() {
            self.shared.state().pins.remove(device);
        }
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
        let shared = self.shared.clone();
        let dialling = self.shared.tasks.spawn(async move { shared.dial(address, None).await });
        dialling.await.unwrap_or_else(|_| Err(Refusal::Closed.into()))
    }

    fn tap(&self, device: &DeviceId, tap: Tap) -> Result<(), SendError> {
        self.order(device, Order::Tap(tap))
    }

    fn order(&self, device: &DeviceId, order: Order) -> Result<(), SendError> {
        let state = self.shared.state();
        let link = state.links.get(device).ok_or(SendError::NotConnected)?;
        link.orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Busy,
            mpsc::error::TrySendError::Closed(_) => SendError::NotConnected,
        })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl Udp {
    /// If the port cannot be shared, we can still speak, but not hear.
    fn open(address: IpAddr, announcements: Announcements) -> Option<Self> {
        let shared = discovery::open(address, announcements.port).ok();
        let hears = shared.is_some();
        let socket = shared.or_else(|| discovery::open(address, 0).ok())?;
        Some(Self { socket, hears, announcements })
    }
}

impl State {
    fn new(pins: Vec<Pin>, strangers: Strangers, limits: &Limits) -> Self {
        Self {
            pins: pins.into_iter().map(|pin| (pin.device.clone(), pin)).collect(),
            strangers,
            links: HashMap::new(),
            places: Places::new(limits.strangers),
            holders: HashMap::new(),
            shaking: Vec::new(),
            dialled: Pace::new(limits.between_connections),
            healed: Pace::new(BETWEEN_HEALINGS),
            reported: Pace::new(limits.between_reports),
            next_serial: 0,
        }
    }

    /// Takes a place for a connection, and ends the one that has to give way.
    fn enter(&mut self, address: IpAddr, stop: CancellationToken) -> Place {
        let (place, gone) = self.places.enter(address);
        if let Some(gone) = gone.and_then(|gone| self.holders.remove(&gone)) {
            gone.cancel();
        }
        self.holders.insert(place, stop);
        place
    }

    /// Whether there is a link that was made a moment ago. An older one may be dead without our knowing.
    fn is_fresh(&self, device: &DeviceId, now: Timestamp) -> bool {
        self.links.get(device).is_some_and(|link| now.duration_since(link.since).abs() < FRESH)
    }

    fn leave(&mut self, place: Place) {
        self.places.leave(place);
        self.holders.remove(&place);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    pub(super) fn pin(&self, device: &DeviceId) -> Option<Pin> {
        self.state().pins.get(device).cloned()
    }

    pub(super) fn welcomes_strangers(&self) -> bool {
        self.state().strangers == Strangers::Welcome
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

    /// A linked device was paired: it no longer counts as a stranger.
    pub(super) fn paired(&self, pin: Pin) {
        let mut state = self.state();
        let place = state.links.get_mut(&pin.device).and_then(|link| {
            link.device.paired = true;
            link.place.take()
        });
        if let Some(place) = place {
            state.leave(place);
        }
        state.pins.insert(pin.device.clone(), pin);
    }

    /// A linked device is no longer paired: it counts as a stranger again.
    pub(super) fn unpaired(&self, device: &DeviceId) {
        let mut state = self.state();
        state.pins.remove(device);
        let Some(link) = state.links.get_mut(device) else { return };
        link.device.paired = false;
        let (address, stop) = (link.device.address.ip(), link.stop.clone());
        let place = state.enter(address, stop);
        if let Some(link) = state.links.get_mut(device) {
            link.place = Some(place);
        }
    }

    async fn dial(
        self: &Arc<Self>,
        address: SocketAddr,
        expected: Option<&Identity>,
    ) -> Result<Device, Refused> {
        let stop = self.stop.child_token();
        let place = self.state().enter(address.ip(), stop.clone());
        let shaken = handshake::dial(self, address, expected);
        let established = self.within(shaken, address.ip(), &stop).await;
        self.link(established, place, stop)
    }

    fn linked_since(&self, moment: Timestamp, address: IpAddr) -> Option<Device> {
        let state = self.state();
        let mut links = state.links.values();
        let link = links.find(|link| link.since >= moment && link.device.address.ip() == address);
        link.map(|link| link.device.clone())
    }

    /// Takes a connection that somebody opened.
    async fn admit(self: Arc<Self>, stream: TcpStream, from: SocketAddr) {
        let stop = self.stop.child_token();
        let place = self.state().enter(from.ip(), stop.clone());
        let shaken = handshake::accept(&self, stream, from);
        let established = self.within(shaken, from.ip(), &stop).await;
        if let Err(refused) = self.link(established, place, stop) {
            self.report(from.ip(), &refused).await;
        }
    }

    async fn within(
        &self,
        shaken: impl Future<Output = Result<Established, Refused>>,
        address: IpAddr,
        stop: &CancellationToken,
    ) -> Result<Established, Refused> {
        self.state().shaking.push(address);
        let established = tokio::select! {
            () = stop.cancelled() => Err(Refusal::TooOften.into()),
            shaken = timeout(self.limits.handshake, shaken) => {
                shaken.unwrap_or_else(|_| Err(Refusal::TooSlow.into()))
            }
        };
        let mut state = self.state();
        if let Some(at) = state.shaking.iter().position(|other| *other == address) {
            state.shaking.swap_remove(at);
        }
        established
    }

    /// Starts the link of an established connection, or frees its place.
    fn link(
        self: &Arc<Self>,
        established: Result<Established, Refused>,
        place: Place,
        stop: CancellationToken,
    ) -> Result<Device, Refused> {
        let established = established.inspect_err(|_| self.state().leave(place))?;
        keep_alive(established.stream.get_ref().0);
        let (orders, ordered) = mpsc::channel(WAITING);
        let (serial, device) = self
            .register(&established, place, orders, stop.clone())
            .map_err(|why| Refused { device: Some(established.identity.id.clone()), why })
            .inspect_err(|_| self.state().leave(place))?;
        let link = Link::new(self.clone(), established, stop);
        let (shared, linked) = (self.clone(), Event::Linked(device.clone()));
        self.spawn(async move {
            let id = link.device();
            let why = link.run(linked, ordered).await;
            if let Some(gone) = shared.forget(&id, serial) {
                shared.tell(Event::Lost { device: id, why }).await;
                shared.heal(&gone).await;
            }
        });
        Ok(device)
    }

    fn register(
        &self,
        established: &Established,
        place: Place,
        orders: mpsc::Sender<Order>,
        stop: CancellationToken,
    ) -> Result<(u64, Device), Refusal> {
        let Established { identity, certificate, address, paired, dialled, .. } = established;
        let now = self.clock.now();
        let mut state = self.state();
        if let Some(older) = state.links.get(&identity.id) {
            if older.certificate != *certificate {
                return Err(Refusal::WrongCertificate);
            }
            // Two devices that connect to each other at the same moment must keep the same connection: all
            // implementations keep the newest.
            older.stop.cancel();
        }
        let device = Device { identity: identity.clone(), address: *address, paired: *paired };
        let serial = state.next_serial;
        state.next_serial += 1;
        let place = if *paired {
            state.leave(place);
            None
        } else {
            Some(place)
        };
        if let Some(pin) = state.pins.get_mut(&identity.id) {
            pin.protocol = pin.protocol.max(identity.protocol);
        }
        let (certificate, since) = (certificate.clone(), now);
        let linked = Linked {
            serial,
            device: device.clone(),
            certificate,
            since,
            orders,
            stop,
            place,
            dialled: *dialled,
        };
        let older = state.links.insert(identity.id.clone(), linked);
        if let Some(place) = older.and_then(|older| older.place) {
            state.leave(place);
        }
        Ok((serial, device))
    }

    /// Removes a link that ended. Returns it unless it had been replaced.
    fn forget(&self, device: &DeviceId, serial: u64) -> Option<Linked> {
        let mut state = self.state();
        state.links.get(device).filter(|link| link.serial == serial)?;
        let gone = state.links.remove(device)?;
        if let Some(place) = gone.place {
            state.leave(place);
        }
        Some(gone)
    }

    /// Two devices that connect to each other at the same moment can each give up the connection that the other keeps.
    /// So after a link that did not last, it is tried once more: by whoever opened the connection.
    async fn heal(self: &Arc<Self>, gone: &Linked) {
        let device = &gone.device.identity.id;
        let now = self.clock.now();
        let short = now.duration_since(gone.since).abs() < FRESH;
        if !short || self.state().healed.allow(device.clone(), now).is_none() {
            return;
        }
        tokio::select! {
            () = self.stop.cancelled() => return,
            () = sleep(self.limits.between_connections) => {}
        }
        let wanted = {
            let state = self.state();
            let welcome = state.strangers == Strangers::Welcome || state.pins.contains_key(device);
            welcome && !state.links.contains_key(device)
        };
        // If that does not help either, the device is as gone as any other.
        if wanted && gone.dialled {
            drop(self.dial(gone.device.address, Some(&gone.device.identity)).await);
        } else if wanted {
            drop(self.announce_to(gone.device.address.ip()).await);
        }
    }

    async fn announce_to(&self, address: IpAddr) -> io::Result<()> {
        let port = self.udp.as_ref().map_or(UDP_PORT, |udp| udp.announcements.port);
        self.announce(&[SocketAddr::new(address, port)]).await
    }

    async fn announce(&self, to: &[SocketAddr]) -> io::Result<()> {
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

    /// Reports a refusal, unless the same was reported a moment ago.
    async fn report(&self, from: IpAddr, refused: &Refused) {
        let now = self.clock.now();
        let times = {
            let mut state = self.state();
            let known = refused.device.clone().filter(|device| state.pins.contains_key(device));
            let why = known.is_some().then_some(refused.why);
            state.reported.allow((known, why), now)
        };
        if let Some(times) = times {
            self.tell(Event::Refused { from, refused: refused.clone(), times }).await;
        }
    }

    async fn report_paired(&self, from: IpAddr, refused: &Refused) {
        if refused.device.as_ref().is_some_and(|device| self.pin(device).is_some()) {
            self.report(from, refused).await;
        }
    }

    /// Connects to a device that announced itself, if it is paired or strangers are welcome.
    fn answer(self: &Arc<Self>, announced: Announced, from: SocketAddr) {
        let Announced { identity, port: Some(port), .. } = announced else { return };
        if identity.id == self.me.id {
            return;
        }
        let now = self.clock.now();
        {
            let mut state = self.state();
            let wanted = state.strangers == Strangers::Welcome || state.pins.contains_key(&identity.id);
            let under_way = state.shaking.contains(&from.ip()) || state.is_fresh(&identity.id, now);
            if !wanted || under_way || state.dialled.allow(identity.id.clone(), now).is_none() {
                return;
            }
        }
        let shared = self.clone();
        self.spawn(async move {
            let address = SocketAddr::new(from.ip(), port);
            if let Err(refused) = shared.dial(address, Some(&identity)).await {
                shared.report(from.ip(), &refused).await;
            }
        });
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

/// How long to wait after the machine refused a connection, such as for want of file descriptors.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) if is_local(from.ip()) => shared.spawn(shared.clone().admit(stream, from)),
                Ok((_, from)) => shared.report(from.ip(), &Refusal::NotLocal.into()).await,
                Err(_) => sleep(AFTER_TROUBLE).await,
            }
        }
    }
}

async fn hear(shared: Arc<Shared>) {
    let Some(udp) = &shared.udp else { return };
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            heard = discovery::hear(&udp.socket) => match heard {
                Ok((announced, from)) => shared.answer(announced, from),
                Err(_) => sleep(AFTER_TROUBLE).await,
            }
        }
    }
}

/// Makes the system notice within about a minute when the other side is gone without a word.
fn keep_alive(stream: &TcpStream) {
    // A link works without any of this; it is only noticed later that it broke.
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, Duration::from_secs(30));
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    drop(stream.set_nodelay(true));
}
