//! Tool calls as text: how a model is told about its tools, how calls and results look in its prompt, and how the
//! opening of a call is recognised in what it writes. Pure.
//!
//! The format is the one that most small models were trained with: JSON between `<tool_call>` tags. It is the same for
//! every family, so that one grammar and one reader are enough.

use kai_llm::{Message, ToolCall, ToolSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The opening of a call. What follows is constrained by a grammar.
pub(crate) const OPENING: &str = "<tool_call>\n";
/// The end of a call.
pub(crate) const CLOSING: &str = "\n</tool_call>";
const TAG: &str = "<tool_call>";
const END: &str = "</tool_call>";

/// Stands below every result. Small models that do not read it answer with the same call again, or with none of the
/// result's words.
const AFTER_RESULT: &str = "\n</tool_response>\nNow answer my message in words. Call another function only if I asked for more than this.";

/// The system prompt, with a description of the tools. Its words were tried with a model of 1.5 billion parameters: with
/// fewer it talks about functions instead of calling them, with others it calls one for a greeting. The tags in the
/// example are those of a real call, and nothing else is a tag: some tools describe themselves.
pub(crate) fn system(text: &str, tools: &[ToolSpec]) -> Vec<Part> {
    if tools.is_empty() {
        return vec![Part::Content(text.to_owned())];
    }
    let lines: Vec<String> = tools.iter().map(signature).collect();
    let before = format!(
        "{text}\n\n# Tools\n\nYou may call a function to help with the user's request. Their signatures, one JSON object \
         per line:\n<tools>\n{}\n</tools>\n\nIf the user asks for what a function does, answer with only this, and no \
         other words:\n",
        lines.join("\n")
    );
    let call = "\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n".to_owned();
    let after = "\nElse answer in words, without a function.".to_owned();
    vec![Part::Content(before), Part::Tag(TAG), Part::Content(call), Part::Tag(END), Part::Content(after)]
}

/// A tool as models know it from their training: its name comes first.
fn signature(tool: &ToolSpec) -> String {
    let ToolSpec { name, description, parameters } = tool;
    let (name, description) = (json!(name), json!(description));
    format!(
        r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{parameters}}}}}"#
    )
}

/// A part of a message in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Our own tags, which a model may know as single tokens.
    Tag(&'static str),
    /// What people, tools and models wrote.
    Content(String),
}

/// The role of a message in a prompt, and its parts.
pub(crate) fn as_turn(message: &Message) -> (&'static str, Vec<Part>) {
    match message {
        Message::User { text, .. } => ("user", vec![Part::Content(text.clone())]),
        Message::Assistant { text, calls, .. } => {
            let mut parts = Vec::new();
            if !text.trim().is_empty() {
                parts.push(Part::Content(text.trim_end().to_owned()));
            }
            for call in calls {
                if !parts.is_empty() {
                    parts.push(Part::Tag("\n"));
                }
                parts.extend([Part::Tag(OPENING), Part::Content(written(call)), Part::Tag(CLOSING)]);
            }
            ("assistant", parts)
        }
        Message::Tool { result, .. } => {
            let result = Part::Content(result.clone());
            ("user", vec![Part::Tag("<tool_response>\n"), result, Part::Tag(AFTER_RESULT)])
        }
    }
}

/// A call as the model wrote it.
fn written(call: &ToolCall) -> String {
    let arguments = call.arguments.trim();
    let arguments = if serde_json::from_str::<&RawValue>(arguments).is_ok() { arguments } else { "{}" };
    format!("{{\"name\": {}, \"arguments\": {arguments}}}", Value::from(call.name.as_str()))
}

/// The schema of a call of any of these tools, from which the grammar is made. The grammar keeps the order of the
/// properties: a model that had to write the arguments first would choose a tool by them.
pub(crate) fn schema(tools: &[ToolSpec]) -> String {
    let one = |tool: &ToolSpec| {
        let (name, parameters) = (json!(tool.name), &tool.parameters);
        format!(
            r#"{{"type":"object","properties":{{"name":{{"const":{name}}},"arguments":{parameters}}},"required":["name","arguments"],"additionalProperties":false}}"#
        )
    };
    let each: Vec<String> = tools.iter().map(one).collect();
    format!(r#"{{"anyOf":[{}]}}"#, each.join(","))
}

#[derive(Deserialize)]
struct Written<'a> {
    name: String,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// The name and the arguments of a call that was written under the grammar.
pub(crate) fn parsed(written: &str) -> Option<(String, String)> {
    let Written { name, arguments } = serde_json::from_str(written.trim()).ok()?;
    Some((name, arguments.get().to_owned()))
}

/// What is known of an answer while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Text up to this byte is certainly no call; what follows may become one.
    Text { certain: usize },
    /// A call begins at this byte.
    Call { at: usize },
}

/// Looks for the opening of a call in what was written so far. Models open calls with the tag, and small ones also with
/// nothing but the JSON, or with JSON in a code fence; those count only once the name of a tool is complete in it.
pub(crate) fn look(written: &str, tools: &[ToolSpec]) -> Sight {
    if tools.is_empty() {
        return Sight::Text { certain: written.len() };
    }
    if let Some(at) = written.find(TAG) {
        return Sight::Call { at };
    }
    let start = written.len() - written.trim_start().len();
    match bare(&written[start..], tools) {
        Bare::Call => return Sight::Call { at: start },
        Bare::Perhaps => return Sight::Text { certain: start.min(written.len()) },
        Bare::No => {}
    }
    let open = (0..TAG.len()).rev().find(|length| written.ends_with(&TAG[..*length])).unwrap_or(0);
    Sight::Text { certain: written.len() - open }
}

