//! Builds the request body for chat completions from our own types. Pure.

use super::wire::{Body, Call, Declaration, Function, Message as Wire, StreamOptions, Tool};
use crate::format::Ask;
use crate::ids::accepted;
use crate::{CallId, Message, ToolCall, ToolSpec, verbatim};

/// Longest call id that `OpenAI` accepts.
const LONGEST_ID: usize = 40;

pub(super) fn body<'a>(ask: &Ask<'a>) -> Body<'a> {
    let service = Service::at(ask.host);
    let request = ask.request;
    let system = (!request.system.is_empty()).then_some(Wire::System { content: &request.system });
    let talk = talk(&request.messages, service);
    Body {
        model: ask.model,
        messages: system.into_iter().chain(talk).collect(),
        tools: request.tools.iter().map(declaration).collect(),
        stream: ask.stream,
        stream_options: (ask.stream && service != Service::Mistral)
            .then_some(StreamOptions { include_usage: true }),
    }
}

/// Services that are stricter than the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    OpenAi,
    Mistral,
    Other,
}

impl Service {
    fn at(host: &str) -> Self {
        let under =
            |domain: &str| host.strip_suffix(domain).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'));
        if under("mistral.ai") {
            Self::Mistral
        } else if under("openai.com") {
            Self::OpenAi
        } else {
            Self::Other
        }
    }

    /// The id to send for a call. Ids are sent back unchanged, because a proxy may encode something in them; only
    /// those the service would reject are replaced.
    fn id(self, id: &CallId) -> String {
        match self {
            Self::Mistral => {
                accepted(id, |id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()))
            }
            Self::OpenAi => accepted(id, |id| id.len() <= LONGEST_ID),
            Self::Other => id.0.clone(),
        }
    }
}

fn talk(messages: &[Message], service: Service) -> Vec<Wire<'_>> {
    let mut talk = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::User { text } => user(&mut talk, text),
            Message::Assistant { text, calls, .. } => talk.push(Wire::Assistant {
                content: (!text.is_empty()).then_some(text),
                tool_calls: calls.iter().map(|call| tool_call(call, service)).collect(),
            }),
            Message::Tool { call, result, .. } => {
                talk.push(Wire::Tool { tool_call_id: service.id(call), content: result });
            }
        }
    }
    talk
}

/// Merges consecutive user messages, because many chat templates require the roles to alternate.
fn user(talk: &mut Vec<Wire<'_>>, text: &str) {
    match talk.last_mut() {
        Some(Wire::User { content }) => {
            content.push_str("\n\n");
            content.push_str(text);
        }
        _ => talk.push(Wire::User { content: text.to_owned() }),
    }
}

fn tool_call(call: &ToolCall, service: Service) -> Call<'_> {
    let arguments = verbatim::arguments(&call.arguments).map(|raw| raw.get().to_owned()).unwrap_or_default();
    Call { id: service.id(&call.id), r#type: "function", function: Function { name: &call.name, arguments } }
}

fn declaration(tool: &ToolSpec) -> Tool<'_> {
    let ToolSpec { name, description, parameters } = tool;
    Tool { r#type: "function", function: Declaration { name, description, parameters } }
}
