//! The tools that a model can call. A tool is a type, and the doc comments on its input struct are its prompt.
//!
//! The model reads the doc comments on the input struct and its fields, so code and prompt cannot drift apart.
//! [`AnyTool`] erases the types in one place; no tool of our own handles raw JSON.

mod executor;
mod eyes;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod room;
mod schema;

use std::pin::Pin;
use std::time::Duration;

use kai_llm::ToolSpec;
use kai_words::{Said, said};
use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::db::DbError;
use crate::gate::{Level, RunKind};
use crate::guests::GuestId;

pub use executor::{ToolResult, execute};
pub use eyes::Eyes;

/// Something that a model can call.
pub trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    /// Other names that models use for it.
    const ALIASES: &'static [&'static str] = &[];
    const TIMEOUT: Duration = Duration::from_secs(30);
    /// The parameter with which a call sets its own timeout in seconds. A tool that has one enforces the timeout
    /// itself.
    const TIME_ARGUMENT: Option<&'static str> = None;
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize;

    /// What keeps the tool from being used here. If there is something, the tool is not offered.
    fn lacks(&self) -> Option<Lack> {
        None
    }

    /// A few words for the user about how the tool works on this machine.
    fn note(&self) -> Option<String> {
        None
    }

    /// Updates what [`Tool::lacks`] returns by what the store says.
    fn look(&self, _: &Transaction<'_>) -> Result<(), DbError> {
        Ok(())
    }

    /// Updates what [`Tool::lacks`] returns by what others say, for example by asking the platform for a permission,
    /// unless that was done just now.
    fn probe_access(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Runs the tool. `input` was already checked against the schema.
    fn run(
        &self,
        input: Self::Input,
        run: &Run,
    ) -> impl Future<Output = Result<ToolOutput<Self::Output>, ToolError>> + Send;
}

/// What a tool needs but does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// Nothing shows notifications on this machine.
    Notifier,
    /// The demo, which does not touch this machine.
    Demo,
    /// Something else; the sentence says what to do about it.
    Other(Said),
}

impl Lack {
    /// What is missing and what to do about it, in the user's language.
    pub fn said(&self) -> Said {
        match self {
            Self::Notifier => said::lacks_notifier(),
            Self::Demo => said::lacks_in_demo(),
            Self::Other(why) => why.clone(),
        }
    }
}

impl From<Said> for Lack {
    fn from(why: Said) -> Self {
        Self::Other(why)
    }
}

/// What a successful call returns: the output, and where its text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput<T> {
    pub output: T,
    pub meaning: Provenance,
}

/// Where the text of a result comes from. It is stored with the result, because the text alone does not show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The level to which the result raises the request.
    pub taint: Level,
    /// The messages whose text it contains, under the names that the ledger uses.
    pub mentions: Vec<String>,
}

impl<T> ToolOutput<T> {
    /// Output in Kai's own words, or from the user's own machine. It does not raise the level.
    pub fn own(output: T) -> Self {
        Self { output, meaning: Provenance::default() }
    }

    /// Output with text from the web.
    pub fn from_web(output: T) -> Self {
        Self::kept_at(output, Level::Web)
    }

    /// Output that contains the text of these messages. Without any, it does not raise the level.
    pub fn with_messages(output: T, mentions: Vec<String>) -> Self {
        let taint = if mentions.is_empty() { Level::Nothing } else { Level::People };
        Self { output, meaning: Provenance { taint, mentions } }
    }

    /// Output that Kai stored earlier in requests at this level or a lower one.
    pub fn kept_at(output: T, taint: Level) -> Self {
        Self { output, meaning: Provenance { taint, mentions: vec![] } }
    }
}

