//! The calls that commands make, and their answers. A call is answered by the daemon over the socket or in the
//! command's own process; both answers go through JSON, so they are the same. Each feature has a file with its calls
//! and the rows they return.

pub(crate) mod alarms;
pub(crate) mod chats;
#[cfg(feature = "foss")]
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drafts;
pub(crate) mod email;
pub(crate) mod guests;
pub(crate) mod heartbeat;
pub(crate) mod hello;
pub(crate) mod ledger;
pub(crate) mod local;
pub(crate) mod mcp;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(crate) mod messages;
pub(crate) mod models;
#[cfg(feature = "foss")]
pub(crate) mod notifications;
#[cfg(feature = "foss")]
pub(crate) mod phones;
pub(crate) mod settings;
pub(crate) mod signin;
#[cfg(feature = "foss")]
pub(crate) mod sms;
pub(crate) mod status;
pub(crate) mod tasks;

use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::device::Place;
use kai_assistant::device::alarm::AlarmId;
use kai_assistant::tasks::TaskId;
use kai_assistant::transfer::{Bookmark, Mode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::chats::AskFile;
use self::drafts::DraftsCall;
use self::email::EmailCall;
use self::guests::{GuestCall, GuestsCall};
use self::ledger::LedgerCall;
use self::local::LocalCall;
use self::mcp::McpCall;
use self::messages::MessagesCall;
use self::models::NewModel;
use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    Status,
    Doctor,
    /// Shuts the daemon down.
    Stop,
    SettingsList,
    SettingsGet {
        key: String,
    },
    SettingsSet {
        key: String,
        value: String,
    },
    HeartbeatRun {
        force: bool,
    },
    HeartbeatDryRun,
    HeartbeatLog,
    MemoryList,
    MemoryProposals,
    MemoryAccept {
        key: String,
    },
    MemoryDecline {
        key: String,
    },
    MemoryForget {
        key: String,
    },
    MemoryConfirm {
        key: String,
        /// The digest of the text that the user saw, if a page showed it.
        #[serde(default)]
        seen: Option<String>,
    },
    TasksList,
    TasksShow {
        id: TaskId,
    },
    TasksCancel {
        id: TaskId,
    },
    AlarmsList,
    AlarmsCancel {
        id: AlarmId,
    },
    ToolsList,
    ToolsSwitch {
        tool: String,
        on: bool,
    },
    #[serde(rename = "tools_call")]
    ToolsTry {
        tool: String,
        arguments: String,
    },
    Link,
    /// Opens the page in the browser of the daemon's user.
    Open {
        place: Place,
    },
    RevokeLinks,
    Ask {
        text: String,
        chat: Which,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<AskFile>,
    },
    ChatsList,
    ChatsSearch {
        text: String,
    },
    ChatsShow {
        id: ConversationId,
    },
    ChatsRename {
        id: ConversationId,
        /// Empty to call it by its first words again.
        name: String,
    },
    ChatsPin {
        id: ConversationId,
        pinned: bool,
    },
    ChatsExport {
        id: ConversationId,
    },
    ChatsDelete {
        id: ConversationId,
    },
    /// Takes back the last deletion of a chat.
    ChatsUndo,
    ModelsList,
    ModelsAdd(NewModel),
    ModelsTest {
        name: Option<String>,
    },
    ModelsRemove {
        name: String,
    },
    Export(ExportCall),
    Import(ImportCall),
    ModelsFirst {
        name: String,
    },
    ModelsContext {
        name: String,
        /// A number of tokens as typed, or `auto`.
        context: String,
    },
    ModelsPictures {
        name: String,
        /// `yes`, `no` or `auto`, as typed.
        pictures: String,
    },
    /// About models that run inside Kai.
    Local(LocalCall),
    Drafts(DraftsCall),
    Email(EmailCall),
    /// Shows one-time codes to the model in a conversation, or hides them again.
    ChatsCodes {
        chat: Which,
        show: bool,
    },
    Ledger(LedgerCall),
    Mcp(McpCall),
    Guests(GuestsCall),
    /// What another program asks over MCP.
    Guest(GuestCall),
    /// The calls of the foss edition. [`hello`] gives each of them a name of its own.
    #[serde(skip)]
    Messages(MessagesCall),
}

impl Call {
    /// Whether progress is shown while it runs, and it is cancelled when its caller disconnects. All other calls run to
    /// completion.
    pub(crate) fn watched(&self) -> bool {
        matches!(self, Self::Ask { .. } | Self::ToolsTry { .. } | Self::Local(LocalCall::Get { .. }))
    }
}

/// A piece of a file to export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExportCall {
    /// None: those that are usually exported.
    pub(crate) sections: Vec<String>,
    /// Encrypts the secrets. Without it, there are none in the file.
    pub(crate) passphrase: Option<String>,
    /// Where the piece begins, as the piece before it said.
    pub(crate) from: Option<Bookmark>,
}

/// A file to import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportCall {
    /// The file's text.
    pub(crate) text: String,
    pub(crate) sections: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) passphrase: Option<String>,
    /// Only report what would change.
    pub(crate) preview: bool,
}

/// The lines that the daemon sends back. The last one is `done` or `error`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The user's message is stored in this conversation.
    Began {
        chat: ConversationId,
    },
    /// How much of the request a model on this machine has read.
    Reading {
        percent: u8,
    },
    /// A piece of the answer as it streams in.
    Delta {
        text: String,
    },
    /// Discard what was shown of this reply: the model is asked again.
    Again {
        why: String,
        /// What Kai asks now, as a sentence.
        asking: String,
    },
    Tool {
        call: String,
        tool: String,
        title: String,
        state: ToolState,
        /// Why the tool failed, or how far it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Asks whether exactly this call may run. Answered by [`Word::Allow`].
    Confirm {
        tool: String,
        arguments: String,
        /// What an id or a key in the arguments refers to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<String>,
    },
    Done {
        result: serde_json::Value,
    },
    Error {
        code: u8,
        message: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolState {
    Running,
    Done,
    Failed,
}

/// What the caller may send while its call is being answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Word {
    Cancel,
    Allow { yes: bool },
}

/// Converts an answer to JSON.
pub(crate) fn json(answer: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(answer)
        .map_err(|e| Failure::failed(format!("The answer could not be written: {e}.")))
}
