//! A phone that exists in memory only: demo mode shows it, tests play with it. It behaves as Android does where that
//! matters: ids are re-used, received and sent messages share them, permissions come and go.

#[cfg(feature = "sms")]
mod phone;
#[cfg(feature = "sms")]
mod script;
#[cfg(feature = "notifications")]
mod tray;

#[cfg(feature = "sms")]
pub use phone::{Fate, Phone};
#[cfg(feature = "sms")]
pub use script::Script;
#[cfg(feature = "notifications")]
pub use tray::Tray;
