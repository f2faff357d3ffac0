//! What a person can ask of the network.

use std::net::SocketAddr;

use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::{DeviceId, Refusal};
use tokio::sync::oneshot;

use super::state::Nearby;

/// What a person asked for, and who wants to know what became of it.
pub(super) enum Order {
    BeginSearch(Reply<()>),
    EndSearch(Reply<()>),
    Connect(SocketAddr, Reply<Nearby>),
    Pair(DeviceId, Reply<()>),
    Accept(DeviceId, String, Reply<()>),
    Refuse(DeviceId, Reply<()>),
    Unpair(SourceId, StoredMessages, Reply<()>),
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, NotDone>>;

/// What happens to the stored messages of a phone that is unpaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredMessages {
    Forget,
    Keep,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotDone {
    /// Only a running daemon is in the network.
    NotRunning,
    /// Kai cannot be in the network; the state says why.
    NoNetwork,
    /// What was typed is no address, or nothing has that name.
    NoAddress,
    /// Nothing at the address could be connected with.
    NotReached(Refusal),
    /// The device is no longer connected.
    Gone,
    /// The phone is paired already.
    PairedAlready,
    /// No pairing with that device and key waits for an answer.
    NotAsked,
    /// There is no such phone.
    Unknown,
    /// The store could not be written.
    NotStored,
}
