//! The loop: asks a model, runs the tools it calls, asks again, answers.
//!
//! [`turn`] decides and `drive` does; [`prompt`] is a pure function; [`conversation`] keeps everything said,
//! so that a turn that was cut off is still a conversation that any model can go on with. [`reports`] keeps what runs
//! that nobody watches have to say, out of every turn's way.

pub mod conversation;
mod drive;
mod fallback;
mod fitting;
mod hands;
mod likely;
mod meanings;
mod meter;
mod nobody;
mod older;
pub mod prompt;
pub mod reports;
pub mod soul;
pub mod turn;
mod unseen;

use std::pin::Pin;

use conversation::ConversationId;
use kai_llm::{Model, ToolCall};
use serde::{Deserialize, Serialize};

pub use drive::{Answer, Driver, TurnError};
pub use hands::Hands;
pub use meter::{Meter, Spent};
pub use nobody::Nobody;
pub(crate) use unseen::Veil;

/// A model that is ready to be asked.
pub struct Ready {
    /// What the person calls it.
    pub label: String,
    /// What is said to it stays on this machine.
    pub local: bool,
    pub model: Box<dyn Model>,
}

/// What a face is told while a turn runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Event {
    /// What was said is stored in this conversation.
    Began { conversation: ConversationId },
    /// Text of the answer, as it comes.
    Delta { text: String },
    /// What was shown of this reply so far does not count: it is asked again.
    Again { why: String, asking: String },
    /// A call runs now (the seed's `TOOL_EXECUTING`); it exists only as this event.
    ToolStarted { call: String, tool: String },
    ToolFinished {
        call: String,
        tool: String,
        /// Why it failed, if it did.
        failed: Option<String>,
    },
}

/// A call that waits for the person's yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    pub call: ToolCall,
    /// What a number or a key in it stands for: the words of the memory that would go, the name of the task.
    pub about: Option<String>,
}

/// Whoever shows a turn to a person: a terminal, a page.
pub trait Face: Send + Sync {
    fn shows(&self, event: Event);
    /// May the person sit at another machine than the one Kai runs on?
    fn elsewhere(&self) -> bool {
        false
    }
    /// Does the person allow exactly this call? `None` means that nobody said anything, and so no.
    fn allows<'a>(
        &'a self,
        asking: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>>;
}
