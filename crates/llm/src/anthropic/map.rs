//! Pure: from our words to a request for the Messages API.
//!
//! All results of a round go into one user message, in the order of the calls. When no tools are offered but
//! the current turn has calls, their names are declared and `tool_choice` is `none`: the API refuses tool
//! blocks without `tools`, and a result in its own block stays apart from what the user said.

use std::borrow::Cow;

use serde_json::json;

use super::wire::{Block, Body, Message as Wire, Role, Tool, ToolChoice};
use crate::format::Ask;
use crate::ids::{accepted, is_plain};
use crate::window::answer_room;
use crate::{CallId, Message, ToolCall, ToolSpec, verbatim};

pub(super) fn body<'a>(ask: &Ask<'a>) -> Body<'a> {
    let request = ask.request;
    let offered: Vec<_> = request.tools.iter().map(declaration).collect();
    let used = if offered.is_empty() { used_tools(&request.messages) } else { Vec::new() };
    Body {
        model: ask.model,
        max_tokens: answer_room(ask.window).max(1),
        system: &request.system,
        messages: talk(&request.messages),
        tool_choice: (!used.is_empty()).then_some(ToolChoice { r#type: "none" }),
        tools: if offered.is_empty() { used } else { offered },
        stream: ask.stream,
    }
}

fn talk(messages: &[Message]) -> Vec<Wire<'_>> {
    let mut talk: Vec<Wire<'_>> = Vec::with_capacity(messages.len());
    for message in messages {
        let (role, blocks) = match message {
            Message::User { text } => (Role::User, vec![Block::Text { text }]),
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

fn answer<'a>(text: &'a str, calls: &'a [ToolCall]) -> Vec<Block<'a>> {
    // The API refuses a text of blanks only.
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
    Tool { name, description, input_schema: Cow::Borrowed(parameters) }
}

/// The tools that the conversation has used, by name only.
fn used_tools(messages: &[Message]) -> Vec<Tool<'_>> {
    let mut used: Vec<Tool<'_>> = Vec::new();
    for message in messages {
        let Message::Assistant { calls, .. } = message else { continue };
        for call in calls {
            if used.iter().all(|tool| tool.name != call.name) {
                let input_schema = Cow::Owned(json!({"type": "object"}));
                used.push(Tool { name: &call.name, description: "", input_schema });
            }
        }
    }
    used
}
