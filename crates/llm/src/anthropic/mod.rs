//! Anthropic's Messages API.
//!
//! [`map::body`] encodes a request; [`read::Answer`] reads each event of a streamed answer, or the whole of an
//! unstreamed one.

mod map;
mod read;
mod wire;

use crate::wire::{Ask, KeyHeader, Reader, Wire, json};

pub(crate) struct Anthropic;

const PATH: &str = "/v1/messages";

impl Wire for Anthropic {
    fn path(&self, _model: &str, _stream: bool) -> (String, Option<&'static str>) {
        (PATH.to_owned(), None)
    }

    /// Accepts base URLs with and without the version, because people write both.
    fn base_path(&self, written: &str) -> String {
        let short = written.strip_suffix("/messages").unwrap_or(written);
        short.strip_suffix("/v1").unwrap_or(short).to_owned()
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: "x-api-key", prefix: "", also: Some(("anthropic-version", "2023-06-01")) }
    }

    fn encode(&self, ask: &Ask<'_>) -> Vec<u8> {
        json(&map::body(ask))
    }

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        Box::new(read::Answer::new(model))
    }
}
