//! Rows of settings and tools, and the answer of a tool call.

use serde::{Deserialize, Serialize};

/// A row of `kai settings list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SettingRow {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) default: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) allowed: String,
    pub(crate) help: String,
}

/// A row of `kai tools list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolRow {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) enabled: bool,
    pub(crate) available: bool,
    pub(crate) why_not: Option<String>,
    /// What the user may want to know about how it works on this machine.
    pub(crate) note: Option<String>,
}

/// A tool's answer, as a model would read it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolAnswer {
    pub(crate) text: String,
    pub(crate) success: bool,
}
