//! Estimates the size of a request, and makes a copy that fits a model's context window. Pure.
//!
//! A turn is a user message and everything up to the next one. Whole turns are dropped, oldest first, so a call is
//! never separated from its results. The newest turn is always kept; only its results are shortened. Tools are
//! reduced before turns are dropped, but not below a quarter of the room: first their descriptions are shortened,
//! then the tools least likely to be called are dropped.
//!
//! An instruction for one request only therefore belongs in [`Request::system`]: as a user message it would become
//! the newest turn, and the results before it could be dropped. Where it has to be a user message, [`fit_by`] is told
//! that the newest turn has two of them.

use std::borrow::Cow;

use serde_json::Value;

use crate::{Message, Request, ToolSpec};

/// Tokens that a provider adds around a message, a call or a tool: role markers, ids, brackets.
const FRAME: usize = 16;

/// The window assumed for a model we know nothing about, in tokens.
pub const UNKNOWN: usize = 8_192;

/// No result is cut below this many tokens, so that it remains useful.
const LEAST_RESULT: usize = 64;

/// Estimates the number of tokens in a text, on the high side, by the kind of each byte.
///
/// Measured against a real tokenizer (Qwen's, which gives each digit its own token), the estimate is 1.2 to 1.7 times
/// too high for European text, code and JSON, up to 2.7 times for Chinese, and right for digits. Only random letters
/// come out up to 15 % too low.
pub fn tokens(text: &str) -> usize {
    sixths(text).div_ceil(6)
}

fn sixths(text: &str) -> usize {
    text.bytes().map(|byte| usize::from(COSTS[usize::from(byte)])).sum()
}

/// The cost of each byte, in sixths of a token. A table, because every byte of every request is looked at.
const COSTS: [u8; 256] = {
    let (mut costs, mut byte) = ([0; 256], 0);
    while byte < costs.len() {
        costs[byte] = match byte {
            0x61..=0x7a | 0x20 | 0x0a | 0x0d | 0x09 => 2, // small letters and blanks
            0x80.. => 3,
            0x30..=0x39 => 6, // digits
            _ => 5,
        };
        byte += 1;
    }
    costs
};

/// Estimates the whole request: system prompt, messages, arguments and tool schemas.
pub fn request_tokens(request: &Request) -> usize {
    standing(&request.system, &request.tools) + request.messages.iter().map(message_tokens).sum::<usize>()
}

/// The part of a window that is reserved for the answer.
pub fn answer_room(window: usize) -> usize {
    (window / 4).min(8192)
}

/// Makes a request fit the window, as far as possible without changing the user's latest message. All tools count as
/// equally likely to be called; see [`fit_by`].
pub fn fit(request: Request, window: usize) -> Request {
    fit_by(request, window, 1, |_, _| 0).0
}

/// Makes a request fit the window, as far as possible without changing the user's latest message, and returns it with its
/// tokens. If tools must be dropped, those with the lowest `likely` go first, and among equals the last one. A tool that
/// was called in the conversation is kept.
///
/// `asked` is how many of the last user messages belong to the newest turn: 1, or 2 if it goes on with an answer.
pub fn fit_by(
    request: Request,
    window: usize,
    asked: usize,
    likely: impl Fn(&ToolSpec, &[Message]) -> u32,
) -> (Request, usize) {
    let room = window.saturating_sub(answer_room(window));
    let whole = request_tokens(&request);
    if whole <= room {
        return (request, whole);
    }
    let tools = fewer_tools(&request, room, |tool| likely(tool, &request.messages));
    let budget = room.saturating_sub(standing(&request.system, &tools));
    let start = newest_turn(&request.messages, asked);
    let (older, newest) = request.messages.split_at(start);
    let newest = shortened(newest, budget);
    let used: usize = newest.iter().map(message_tokens).sum();
    let kept = &older[first_kept(older, budget.saturating_sub(used))..];
    let messages = kept.iter().cloned().chain(newest).collect();
    let fitted = Request { messages, tools: tools.into_owned(), system: request.system };
    let tokens = request_tokens(&fitted);
    (fitted, tokens)
}

/// Tools always keep one part in this many of the room, however long the conversation is.
const SHARE_OF_TOOLS: usize = 4;

