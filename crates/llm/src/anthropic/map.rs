//! Builds the request body of the Messages API from our own types. Pure.
//!
//! Consecutive user messages, and all tool results of a round in the order of the calls, go into one message.

use super::wire::{Block, Body, Message as Wire, Role, Source, Tool};
use crate::ids::{accepted, is_plain};
use crate::window::answer_room;
use crate::wire::Ask;
use crate::{CallId, Message, Picture, ToolCall, ToolSpec, verbatim};

pub(super) fn body<'a>(ask: &Ask<'a>) -> Body<'a> {
    let request = ask.request;
    Body {
        model: ask.model,
        max_tokens: answer_room(ask.window).max(1),
        system: &request.system,
        messages: talk(&request.messages),
        tools: request.tools.iter().map(declaration).collect(),
        stream: ask.stream,
    }
}

fn talk(messages: &[Message]) -> Vec<Wire<'_>> {
    let mut talk: Vec<Wire<'_>> = Vec::with_capacity(messages.len());
    for message in messages {
        let (role, blocks) = match message {
            Message::User { text, pictures } => (Role::User, said(text, pictures)),
            Message::Assistant { text, calls, .. } => (Role::Assistant, answer(text, calls)),
            Message::Tool { call, result, .. } => {
                (Role::User, vec![Block::ToolResult { tool_use_id: id(call), content: result }])
            }
        };
        match talk.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.extend(blocks),
            None => talk.push(Wire { role, content: blocks }),
        }
    }
    talk
}

/// The pictures go before the words, as the service advises.
fn said<'a>(text: &'a str, pictures: &'a [Picture]) -> Vec<Block<'a>> {
    let seen = pictures.iter().map(|picture| Block::Image {
        source: Source::Base64 { media_type: picture.media.as_str(), data: picture.data.as_str() },
    });
    // The API rejects a text block that is only whitespace.
    let words = (pictures.is_empty() || !text.trim().is_empty()).then_some(Block::Text { text });
    seen.chain(words).collect()
}

fn answer<'a>(text: &'a str, calls: &'a [ToolCall]) -> Vec<Block<'a>> {
    // The API rejects a text block that is only whitespace.
    let said = (!text.trim().is_empty()).then_some(Block::Text { text });
    let calls = calls.iter().map(|call| Block::ToolUse {
        id: id(&call.id),
        name: &call.name,
        input: verbatim::arguments(&call.arguments),
    });
    said.into_iter().chain(calls).collect()
}

fn id(id: &CallId) -> String {
    accepted(id, |id| !id.is_empty() && id.len() <= 64 && id.bytes().all(is_plain))
}

fn declaration(tool: &ToolSpec) -> Tool<'_> {
    let ToolSpec { name, description, parameters } = tool;
    Tool { name, description, input_schema: parameters }
}
