//! The answer of `kai status`.

use kai_assistant::home::KeyKind;
use serde::{Deserialize, Serialize};

use crate::call::email::AccountRow;
use crate::call::heartbeat::HeartbeatStatus;
use crate::call::messages::{NotificationsPart, PhonesPart, SmsPart};
use crate::call::models::ModelRow;
use crate::call::tasks::TasksStatus;

/// The object that `kai status --json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) edition: String,
    pub(crate) permissions: Vec<String>,
    pub(crate) home: String,
    /// Whether this is the demo's home, in which nothing is real.
    pub(crate) demo: bool,
    /// Where the key is kept; `None` if the home does not exist yet.
    pub(crate) key: Option<KeyKind>,
    pub(crate) daemon: DaemonStatus,
    /// The model that is asked first; `None` when none is set up.
    pub(crate) model: Option<ModelRow>,
    #[serde(flatten)]
    pub(crate) sms: SmsPart,
    pub(crate) email: EmailStatus,
    pub(crate) heartbeat: HeartbeatStatus,
    pub(crate) memory: MemoryStatus,
    pub(crate) tasks: TasksStatus,
    #[serde(flatten)]
    pub(crate) notifications: NotificationsPart,
    #[serde(flatten)]
    pub(crate) phones: PhonesPart,
    pub(crate) tools: ToolsStatus,
    pub(crate) shell: ShellStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DaemonStatus {
    pub(crate) running: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) address: Option<String>,
    /// The address it listens on.
    pub(crate) bound: Option<String>,
    /// Epoch milliseconds.
    pub(crate) since: Option<i64>,
    pub(crate) since_local: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EmailStatus {
    pub(crate) enabled: bool,
    pub(crate) accounts: Vec<AccountRow>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MemoryStatus {
    pub(crate) enabled: bool,
    pub(crate) count: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolsStatus {
    pub(crate) offered: usize,
    pub(crate) all: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShellStatus {
    pub(crate) enabled: bool,
    /// The sandbox that commands run in. `None` if it was not checked or there is none.
    pub(crate) sandbox: Option<String>,
    pub(crate) why_not: Option<String>,
}