/// The tools, shortened and reduced until they fit beside the rest of the request.
fn fewer_tools(request: &Request, room: usize, likely: impl Fn(&ToolSpec) -> u32) -> Cow<'_, [ToolSpec]> {
    let size = |tools: &[ToolSpec]| tools.iter().map(tool_tokens).sum::<usize>();
    let all = &request.tools[..];
    let rest = request_tokens(request) - size(all);
    let allowed = room.saturating_sub(rest).max(room / SHARE_OF_TOOLS);
    if size(all) <= allowed {
        return all.into();
    }
    for keep in [Words::FirstSentence, Words::None] {
        let brief: Vec<ToolSpec> = all.iter().map(|tool| with_fewer_words(tool, keep)).collect();
        if size(&brief) <= allowed {
            return brief.into();
        }
    }
    let mut left: Vec<ToolSpec> = all.iter().map(|tool| with_fewer_words(tool, Words::None)).collect();
    let called = |tool: &ToolSpec| request.messages.iter().any(|message| calls(message, &tool.name));
    while left.len() > 1 && size(&left) > allowed {
        // Among equal minima, the last tool: `min_by_key` returns the first it sees, and this iterates from the end.
        let free = left.iter().enumerate().rev().filter(|(_, tool)| !called(tool));
        let Some((least, _)) = free.min_by_key(|(_, tool)| likely(tool)) else { break };
        left.remove(least);
    }
    left.into()
}

fn calls(message: &Message, tool: &str) -> bool {
    matches!(message, Message::Assistant { calls, .. } if calls.iter().any(|call| call.name == tool))
}

/// How much is kept of the descriptions of a tool's parameters. Of the tool's own description, the first sentence is
/// always kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    FirstSentence,
    None,
}

fn with_fewer_words(tool: &ToolSpec, keep: Words) -> ToolSpec {
    let mut parameters = Value::clone(&tool.parameters);
    shorten(&mut parameters, keep);
    let description = first_sentence(&tool.description).to_owned();
    ToolSpec { name: tool.name.clone(), description, parameters: parameters.into() }
}

/// Shortens all descriptions in a schema. Only a description is a string under this key; a parameter named
/// `description` is an object.
fn shorten(schema: &mut Value, keep: Words) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(said)) = fields.get("description") {
                let short = first_sentence(said).to_owned();
                match keep {
                    Words::FirstSentence => fields.insert("description".to_owned(), short.into()),
                    Words::None => fields.remove("description"),
                };
            }
            fields.values_mut().for_each(|field| shorten(field, keep));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, keep)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn first_sentence(text: &str) -> &str {
    let end = text.match_indices(['.', '!', '?', '\n']).find(|(at, mark)| {
        let after = text[at + mark.len()..].chars().next();
        *mark == "\n" || after.is_none_or(char::is_whitespace)
    });
    text[..end.map_or(text.len(), |(at, mark)| at + mark.len())].trim()
}

fn is_user(message: &Message) -> bool {
    matches!(message, Message::User { .. })
}

/// The index where the newest turn starts, which has this many user messages.
fn newest_turn(messages: &[Message], asked: usize) -> usize {
    let said = messages.iter().enumerate().rev().filter(|(_, message)| is_user(message));
    said.take(asked.max(1)).last().map_or(0, |(start, _)| start)
}

/// The index where the oldest turn starts that still fits together with all later ones.
fn first_kept(older: &[Message], budget: usize) -> usize {
    let (mut kept, mut used) = (older.len(), 0);
    for (index, message) in older.iter().enumerate().rev() {
        used += message_tokens(message);
        if used > budget {
            break;
        }
        if is_user(message) {
            kept = index;
        }
    }
    kept
}

/// Returns the turn with its longest results cut just enough to fit the budget.
fn shortened(turn: &[Message], budget: usize) -> Vec<Message> {
    let sizes: Vec<usize> = turn.iter().filter_map(result_of).map(tokens).collect();
    let total: usize = turn.iter().map(message_tokens).sum();
    if total <= budget {
        return turn.to_vec();
    }
    let rest = total - sizes.iter().sum::<usize>();
    let cap = level(sizes, budget.saturating_sub(rest)).max(LEAST_RESULT);
    turn.iter().map(|message| with_result_cut(message, cap)).collect()
}

fn result_of(message: &Message) -> Option<&str> {
    match message {
        Message::Tool { result, .. } => Some(result),
        Message::User { .. } | Message::Assistant { .. } => None,
    }
}

/// The highest cap at which all sizes, each limited to it, add up to no more than the room: small ones stay whole and
/// large ones share the rest.
fn level(mut sizes: Vec<usize>, mut room: usize) -> usize {
    sizes.sort_unstable();
    let count = sizes.len();
    for (done, size) in sizes.into_iter().enumerate() {
        let share = room / (count - done);
        if size > share {
            return share;
        }
        room -= size;
    }
    usize::MAX
}

fn with_result_cut(message: &Message, cap: usize) -> Message {
    match message {
        Message::Tool { call, tool, result } if tokens(result) > cap => {
            Message::Tool { call: call.clone(), tool: tool.clone(), result: cut(result, cap) }
        }
        other => other.clone(),
    }
}

