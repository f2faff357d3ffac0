//! What commands hear of conversations and answers.

use kai_assistant::agent::conversation::{Conversation, ConversationId};
use kai_assistant::agent::turn::End;
use serde::{Deserialize, Serialize};

/// What `kai ask` comes back with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AskAnswer {
    pub(crate) text: String,
    pub(crate) chat: ConversationId,
    pub(crate) answered_by: String,
    /// Why it ended.
    pub(crate) end: End,
    /// The model ran out of room for its answer.
    pub(crate) cut_off: bool,
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
}

/// A row of `kai chats list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChatRow {
    #[serde(flatten)]
    pub(crate) conversation: Conversation,
    /// When something was last said in it.
    pub(crate) updated_local: String,
}

/// What `kai chats codes` says: whether the model sees one-time codes in a conversation now.
#[cfg(feature = "foss")]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CodesAnswer {
    /// None where none has begun.
    pub(crate) id: Option<ConversationId>,
    pub(crate) shown: bool,
    pub(crate) says: String,
}
