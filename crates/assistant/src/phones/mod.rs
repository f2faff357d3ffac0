//! Phones that are paired with this machine: which they are, what each may do, and the port that reaches them.
//!
//! A *source* is anything that messages come from and leave by. Source 1 is the phone that Kai runs on (Termux) or the
//! simulated one; every paired phone is a source of its own. What stands here knows nothing of messages and
//! notifications themselves: the features do.

pub mod port;
pub mod store;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::db::Migration;
pub use crate::source::SourceId;

pub(crate) const MIGRATION: Migration =
    Migration { name: "phones/1", sql: include_str!("../../migrations/phones.sql") };

/// A paired phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phone {
    pub source: SourceId,
    /// What the phone calls itself on the network.
    pub device: String,
    /// Its name, as the user may have changed it.
    pub name: String,
    /// The only certificate that is accepted for it. Empty if it is no longer paired, and only its messages are kept.
    pub certificate: Vec<u8>,
    /// The version of the protocol that it spoke. An older one is refused.
    pub protocol: u8,
    pub paired_at: Timestamp,
    pub last_seen: Option<Timestamp>,
    /// Where it was last seen, such as `192.168.1.20:1716`.
    pub address: Option<String>,
    /// New messages leave by this phone unless another one is named.
    pub sends_by_default: bool,
    pub switches: Switches,
    /// Since when its messages are news; `None` until reading begins.
    pub read_since: Option<Timestamp>,
}

impl Phone {
    /// Whether it is still paired.
    pub fn is_paired(&self) -> bool {
        !self.certificate.is_empty()
    }
}

/// What a paired phone may be used for. Everything is off until the user turns it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the phone's switches, one for one")]
pub struct Switches {
    pub read_sms: bool,
    pub send_sms: bool,
    pub notifications: bool,
    pub names: bool,
    pub composer: bool,
    pub tell: bool,
}

/// One of a phone's switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// Read the SMS on it.
    ReadSms,
    /// Send SMS by it, each after a tap.
    SendSms,
    /// Read the notifications on it.
    Notifications,
    /// Show the names of its contacts beside numbers.
    Names,
    /// Open its own SMS app with a draft filled in, instead of sending.
    Composer,
    /// Show on it that something waits.
    Tell,
}

impl Switch {
    pub const ALL: [Self; 6] =
        [Self::ReadSms, Self::SendSms, Self::Notifications, Self::Names, Self::Composer, Self::Tell];

    /// The name in commands and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadSms => "read_sms",
            Self::SendSms => "send_sms",
            Self::Notifications => "notifications",
            Self::Names => "names",
            Self::Composer => "composer",
            Self::Tell => "tell",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|switch| switch.as_str() == name)
    }
}

impl Switches {
    pub fn is_on(self, switch: Switch) -> bool {
        match switch {
            Switch::ReadSms => self.read_sms,
            Switch::SendSms => self.send_sms,
            Switch::Notifications => self.notifications,
            Switch::Names => self.names,
            Switch::Composer => self.composer,
            Switch::Tell => self.tell,
        }
    }
}