/// The start of a text and a note on how much is missing, together within the cap.
fn cut(text: &str, cap: usize) -> String {
    let all = text.chars().count();
    let note = |kept: usize| format!("\n[Shortened to fit: the first {kept} of {all} characters.]");
    let room = cap.saturating_sub(tokens(&note(all)) + 1);
    let (mut cost, mut head, mut kept) = (0, 0, 0);
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        cost += sixths(&text[at..end]);
        if cost.div_ceil(6) > room {
            break;
        }
        (head, kept) = (end, kept + 1);
    }
    format!("{}{}", &text[..head], note(kept))
}

fn message_tokens(message: &Message) -> usize {
    let content = match message {
        Message::User { text, pictures } => {
            tokens(text) + pictures.iter().map(|picture| FRAME + picture.tokens()).sum::<usize>()
        }
        Message::Assistant { text, calls, signature } => {
            let calls = calls.iter().map(|call| {
                let written = tokens(&call.name) + tokens(&call.arguments) + tokens(&call.id.0);
                FRAME + written + call.signature.as_deref().map_or(0, tokens)
            });
            tokens(text) + signature.as_deref().map_or(0, tokens) + calls.sum::<usize>()
        }
        Message::Tool { call, tool, result } => tokens(&call.0) + tokens(tool) + tokens(result),
    };
    FRAME + content
}

/// Tokens of everything but the messages.
fn standing(system: &str, tools: &[ToolSpec]) -> usize {
    FRAME + tokens(system) + tools.iter().map(tool_tokens).sum::<usize>()
}

