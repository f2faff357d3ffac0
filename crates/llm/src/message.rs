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

/// Ties a call to its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

/// A tool the model wants to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// JSON text exactly as the model wrote it, so it may be no JSON at all.
    pub arguments: String,
    /// Gemini's thought signature of this call; it must go back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
    },
    Assistant {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// Gemini's thought signature of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    Tool {
        call: CallId,
        tool: String,
        result: String,
    },
}

/// Tokens that a reply cost, as the server counted them; zero where it did not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    #[serde(default)]
    pub calls: Vec<ToolCall>,
    #[serde(default)]
    pub signature: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    /// The model reached its limit in mid-sentence.
    #[serde(default)]
    pub cut_off: bool,
}

impl From<Reply> for Message {
    fn from(reply: Reply) -> Self {
        Self::Assistant { text: reply.text, calls: reply.calls, signature: reply.signature }
    }
}
