//! Who is paired, who is linked, and who holds a place: the state of an endpoint.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::event::{Device, Pin, SendError};
use super::identity::{DeviceId, Identity};
use super::limits::{Limits, Pace, Place, Places};
use super::packet::Packet;
use super::pairing::Tap;
use super::refusal::{Refusal, Refused};

/// How many orders and how many lines wait for one link.
pub(super) const WAITING: usize = 64;

/// A link that is younger than this was made a moment ago.
const FRESH: SignedDuration = SignedDuration::from_secs(5);

/// How often a link that did not last is tried again.
const BETWEEN_RETRIES: Duration = Duration::from_secs(10);

/// Whether devices that are not paired may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strangers {
    Welcome,
    Refused,
}

/// What a link is told to do.
pub(super) enum Order {
    Tap(Tap),
    /// A person saw this key on the other device as well.
    Accept {
        key: String,
    },
    Send(Packet, Done),
}

/// Who wants to know what became of a packet.
pub(super) type Done = oneshot::Sender<Result<(), SendError>>;

/// The state of an endpoint.
pub(super) struct Registry {
    pins: HashMap<DeviceId, Pin>,
    strangers: Strangers,
    links: HashMap<DeviceId, Linked>,
    places: Places,
    /// How to end the connections that hold a place.
    holders: HashMap<Place, CancellationToken>,
    /// With whom handshakes are under way.
    shaking: Vec<IpAddr>,
    dialled: Pace<DeviceId>,
    retried: Pace<DeviceId>,
    reported: Pace<(Option<DeviceId>, Option<Refusal>)>,
    next_serial: u64,
}

/// A link that is to run.
pub(super) struct NewLink {
    pub(super) identity: Identity,
    pub(super) address: SocketAddr,
    pub(super) certificate: Vec<u8>,
    /// We opened the connection, so the address is where the device listens.
    pub(super) dialled: bool,
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) stop: CancellationToken,
    pub(super) place: Place,
}

/// A link that runs.
struct Linked {
    serial: Serial,
    device: Device,
    certificate: Vec<u8>,
    since: Timestamp,
    orders: mpsc::Sender<Order>,
    stop: CancellationToken,
    /// The place that it holds as long as it is not paired.
    place: Option<Place>,
}

/// Tells a link from those with the same device before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Serial(u64);

/// A link that ended.
pub(super) struct Gone {
    pub(super) device: Device,
    since: Timestamp,
}

impl Registry {
    pub(super) fn new(pins: Vec<Pin>, strangers: Strangers, limits: &Limits) -> Self {
        Self {
            pins: pins.into_iter().map(|pin| (pin.device.clone(), pin)).collect(),
            strangers,
            links: HashMap::new(),
            places: Places::new(limits.strangers),
            holders: HashMap::new(),
            shaking: Vec::new(),
            dialled: Pace::new(limits.between_connections),
            retried: Pace::new(BETWEEN_RETRIES),
            reported: Pace::new(limits.between_reports),
            next_serial: 0,
        }
    }

    pub(super) fn pin(&self, device: &DeviceId) -> Option<&Pin> {
        self.pins.get(device)
    }

    /// Whether a device is paired, or strangers are welcome.
    pub(super) fn admits(&self, device: &DeviceId) -> bool {
        self.strangers == Strangers::Welcome || self.pins.contains_key(device)
    }

    pub(super) fn set_strangers(&mut self, strangers: Strangers) {
        self.strangers = strangers;
        if strangers == Strangers::Refused {
            let unpaired = self.links.values().filter(|link| !link.device.paired);
            unpaired.for_each(|link| link.stop.cancel());
        }
    }

    pub(super) fn devices(&self) -> Vec<Device> {
        self.links.values().map(|link| link.device.clone()).collect()
    }

    /// The device at an address with which there is a link that was made at that moment or later.
    pub(super) fn linked_since(&self, moment: Timestamp, address: IpAddr) -> Option<Device> {
        let here = |link: &&Linked| link.since >= moment && link.device.address.ip() == address;
        self.links.values().find(here).map(|link| link.device.clone())
    }

