//! How it stands with the network and the paired phones, for the page and the commands.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use jiff::Timestamp;
use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::{DeviceId, DeviceKind, Failure};

/// How it stands with the network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NetworkState {
    /// Set while Kai can be reached by phones.
    pub(crate) listening: Option<Listening>,
    /// When the search ends, if there is one.
    pub(crate) search: Option<Timestamp>,
    /// Devices in reach that are not paired, while somebody searches.
    pub(crate) nearby: Vec<Nearby>,
    /// Pairings that wait for an answer.
    pub(crate) pairings: Vec<Pairing>,
    /// All phones in the store, paired or no longer.
    pub(crate) links: BTreeMap<SourceId, LinkState>,
    /// What became of the last pairing.
    pub(crate) last_pairing: Option<PairingOutcome>,
    pub(crate) trouble: Option<NetworkTrouble>,
}

/// Where Kai can be reached by phones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listening {
    pub(crate) port: u16,
    /// Phones that announce themselves are noticed. If not, another program has that port to itself.
    pub(crate) hears_announcements: bool,
}

/// A device in reach that is not paired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nearby {
    pub(crate) device: DeviceId,
    pub(crate) name: String,
    pub(crate) kind: DeviceKind,
    pub(crate) address: SocketAddr,
}

/// A pairing that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pairing {
    pub(crate) device: DeviceId,
    pub(crate) name: String,
    /// What both devices show, for the user to compare.
    pub(crate) key: String,
    pub(crate) asked_by: AskedBy,
    pub(crate) until: Timestamp,
    /// The user said here that the phone shows the same key.
    pub(crate) confirmed: bool,
    /// The phone agreed.
    pub(crate) agreed: bool,
}

/// Who asked for a pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedBy {
    Us,
    Them,
}

/// What became of a pairing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PairingOutcome {
    pub(crate) device: DeviceId,
    pub(crate) name: String,
    pub(crate) at: Timestamp,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Paired(SourceId),
    Failed(Failure),
    /// The store could not be written, so the pairing was ended again.
    NotStored,
}

/// How it stands with one phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LinkState {
    /// Since when it is connected.
    pub(crate) connected: Option<Timestamp>,
    pub(crate) trouble: Option<LinkTrouble>,
}

/// What is wrong with a phone, or what was when it was last tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkTrouble {
    /// It does not answer where it was last seen.
    Unreachable,
    /// Somebody with its id showed another certificate: it was reset, or this is not the phone.
    WrongCertificate,
    /// It returned with an older version of the protocol than before.
    OlderProtocol,
    /// It answers, but the connection fails.
    Refused,
    /// It told more than could be stored, so that it has to connect again.
    TooMuch,
    /// It ended the pairing.
    Unpaired,
}

/// What keeps Kai from being reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetworkTrouble {
    /// This machine is in no network.
    NoNetwork,
    /// Other programs use all ports that phones look at.
    PortsTaken,
    /// The system does not allow it, for this reason.
    NotAllowed(String),
    /// Kai's own certificate cannot be made or read, for this reason.
    Identity(String),
    /// The store cannot be read.
    Store,
}
