//! Phones paired over the local network with the KDE Connect app, in versions 7 and 8 of its protocol.
//!
//! The walk of a packet: `discovery` hears a phone announce itself, or somebody types its address → `connections` opens
//! or takes a connection, and `handshake` makes it encrypted and checks whose it is, with `tls`, `certificate` and
//! `identity` → `link` reads lines (`line`), parses them (`packet`, with `sms`, `notification` and `contacts`) and runs
//! the pairing (`pairing`, with the `key` that people compare) → the caller takes an `event` from the `endpoint`, and
//! hands it packets for phones. A [`PairedPhone`] turns packets into the words of the assistant's ports (`ported`) and
//! keeps to the phone's switches; it also sends (`sender`, which watches what the phone has `listed`) and listens to
//! notifications (`listener`). The `registry` knows who is paired and linked; `limits` bound what strangers may cost.
//!
//! Nothing listens before [`Endpoint::open`], and nothing after the endpoint is dropped.

mod address;
mod capabilities;
mod certificate;
mod connections;
mod contacts;
mod discovery;
mod endpoint;
mod envelope;
mod event;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod handshake;
mod identity;
mod key;
mod lane;
mod lenient;
mod limits;
mod line;
mod link;
mod listed;
#[cfg(feature = "notifications")]
mod listener;
mod notification;
mod packet;
mod pairing;
mod phone;
mod ported;
mod refusal;
mod registry;
mod sender;
mod shared;
mod sms;
#[cfg(test)]
mod tests;
mod tls;

pub use address::typed_address;
pub use capabilities::{Capabilities, Use};
pub use certificate::{BadCredentials, Credentials};
pub use contacts::Card;
pub use discovery::{Announcements, Audience, UDP_PORT};
pub use endpoint::{Endpoint, OpenError, Reach, Setup};
pub use event::{Device, Event, Pin, SendError};
pub use identity::{DeviceId, DeviceKind, DeviceName, Identity, PORTS, Protocol};
pub use lane::Overflow;
pub use limits::{Limits, back_off};
pub use notification::{Change, ChatLine, Shown};
pub use packet::{Packet, Pair};
pub use pairing::{By, Failure};
pub(crate) use phone::{Handing, Wire};
pub use phone::{PairedPhone, PhoneLimits};
pub use refusal::{Refusal, Refused};
pub use registry::Strangers;
pub use sms::{Attachment, Conversation, Folder, Message, Messages, Outgoing};