    pub(super) fn order(&self, device: &DeviceId, order: Order) -> Result<(), SendError> {
        let link = self.links.get(device).ok_or(SendError::NotConnected)?;
        link.orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Busy,
            mpsc::error::TrySendError::Closed(_) => SendError::NotConnected,
        })
    }

    /// A device was paired: if it is linked, it no longer counts as a stranger.
    pub(super) fn paired(&mut self, pin: Pin) {
        let place = self.links.get_mut(&pin.device).and_then(|link| {
            link.device.paired = true;
            link.place.take()
        });
        self.leave(place);
        self.pins.insert(pin.device.clone(), pin);
    }

    /// A device is no longer paired: if it is linked, it counts as a stranger again.
    pub(super) fn unpaired(&mut self, device: &DeviceId) {
        self.pins.remove(device);
        let Some(link) = self.links.get_mut(device) else { return };
        link.device.paired = false;
        let (address, stop) = (link.device.address.ip(), link.stop.clone());
        let place = self.enter(address, stop);
        if let Some(link) = self.links.get_mut(device) {
            link.place = Some(place);
        }
    }

    /// Forgets a device that cannot be told, and ends its link if there is one.
    pub(super) fn cut_off(&mut self, device: &DeviceId) {
        self.pins.remove(device);
        self.hang_up(device);
    }

    /// Ends the link with a device.
    pub(super) fn hang_up(&self, device: &DeviceId) {
        if let Some(link) = self.links.get(device) {
            link.stop.cancel();
        }
    }

    /// Takes a place for a connection, and ends the one that has to give way.
    pub(super) fn enter(&mut self, address: IpAddr, stop: CancellationToken) -> Place {
        let (place, gone) = self.places.enter(address);
        if let Some(gone) = gone.and_then(|gone| self.holders.remove(&gone)) {
            gone.cancel();
        }
        self.holders.insert(place, stop);
        place
    }

    pub(super) fn leave(&mut self, place: Option<Place>) {
        if let Some(place) = place {
            self.places.leave(place);
            self.holders.remove(&place);
        }
    }

    /// A handshake with an address begins.
    pub(super) fn shakes(&mut self, address: IpAddr) {
        self.shaking.push(address);
    }

    /// A handshake with an address is over.
    pub(super) fn has_shaken(&mut self, address: IpAddr) {
        if let Some(at) = self.shaking.iter().position(|other| *other == address) {
            self.shaking.swap_remove(at);
        }
    }

    /// Files a link, and says whether its device is paired. It replaces an older one with the same device: two devices
    /// that connect to each other at the same moment must keep the same connection, and all implementations keep the
    /// newest.
    pub(super) fn link(&mut self, new: NewLink, now: Timestamp) -> Result<(Serial, Device), Refusal> {
        let NewLink { identity, address, certificate, dialled, orders, stop, place } = new;
        let id = identity.id.clone();
        let recognized = self.recognizes(&id, &certificate);
        let place = if recognized == Ok(false) {
            Some(place)
        } else {
            self.leave(Some(place));
            None
        };
        let device = Device { identity, address, dialled, paired: recognized? };
        if let Some(pin) = self.pins.get_mut(&id) {
            pin.protocol = pin.protocol.max(device.identity.protocol);
        }
        let serial = Serial(self.next_serial);
        self.next_serial += 1;
        let since = now;
        let linked = Linked { serial, device: device.clone(), certificate, since, orders, stop, place };
        if let Some(older) = self.links.insert(id, linked) {
            older.stop.cancel();
            self.leave(older.place);
        }
        Ok((serial, device))
    }

    /// Whether a certificate shows that a device is paired. It was checked during the handshake, but the device may have
    /// been paired or unpaired since.
    fn recognizes(&self, device: &DeviceId, certificate: &[u8]) -> Result<bool, Refusal> {
        let other = |known: &Vec<u8>| known != certificate;
        let pin = self.pins.get(device);
        if pin.is_some_and(|pin| other(&pin.certificate))
            || self.links.get(device).is_some_and(|link| other(&link.certificate))
        {
            return Err(Refusal::WrongCertificate);
        }
        if self.admits(device) { Ok(pin.is_some()) } else { Err(Refusal::Stranger) }
    }

    /// Removes a link that ended. Returns it unless it had been replaced.
    pub(super) fn forget(&mut self, device: &DeviceId, serial: Serial) -> Option<Gone> {
        self.links.get(device).filter(|link| link.serial == serial)?;
        let Linked { device, since, place, .. } = self.links.remove(device)?;
        self.leave(place);
        Some(Gone { device, since })
    }

    /// Whether to connect to a device that announced itself from an address. Not if it is connecting already or did a
    /// moment ago; an older link may be dead without our knowing.
    pub(super) fn answers(&mut self, device: &DeviceId, from: IpAddr, now: Timestamp) -> bool {
        let fresh = self.links.get(device).is_some_and(|link| is_fresh(link.since, now));
        let idle = !fresh && !self.shaking.contains(&from);
        idle && self.admits(device) && self.dialled.allow(device.clone(), now).is_some()
    }

    /// Whether to try again with a device whose link did not last.
    pub(super) fn retries(&mut self, gone: &Gone, now: Timestamp) -> bool {
        let device = &gone.device.identity.id;
        is_fresh(gone.since, now) && self.retried.allow(device.clone(), now).is_some()
    }

    /// Whether a device may be connected to and is not.
    pub(super) fn misses(&self, device: &DeviceId) -> bool {
        self.admits(device) && !self.links.contains_key(device)
    }

    /// Whether to report a refusal, and how many it stands for. All strangers count as one.
    pub(super) fn reports(&mut self, refused: &Refused, now: Timestamp) -> Option<u32> {
        let known = refused.device.clone().filter(|device| self.pins.contains_key(device));
        let why = known.is_some().then_some(refused.why);
        self.reported.allow((known, why), now)
    }
}

