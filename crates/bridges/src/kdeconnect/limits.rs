//! Limits that keep strangers on the network from costing more than a little memory and a line in the log. Pure.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// How long things may take and how large they may be.
#[derive(Debug, Clone)]
pub struct Limits {
    /// For connecting to an address.
    pub connecting: Duration,
    /// For everything between a new connection and a link: identity, encryption, identity again.
    pub handshake: Duration,
    /// How long a device of which only the address is known may take to say that it speaks version 8.
    pub silence_of_7: Duration,
    /// How long a pairing request waits for its answer.
    pub pairing: Duration,
    /// For writing one packet.
    pub writing: Duration,
    /// The longest identity and the longest packet of an unpaired device, in bytes.
    pub longest_identity: usize,
    /// The longest packet of a paired device, in bytes.
    pub longest_packet: usize,
    /// How many packets an unpaired device may send before it is cut off.
    pub packets_before_pairing: u32,
    /// How many connections may be unpaired, or not that far yet, at a time.
    pub strangers: usize,
    /// The shortest time between two connections to or from the same device.
    pub between_connections: Duration,
    /// The shortest time between two reports of the same kind of refusal.
    pub between_reports: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connecting: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            silence_of_7: Duration::from_secs(3),
            pairing: Duration::from_secs(30),
            writing: Duration::from_secs(20),
            longest_identity: 8 * 1024,
            longest_packet: 32 * 1024 * 1024,
            packets_before_pairing: 20,
            strangers: 16,
            between_connections: Duration::from_secs(1),
            between_reports: Duration::from_mins(1),
        }
    }
}

/// How long to wait before trying to reach a device again after so many failed attempts: from a second, doubling, to
/// five minutes.
pub fn back_off(failed_attempts: u32) -> Duration {
    Duration::from_secs(1u64.checked_shl(failed_attempts).unwrap_or(u64::MAX).clamp(1, 300))
}

/// Whether an address belongs to a local network. Others have no business with a phone.
pub(super) fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared(v4),
        IpAddr::V6(v6) => v6.is_loopback() || is_unique_local(v6) || v6.is_unicast_link_local(),
    }
}

/// Addresses that providers, and private networks across them, share: 100.64.0.0/10.
fn is_shared(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 100 && (64..128).contains(&second)
}

fn is_unique_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xfe00 == 0xfc00
}

/// The connections of strangers. A newcomer always gets a place; if there is none, the address that holds the most
/// loses its oldest.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    /// Oldest first.
    taken: Vec<(Place, IpAddr)>,
    next: u64,
}

/// The place of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place(u64);

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), taken: Vec::new(), next: 0 }
    }

    /// Gives a place to a newcomer, and says who has to go for that.
    pub(super) fn enter(&mut self, address: IpAddr) -> (Place, Option<Place>) {
        let gone = (self.taken.len() >= self.most).then(|| self.send_away()).flatten();
        let place = Place(self.next);
        self.next += 1;
        self.taken.push((place, address));
        (place, gone)
    }

    pub(super) fn leave(&mut self, place: Place) {
        self.taken.retain(|(taken, _)| *taken != place);
    }

    fn send_away(&mut self) -> Option<Place> {
        let held = |address: IpAddr| self.taken.iter().filter(|(_, other)| *other == address).count();
        let most = self.taken.iter().map(|(_, address)| held(*address)).max()?;
        let oldest = self.taken.iter().position(|(_, address)| held(*address) == most)?;
        Some(self.taken.remove(oldest).0)
    }
}

/// Most things that [`Pace`] remembers at a time.
const REMEMBERED: usize = 256;

/// Lets the same thing happen only so often, and counts how often it was held back.
#[derive(Debug)]
pub(super) struct Pace<K> {
    between: SignedDuration,
    last: HashMap<K, (Timestamp, u32)>,
}

impl<K: Hash + Eq> Pace<K> {
    pub(super) fn new(between: Duration) -> Self {
        let between = SignedDuration::try_from(between).unwrap_or(SignedDuration::MAX);
        Self { between, last: HashMap::new() }
    }

