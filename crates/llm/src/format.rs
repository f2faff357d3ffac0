//! What each wire format offers to the one place that sends and receives. Everything here is pure.

use serde::{Deserialize, Serialize};

use crate::as_text::tools_as_text;
use crate::model::Deltas;
use crate::{ModelError, Reply, Request};

/// A family of APIs that write requests and answers alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Chat completions, as first offered by `OpenAI` and spoken by most others.
    OpenAi,
    Gemini,
    Anthropic,
}

/// One request, with what its encoding depends on.
pub(crate) struct Ask<'a> {
    pub(crate) request: &'a Request,
    pub(crate) model: &'a str,
    /// Host of the base URL; some services need a word of their own.
    pub(crate) host: &'a str,
    pub(crate) window: usize,
    pub(crate) stream: bool,
}

/// A wire format: where to send, what to send, how to read the answer.
pub(crate) trait Wire: Send + Sync {
    /// What follows the base URL: a path, and perhaps a query.
    fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>);
    /// The path of a base URL as people write it, in the form that [`Wire::path`] continues.
    fn base_path(&self, written: &str) -> String;
    fn key_header(&self) -> KeyHeader;
    fn encode(&self, ask: &Ask<'_>) -> Vec<u8>;
    fn reader(&self, model: &str) -> Box<dyn Reader>;
}

/// Headers that say who is asking.
pub(crate) struct KeyHeader {
    pub(crate) name: &'static str,
    /// Stands before the key.
    pub(crate) prefix: &'static str,
    /// A fixed header that the service wants besides.
    pub(crate) also: Option<(&'static str, &'static str)>,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Open,
    /// The model has stopped and said why; at most the count of tokens is missing.
    Ended,
    /// The server has said that nothing follows.
    Closed,
}

/// Puts a reply together from its events.
pub(crate) trait Reader: Send {
    /// Takes in one event of a stream, or a whole answer, and hands on the text that is new in it.
    fn take(&mut self, data: &str, deltas: Deltas<'_>) -> Result<(), ModelError>;
    fn progress(&self) -> Progress;
    fn finish(self: Box<Self>) -> Result<Reply, ModelError>;
}

pub(crate) fn wire(format: Format) -> &'static dyn Wire {
    match format {
        Format::OpenAi => &crate::openai::OpenAi,
        Format::Gemini => &crate::gemini::Gemini,
        Format::Anthropic => &crate::anthropic::Anthropic,
    }
}

/// The bytes that are sent.
pub(crate) fn body(wire: &dyn Wire, ask: &Ask<'_>) -> Vec<u8> {
    if !ask.request.tools.is_empty() {
        return wire.encode(ask);
    }
    let request = Request {
        system: ask.request.system.clone(),
        messages: tools_as_text(&ask.request.messages),
        tools: Vec::new(),
    };
    wire.encode(&Ask { request: &request, ..*ask })
}

/// JSON of a wire type. These types hold only strings, numbers and JSON that was read before, so writing one
/// cannot fail.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Reads one event, or says that it is no JSON of the expected kind.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(|error| {
        let what = if error.is_eof() { "its JSON breaks off" } else { "it is not the expected JSON" };
        ModelError::garbled(what)
    })
}
