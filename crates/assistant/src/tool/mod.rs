//! A tool is a type; its documentation is the prompt.
//!
//! The doc comments on the input struct and its fields are what the model reads, so the two cannot drift.
//! [`AnyTool`] erases the types once; no tool ever touches raw JSON.

mod executor;
#[cfg(any(feature = "sms", feature = "notifications"))]
mod eyes;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod room;
mod schema;

use std::pin::Pin;
use std::time::Duration;

use kai_llm::ToolSpec;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::db::DbError;
use crate::gate::{Level, RunKind};

pub use executor::{ToolResult, execute};
#[cfg(any(feature = "sms", feature = "notifications"))]
pub use eyes::Eyes;

/// Something the model can ask for.
pub trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    /// Other names under which models ask for it.
    const ALIASES: &'static [&'static str] = &[];
    const TIMEOUT: Duration = Duration::from_secs(30);
    /// The parameter in which a call may ask for its own number of seconds. Such a tool ends in time by itself.
    const TIME_ARGUMENT: Option<&'static str> = None;
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize;

    /// What it needs and does not have here, as a sentence that says what to do. Then it is not offered.
    fn lacks(&self) -> Option<String> {
        None
    }

    /// What a person may want to know of how it works here, in a few words.
    fn note(&self) -> Option<String> {
        None
    }

    /// Asks the outside what [`Tool::lacks`] will say, if it was not asked just now.
    fn probe_access(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    fn run(
        &self,
        input: Self::Input,
        run: &Run,
    ) -> impl Future<Output = Result<ToolOutput<Self::Output>, ToolError>> + Send;
}

/// What a tool returns: its output, and what that output means. A tool that fails returns neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput<T> {
    pub output: T,
    pub meaning: Meaning,
}

/// What a result means besides its words. It is kept with the result, since nobody can tell it from the words later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The level that the result raises a request to.
    pub taint: Level,
    /// The messages whose text it holds, by the identities that the ledger names them with.
    pub mentions: Vec<String>,
}

impl<T> ToolOutput<T> {
    /// Output in Kai's own words, or of what the person's own machine did. It raises nothing.
    pub fn own(output: T) -> Self {
        Self { output, meaning: Meaning::default() }
    }

    /// Output with text from the web.
    pub fn from_web(output: T) -> Self {
        Self::kept_at(output, Level::Web)
    }

    /// Output with the text of these messages. Without any it raises nothing.
    pub fn with_messages(output: T, mentions: Vec<String>) -> Self {
        let taint = if mentions.is_empty() { Level::Nothing } else { Level::People };
        Self { output, meaning: Meaning { taint, mentions } }
    }

    /// Output of what Kai wrote down in requests at that level, or below it.
    pub fn kept_at(output: T, taint: Level) -> Self {
        Self { output, meaning: Meaning { taint, mentions: vec![] } }
    }
}

/// The run in which a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub kind: RunKind,
    /// The conversation it belongs to; 0 for none.
    pub conversation: i64,
    /// The person may sit at another machine: what is opened here may be opened where nobody is.
    pub elsewhere: bool,
    /// What the request held when the call was made; what is kept of it carries that along.
    pub level: Level,
    /// The person has seen exactly this call and said yes to it.
    pub confirmed: bool,
    /// The person wants the model to see one-time codes in this conversation.
    pub codes_shown: bool,
}

impl Run {
    /// A person calls one tool by hand, in no conversation.
    pub const BY_HAND: Self = Self {
        kind: RunKind::Chat,
        conversation: 0,
        level: Level::Nothing,
        confirmed: false,
        elsewhere: false,
        codes_shown: false,
    };

    /// Every chat has a conversation, and a run that nobody watches is of another kind.
    pub fn is_by_hand(&self) -> bool {
        self.kind == RunKind::Chat && self.conversation == 0
    }
}

/// A failure as a sentence for the model that says what to do next. It never ends the turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl From<DbError> for ToolError {
    fn from(error: DbError) -> Self {
        Self(error.to_string())
    }
}

type Running<'a> =
    Pin<Box<dyn Future<Output = Result<ToolOutput<Map<String, Value>>, ToolError>> + Send + 'a>>;

/// Any tool, with its types forgotten.
pub trait AnyTool: Send + Sync {
    fn name(&self) -> &'static str;
    fn aliases(&self) -> &'static [&'static str];
    fn lacks(&self) -> Option<String>;
    fn note(&self) -> Option<String>;
    fn time_argument(&self) -> Option<&'static str>;
    fn timeout(&self) -> Duration;
    fn spec(&self) -> ToolSpec;
    fn probe_access(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Checks the arguments against the schema, then runs.
    fn call<'a>(&'a self, arguments: Map<String, Value>, run: &'a Run) -> Running<'a>;
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        T::ALIASES
    }

    fn lacks(&self) -> Option<String> {
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
        let (description, parameters) = schema::describe::<T::Input>();
        ToolSpec { name: T::NAME.to_owned(), description, parameters }
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
            let output = match serde_json::to_value(output).map_err(|e| ToolError(e.to_string()))? {
                Value::Object(fields) => fields,
                other => Map::from_iter([("result".to_owned(), other)]),
            };
            Ok(ToolOutput { output, meaning })
        })
    }
}
