//! A Linux desktop, reached over its session bus.

mod keyring;
mod notify;
mod open;

pub use keyring::SecretService;
pub use notify::Desktop;
pub use open::XdgOpen;
