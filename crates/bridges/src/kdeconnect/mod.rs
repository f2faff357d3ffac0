//! Phones paired over the local network with the KDE Connect app, in versions 7 and 8 of its protocol.
//!
//! The walk of a packet: `discovery` hears a phone announce itself, or somebody types its address → `handshake` makes
//! the connection encrypted and checks whose it is, with `tls`, `certificate` and `identity` → `link` reads lines
//! (`line`), parses them (`packet`, with `sms`, `notification` and `contacts`) and runs the pairing (`pairing`, with
//! the `key` that people compare) → `endpoint` hands events to the caller and takes packets for phones.
//!
//! Everything but `discovery`, `handshake`, `link`, `endpoint` and `tls` is pure. Nothing listens before
//! [`Endpoint::open`], and nothing after the endpoint is dropped.

mod capabilities;
mod certificate;
mod contacts;
mod discovery;
mod endpoint;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod handshake;
mod identity;
mod key;
mod lenient;
mod limits;
mod line;
mod link;
mod notification;
mod packet;
mod pairing;
mod sms;
#[cfg(test)]
mod tests;
mod tls;

pub use capabilities::{Capabilities, Use};
pub use certificate::{BadCredentials, Credentials};
pub use contacts::{Card, Contact, Stamp};
pub use discovery::UDP_PORT;
pub use endpoint::{
    Announcements, Device, Endpoint, Event, OpenError, Pin, Reach, SendError, Setup, Strangers,
};
pub use handshake::{Refusal, Refused};
pub use identity::{DeviceId, DeviceKind, DeviceName, Identity, PORTS, Protocol};
pub use limits::{Limits, back_off};
pub use notification::{Change, ChatLine, Shown};
pub use packet::{Packet, Pair};
pub use pairing::{By, Failure};
pub use sms::{Attachment, Conversation, Folder, Message, MessageKind, Messages, Outgoing, ThreadId};