fn tool_tokens(tool: &ToolSpec) -> usize {
    FRAME + tokens(&tool.name) + tokens(&tool.description) + tokens(tool.parameters.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, ToolCall};

    fn user(text: &str) -> Message {
        Message::user(text.to_owned())
    }

    fn turn(question: &str, result: &str) -> Vec<Message> {
        let id = CallId(question.to_owned());
        let call = ToolCall { id: id.clone(), name: "look".into(), arguments: "{}".into(), signature: None };
        vec![
            user(question),
            Message::Assistant { text: String::new(), calls: vec![call], signature: None },
            Message::Tool { call: id, tool: "look".into(), result: result.to_owned() },
        ]
    }

    fn request(turns: &[Vec<Message>]) -> Request {
        Request { system: "Be brief.".into(), messages: turns.concat(), tools: vec![] }
    }

    #[test]
    fn tokens_are_never_few() {
        for (text, expected) in [
            ("", 0),
            ("a", 1),
            ("abc", 1),
            ("abcd", 2),
            ("1234", 4),
            ("{\"a\":1}", 6),
            ("ß", 1),
            ("日本", 3),
            ("👋", 2),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn oldest_turns_go_first_and_whole() {
        let all = request(&[turn("one", "1"), turn("two", &"x".repeat(600)), turn("three", "3")]);
        let size = request_tokens(&all);
        for (window, first) in
            [(4 * size, "one"), ((size - 20) * 4 / 3, "two"), (size / 2, "three"), (10, "three")]
        {
            let fitted = fit(all.clone(), window);
            assert_eq!(fitted.messages.first(), Some(&user(first)), "window {window}");
            assert_eq!(fitted.messages.len() % 3, 0, "a turn was torn apart at window {window}");
        }
    }

    #[test]
    fn a_turn_after_one_that_does_not_fit_is_not_kept_alone() {
        let all = request(&[turn("one", "1"), turn("two", &"x".repeat(60_000)), turn("three", "3")]);
        assert_eq!(fit(all, 4000).messages, turn("three", "3"));
    }

    #[test]
    fn the_largest_new_results_are_cut_and_the_small_ones_stay() {
        let mut newest = turn("now", &"y".repeat(90_000));
        newest.extend(turn("", "small").into_iter().skip(1));
        let fitted = fit(request(&[newest]), 4000);
        let results: Vec<&str> = fitted.messages.iter().filter_map(result_of).collect();
        assert_eq!(results[1], "small");
        assert!(
            results[0].starts_with("yyyy") && results[0].ends_with(" of 90000 characters.]"),
            "{}",
            results[0]
        );
        let size = request_tokens(&fitted);
        assert!((2900..=3000).contains(&size), "{size} of 3000 tokens used");
    }

    #[test]
    fn a_turn_that_goes_on_with_an_answer_keeps_its_question_and_its_results() {
        let mut newest = turn("now", &"y".repeat(90_000));
        let stopped = Message::Assistant { text: "It says ".to_owned(), calls: vec![], signature: None };
        newest.extend([stopped.clone(), user("Go on.")]);
        let all = request(&[newest]);
        for (asked, kept) in [(1, 1), (2, 5), (9, 5)] {
            let (fitted, tokens) = fit_by(all.clone(), 4000, asked, |_, _| 0);
            assert_eq!(fitted.messages.len(), kept, "{asked}");
            assert_eq!(fitted.messages.last(), Some(&user("Go on.")), "{asked}");
            assert!(tokens <= 3000, "{asked}: {tokens}");
        }
        let fitted = fit_by(all, 4000, 2, |_, _| 0).0.messages;
        assert_eq!((&fitted[0], &fitted[3]), (&user("now"), &stopped));
        assert!(result_of(&fitted[2]).is_some_and(|result| result.ends_with(" of 90000 characters.]")));
    }

    #[test]
    fn a_cap_is_shared_by_the_large() {
        for (sizes, room, cap) in [
            (vec![1, 2, 3], 6, usize::MAX),
            (vec![10, 10], 10, 5),
            (vec![2, 50, 50], 22, 10),
            (vec![], 0, usize::MAX),
        ] {
            assert_eq!(level(sizes.clone(), room), cap, "{sizes:?} in {room}");
        }
    }

    fn tool(name: &str) -> ToolSpec {
        let parameters = serde_json::json!({"type": "object", "properties": {
            "description": {"type": "string", "description": "What it is. In the user's words, at length."},
            "when": {"type": "string", "description": "A time. ISO 8601, with an offset."},
        }});
        let description = "Does a thing. Here is much more about it, which few need to know.".repeat(3);
        ToolSpec { name: name.into(), description, parameters: parameters.into() }
    }

    #[test]
    fn tools_give_way_before_turns_do_first_in_words_then_in_number() {
        let names = ["a", "b", "c", "look", "d", "e"];
        let mut all = request(&[turn("one", "1"), turn("two", "2"), turn("three", "3")]);
        all.tools = names.iter().map(|name| tool(name)).collect();
        let likely = |tool: &ToolSpec, _: &[Message]| u32::from(tool.name == "e");
        let (whole, mut windows) = (request_tokens(&all), vec![]);
        let mut before = (names.len(), usize::MAX, 9);
        for window in (whole / 3..=whole * 4 / 3 + 2).rev() {
            let fitted = fit_by(all.clone(), window, 1, likely).0;
            let size = fitted.tools.iter().map(tool_tokens).sum::<usize>();
            let now = (fitted.tools.len(), size, fitted.messages.len());
            assert!(now <= before || now.1 <= before.1, "{now:?} after {before:?} at {window}");
            if now != before {
                windows.push(now);
            }
            let room = window - answer_room(window);
            if now.2 < 9 {
                assert!(
                    size <= room / 4 + tool_tokens(&fitted.tools[0]) || now.0 == 1,
                    "{now:?} at {window}"
                );
            }
            assert!(fitted.tools.iter().any(|tool| tool.name == "look"), "one that was called stays");
            before = now;
        }
        let numbers: Vec<usize> = windows.iter().map(|now| now.0).collect();
        assert_eq!(
            numbers[..4],
            [6, 6, 6, 5],
            "whole, first sentences, none, and then one fewer: {windows:?}"
        );
        let small = fit_by(all.clone(), whole / 2, 1, likely).0;
        assert!(small.tools.iter().any(|tool| tool.name == "e"), "the likely one stays");
        assert!(!small.tools.iter().any(|tool| tool.name == "d"), "of equals the last goes first");
        let sentence = fit_by(all.clone(), whole * 4 / 3 - 2, 1, likely).0;
        assert_eq!(sentence.tools[0].description, "Does a thing.");
        let parameters = &sentence.tools[0].parameters["properties"];
        assert_eq!(parameters["when"]["description"], "A time.");
        assert_eq!(parameters["description"]["description"], "What it is.", "a parameter of that name stays");
    }

    #[test]
    fn a_large_window_keeps_its_tools_whole_however_long_the_conversation() {
        let mut all = request(&[turn("one", &"x".repeat(900_000)), turn("two", "2")]);
        all.tools = vec![tool("a"), tool("look")];
        let fitted = fit(all.clone(), 32_768);
        assert_eq!(fitted.tools, all.tools);
        assert_eq!(fitted.messages, turn("two", "2"));
    }

    #[test]
    fn schemas_and_arguments_count() {
        let mut with_tool = request(&[turn("one", "1")]);
        let bare = request_tokens(&with_tool);
        let parameters = serde_json::json!({"type": "object", "properties": {"long": {"type": "string"}}});
        with_tool.tools.push(ToolSpec {
            name: "look".into(),
            description: "Looks.".into(),
            parameters: parameters.into(),
        });
        assert!(request_tokens(&with_tool) > bare + 20);
    }
}
