//! Calls about guests, and the rows they return: what the user decides, and what a guest itself asks.

use kai_assistant::guests::{Did, GuestId, GuestState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the user asks about guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GuestsCall {
    List,
    Allow {
        name: String,
    },
    Block {
        name: String,
    },
    /// Makes a new token for the guest of this name, to come over HTTP.
    Token {
        name: String,
    },
    Forget {
        name: String,
    },
}

/// What a guest asks, through `kai mcp serve`. Nothing here can decide, change or send anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestCall {
    pub(crate) who: Who,
    pub(crate) wants: Wants,
}

/// How a guest is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Who {
    /// By the name with which it introduced itself.
    Named(String),
    /// By the hash of its token, in hexadecimal.
    Holder(String),
}

/// What a guest wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wants {
    /// Only to be recognised.
    Nothing,
    /// To come in.
    Enter,
    /// To know which tools there are for it.
    Tools,
    /// To call a tool.
    Call { tool: String, arguments: String },
}

/// What a guest is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestReply {
    /// The name under which the guest is known.
    pub(crate) name: String,
    pub(crate) welcome: Welcome,
    /// The tools for it, if it asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<OfferedTool>,
    /// What its call returned. `None` if there is no such tool for it, or if it called none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<GuestResult>,
}

/// How a guest stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Welcome {
    /// The user lets no program in.
    Off,
    /// The user has not answered yet.
    Asked,
    Allowed,
    Blocked,
}

/// A tool as a guest is offered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) read_only: bool,
}

/// What a guest's call returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestResult {
    pub(crate) text: String,
    pub(crate) success: bool,
}

/// A row of `kai mcp guests list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestRow {
    pub(crate) id: GuestId,
    /// As claimed.
    pub(crate) name: String,
    pub(crate) state: GuestState,
    /// It has a token to come over HTTP.
    pub(crate) has_token: bool,
    /// Epoch milliseconds.
    pub(crate) first_seen: i64,
    /// Epoch milliseconds; `None` if it was never here.
    pub(crate) last_seen: Option<i64>,
    pub(crate) last_seen_local: Option<String>,
    /// What it did last, newest first.
    pub(crate) deeds: Vec<DeedRow>,
}

/// One thing that a guest did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeedRow {
    /// Epoch milliseconds.
    pub(crate) at: i64,
    pub(crate) at_local: String,
    pub(crate) tool: String,
    #[serde(flatten)]
    pub(crate) what: Did,
}

/// The answer of `kai mcp guests token`. The token is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuestToken {
    pub(crate) name: String,
    pub(crate) state: GuestState,
    pub(crate) token: String,
}