    /// `None` if it is too soon. Otherwise how often it happened since it was last let through, this time included.
    pub(super) fn allow(&mut self, key: K, now: Timestamp) -> Option<u32> {
        let between = self.between;
        let recent = |at: Timestamp| now.duration_since(at).abs() < between;
        if let Some((at, held_back)) = self.last.get_mut(&key) {
            if recent(*at) {
                *held_back = held_back.saturating_add(1);
                return None;
            }
            let times = held_back.saturating_add(1);
            (*at, *held_back) = (now, 0);
            return Some(times);
        }
        if self.last.len() >= REMEMBERED {
            self.last.retain(|_, (at, _)| recent(*at));
        }
        // Whoever makes up this many names gets nothing through until the old ones are forgotten.
        (self.last.len() < REMEMBERED).then(|| self.last.insert(key, (now, 0))).map(|_| 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_local_addresses_count_as_local() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("10.77.0.1", true),
            ("192.168.1.20", true),
            ("172.16.0.1", true),
            ("169.254.3.4", true),
            ("100.64.0.1", true),
            ("100.128.0.1", false),
            ("8.8.8.8", false),
            ("::1", true),
            ("fd00::1", true),
            ("fe80::1", true),
            ("2001:db8::1", false),
            ("::ffff:192.168.1.20", true),
            ("::ffff:8.8.8.8", false),
        ] {
            assert_eq!(is_local(ip(address)), expected, "{address}");
        }
    }

    #[test]
    fn the_limits_are_what_was_promised() {
        let limits = Limits::default();
        assert_eq!((limits.longest_identity, limits.longest_packet), (8 * 1024, 32 * 1024 * 1024));
        assert_eq!(
            (limits.pairing, limits.between_reports),
            (Duration::from_secs(30), Duration::from_mins(1))
        );
    }

    #[test]
    fn a_flood_from_one_address_only_displaces_itself() {
        let mut places = Places::new(3);
        let (quiet, none) = places.enter(ip("10.0.0.1"));
        assert_eq!(none, None);
        let (first, _) = places.enter(ip("10.0.0.2"));
        let (second, _) = places.enter(ip("10.0.0.2"));
        let (third, gone) = places.enter(ip("10.0.0.2"));
        assert_eq!(gone, Some(first));
        places.leave(third);
        let (_, gone) = places.enter(ip("10.0.0.3"));
        assert_eq!(gone, None, "there was a place");
        let (_, gone) = places.enter(ip("10.0.0.4"));
        assert_eq!(gone, Some(quiet), "all hold one: the oldest goes");
        let (_, gone) = places.enter(ip("10.0.0.5"));
        assert_eq!(gone, Some(second));
    }

    #[test]
    fn the_same_thing_is_let_through_only_so_often() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut pace = Pace::new(Duration::from_mins(1));
        for (key, second, expected) in [
            ("a", 100, Some(1)),
            ("a", 101, None),
            ("b", 101, Some(1)),
            ("a", 159, None),
            ("a", 160, Some(3)),
            ("a", 161, None),
            // A clock that was set back does not hold anything back for long.
            ("a", 10, Some(2)),
        ] {
            assert_eq!(pace.allow(key, at(second)), expected, "{key} at {second}");
        }
    }

    #[test]
    fn made_up_names_cost_no_memory() {
        let mut pace = Pace::new(Duration::from_mins(1));
        for key in 0..2_000 {
            pace.allow(key, Timestamp::from_second(100).unwrap());
        }
        assert_eq!(pace.last.len(), REMEMBERED);
        assert_eq!(pace.allow(5_000, Timestamp::from_second(200).unwrap()), Some(1));
    }

    #[test]
    fn the_wait_grows_to_five_minutes() {
        let waits: Vec<u64> = [0, 1, 2, 8, 9, 64, u32::MAX].map(|n| back_off(n).as_secs()).to_vec();
        assert_eq!(waits, [1, 2, 4, 256, 300, 300, 300]);
    }
}
