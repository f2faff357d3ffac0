//! Implements the assistant's ports for each platform. Only this crate and the binary know which platform they run
//! on.

#[cfg(target_os = "linux")]
pub mod desktop;
mod environment;
#[cfg(feature = "kdeconnect")]
pub mod kdeconnect;
pub mod mail;
pub mod mcp;
mod program;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod sandbox;
#[cfg(any(feature = "sms", feature = "notifications"))]
pub mod simulated;
pub mod termux;

pub use environment::Environment;