enum Bare {
    Call,
    Perhaps,
    No,
}

/// Whether an answer that begins like this is a call without its tag.
fn bare(written: &str, tools: &[ToolSpec]) -> Bare {
    let mut rest = written;
    for (optional, parts) in
        [(true, &["```json", "```"][..]), (false, &["{"]), (false, &["\"name\""]), (false, &[":"])]
    {
        match taken(rest, parts) {
            Taken::All(after) => rest = after,
            Taken::Some => return Bare::Perhaps,
            Taken::None if optional => {}
            Taken::None => return Bare::No,
        }
    }
    let named = |tool: &ToolSpec| match taken(rest, &[&format!("\"{}\"", tool.name)]) {
        Taken::All(_) => Some(Bare::Call),
        Taken::Some => Some(Bare::Perhaps),
        Taken::None => None,
    };
    tools.iter().find_map(named).unwrap_or(Bare::No)
}

enum Taken<'a> {
    All(&'a str),
    /// The text ends within the part.
    Some,
    None,
}

/// Takes one of the parts, with the space before it, from the beginning of a text.
fn taken<'a>(text: &'a str, parts: &[&str]) -> Taken<'a> {
    let text = text.trim_start();
    if let Some(part) = parts.iter().find(|part| text.starts_with(**part)) {
        return Taken::All(&text[part.len()..]);
    }
    if parts.iter().any(|part| part.starts_with(text)) { Taken::Some } else { Taken::None }
}

#[cfg(test)]
mod tests {
    use kai_llm::CallId;

    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            parameters: json!({"type": "object", "properties": {"query": {"type": "string"}}}).into(),
        }
    }

    #[test]
    fn a_call_is_recognised_however_it_opens_and_ordinary_text_is_not_held_back() {
        let tools = [tool("check_sms"), tool("web_search")];
        for (written, expected) in [
            ("Hello", Sight::Text { certain: 5 }),
            ("Let me see. <tool_call>", Sight::Call { at: 12 }),
            ("Let me see. <tool", Sight::Text { certain: 12 }),
            ("a < b", Sight::Text { certain: 5 }),
            ("  {\"name\"", Sight::Text { certain: 2 }),
            ("{\"name\": \"check_", Sight::Text { certain: 0 }),
            ("{\"name\": \"check_sms\"", Sight::Call { at: 0 }),
            ("{ \"name\" : \"web_search\", ", Sight::Call { at: 0 }),
            ("```json\n{\"name\": \"check_sms\"", Sight::Call { at: 0 }),
            ("```json\n{", Sight::Text { certain: 0 }),
            ("```json\n{\"name\": \"Ada\"}", Sight::Text { certain: 23 }),
            ("{\"age\": 3}", Sight::Text { certain: 10 }),
            ("", Sight::Text { certain: 0 }),
        ] {
            assert_eq!(look(written, &tools), expected, "{written}");
        }
        assert_eq!(look("<tool_call>", &[]), Sight::Text { certain: 11 }, "without tools there are no calls");
    }

    #[test]
    fn the_name_of_a_tool_comes_first() {
        let schema = schema(&[tool("check_sms"), tool("web_search")]);
        let read: Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(read["anyOf"][1]["properties"]["name"]["const"], "web_search");
        assert_eq!(read["anyOf"][0]["properties"]["arguments"], *tool("check_sms").parameters);
        let parts = system("You are Kai.", &[tool("check_sms")]);
        let text = |part: Part| match part {
            Part::Tag(tag) => tag.to_owned(),
            Part::Content(content) => content,
        };
        let system: String = parts.into_iter().map(text).collect();
        for text in [schema.as_str(), system.as_str()] {
            let place = |word: &str| text.find(word).unwrap_or(usize::MAX);
            assert!(place("\"name\"") < place("\"arguments\"").min(place("\"description\"")), "{text}");
        }
    }

    fn call(arguments: &str) -> ToolCall {
        let id = CallId("1".to_owned());
        ToolCall { id, name: "web_search".to_owned(), arguments: arguments.to_owned(), signature: None }
    }

    #[test]
    fn what_is_written_as_a_call_is_read_as_the_same_call() {
        let arguments = r#"{"query":  "</tool_call> \"x\""}"#;
        let read = parsed(&written(&call(arguments)));
        assert_eq!(read, Some(("web_search".to_owned(), arguments.to_owned())));
        assert_eq!(parsed("{\"name\": 3}"), None);
        assert!(written(&call("not JSON")).ends_with("\"arguments\": {}}"));
    }

    #[test]
    fn messages_become_turns_in_which_only_our_tags_are_tags() {
        let content = |text: &str| Part::Content(text.to_owned());
        let assistant =
            Message::Assistant { text: "Let me see.\n".to_owned(), calls: vec![call("{}")], signature: None };
        let json = content(r#"{"name": "web_search", "arguments": {}}"#);
        let parts =
            vec![content("Let me see."), Part::Tag("\n"), Part::Tag(OPENING), json, Part::Tag(CLOSING)];
        assert_eq!(as_turn(&assistant), ("assistant", parts));
        let result = Message::Tool {
            call: CallId("1".to_owned()),
            tool: "x".to_owned(),
            result: "<tools>".to_owned(),
        };
        let (role, parts) = as_turn(&result);
        assert_eq!((role, &parts[1]), ("user", &content("<tools>")));
        assert_eq!(as_turn(&Message::user("Hi")), ("user", vec![content("Hi")]));
    }
}
