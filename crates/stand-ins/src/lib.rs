//! Stand-ins for the outside world in tests: a model server that plays a script, and a post office of real mail servers.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

pub mod mail;
pub mod port;
mod provider;

pub use provider::{Act, Asked, Provider};
