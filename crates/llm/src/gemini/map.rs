//! Builds Gemini's request body from our own types. Pure.
//!
//! All results of a round go into one content, in the order of the calls. Each thought signature is sent back on the
//! part it came with.

use super::schema::subset;
use super::wire::{
    Body, Content, Declaration, FunctionCall, FunctionResponse, InlineData, Kind, Part, Role, System, Tools,
};
use crate::wire::Ask;
use crate::{CallId, Message, Picture, ToolCall, ToolSpec, ids, verbatim};

/// The signature Google documents for calls that another model made. Without it Gemini 3 rejects the whole turn.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";

pub(super) fn body<'a>(ask: &Ask<'a>) -> Body<'a> {
    let request = ask.request;
    let system = (!request.system.is_empty()).then_some(System { parts: [text(&request.system, None)] });
    let declarations: Vec<_> = request.tools.iter().map(declaration).collect();
    let tools = (!declarations.is_empty()).then_some(Tools { function_declarations: declarations });
    Body {
        system_instruction: system,
        contents: contents(&request.messages, wants_signatures(ask.model)),
        tools: tools.into_iter().collect(),
    }
}

/// From Gemini 3 on, the first call of each round must have a signature. A name without a version, such as
/// `gemini-flash-latest`, means a newer model: only those that are named as older ones do without.
fn wants_signatures(model: &str) -> bool {
    let version = model.rsplit('/').next().and_then(|name| name.strip_prefix("gemini-"));
    let major = version.and_then(|v| v.split(['.', '-']).next()?.parse::<u32>().ok());
    major.is_none_or(|major| major >= 3)
}

fn contents(messages: &[Message], sign: bool) -> Vec<Content<'_>> {
    let mut talk: Vec<Content<'_>> = Vec::with_capacity(messages.len());
    // The kind of the previous message. User texts are merged with user texts and results with results, never both in
    // one content.
    let mut last = None;
    for message in messages {
        let (role, parts) = match message {
            Message::User { text, pictures } => (Role::User, said(text, pictures)),
            Message::Assistant { text, calls, signature } => {
                (Role::Model, answer(text, signature.as_deref(), calls, sign))
            }
            Message::Tool { call, tool, result } => (Role::User, vec![response(call, tool, result)]),
        };
        let kind = std::mem::discriminant(message);
        match talk.last_mut().filter(|_| role == Role::User && last == Some(kind)) {
            Some(content) => content.parts.extend(parts),
            None => talk.push(Content { role, parts }),
        }
        last = Some(kind);
    }
    talk
}

fn text<'a>(text: &'a str, signature: Option<&'a str>) -> Part<'a> {
    Part { kind: Kind::Text(text), thought_signature: signature }
}

fn said<'a>(words: &'a str, pictures: &'a [Picture]) -> Vec<Part<'a>> {
    let seen = pictures.iter().map(|picture| {
        let data = InlineData { mime_type: picture.media.as_str(), data: picture.data.as_str() };
        Part { kind: Kind::InlineData(data), thought_signature: None }
    });
    let words = (pictures.is_empty() || !words.trim().is_empty()).then(|| text(words, None));
    seen.chain(words).collect()
}

fn answer<'a>(said: &'a str, signature: Option<&'a str>, calls: &'a [ToolCall], sign: bool) -> Vec<Part<'a>> {
    let said = (!said.is_empty()).then(|| text(said, signature));
    let calls = calls.iter().enumerate().map(|(at, call)| {
        let stand_in = (sign && at == 0).then_some(FOREIGN_CALL);
        let (id, args) = (known(&call.id), verbatim::arguments(&call.arguments));
        Part {
            kind: Kind::FunctionCall(FunctionCall { id, name: &call.name, args }),
            thought_signature: call.signature.as_deref().or(stand_in),
        }
    });
    said.into_iter().chain(calls).collect()
}

fn response<'a>(call: &'a CallId, name: &'a str, result: &str) -> Part<'a> {
    let response = FunctionResponse { id: known(call), name, response: verbatim::result(result) };
    Part { kind: Kind::FunctionResponse(response), thought_signature: None }
}

/// The id to send for a call. An id we generated means nothing to Gemini, which then matches results to calls by
/// order and name.
fn known(id: &CallId) -> Option<&str> {
    (!ids::is_generated(id)).then_some(id.0.as_str())
}

fn declaration(tool: &ToolSpec) -> Declaration<'_> {
    Declaration { name: &tool.name, description: &tool.description, parameters: subset(&tool.parameters) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_models_that_are_named_as_older_ones_do_without_signatures() {
        for (model, expected) in [
            ("gemini-1.5-pro", false),
            ("gemini-2.0-flash-001", false),
            ("gemini-2.5-flash", false),
            ("models/gemini-2.5-pro", false),
            ("gemini-3-pro-preview", true),
            ("gemini-3.1-flash-lite", true),
            ("models/gemini-10-pro", true),
            ("gemini-flash-latest", true),
            ("gemini-flash-lite-latest", true),
            ("models/gemini-pro-latest", true),
            ("my-own-name", true),
        ] {
            assert_eq!(wants_signatures(model), expected, "{model}");
        }
    }
}
