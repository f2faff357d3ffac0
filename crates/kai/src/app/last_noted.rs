//! What this process knows about the ledger note, a copy of the ledger's end that is stored beside the key.

use std::sync::atomic::{AtomicBool, AtomicI64};

/// The last record that this process wrote to the note or found there.
#[derive(Debug)]
pub(crate) struct LastNoted {
    pub(crate) seq: AtomicI64,
    /// The last attempt failed, and the failure was logged.
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