/// The run in which a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub kind: RunKind,
    /// The conversation that it belongs to; 0 for none.
    pub conversation: i64,
    /// The user may be at another machine, so something opened here may open where nobody sees it.
    pub elsewhere: bool,
    /// The level of the request when the call was made. What the tool stores, such as a task, keeps that level.
    pub level: Level,
    /// The user saw exactly this call and approved it.
    pub confirmed: bool,
    /// The user lets the model see one-time codes in this conversation.
    pub codes_shown: bool,
    /// The guest that called the tool.
    pub guest: Option<GuestId>,
}

impl Run {
    /// The user calls one tool by hand, outside of any conversation.
    pub const BY_HAND: Self = Self {
        kind: RunKind::Chat,
        conversation: 0,
        level: Level::Nothing,
        confirmed: false,
        elsewhere: false,
        codes_shown: false,
        guest: None,
    };

    /// A guest calls one tool. Nobody knows what it has read before, so the level is the highest.
    pub fn by_guest(guest: GuestId) -> Self {
        Self {
            kind: RunKind::Guest,
            level: Level::People,
            elsewhere: true,
            guest: Some(guest),
            ..Self::BY_HAND
        }
    }

    /// Whether the user called the tool by hand. Every real chat has a conversation, and unattended runs have another
    /// kind.
    pub fn is_by_hand(&self) -> bool {
        self.kind == RunKind::Chat && self.conversation == 0
    }
}

/// A failure, as a sentence that tells the model what to do next. It never ends the turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl From<DbError> for ToolError {
    fn from(error: DbError) -> Self {
        Self(error.to_string())
    }
}

impl From<Lack> for ToolError {
    fn from(lack: Lack) -> Self {
        lack.said().into()
    }
}

impl From<Said> for ToolError {
    fn from(why: Said) -> Self {
        Self(why.to_string())
    }
}

/// A call that runs.
pub type Running<'a> =
    Pin<Box<dyn Future<Output = Result<ToolOutput<Map<String, Value>>, ToolError>> + Send + 'a>>;

/// A [`Tool`] with its input and output types erased.
pub trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn aliases(&self) -> &'static [&'static str];
    fn lacks(&self) -> Option<Lack>;
    fn note(&self) -> Option<String>;
    fn time_argument(&self) -> Option<&'static str>;
    fn timeout(&self) -> Duration;
    fn spec(&self) -> ToolSpec;
    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError>;
    fn probe_access(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Fits the arguments to the schema, then runs the tool.
    fn call<'a>(&'a self, arguments: Map<String, Value>, run: &'a Run) -> Running<'a>;
}

/// What a model is told about a tool.
pub(crate) fn spec_of<T: Tool>() -> ToolSpec {
    let (description, parameters) = schema::describe::<T::Input>();
    ToolSpec { name: T::NAME.to_owned(), description, parameters: parameters.into() }
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        T::ALIASES
    }

    fn lacks(&self) -> Option<Lack> {
        Tool::lacks(self)
    }

    fn note(&self) -> Option<String> {
        Tool::note(self)
    }

    fn time_argument(&self) -> Option<&'static str> {
        T::TIME_ARGUMENT
    }

    fn timeout(&self) -> Duration {
        T::TIMEOUT
    }

    fn spec(&self) -> ToolSpec {
        spec_of::<T>()
    }

    fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        Tool::look(self, tx)
    }

    fn probe_access(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Tool::probe_access(self))
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, run: &'a Run) -> Running<'a> {
        Box::pin(async move {
            let fitting = schema::fit(&self.spec().parameters, arguments).map_err(ToolError)?;
            let input =
                serde_json::from_value(Value::Object(fitting)).map_err(|e| ToolError(e.to_string()))?;
            let ToolOutput { output, meaning } = self.run(input, run).await?;
            let output = serde_json::to_value(output).map_err(|e| ToolError(e.to_string()))?;
            Ok(ToolOutput { output: as_fields(output), meaning })
        })
    }
}

/// A result as an object, because a model gets nothing else.
fn as_fields(output: Value) -> Map<String, Value> {
    let Value::Object(fields) = output else {
        let mut fields = Map::new();
        fields.insert("result".to_owned(), output);
        return fields;
    };
    fields
}
