//! Gemini's own API: `generateContent` and `streamGenerateContent`.
//!
//! [`map::body`] encodes a request, with tool schemas reduced to Gemini's subset by [`schema::subset`];
//! [`read::Content`] reads each event of a streamed answer, or the whole of an unstreamed one.

mod map;
mod read;
mod schema;
mod wire;

use crate::wire::{Ask, KeyHeader, Reader, Wire, json};

pub(crate) struct Gemini;

impl Wire for Gemini {
    fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>) {
        let model = model.strip_prefix("models/").unwrap_or(model);
        if stream {
            (format!("/models/{model}:streamGenerateContent"), Some("alt=sse"))
        } else {
            (format!("/models/{model}:generateContent"), None)
        }
    }

    /// Adds the API version when the base URL is only a host, because people do not know it.
    fn base_path(&self, written: &str) -> String {
        if written.is_empty() { "/v1beta".to_owned() } else { written.to_owned() }
    }

    /// Sends the key in a header, because a key in the URL ends up in logs.
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: "x-goog-api-key", prefix: "", also: None }
    }

    fn encode(&self, ask: &Ask<'_>) -> Vec<u8> {
        json(&map::body(ask))
    }

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        Box::new(read::Content::new(model))
    }
}
