//! Stand-ins for the outside world in tests: a model server that plays a script.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod provider;

pub use provider::{Act, Asked, Provider};
