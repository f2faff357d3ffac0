//! What commands receive about heartbeats.

use kai_assistant::heartbeat::OutcomeKind;
use kai_assistant::heartbeat::due::Due;
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// The outcome of a requested run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunOutcome {
    Report,
    Ok,
    NothingNew,
    Failed,
    NotDue,
    /// Another run is in progress.
    Busy,
}

impl From<OutcomeKind> for RunOutcome {
    fn from(outcome: OutcomeKind) -> Self {
        match outcome {
            OutcomeKind::Report => Self::Report,
            OutcomeKind::Ok => Self::Ok,
            OutcomeKind::NothingNew => Self::NothingNew,
            OutcomeKind::Failed => Self::Failed,
        }
    }
}

/// The answer of `kai heartbeat run`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeartbeatRan {
    pub(crate) outcome: RunOutcome,
    pub(crate) reason: Option<Said>,
    pub(crate) report: Option<String>,
}

/// The answer of `kai heartbeat dry-run`: the prompt and tools that the next run would send.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DryRun {
    pub(crate) prompt: String,
    /// Whether there is anything new. If not, no model is asked.
    pub(crate) is_new: bool,
    pub(crate) tools: Vec<String>,
    /// The estimated size of the prompt and the tools.
    pub(crate) tokens: usize,
}

/// A line of `kai heartbeat log`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogRow {
    /// Epoch milliseconds.
    pub(crate) at: i64,
    pub(crate) at_local: String,
    pub(crate) outcome: OutcomeKind,
    pub(crate) reason: Option<Said>,
    pub(crate) tokens: u64,
    /// The server did not report all token counts, so some are estimated.
    #[serde(default)]
    pub(crate) tokens_estimated: bool,
    pub(crate) ms: u64,
}

/// The object `heartbeat` of `kai status --json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeartbeatStatus {
    pub(crate) enabled: bool,
    /// Minutes.
    pub(crate) interval: u32,
    pub(crate) active_start: u32,
    pub(crate) active_end: u32,
    /// Whether a run is due now, or why not.
    pub(crate) due: Due,
    pub(crate) last: Option<LogRow>,
    /// The conversation with an unread report.
    pub(crate) report: Option<i64>,
    pub(crate) tokens_today: u64,
    /// What is wrong with the model that heartbeats are set to use.
    pub(crate) lacks: Option<Said>,
}
