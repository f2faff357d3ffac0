//! The words that every provider's format is mapped to and from.

use serde::{Deserialize, Serialize};

/// What a model is told about one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, always of type `object`.
    pub parameters: serde_json::Value,
}
