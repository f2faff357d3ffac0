//! Why connections are refused or ended.

use super::identity::DeviceId;

/// Why a connection with a device did not come about, or was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The address does not answer, or the network is down.
    Unreachable,
    /// The device took too long.
    TooSlow,
    /// The device closed the connection.
    Closed,
    /// It does not speak the protocol.
    NotADevice,
    /// A line was longer than allowed.
    TooLong,
    /// It sent too much without being paired.
    TooMuch,
    /// It is outside of the local network.
    NotLocal,
    /// It means another device, or is this one.
    NotForUs,
    /// It is not paired, and nobody is looking for devices.
    Stranger,
    /// Encryption failed. An old device may speak only an old form of it.
    Encryption,
    /// Its certificate belongs to another id.
    ForeignCertificate,
    /// It is paired, but shows another certificate than when it was.
    WrongCertificate,
    /// It is paired, but speaks an older version than when it was.
    OlderProtocol,
    /// It changed its identity during the handshake.
    IdentityChanged,
    /// There were too many connections, so that it lost its place to a newer one.
    TooOften,
}

impl Refusal {
    /// Whether trying again a moment later may help.
    pub(super) fn is_passing(self) -> bool {
        matches!(self, Self::Closed | Self::Encryption | Self::TooOften)
    }
}

/// A refusal, and the device that the other side claimed to be, if it got that far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub device: Option<DeviceId>,
    pub why: Refusal,
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Self {
        Self { device: None, why }
    }
}
