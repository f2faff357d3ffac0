//! Rows of tasks and their runs.

use kai_assistant::gate::Level;
use kai_assistant::tasks::{Missed, Outcome, Status, TaskId, TriggerKind};
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// A row of `kai tasks list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskRow {
    pub(crate) id: TaskId,
    pub(crate) description: String,
    pub(crate) trigger: TriggerKind,
    /// The trigger in words.
    pub(crate) readable: String,
    /// Epoch milliseconds.
    pub(crate) next_at: Option<i64>,
    pub(crate) next_local: Option<String>,
    pub(crate) cron: Option<String>,
    pub(crate) status: Status,
    pub(crate) failures: u32,
    pub(crate) missed: Missed,
    pub(crate) level: Level,
}

/// A task with its prompt and its runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskWhole {
    #[serde(flatten)]
    pub(crate) row: TaskRow,
    pub(crate) prompt: String,
    /// Epoch milliseconds.
    pub(crate) created_at: i64,
    /// Newest first.
    pub(crate) runs: Vec<RunRow>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunRow {
    /// Epoch milliseconds, both.
    pub(crate) due_at: i64,
    pub(crate) started_at: i64,
    pub(crate) started_local: String,
    /// `None` while it is running.
    pub(crate) outcome: Option<Outcome>,
    /// Empty if nothing went wrong.
    pub(crate) reason: Said,
    pub(crate) tokens: u64,
    pub(crate) ms: u64,
}

/// The object `tasks` of `kai status --json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TasksStatus {
    pub(crate) enabled: bool,
    /// How many tasks are pending.
    pub(crate) count: u32,
    /// Epoch milliseconds.
    pub(crate) next_at: Option<i64>,
    pub(crate) next_local: Option<String>,
}
