//! The agent loop: asks a model, runs the tools it calls, asks again, and answers.
//!
//! [`turn`] decides and `drive` carries out; [`prompt`] is a pure function; [`conversation`] stores every message, so
//! that any model can continue after a turn was cut off. [`reports`] stores what unattended runs report, so that it
//! never interferes with a turn.

pub mod cause;
pub mod continued;
pub mod conversation;
pub mod deleted;
mod drive;
mod fallback;
mod fitting;
mod hands;
mod judging;
mod likely;
pub mod listing;
mod meanings;
mod meter;
mod nobody;
mod older;
mod opening;
pub mod prompt;
pub mod queued;
pub mod reports;
mod saying;
pub mod search;
pub mod small;
pub mod soul;
pub mod turn;
mod unseen;

use std::pin::Pin;

use conversation::ConversationId;
use kai_llm::{Model, ToolCall};
use kai_words::Said;

use crate::models::vision::Vision;

pub use drive::{Answer, Driver, TurnError};
pub use hands::CallRunner;
pub use meter::{Meter, Spent};
pub use nobody::Nobody;
pub use saying::Saying;
pub(crate) use unseen::Veil;

/// A model that is ready to be asked.
pub struct Ready {
    /// The name under which the user knows it.
    pub label: String,
    /// The model runs on this machine, so requests never leave it.
    pub local: bool,
    /// Whether it can see pictures.
    pub vision: Vision,
    pub model: Box<dyn Model>,
}

/// What happens during a turn, for the face to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The user's message is stored in this conversation.
    Began { conversation: ConversationId },
    /// How much of the request a model on this machine has read.
    Reading { percent: u8 },
    /// The next piece of the answer's text.
    Delta { text: String },
    /// Discard the text shown for this reply so far: the request is repeated.
    Again {
        /// Why the model gave no reply.
        why: Said,
        /// What Kai asks now.
        asking: Said,
    },
    /// A call starts (the seed's `TOOL_EXECUTING`); it is not stored, only sent as this event.
    ToolStarted { call: String, tool: String },
    /// How far a call is, in the words of an MCP server.
    ToolProgress { call: String, tool: String, progress: String },
    ToolFinished {
        call: String,
        tool: String,
        /// Why it failed, if it did.
        failed: Option<String>,
    },
}

/// A call that needs the user's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    pub call: ToolCall,
    /// What an id or key in the call refers to: the text of the memory to delete, the name of the task to cancel.
    pub about: Option<String>,
}

/// The user interface of a turn: a terminal or a page.
pub trait Face: Send + Sync {
    fn shows(&self, event: Event);
    /// Whether the user may be at another machine than the one Kai runs on.
    fn elsewhere(&self) -> bool {
        false
    }
    /// Asks the user to approve exactly this call. `None` means that nobody answered, which counts as no.
    fn allows<'a>(
        &'a self,
        asking: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>>;
}
