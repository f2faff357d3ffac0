//! What commands receive about conversations and answers.

use kai_assistant::agent::conversation::{Conversation, ConversationId};
use kai_assistant::agent::turn::End;
use kai_assistant::attachments::base64;
use serde::{Deserialize, Serialize};

/// A file that a command has read, to be attached to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskFile {
    pub(crate) name: String,
    #[serde(with = "base64")]
    pub(crate) bytes: Vec<u8>,
}

/// The answer of `kai ask`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AskAnswer {
    pub(crate) text: String,
    pub(crate) chat: ConversationId,
    pub(crate) answered_by: String,
    /// Why the turn ended.
    pub(crate) end: End,
    /// The model reached its output limit, so the answer is incomplete.
    pub(crate) cut_off: bool,
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
}

/// A row of `kai chats list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChatRow {
    #[serde(flatten)]
    pub(crate) conversation: Conversation,
    /// When the last message was added, as local time.
    pub(crate) updated_local: String,
}

/// A chat as a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChatFile {
    pub(crate) id: ConversationId,
    /// A name for the file.
    pub(crate) file: String,
    /// Markdown.
    pub(crate) text: String,
}

/// The answer of `kai chats codes`: whether the model now sees one-time codes in a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CodesAnswer {
    /// `None` if no conversation has begun.
    pub(crate) id: Option<ConversationId>,
    pub(crate) shown: bool,
    pub(crate) says: String,
}
