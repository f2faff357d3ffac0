//! A phone that exists only in memory, for demo mode and tests. It behaves like Android where that matters: ids are
//! reused and shared by received and sent messages, and permissions can be granted and revoked. The handset is another
//! one, which can be paired over the network.

#[cfg(feature = "kdeconnect")]
mod handset;
#[cfg(feature = "sms")]
mod phone;
#[cfg(feature = "sms")]
mod script;
#[cfg(feature = "notifications")]
mod tray;

#[cfg(feature = "kdeconnect")]
pub use handset::{Handset, HandsetSetup, OnPairing, Press, Reply, SendFate};
#[cfg(feature = "sms")]
pub use phone::{Fate, Phone};
#[cfg(feature = "sms")]
pub use script::Script;
#[cfg(feature = "notifications")]
pub use tray::Tray;
