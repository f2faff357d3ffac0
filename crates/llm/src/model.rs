//! What the assistant asks of a language model, whichever it is.

use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::{Message, ModelError, Reply, ToolSpec};

/// Everything a model is given for one reply. It is a copy: repaired, fitted, and thrown away afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub system: String,
    pub messages: Vec<Message>,
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
}

/// Is handed text as it streams in, in order, in pieces of any size.
pub type Deltas<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// A reply under way. Dropping it closes the connection.
pub type Replying<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

/// A model's address: its server, and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub base_url: String,
    pub model: String,
}

/// A language model.
pub trait Model: Send + Sync {
    /// Exactly the bytes that [`Model::reply`] sends as HTTP body for this request.
    fn body(&self, request: &Request) -> Vec<u8>;

    /// One attempt; whether to try again is for [`crate::retry`] to say.
    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a>;

    /// How many tokens of context this model has.
    fn window(&self) -> usize;

    /// Where it is asked, so that what is learned about it can be kept; `None` for one that is nowhere.
    fn place(&self) -> Option<Place> {
        None
    }
}
