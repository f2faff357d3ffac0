//! Calls about the ledger, and the rows they return.

use kai_assistant::ledger::Record;
use kai_words::Said;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LedgerCall {
    /// The newest records, newest first.
    Show {
        limit: usize,
    },
    Verify,
    /// The user accepts the ledger as it is, although it does not continue from the note beside the key.
    Accept,
    /// The requests that contained this message.
    Who {
        id: String,
    },
    /// The exact bytes of one request.
    Bytes {
        seq: i64,
    },
}

/// A line of `kai ledger show`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LedgerRow {
    pub(crate) seq: i64,
    /// Epoch milliseconds.
    pub(crate) at: i64,
    pub(crate) at_local: String,
    #[serde(flatten)]
    pub(crate) record: Record,
}

/// What `kai ledger verify` found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LedgerCheck {
    pub(crate) whole: bool,
    pub(crate) records: usize,
    /// How many older records were deleted because of their age (`ledger_retention_days`).
    pub(crate) let_go: i64,
    pub(crate) broken_at: Option<i64>,
    /// What is wrong.
    pub(crate) what: Option<Said>,
    /// The records themselves are intact, but they do not continue from the end that was noted beside the key.
    #[serde(default)]
    pub(crate) rolled_back: bool,
    /// Why the note beside the key could not be read.
    #[serde(default)]
    pub(crate) note_unread: Option<Said>,
}

/// What `kai ledger accept` did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Accepted {
    /// False if there was nothing to accept.
    pub(crate) accepted: bool,
    pub(crate) last: i64,
}
