//! What a command asks for. The same call is answered by the daemon over the socket, or in the command's own
//! process, and both answers go through JSON: so they are the same.

use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::device::Place;
use kai_assistant::device::alarm::AlarmId;
use kai_assistant::tasks::TaskId;
use kai_assistant::transfer::Mode;
use serde::{Deserialize, Serialize};

use crate::ledger::LedgerCall;
#[cfg(feature = "sms")]
use crate::sms::SmsCall;

/// The protocol's version; a daemon of another one says so instead of guessing.
pub(crate) const VERSION: u32 = 1;

/// The first line on the socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) v: u32,
    /// Is there a person at a terminal who can be asked?
    pub(crate) tty: bool,
    #[serde(default)]
    pub(crate) around: Around,
    #[serde(flatten)]
    pub(crate) call: Call,
}

/// What the caller's environment says. It travels with the call, so that the answer is the same whether the daemon
/// gives it or the command itself. The socket is its owner's alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Around {
    /// Such as `de_DE.UTF-8`.
    pub(crate) locale: String,
    /// Variables that hold keys of models.
    pub(crate) keys: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", content = "args", rename_all = "snake_case")]
pub(crate) enum Call {
    Status,
    Doctor,
    /// The daemon is to end.
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
        /// The digest of what the person saw, where a page showed it.
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
    },
    ChatsList,
    ChatsSearch {
        text: String,
    },
    ChatsShow {
        id: ConversationId,
    },
    ChatsDelete {
        id: ConversationId,
    },
    #[cfg(any(feature = "sms", feature = "notifications"))]
    ChatsCodes {
        chat: Which,
        show: bool,
    },
    ModelsList,
    ModelsAdd(NewModel),
    ModelsTest {
        name: Option<String>,
    },
    ModelsRemove {
        name: String,
    },
    Export {
        sections: Vec<String>,
        passphrase: Option<String>,
    },
    Import(ImportCall),
    ModelsFirst {
        name: String,
    },
    ModelsContext {
        name: String,
        /// A number of tokens as it was typed, or `auto`.
        context: String,
    },
    Ledger(LedgerCall),
    #[cfg(feature = "sms")]
    Sms(SmsCall),
    #[cfg(feature = "notifications")]
    Notifications(crate::notifications::Asked),
}

impl Call {
    /// Is it shown while it runs, and does it end when its caller goes? Anything else is carried to its end.
    pub(crate) fn watched(&self) -> bool {
        matches!(self, Self::Ask { .. } | Self::ToolsTry { .. })
    }
}

/// A file to take in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportCall {
    /// The file's text.
    pub(crate) text: String,
    pub(crate) sections: Vec<String>,
    pub(crate) mode: Mode,
    pub(crate) passphrase: Option<String>,
    /// Only say what would happen.
    pub(crate) preview: bool,
}

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

/// The lines that come back; the last one is `done` or `error`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// What was said is stored in this conversation.
    Began {
        chat: ConversationId,
    },
    /// Text of the answer, as it comes.
    Delta {
        text: String,
    },
    /// Forget what was shown of this reply: it is asked again.
    Again {
        why: String,
        asking: String,
    },
    Tool {
        call: String,
        tool: String,
        title: String,
        state: ToolState,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// May exactly this call run? Answered by [`Word::Allow`].
    Confirm {
        tool: String,
        arguments: String,
        /// What a number or a key in it stands for.
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

/// What the caller says while its call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Word {
    Cancel,
    Allow { yes: bool },
}

/// What `kai ask` comes back with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AskAnswer {
    pub(crate) text: String,
    pub(crate) chat: ConversationId,
    pub(crate) answered_by: String,
    /// `answered`, or why the tools were stopped: `out_of_rounds`, `repeating`.
    pub(crate) end: String,
    /// The model ran out of room for its answer.
    pub(crate) cut_off: bool,
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
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
    /// "added", "environment", "found" or "demo".
    pub(crate) origin: String,
    pub(crate) local: bool,
    /// Of the key itself nothing is ever told.
    pub(crate) has_key: bool,
    /// Tokens of context that Kai takes the model to have.
    #[serde(default)]
    pub(crate) context: usize,
    /// Why: "set" (by the person), "server" (told by it), "refusal" (learned from one) or "preset".
    #[serde(default)]
    pub(crate) context_from: String,
}

/// What `kai models remove` did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelRemoved {
    pub(crate) removed: String,
    /// Heartbeats were to ask it, and now ask the others in their order.
    pub(crate) heartbeat_reset: bool,
}

impl ModelRemoved {
    pub(crate) fn of(removed: crate::models::Removed) -> Self {
        Self { removed: removed.model.name, heartbeat_reset: removed.heartbeat_reset }
    }
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
    /// What a person may want to know of how it works here.
    pub(crate) note: Option<String>,
}

/// What one tool answered, as a model would read it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolAnswer {
    pub(crate) text: String,
    pub(crate) success: bool,
}

/// A fresh sign-in link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SignInLink {
    pub(crate) url: String,
    /// Epoch milliseconds.
    pub(crate) expires_at: i64,
    pub(crate) daemon_running: bool,
}

/// How many sessions and links were ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Revoked {
    pub(crate) sessions: usize,
    pub(crate) links: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_as_the_protocol_says() {
        let call = Call::SettingsGet { key: "theme".to_owned() };
        let line =
            serde_json::to_value(Hello { v: 1, tty: false, around: Around::default(), call: call.clone() })
                .unwrap();
        assert_eq!(
            line,
            serde_json::json!({
                "v": 1, "tty": false, "around": {"locale": "", "keys": []}, "cmd": "settings_get", "args": {"key": "theme"},
            })
        );
        assert_eq!(serde_json::from_value::<Hello>(line).unwrap().call, call);
        let bare: Hello = serde_json::from_str(r#"{"v":1,"cmd":"status","tty":true}"#).unwrap();
        assert_eq!(bare.call, Call::Status);
    }
}
