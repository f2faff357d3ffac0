//! What commands ask about models, and the rows that come back.

use kai_assistant::models::Origin;
use kai_assistant::models::window::WindowSource;
use serde::{Deserialize, Serialize};

/// A model as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewModel {
    pub(crate) preset: String,
    pub(crate) name: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) key: Option<String>,
    /// The window as it was typed: a number of tokens, or `auto`. None leaves it as it is.
    #[serde(default)]
    pub(crate) context: Option<String>,
}

/// A row of `kai models list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelRow {
    pub(crate) name: String,
    pub(crate) preset: String,
    pub(crate) base_url: String,
    pub(crate) model: String,
    pub(crate) ready: bool,
    pub(crate) why_not: Option<String>,
    pub(crate) origin: ModelOrigin,
    pub(crate) local: bool,
    /// Of the key itself nothing is ever told.
    pub(crate) has_key: bool,
    /// Tokens of context that Kai takes the model to have.
    #[serde(default)]
    pub(crate) context: usize,
    /// Why it is that many.
    #[serde(default)]
    pub(crate) context_from: WindowSource,
}

/// Where a model comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelOrigin {
    Added,
    Environment,
    Found,
    /// It plays the demo's script.
    Demo,
}

impl From<Origin> for ModelOrigin {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Added => Self::Added,
            Origin::Environment => Self::Environment,
            Origin::Found => Self::Found,
        }
    }
}

/// What `kai models remove` did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelRemoved {
    pub(crate) removed: String,
    /// Heartbeats were to ask it, and now ask the others in their order.
    pub(crate) heartbeat_reset: bool,
}

/// What `kai models test` found out about one model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelTest {
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) works: bool,
    /// The answer, or what is wrong.
    pub(crate) says: String,
    pub(crate) ms: u64,
}
