//! How far this process knows the ledger to be noted beside the key.

use std::sync::atomic::{AtomicBool, AtomicI64};

/// The record that this process noted last, or found noted.
#[derive(Debug)]
pub(crate) struct LastNoted {
    pub(crate) seq: AtomicI64,
    /// The last try failed, and that was said.
    pub(crate) failing: AtomicBool,
}

impl LastNoted {
    pub(crate) fn up_to(seq: i64) -> Self {
        Self { seq: seq.into(), failing: false.into() }
    }
}

impl Default for LastNoted {
    fn default() -> Self {
        Self::up_to(NEVER)
    }
}

const NEVER: i64 = -1;
