//! The JSON types of the Messages API, for requests and answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::schema::Schema;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: usize,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) system: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) stream: bool,
    /// Last, because it grows: so requests share their beginnings.
    pub(super) messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: Role,
    pub(super) content: Vec<Block<'a>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
    ToolUse { id: String, name: &'a str, input: Option<Box<RawValue>> },
    ToolResult { tool_use_id: String, content: &'a str },
}

/// The bytes of a picture.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'static str, data: &'a str },
}

#[derive(Serialize)]
pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) input_schema: &'a Schema,
}

/// One event of a stream.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: usize,
        content_block: Begun,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    MessageDelta {
        delta: Stop,
        usage: Option<Tokens>,
    },
    MessageStop,
    /// Not an event but a whole answer; it is parsed again as [`Whole`].
    Message,
    Error {
        error: Value,
    },
    /// `ping`, `content_block_stop`, and event types added later.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Start {
    pub(super) usage: Option<Tokens>,
}

#[derive(Deserialize)]
pub(super) struct Whole {
    #[serde(default)]
    pub(super) content: Vec<WholeBlock>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Option<Tokens>,
}

/// A content block of any type as one flat struct, so that `input` keeps the exact JSON text the model wrote.
#[derive(Deserialize)]
pub(super) struct WholeBlock {
    pub(super) r#type: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: String,
    pub(super) input: Option<Box<RawValue>>,
}

/// The start of a content block in a stream. A tool's input follows in deltas.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Begun {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        #[serde(default)]
        name: String,
    },
    /// The model's thinking, and tools that the service runs itself.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Stop {
    pub(super) stop_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    #[serde(rename = "input_tokens")]
    pub(super) input: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    pub(super) cache_written: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    pub(super) cache_read: Option<u64>,
    #[serde(rename = "output_tokens")]
    pub(super) output: Option<u64>,
}
