//! What an endpoint tells its caller, and what its caller keeps.

use std::net::{IpAddr, SocketAddr};

use super::identity::{DeviceId, Identity, Protocol};
use super::packet::Packet;
use super::pairing::{By, Failure};
use super::refusal::{Refusal, Refused};

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
    /// We opened the connection, so the address is where the device listens.
    pub dialled: bool,
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
