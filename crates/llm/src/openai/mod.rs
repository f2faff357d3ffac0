//! Chat completions: `OpenAI`'s own service and the many servers that speak like it.
//!
//! A request is encoded by [`map::body`]; each event of the answer, or the whole of it, goes through
//! [`read::Completion`].

mod map;
mod read;
mod wire;

use crate::format::{Ask, KeyHeader, Reader, Wire, json};

pub(crate) struct OpenAi;

const PATH: &str = "/chat/completions";

impl Wire for OpenAi {
    fn path(&self, _model: &str, _stream: bool) -> (String, Option<&'static str>) {
        (PATH.to_owned(), None)
    }

    /// The version is part of the base URL and differs between services, so it is not guessed.
    fn base_path(&self, written: &str) -> String {
        written.strip_suffix(PATH).unwrap_or(written).to_owned()
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: "authorization", prefix: "Bearer ", also: None }
    }

    fn encode(&self, ask: &Ask<'_>) -> Vec<u8> {
        json(&map::body(ask))
    }

    fn reader(&self, model: &str) -> Box<dyn Reader> {
        Box::new(read::Completion::new(model))
    }
}
