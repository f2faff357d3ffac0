//! Calls about MCP servers and their tools, and the rows they return.

use kai_assistant::mcp::Standing;
use kai_words::Said;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum McpCall {
    List,
    Add(AddServer),
    /// The tools of one server, or of all.
    Tools {
        server: Option<String>,
    },
    /// Approves tools exactly as the user saw them.
    Approve {
        server: String,
        tools: Vec<SeenTool>,
    },
    /// Turns a server or one of its tools on or off.
    Switch {
        server: String,
        tool: Option<String>,
        on: bool,
    },
    /// Lets a tool run without a click where nothing was read, or not any more.
    DontAsk {
        server: String,
        tool: String,
        on: bool,
    },
    /// Lets tasks use a tool that only reads, or not any more.
    InTasks {
        server: String,
        tool: String,
        on: bool,
    },
    /// Connects anew, and says what the server answers.
    Test {
        server: String,
    },
    Remove {
        server: String,
    },
    /// Adds the servers of another program's file, or only says what would be added.
    Import {
        text: String,
        preview: bool,
    },
    /// Begins signing in to a server.
    SignIn {
        server: String,
    },
    /// Waits until a sign-in that was begun is over.
    SignedIn {
        server: String,
    },
    SignOut {
        server: String,
    },
}

/// A server to add, as the user typed it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct AddServer {
    pub(crate) name: String,
    /// The program and its arguments; empty for a server at an address.
    pub(crate) command: Vec<String>,
    pub(crate) url: Option<String>,
    /// Headers as `Name: value`.
    pub(crate) headers: Vec<String>,
    /// Environment variables as `NAME=value`.
    pub(crate) env: Vec<String>,
}

/// A tool as the user saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenTool {
    pub(crate) name: String,
    /// The digest of what the server said.
    pub(crate) seen: String,
}

/// A row of `kai mcp list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerRow {
    pub(crate) name: String,
    /// The command line or the address.
    pub(crate) target: String,
    /// Kai starts it as a program; otherwise it is reached at an address.
    pub(crate) is_program: bool,
    /// The names of its headers or environment variables. Their values are never returned.
    pub(crate) secrets: Vec<String>,
    pub(crate) enabled: bool,
    pub(crate) status: ServerStatus,
    /// What is wrong.
    pub(crate) why: Option<Said>,
    /// The name under which it introduced itself.
    pub(crate) calls_itself: Option<String>,
    pub(crate) signed_in: bool,
    /// How many of its tools can be used, wait to be approved, and changed since they were.
    pub(crate) usable: usize,
    pub(crate) new: usize,
    pub(crate) changed: usize,
}

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerStatus {
    Connected,
    Connecting,
    Error,
    /// It wants the user to sign in.
    SignIn,
    Off,
    /// Nobody has needed it yet.
    Idle,
}

/// A tool of a server.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch or a mark of its own")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct McpToolRow {
    pub(crate) server: String,
    pub(crate) name: String,
    /// The name under which a model is offered it.
    pub(crate) offered_as: String,
    pub(crate) standing: Standing,
    pub(crate) enabled: bool,
    /// It announces that it only reads.
    pub(crate) read_only: bool,
    pub(crate) dont_ask: bool,
    pub(crate) in_tasks: bool,
    pub(crate) description: String,
    pub(crate) schema: Value,
    /// The digest of what the server says now, which an approval names.
    pub(crate) seen: String,
    /// What was approved, if the server says something else now.
    pub(crate) before: Option<AgreedText>,
}

/// A tool's text as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgreedText {
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) read_only: bool,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerTest {
    pub(crate) server: ServerRow,
    pub(crate) works: bool,
    pub(crate) tools: Vec<McpToolRow>,
    /// The last lines that its program wrote to its standard error.
    pub(crate) stderr: Vec<String>,
}

/// What a file would add, or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Imported {
    pub(crate) added: Vec<ImportedServer>,
    pub(crate) left_out: Vec<LeftOutServer>,
    pub(crate) preview: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportedServer {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) is_program: bool,
    pub(crate) secrets: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOutServer {
    pub(crate) name: String,
    pub(crate) why: Said,
}

/// A sign-in that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInPage {
    pub(crate) server: String,
    pub(crate) url: String,
    /// Kai has opened the page in the browser.
    pub(crate) opened: bool,
}
