//! Integration with a Linux desktop over its session bus.

mod keyring;
#[cfg(feature = "notifications")]
mod listen;
#[cfg(feature = "notifications")]
mod markup;
mod notify;
mod open;
#[cfg(feature = "notifications")]
mod pending;
#[cfg(feature = "notifications")]
mod sender;

/// Entry points for `fuzz/`.
#[cfg(fuzzing)]
pub mod fuzz {
    pub fn notify(bytes: &[u8]) {
        super::pending::fuzz::check_bytes(bytes);
    }
}

pub use keyring::SecretService;
#[cfg(feature = "notifications")]
pub use listen::DesktopListener;
pub use notify::Desktop;
pub use open::XdgOpen;
