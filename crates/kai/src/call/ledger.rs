//! What commands ask about the ledger, and the rows that come back.

use kai_assistant::ledger::Record;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LedgerCall {
    /// The newest so many, newest first.
    Show {
        limit: usize,
    },
    Verify,
    /// The person means the ledger as it is, although it does not go on from what was noted.
    Accept,
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
    /// Older ones, let go by their age (`ledger_retention_days`).
    pub(crate) let_go: i64,
    pub(crate) broken_at: Option<i64>,
    pub(crate) what: Option<String>,
    /// The records are whole, but they do not go on from the end that was noted beside the key.
    #[serde(default)]
    pub(crate) rolled_back: bool,
    /// Why the note beside the key could not be asked.
    #[serde(default)]
    pub(crate) note_unread: Option<String>,
}

/// What `kai ledger accept` did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Accepted {
    /// False where there was nothing to accept.
    pub(crate) accepted: bool,
    pub(crate) last: i64,
}
