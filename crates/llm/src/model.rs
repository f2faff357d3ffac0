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

/// Callback for streamed text, called in order with pieces of any size.
pub type Deltas<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// A reply in progress. Dropping it closes the connection.
pub type Replying<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

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

    /// Size of the model's context window in tokens.
    fn window(&self) -> usize;

    /// The model's server and name, under which facts learned about it are stored; `None` for a model without a
    /// server.
    fn place(&self) -> Option<Place> {
        None
    }
}
