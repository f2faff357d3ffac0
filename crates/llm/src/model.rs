//! The interface that every language model implements.

use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::{Message, ModelError, Reply, ToolSpec};

/// Everything sent to a model for one reply. It is a copy of the history, repaired and fitted, and discarded
/// afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub system: String,
    pub messages: Vec<Message>,
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
}

/// What is heard of a reply before it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// The next piece of the text, of any size.
    Text(&'a str),
    /// How much of the request the model has read. Only models that run inside Kai tell.
    Reading { percent: u8 },
}

/// Callback for a reply in progress, called in order.
pub type Deltas<'a> = &'a (dyn Fn(Delta<'_>) + Send + Sync);

/// A reply in progress. Dropping it closes the connection.
pub type Replying<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

/// How much a model can bear at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scale {
    #[default]
    Full,
    /// A small model on the user's own processor: every word of a prompt costs time, and too many confuse it.
    Small,
}

/// How much likelier a model finds the first of two answers than the second, as a difference of logarithms.
pub type Judging<'a> = Pin<Box<dyn Future<Output = Result<f32, ModelError>> + Send + 'a>>;

/// The server of a model and the model's name there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub base_url: String,
    pub model: String,
}

/// A language model.
pub trait Model: Send + Sync {
    /// Exactly the bytes that [`Model::reply`] sends as the HTTP body for this request.
    fn body(&self, request: &Request) -> Vec<u8>;

    /// Makes one attempt. [`crate::retry`] decides whether to try again.
    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a>;

    /// [`Model::reply`] for a caller that has the body already. It must be the one of this request.
    fn reply_to<'a>(&'a self, request: &'a Request, _body: Vec<u8>, deltas: Deltas<'a>) -> Replying<'a> {
        self.reply(request, deltas)
    }

    /// Size of the model's context window in tokens.
    fn window(&self) -> usize;

    /// The model's server and name, under which facts learned about it are stored; `None` for a model without a
    /// server.
    fn place(&self) -> Option<Place> {
        None
    }

    fn scale(&self) -> Scale {
        Scale::Full
    }

    /// Compares two answers to a request by their probability; `None` for a model that does not tell it.
    fn prefers<'a>(&'a self, _request: &'a Request, _answers: [&'a str; 2]) -> Option<Judging<'a>> {
        None
    }
}
