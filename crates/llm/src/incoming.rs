//! Turns the bytes of a successful answer, in any chunks, into a reply. Pure.

use crate::detail::Detail;
use crate::model::Deltas;
use crate::wire::{Progress, Reader};
use crate::{ModelError, Reply, sse};

/// The format of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Server-sent events.
    Events,
    /// One JSON document.
    Whole,
}

impl Shape {
    /// After this many bytes that are not whitespace, reading more will not help to decide.
    pub(crate) const TELLING: usize = 6;

    /// Decides by the first bytes, and by the content type if they leave it open. `None` if it is neither, such as a
    /// web page, or if more bytes are needed.
    pub(crate) fn of(content_type: &str, first: &[u8]) -> Option<Self> {
        let start = first.trim_ascii_start();
        let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start);
        let field =
            [&b"data"[..], b"event", b"id", b"retry", b"error", b":"].iter().any(|f| start.starts_with(f));
        match start.first() {
            Some(b'<') => None,
            Some(b'{' | b'[') => Some(Self::Whole),
            _ if field || content_type.contains("event-stream") => Some(Self::Events),
            _ => content_type.contains("json").then_some(Self::Whole),
        }
    }
}

/// An answer while it is being received.
pub(crate) struct Incoming {
    reader: Box<dyn Reader>,
    events: Option<sse::Parser>,
    whole: Vec<u8>,
}

impl Incoming {
    pub(crate) fn new(shape: Shape, reader: Box<dyn Reader>) -> Self {
        let events = (shape == Shape::Events).then(sse::Parser::default);
        Self { reader, events, whole: Vec::new() }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8], deltas: Deltas<'_>) -> Result<(), ModelError> {
        let Some(events) = &mut self.events else {
            self.whole.extend_from_slice(chunk);
            return Ok(());
        };
        events.feed(chunk, &mut |data| event(&mut *self.reader, data, deltas))
    }

    pub(crate) fn progress(&self) -> Progress {
        self.reader.progress()
    }

    pub(crate) fn finish(self, deltas: Deltas<'_>) -> Result<Reply, ModelError> {
        let Self { mut reader, events, whole } = self;
        match events {
            Some(events) => events.finish(&mut |data| event(&mut *reader, data, deltas))?,
            None if whole.trim_ascii().is_empty() => return Err(ModelError::Garbled { what: Detail::Empty }),
            None => {
                reader.take(&String::from_utf8_lossy(&whole), deltas)?;
                if reader.progress() == Progress::Open {
                    return Err(ModelError::Garbled { what: Detail::NoAnswer });
                }
            }
        }
        reader.finish()
    }
}

/// Passes an event to the reader, except blank ones, which some servers send to keep the connection alive.
fn event(reader: &mut dyn Reader, data: &str, deltas: Deltas<'_>) -> Result<(), ModelError> {
    if data.trim().is_empty() { Ok(()) } else { reader.take(data, deltas) }
}