fn is_fresh(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since).abs() < FRESH
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::identity::{DeviceKind, DeviceName, Protocol};
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn id() -> DeviceId {
        DeviceId::from_random([7; 16])
    }

    fn pin(certificate: &[u8]) -> Pin {
        Pin { device: id(), certificate: certificate.to_vec(), protocol: Protocol::V7 }
    }

    fn registry(pins: Vec<Pin>, strangers: Strangers) -> Registry {
        Registry::new(pins, strangers, &Limits::default())
    }

    /// Links the device with a certificate, and returns how to see that the link was ended.
    fn link(
        registry: &mut Registry,
        certificate: &[u8],
    ) -> (Result<(Serial, Device), Refusal>, CancellationToken) {
        let stop = CancellationToken::new();
        let place = registry.enter(HERE, stop.clone());
        let identity = Identity {
            id: id(),
            name: DeviceName::clean("Pixel"),
            kind: DeviceKind::Phone,
            protocol: Protocol::V8,
            incoming: vec![],
            outgoing: vec![],
        };
        let new = NewLink {
            identity,
            address: SocketAddr::new(HERE, 1716),
            certificate: certificate.to_vec(),
            dialled: true,
            orders: mpsc::channel(1).0,
            stop: stop.clone(),
            place,
        };
        (registry.link(new, NOW), stop)
    }

    #[test]
    fn whether_a_device_is_paired_is_decided_when_it_is_linked() {
        for (name, pins, strangers, expected) in [
            ("a stranger", vec![], Strangers::Welcome, Ok(false)),
            ("a stranger while nobody looks", vec![], Strangers::Refused, Err(Refusal::Stranger)),
            ("paired", vec![pin(b"a")], Strangers::Refused, Ok(true)),
            ("paired with another one", vec![pin(b"b")], Strangers::Welcome, Err(Refusal::WrongCertificate)),
        ] {
            let mut registry = registry(pins, strangers);
            let (linked, _) = link(&mut registry, b"a");
            assert_eq!(linked.map(|(_, device)| device.paired), expected, "{name}");
            assert_eq!(
                registry.holders.len(),
                usize::from(expected == Ok(false)),
                "{name}: only strangers hold a place"
            );
        }
    }

    #[test]
    fn the_newest_link_is_kept_and_the_newest_version_counts() {
        let mut registry = registry(vec![pin(b"a")], Strangers::Refused);
        let (first, stop) = link(&mut registry, b"a");
        let (second, _) = link(&mut registry, b"a");
        assert!(stop.is_cancelled());
        assert_eq!(registry.pin(&id()).map(|pin| pin.protocol), Some(Protocol::V8));
        assert!(registry.forget(&id(), first.unwrap().0).is_none(), "it was replaced");
        assert!(registry.forget(&id(), second.unwrap().0).is_some());
        assert!(registry.devices().is_empty());
    }

    #[test]
    fn an_announcement_is_answered_once_and_not_while_connecting() {
        let mut registry = registry(vec![pin(b"a")], Strangers::Refused);
        registry.shakes(HERE);
        assert!(!registry.answers(&id(), HERE, NOW), "a handshake is under way");
        registry.has_shaken(HERE);
        assert!(!registry.answers(&DeviceId::from_random([8; 16]), HERE, NOW), "a stranger");
        assert!(registry.answers(&id(), HERE, NOW));
        assert!(!registry.answers(&id(), HERE, NOW), "too soon");
        link(&mut registry, b"a").0.unwrap();
        let later = |seconds| Timestamp::from_second(seconds).unwrap();
        assert!(!registry.answers(&id(), HERE, later(4)), "the link is new");
        assert!(registry.answers(&id(), HERE, later(6)), "the link may be dead");
    }

    #[test]
    fn a_short_link_is_tried_again_once() {
        let mut registry = registry(vec![pin(b"a")], Strangers::Refused);
        for expected in [true, false] {
            let (linked, _) = link(&mut registry, b"a");
            let gone = registry.forget(&id(), linked.unwrap().0).unwrap();
            assert!(registry.misses(&id()));
            assert_eq!(registry.retries(&gone, NOW), expected);
        }
    }
}
