//! The row that `kai alarms list` returns.

use kai_assistant::device::alarm::AlarmId;
use serde::{Deserialize, Serialize};

/// A row of `kai alarms list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AlarmRow {
    pub(crate) id: AlarmId,
    /// Empty if none was given.
    pub(crate) label: String,
    /// Epoch milliseconds.
    pub(crate) due_at: i64,
    pub(crate) due_local: String,
}
