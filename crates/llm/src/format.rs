//! The wire formats, and which of them encodes a request.

use serde::{Deserialize, Serialize};

use crate::Request;
use crate::as_text::tools_as_text;
use crate::wire::{Ask, Wire};

/// A family of APIs that share a request and answer format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Chat completions, introduced by `OpenAI` and supported by most other services.
    OpenAi,
    Gemini,
    Anthropic,
}

pub(crate) fn wire(format: Format) -> &'static dyn Wire {
    match format {
        Format::OpenAi => &crate::openai::OpenAi,
        Format::Gemini => &crate::gemini::Gemini,
        Format::Anthropic => &crate::anthropic::Anthropic,
    }
}

/// Encodes the request body. Without tools, earlier tool calls and results are sent as text.
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
