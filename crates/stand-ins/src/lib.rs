//! Who stands in for the world outside, for tests: a model's server that plays a script.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod provider;

pub use provider::{Act, Asked, Provider};
