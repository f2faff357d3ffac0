//! What exists only in memory, for demo mode and tests. The phone behaves like Android where that matters: ids are
//! reused and shared by received and sent messages, and permissions can be granted and revoked. The handset is another
//! one, which can be paired over the network, or is linked by a wire of its own. Beside them: a notification tray, a
//! mailbox, an MCP server, and a model that plays a script. None of them reaches anything outside of the process.

#[cfg(feature = "kdeconnect")]
mod handset;
#[cfg(feature = "sms")]
mod mailbox;
#[cfg(feature = "sms")]
mod phone;
#[cfg(feature = "sms")]
mod script;
#[cfg(feature = "notifications")]
mod tray;
#[cfg(feature = "sms")]
mod weather;

#[cfg(feature = "kdeconnect")]
pub use handset::{Handset, HandsetSetup, OnPairing, Press, Reply, SendFate, WiredPhone};
#[cfg(feature = "sms")]
pub use mailbox::{Mailbox, NewMail};
#[cfg(feature = "sms")]
pub use phone::{Fate, Phone};
#[cfg(feature = "sms")]
pub use script::Script;
#[cfg(feature = "notifications")]
pub use tray::Tray;
#[cfg(feature = "sms")]
pub use weather::Weather;
