//! What Kai and its worker tell each other. The worker answers one question at a time.

use std::path::PathBuf;

use kai_llm::{Request, Usage};
use serde::{Deserialize, Serialize};

/// The model to load, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) file: PathBuf,
    /// The size of the context window in tokens.
    pub(crate) window: usize,
    pub(crate) threads: usize,
}

/// What Kai tells the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    /// The first order, once.
    Load(Load),
    Ask {
        request: Request,
    },
    /// Which of two answers is likelier?
    Prefer {
        request: Request,
        answers: [String; 2],
    },
    /// Stop what is under way, as soon as possible.
    Stop,
    /// The answer to [`Event::Wants`]: this many bytes follow as raw frames; 0 if nothing is kept.
    State {
        bytes: u64,
    },
}

/// What the worker tells Kai.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The model is loaded.
    Ready,
    /// How much of the request is read.
    Reading {
        percent: u8,
    },
    /// The next piece of the answer's text.
    Text {
        text: String,
    },
    /// It goes on writing. A sign of life, for what cannot be shown while it is written.
    Writing,
    /// Asks for the kept state of the model after it read this beginning of a prompt.
    Wants {
        key: String,
    },
    /// The state after this beginning was read follows as raw frames, to be kept.
    Keep {
        key: String,
        bytes: u64,
    },
    /// The answer is complete.
    Done(Done),
    Preferred {
        margin: f32,
    },
    /// It was stopped.
    Stopped,
    /// The prompt has more tokens than the window.
    TooLong {
        window: usize,
    },
    /// It failed; the worker ends after this.
    Failed(Failed),
}

/// A complete answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) text: String,
    pub(crate) call: Option<Called>,
    pub(crate) usage: Usage,
    pub(crate) cut_off: bool,
    /// How many tokens of the prompt did not have to be read again.
    pub(crate) reused: u64,
}

/// A tool call in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Called {
    pub(crate) name: String,
    /// A JSON object that fits the tool's schema.
    pub(crate) arguments: String,
}

/// Why the worker ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failed {
    BadFile(String),
    OldProcessor(String),
    Broken(String),
}
