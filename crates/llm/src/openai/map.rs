//! Builds the request body for chat completions from our own types. Pure.

use super::wire::{
    Body, Call, Declaration, Function, ImageUrl, Message as Wire, Said, SaidPart, StreamOptions, Thinking,
    Tool,
};
use crate::ids::accepted;
use crate::wire::Ask;
use crate::{CallId, Message, Picture, ToolCall, ToolSpec, verbatim};

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
        // A model that thought before it called a tool wants to read its thoughts in every later request, and DeepSeek
        // refuses the whole chat without them. We keep no thoughts, so it shall have none.
        thinking: (service == Service::DeepSeek).then_some(Thinking { r#type: "disabled" }),
        reasoning_effort: (!request.tools.is_empty() && reasons_or_calls(ask.model)).then_some("none"),
    }
}

/// Whether chat completions let this model reason or call tools, but not both: `OpenAI`'s models from GPT-5.4 on. Newer
/// ones reason unless they are told not to. A gateway that puts a vendor before the name is left to do as it likes.
fn reasons_or_calls(model: &str) -> bool {
    let version = model.strip_prefix("gpt-").and_then(|name| name.split('-').next()).unwrap_or_default();
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    let version = major.parse::<u32>().ok().zip(minor.parse::<u32>().ok());
    version.is_some_and(|version| version >= (5, 4))
}

/// Services that need special treatment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    OpenAi,
    Mistral,
    DeepSeek,
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
        } else if under("deepseek.com") {
            Self::DeepSeek
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
            Self::DeepSeek | Self::Other => id.0.clone(),
        }
    }
}

fn talk(messages: &[Message], service: Service) -> Vec<Wire<'_>> {
    let mut talk = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::User { text, pictures } => user(&mut talk, text, pictures),
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
fn user<'a>(talk: &mut Vec<Wire<'a>>, text: &'a str, pictures: &'a [Picture]) {
    match talk.last_mut() {
        Some(Wire::User { content: Said::Text(before) }) if pictures.is_empty() => {
            before.push_str("\n\n");
            before.push_str(text);
        }
        Some(Wire::User { content }) => {
            let before = std::mem::replace(content, Said::Parts(vec![]));
            *content = Said::Parts(before.into_parts().into_iter().chain(said(text, pictures)).collect());
        }
        _ if pictures.is_empty() => talk.push(Wire::User { content: Said::Text(text.to_owned()) }),
        _ => talk.push(Wire::User { content: Said::Parts(said(text, pictures).collect()) }),
    }
}

impl<'a> Said<'a> {
    fn into_parts(self) -> Vec<SaidPart<'a>> {
        match self {
            Self::Text(text) => vec![SaidPart::Text { text: text.into() }],
            Self::Parts(parts) => parts,
        }
    }
}

/// The parts of a message, as a data URL for each picture.
fn said<'a>(text: &'a str, pictures: &'a [Picture]) -> impl Iterator<Item = SaidPart<'a>> {
    let words = (!text.trim().is_empty()).then_some(SaidPart::Text { text: text.into() });
    let seen = pictures.iter().map(|picture| {
        let url = format!("data:{};base64,{}", picture.media.as_str(), picture.data.as_str());
        SaidPart::ImageUrl { image_url: ImageUrl { url } }
    });
    words.into_iter().chain(seen)
}

fn tool_call(call: &ToolCall, service: Service) -> Call<'_> {
    let arguments = verbatim::arguments(&call.arguments).map(|raw| raw.get().to_owned()).unwrap_or_default();
    Call { id: service.id(&call.id), r#type: "function", function: Function { name: &call.name, arguments } }
}

fn declaration(tool: &ToolSpec) -> Tool<'_> {
    let ToolSpec { name, description, parameters } = tool;
    Tool { r#type: "function", function: Declaration { name, description, parameters } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Request;

    #[test]
    fn only_deepseek_is_asked_not_to_think() {
        let messages = vec![Message::user("hello".to_owned())];
        let request = Request { system: String::new(), messages, tools: vec![] };
        for (host, expected) in [
            ("api.deepseek.com", Some(json!({"type": "disabled"}))),
            ("deepseek.com.example", None),
            ("api.openai.com", None),
            ("api.mistral.ai", None),
            ("127.0.0.1", None),
        ] {
            let ask = Ask { request: &request, model: "m", host, window: 8_192, stream: true };
            let written = serde_json::to_value(body(&ask)).unwrap();
            assert_eq!(written.get("thinking").cloned(), expected, "{host}");
        }
    }

    #[test]
    fn a_model_that_reasons_or_calls_is_asked_not_to_reason_when_it_has_tools() {
        let parameters = json!({"type": "object"}).into();
        let look = ToolSpec { name: "look".to_owned(), description: String::new(), parameters };
        for (model, expected) in [
            ("gpt-6-luna", true),
            ("gpt-6.1-terra", true),
            ("gpt-6", true),
            ("gpt-10", true),
            ("gpt-5.6-terra", true),
            ("gpt-5.4", true),
            ("gpt-5.3-chat-latest", false),
            ("gpt-5-mini", false),
            ("gpt-4.1-mini", false),
            ("gpt-4o", false),
            ("gpt-oss-120b", false),
            ("openai/gpt-6-luna", false),
            ("qwen3:8b", false),
            ("", false),
        ] {
            for tools in [vec![], vec![look.clone()]] {
                let expected = (expected && !tools.is_empty()).then_some(json!("none"));
                let messages = vec![Message::user("hello".to_owned())];
                let request = Request { system: String::new(), messages, tools };
                let ask =
                    Ask { request: &request, model, host: "api.openai.com", window: 8_192, stream: true };
                let written = serde_json::to_value(body(&ask)).unwrap();
                assert_eq!(written.get("reasoning_effort").cloned(), expected, "{model}");
            }
        }
    }
}
