//! Calls about models, and the rows they return.

use kai_assistant::models::Origin;
use kai_assistant::models::trouble::Fault;
use kai_assistant::models::vision::Vision;
use kai_assistant::models::window::WindowSource;
use kai_words::Said;
use serde::{Deserialize, Serialize};

use super::local::ModelFile;

/// A model to add, as the user typed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewModel {
    pub(crate) preset: String,
    pub(crate) name: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) key: Option<String>,
    /// The context window as typed: a number of tokens, or `auto`. `None` leaves it unchanged.
    #[serde(default)]
    pub(crate) context: Option<String>,
    /// Whether it can see pictures, as typed: `yes`, `no` or `auto`. `None` leaves it unchanged.
    #[serde(default)]
    pub(crate) pictures: Option<String>,
}

/// A row of `kai models list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelRow {
    pub(crate) name: String,
    pub(crate) preset: String,
    pub(crate) base_url: String,
    pub(crate) model: String,
    pub(crate) ready: bool,
    /// Why Kai cannot use it.
    pub(crate) why_not: Option<Said>,
    pub(crate) origin: ModelOrigin,
    pub(crate) local: bool,
    /// Whether a key is known. The key itself is never returned.
    pub(crate) has_key: bool,
    /// The size of the context window that Kai assumes, in tokens.
    #[serde(default)]
    pub(crate) context: usize,
    /// Where that size comes from.
    #[serde(default)]
    pub(crate) context_from: WindowSource,
    /// Whether it can see pictures, as far as Kai knows.
    #[serde(default)]
    pub(crate) pictures: Vision,
    /// The same, if the user said so.
    #[serde(default)]
    pub(crate) pictures_set: Option<bool>,
}

/// Where a model comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelOrigin {
    Added,
    Environment,
    Found,
    /// The demo's model, which plays a script.
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
    /// Heartbeats were set to use this model; they now use the others in their order.
    pub(crate) heartbeat_reset: bool,
    /// The file of a model that ran inside Kai, if Kai downloaded it and no other model uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<ModelFile>,
    /// Whether that file was deleted as well.
    #[serde(default)]
    pub(crate) file_deleted: bool,
}

/// The result of `kai models test` for one model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelTest {
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) works: bool,
    /// The answer, or what is wrong.
    pub(crate) says: Said,
    /// What of its setup is wrong, if something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<Fault>,
    pub(crate) ms: u64,
}
