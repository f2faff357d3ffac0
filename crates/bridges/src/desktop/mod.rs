//! A Linux desktop, reached over its session bus.

mod keyring;

pub use keyring::SecretService;
