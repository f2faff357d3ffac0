//! Limits on simultaneous connections, separate for unknown and known peers, and the rule for which one is closed.
//!
//! A new connection is always accepted. If that exceeds the limit for unknown peers, the peer with the most connections
//! loses its oldest one: a peer that opens a thousand connections only displaces its own, and one with one or two keeps
//! them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use kai_assistant::lock::lock;
use tokio_util::sync::CancellationToken;

/// The owner of a connection, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    /// A user of this machine.
    User(u32),
    /// An IP address. IPv6 addresses are reduced to their /64 prefix, which one household shares.
    At(IpAddr),
}

impl Peer {
    pub(crate) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(v6) if !v6.is_loopback() => {
                let [a, b, c, d, ..] = v6.segments();
                Self::At(IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
            }
            ip => Self::At(ip),
        }
    }
}

/// How many connections unknown and known peers may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) strangers: usize,
    pub(crate) known: usize,
}

/// All open connections and their owners.
#[derive(Debug)]
pub(crate) struct Places {
    room: Room,
    held: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    /// By number, so the oldest come first.
    by: BTreeMap<u64, Holder>,
    next: u64,
}

#[derive(Debug)]
struct Holder {
    peer: Peer,
    /// The remote address, until the user behind it is identified.
    from: Option<SocketAddr>,
    known: bool,
    leave: CancellationToken,
}

impl Places {
    pub(crate) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self { room, held: Mutex::default() })
    }

    /// Registers a connection of which only the address is known.
    pub(crate) fn enter_from(self: &Arc<Self>, from: SocketAddr) -> Place {
        self.seat(Peer::at(from.ip()), Some(from))
    }

    /// Registers a connection from this peer.
    pub(crate) fn enter(self: &Arc<Self>, peer: Peer) -> Place {
        self.seat(peer, None)
    }

    /// Assigns connections to local users, once it is known which user owns which remote address.
    pub(crate) fn identify(&self, users: &BTreeMap<SocketAddr, u32>) {
        for holder in self.lock().by.values_mut() {
            if let Some(uid) =
                holder.from.take_if(|from| users.contains_key(from)).and_then(|at| users.get(&at))
            {
                holder.peer = Peer::User(*uid);
            }
        }
    }

    fn seat(self: &Arc<Self>, peer: Peer, from: Option<SocketAddr>) -> Place {
        let mut held = self.lock();
        let (number, leave) = (held.next, CancellationToken::new());
        held.next += 1;
        held.by.insert(number, Holder { peer, from, known: false, leave: leave.clone() });
        if held.strangers() > self.room.strangers {
            held.push_one_out(number);
        }
        drop(held);
        Place { badge: ConnectionHandle { places: Arc::clone(self), number }, leave }
    }

    pub(crate) fn strangers(&self) -> usize {
        self.lock().strangers()
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        lock(&self.held)
    }
}

impl Registry {
    fn strangers(&self) -> usize {
        self.by.values().filter(|holder| !holder.known).count()
    }

    /// Closes the oldest unknown connection of the peer that has the most, but not the newcomer if there is another.
    fn push_one_out(&mut self, newcomer: u64) {
        let strangers = || self.by.iter().filter(|(_, holder)| !holder.known);
        let mut crowds: BTreeMap<Peer, usize> = BTreeMap::new();
        strangers().for_each(|(_, holder)| *crowds.entry(holder.peer).or_default() += 1);
        let largest = crowds.values().max().copied();
        let oldest = strangers()
            .filter(|(number, _)| **number != newcomer)
            .find(|(_, holder)| crowds.get(&holder.peer).copied() == largest)
            .or_else(|| strangers().next());
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(gone) = self.by.remove(&number)
        {
            gone.leave.cancel();
        }
    }
}

/// One registered connection. Dropping it removes the registration.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) badge: ConnectionHandle,
    /// Cancelled when the connection must close to make room for another.
    pub(crate) leave: CancellationToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.badge.places.lock().by.remove(&self.badge.number);
    }
}

/// Identifies a registered connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHandle {
    places: Arc<Places>,
    number: u64,
}

impl ConnectionHandle {
    /// Marks the connection as known, or as unknown again. Returns `false`, and changes nothing, if the limit for known
    /// connections is reached.
    pub(crate) fn is_known(&self, known: bool) -> bool {
        let mut held = self.places.lock();
        let others =
            held.by.iter().filter(|(number, holder)| holder.known && **number != self.number).count();
        if known && others >= self.places.room.known {
            return false;
        }
        if let Some(holder) = held.by.get_mut(&self.number) {
            holder.known = known;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { strangers: 4, known: 2 };
    const ALICE: Peer = Peer::User(1);
    const MALLORY: Peer = Peer::User(2);
    const EVE: Peer = Peer::User(3);

    fn stays(place: &Place) -> bool {
        !place.leave.is_cancelled()
    }

    #[test]
    fn who_holds_the_most_makes_room() {
        let places = Places::new(ROOM);
        let alice = places.enter(ALICE);
        let crowd: Vec<Place> = (0..50).map(|_| places.enter(MALLORY)).collect();
        let eve = places.enter(EVE);
        assert!(stays(&alice) && stays(&eve));
        let left: Vec<usize> = (0..50).filter(|n| stays(&crowd[*n])).collect();
        assert_eq!(left, [48, 49], "the newest of the crowd are left");
        assert_eq!(places.strangers(), 4);
        drop(crowd);
        assert_eq!(places.strangers(), 2, "a place is free when its holder leaves");
    }

    #[test]
    fn a_newcomer_gets_in_even_where_everybody_is_one_peer() {
        let places = Places::new(ROOM);
        let all: Vec<Place> = (0..9).map(|_| places.enter(ALICE)).collect();
        assert_eq!(all.iter().map(stays).collect::<Vec<_>>(), [[false; 5].as_slice(), &[true; 4]].concat());
    }

    #[test]
    fn those_we_know_are_pushed_out_by_nobody() {
        let places = Places::new(ROOM);
        let known = [places.enter(ALICE), places.enter(ALICE)];
        assert!(known.iter().all(|place| place.badge.is_known(true)));
        let crowd: Vec<Place> = (0..50).map(|_| places.enter(MALLORY)).collect();
        assert!(known.iter().all(stays));
        assert!(!crowd[49].badge.is_known(true), "there is no room for a third");
        assert!(known[0].badge.is_known(true), "saying it again changes nothing");
        assert!(known[0].badge.is_known(false) && crowd[49].badge.is_known(true));
        assert!(!crowd[0].badge.is_known(true), "full again");
        let late = crowd[0].badge.clone();
        drop(crowd);
        assert!(late.is_known(true), "one who has left takes no place");
        assert_eq!(places.lock().by.len(), 2);
    }

    #[test]
    fn who_somebody_is_may_turn_out_later() {
        let places = Places::new(ROOM);
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let all: Vec<Place> = (0..4).map(|port| places.enter_from(at(port))).collect();
        places.identify(&BTreeMap::from([(at(0), 1), (at(1), 2), (at(2), 2), (at(3), 2)]));
        let _eve = places.enter(EVE);
        assert_eq!(all.iter().map(stays).collect::<Vec<_>>(), [true, false, true, true]);
    }

    #[test]
    fn an_address_counts_by_what_one_household_has() {
        let at = |text: &str| Peer::at(text.parse().unwrap());
        assert_eq!(at("2001:db8:1:2::1"), at("2001:db8:1:2:ffff::9"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_eq!(at("::ffff:192.168.1.2"), at("192.168.1.2"));
        assert_ne!(at("192.168.1.2"), at("192.168.1.3"));
    }
}
