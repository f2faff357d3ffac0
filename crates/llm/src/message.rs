//! The message types that every provider's format is converted to and from.

use serde::{Deserialize, Serialize};

use crate::picture::Picture;
use crate::schema::Schema;

/// The description of a tool that is sent to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, always of type `object`.
    pub parameters: Schema,
}

/// Matches a tool call with its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

/// A tool call requested by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// The arguments exactly as the model wrote them. They may not be valid JSON.
    pub arguments: String,
    /// Gemini's thought signature for this call, which must be sent back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
        /// What the user attached, to be looked at together with the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pictures: Vec<Picture>,
    },
    Assistant {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// Gemini's thought signature for the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    Tool {
        call: CallId,
        tool: String,
        result: String,
    },
}

impl Message {
    /// A message of the user without pictures.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), pictures: Vec::new() }
    }
}

/// Token counts of a reply as the server reported them; zero if it did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
}

/// A model's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    #[serde(default)]
    pub calls: Vec<ToolCall>,
    #[serde(default)]
    pub signature: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    /// The model reached its output limit before it was done.
    #[serde(default)]
    pub cut_off: bool,
}

impl From<Reply> for Message {
    fn from(reply: Reply) -> Self {
        Self::Assistant { text: reply.text, calls: reply.calls, signature: reply.signature }
    }
}
