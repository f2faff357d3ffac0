//! What each wire format implements for the code that sends requests and reads answers. Everything here is pure.

use serde::{Deserialize, Serialize};

use crate::detail::Detail;
use crate::model::Deltas;
use crate::{ModelError, Reply, Request};

/// One request, with everything its encoding depends on.
pub(crate) struct Ask<'a> {
    pub(crate) request: &'a Request,
    pub(crate) model: &'a str,
    /// Host of the base URL, because some services need special treatment.
    pub(crate) host: &'a str,
    pub(crate) window: usize,
    pub(crate) stream: bool,
}

/// A wire format: where to send a request, what to send, and how to read the answer.
pub(crate) trait Wire: Send + Sync {
    /// The path to append to the base URL, and the query if there is one.
    fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>);
    /// Normalizes the path of a base URL as people write it, so that [`Wire::path`] can be appended.
    fn base_path(&self, written: &str) -> String;
    fn key_header(&self) -> KeyHeader;
    fn encode(&self, ask: &Ask<'_>) -> Vec<u8>;
    fn reader(&self, model: &str) -> Box<dyn Reader>;
}

/// The headers that authenticate a request.
pub(crate) struct KeyHeader {
    pub(crate) name: &'static str,
    /// Put before the key.
    pub(crate) prefix: &'static str,
    /// Another fixed header that the service requires.
    pub(crate) also: Option<(&'static str, &'static str)>,
}

/// How much of an answer has been received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Open,
    /// The model has stopped and given its reason. At most the token count is still missing.
    Ended,
    /// The server has said that nothing follows.
    Closed,
}

/// Assembles a reply from its events.
pub(crate) trait Reader: Send {
    /// Reads one event of a stream, or a whole answer, and passes its new text to `deltas`.
    fn take(&mut self, data: &str, deltas: Deltas<'_>) -> Result<(), ModelError>;
    fn progress(&self) -> Progress;
    fn finish(self: Box<Self>) -> Result<Reply, ModelError>;
}

/// Serializes a wire type to JSON. This cannot fail, because wire types hold only strings, numbers and JSON that was
/// parsed before.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Parses one event, or reports that it is not the expected JSON.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(|error| {
        let what = if error.is_eof() { Detail::JsonBreaksOff } else { Detail::OtherJson };
        ModelError::Garbled { what }
    })
}
