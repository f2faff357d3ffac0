//! The port to MCP servers: how one is reached, and what it can be asked. A bridge implements [`Connector`] and [`Link`].

use std::pin::Pin;
use std::sync::Arc;

use kai_words::{Said, said};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ToolText;
use crate::untrusted::Untrusted;

pub use crate::secret::Secret;

pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a server is reached. Holds no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Transport {
    /// A program that Kai starts and speaks with over its standard input and output.
    Stdio { command: String, args: Vec<String> },
    /// A server that is reached over HTTP.
    Http { url: String },
}

/// Stores the tokens of a sign-in, which servers renew from time to time.
pub type KeepTokens = Arc<dyn Fn(Secret) + Send + Sync>;

/// Everything that is needed to reach a server.
#[derive(Clone)]
pub struct Launch {
    pub name: String,
    pub transport: Transport,
    /// Headers of an HTTP server, or environment variables of a program.
    pub secrets: Vec<(String, Secret)>,
    /// The tokens of an earlier sign-in, as the bridge wrote them.
    pub tokens: Option<Secret>,
    pub keep_tokens: KeepTokens,
}

/// Reaches servers.
pub trait Connector: Send + Sync {
    /// Connects, introduces Kai and lists the tools. Dropping the link ends the connection, and the program if one was
    /// started.
    fn connect(&self, launch: Launch) -> Boxed<'_, Result<Connected, LinkError>>;

    /// Begins signing in to a server that asks for it.
    fn sign_in(&self, launch: Launch) -> Boxed<'_, Result<SigningIn, LinkError>>;
}

/// A connection that was just made.
pub struct Connected {
    pub link: Arc<dyn Link>,
    pub tools: Vec<ToolText>,
    /// What the server calls itself.
    pub calls_itself: Untrusted,
}

/// A sign-in that has begun.
pub struct SigningIn {
    /// The page on which the user signs in.
    pub url: String,
    /// Ends when the user has signed in, has refused, or has waited too long. The tokens are then stored.
    pub done: Boxed<'static, Result<(), LinkError>>,
}

/// What a connected server tells by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    ToolsChanged,
    Ended(LinkError),
}

/// Is told how far a call is, in a few words.
pub type Progress<'a> = &'a (dyn Fn(Untrusted) + Send + Sync);

/// A connected server.
pub trait Link: Send + Sync {
    fn tools(&self) -> Boxed<'_, Result<Vec<ToolText>, LinkError>>;

    /// Calls a tool. Dropping the call cancels it, and the server is told.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
        progress: Progress<'a>,
    ) -> Boxed<'a, Result<Outcome, LinkError>>;

    /// Waits for what the server tells next.
    fn event(&self) -> Boxed<'_, LinkEvent>;

    /// The last lines that a program wrote to its standard error.
    fn stderr(&self) -> Vec<Untrusted>;
}

/// What a call returned. All of it is a stranger's text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The server says that the call failed.
    pub failed: bool,
    pub text: Untrusted,
    pub structured: Option<Value>,
    /// Pictures and sounds, each as its type and size; they are not shown.
    pub media: Vec<String>,
    /// Resources that the server points to: name and address.
    pub links: Vec<(Untrusted, Untrusted)>,
}

/// Why a server cannot be used, or a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.said())]
pub enum LinkError {
    /// The program could not be started.
    NotStarted { command: String, why: String },
    /// The server ended, or closed the connection. The last line that its program wrote is kept.
    Ended { last_words: Untrusted },
    /// Nothing answers at the address.
    Unreachable { why: String },
    /// The server wants the user to sign in first.
    SignIn,
    /// The server refuses the header or the token.
    Refused { status: u16 },
    /// The user did not sign in.
    NotSignedIn { why: Untrusted },
    /// No answer in time.
    Silent,
    /// An answer that is larger than Kai accepts.
    TooLarge,
    /// The server does not speak MCP, or breaks its rules.
    Garbled { why: Untrusted },
    /// The server answered the call with an error.
    Failed { why: Untrusted },
}

/// How many characters of a server's own words an error shows.
const LONGEST_WHY: usize = 200;

impl LinkError {
    /// The error in the user's language.
    pub fn said(&self) -> Said {
        match self {
            Self::NotStarted { command, why } => said::mcp_not_started(command, why),
            Self::Ended { last_words } if last_words.is_blank() => said::mcp_ended(),
            Self::Ended { last_words } => said::mcp_ended_saying(last_words.line(LONGEST_WHY)),
            Self::Unreachable { why } => said::mcp_unreachable(why),
            Self::SignIn => said::mcp_sign_in_first(),
            Self::Refused { status } => said::mcp_refused(u32::from(*status)),
            Self::NotSignedIn { why } => said::mcp_not_signed_in(why.line(LONGEST_WHY)),
            Self::Silent => said::mcp_silent(),
            Self::TooLarge => said::mcp_too_large(),
            Self::Garbled { why } => said::mcp_garbled(why.line(LONGEST_WHY)),
            Self::Failed { why } => said::mcp_call_failed(why.line(LONGEST_WHY)),
        }
    }
}
