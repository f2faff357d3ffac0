//! The tools of MCP servers as models call them, and the tool that finds them when there are many.

use std::sync::Mutex;
use std::time::Duration;

use kai_llm::{Message, ToolSpec};
use rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::pin::Pin;

use super::finding::{self, OFFERED_AT_ONCE};
use super::hub::{CallError, Hub};
use super::port::{Outcome, Progress};
use super::{KnownTool, ToolText, store};
use crate::db::{Db, DbError};
use crate::gate::{self, Level, RunKind, Verdict};
use crate::lock::lock;
use crate::tool::{AnyTool, Lack, Run, Running, Tool, ToolError, ToolOutput, room};
use crate::untrusted::{Untrusted, escaped};

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_mins(1);
/// How many characters of a description a search shows.
const SHOWN: usize = 300;

/// What a model reads of a tool: the description, marked as a stranger's.
fn described(tool: &KnownTool) -> String {
    let text = tool.approved.as_ref().map(|text| text.description.as_str()).unwrap_or_default();
    format!("[Described by the MCP server \"{}\", not by the user] {text}", tool.server_name)
}

/// What a model is offered of a tool.
pub fn spec(tool: &KnownTool) -> ToolSpec {
    let schema = tool.approved.as_ref().map(ToolText::parameters).unwrap_or_default();
    ToolSpec { name: tool.offered_as.clone(), description: described(tool), parameters: schema.into() }
}

/// What of the usable tools is offered: those that may run here. If they are many, only those that were found or called
/// in this conversation, because a call in its history must stay valid. The flag says whether `find_tools` is to be
/// offered too.
pub fn offered(
    usable: &[KnownTool],
    kind: RunKind,
    level: Level,
    messages: &[Message],
) -> (Vec<ToolSpec>, bool) {
    let callable: Vec<&KnownTool> = callable(usable, kind, level).collect();
    let are_many = callable.len() > OFFERED_AT_ONCE;
    let wanted = callable.into_iter().filter(|tool| !are_many || was_met(tool, messages));
    (wanted.map(spec).collect(), are_many)
}

fn callable(usable: &[KnownTool], kind: RunKind, level: Level) -> impl Iterator<Item = &KnownTool> {
    usable.iter().filter(move |tool| gate::foreign(kind, level, tool.rights()) != Verdict::Refuse)
}

/// Whether a conversation has found or called a tool.
fn was_met(tool: &KnownTool, messages: &[Message]) -> bool {
    // As it is written in a result of ours. Inside a description the quotes would be escaped, so it cannot match there.
    let found = format!("\"name\":\"{}\"", tool.offered_as);
    messages.iter().any(|message| match message {
        Message::Tool { tool: name, result, .. } => name == FindTools::NAME && result.contains(&found),
        Message::Assistant { calls, .. } => calls.iter().any(|call| call.name == tool.offered_as),
        Message::User { .. } => false,
    })
}

/// A tool of a server, for one call.
pub struct ForeignCall<'a> {
    pub tool: &'a KnownTool,
    pub hub: &'a Hub,
    pub progress: Progress<'a>,
    /// How many characters of JSON the answer may take.
    pub room: usize,
}

impl AnyTool for ForeignCall<'_> {
    fn name(&self) -> &str {
        &self.tool.offered_as
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn lacks(&self) -> Option<Lack> {
        None
    }

    fn note(&self) -> Option<String> {
        None
    }

    fn time_argument(&self) -> Option<&'static str> {
        None
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    fn spec(&self) -> ToolSpec {
        spec(self.tool)
    }

    fn look(&self, _: &Transaction<'_>) -> Result<(), DbError> {
        Ok(())
    }

    fn probe_access(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    /// The server checks its arguments itself: its schema may say more than we understand.
    fn call<'a>(&'a self, arguments: Map<String, Value>, _: &'a Run) -> Running<'a> {
        Box::pin(async move {
            let outcome = match self.hub.call(self.tool, arguments, self.progress).await {
                Ok(outcome) => outcome,
                // The server's own words may stand in it, so it is marked like any other answer.
                Err(CallError::Link(error)) => {
                    let text = Untrusted::new(error.said().to_string());
                    Outcome { failed: true, text, ..Outcome::default() }
                }
                Err(error) => return Err(ToolError(error.said().to_string())),
            };
            let fields = fields(&self.tool.server_name, &outcome, self.room);
            Ok(ToolOutput::kept_at(fields, Level::People))
        })
    }
}

/// What a model is told when an answer is too long for a result.
const CUT: &str = "The answer is too long. Only a part of it is shown.";

/// The answer as a result that fits into `room`. The executor would cut off its end, and with it the `untrusted` mark.
fn fields(server: &str, outcome: &Outcome, room: usize) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    add("untrusted", true.into());
    add("server", server.into());
    let Shown { text, structured, media, links, is_cut } = shown(outcome, room);
    if outcome.failed {
        add("success", false.into());
    }
    let name = if outcome.failed { "error" } else { "text" };
    if !text.is_empty() || outcome.failed {
        add(name, text.into());
    }
    if let Some(structured) = structured {
        add("structured", structured);
    }
    if !media.is_empty() {
        add("not_shown", media.into());
    }
    if !links.is_empty() {
        add("links", links.into());
    }
    if is_cut {
        add("note", CUT.into());
    }
    fields
}

/// What of an answer a model is shown.
struct Shown {
    text: String,
    structured: Option<Value>,
    media: Vec<String>,
    links: Vec<Value>,
    is_cut: bool,
}

/// The text comes first, then what fits beside it. Structured content that does not fit is shown as text if there is
/// none.
fn shown(outcome: &Outcome, room: usize) -> Shown {
    let written = outcome.text.as_written();
    // Servers repeat structured content as text, for programs that only read text.
    let structured = outcome.structured.as_ref().filter(|value| !repeats(written, value));
    let structured = structured.map(|value| (value, value.to_string()));
    let (text, is_text_cut) = room::beginning(written, room);
    let left = room - room::size(text);
    let fits = |(_, json): &(&Value, String)| escaped(json).chars().count() <= left;
    let (kept, dropped) = match structured {
        Some(structured) if fits(&structured) => (Some(structured), None),
        Some((_, json)) => (None, Some(json)),
        None => (None, None),
    };
    let text = match &dropped {
        Some(json) if text.is_empty() => room::beginning(json, left).0,
        _ => text,
    };
    let used = room::size(text) + kept.as_ref().map_or(0, |(_, json)| escaped(json).chars().count());
    let (links, fewer_links) =
        room::fitting(outcome.links.iter().map(link).collect(), room.saturating_sub(used));
    let used = used + links.iter().map(|link| escaped(&link.to_string()).chars().count() + 1).sum::<usize>();
    let (media, fewer_media) = room::fitting(outcome.media.clone(), room.saturating_sub(used));
    let is_cut = is_text_cut || dropped.is_some() || fewer_links + fewer_media > 0;
    Shown { text: text.to_owned(), structured: kept.map(|(value, _)| value.clone()), media, links, is_cut }
}

fn link((name, address): &(Untrusted, Untrusted)) -> Value {
    json!({ "name": name.line(SHOWN), "address": address.line(SHOWN) })
}

/// Whether a text says nothing but what the structured content says: the same JSON, or its only field.
fn repeats(text: &str, structured: &Value) -> bool {
    let fields: Vec<&Value> = structured.as_object().into_iter().flat_map(Map::values).collect();
    serde_json::from_str::<Value>(text).ok().as_ref() == Some(structured)
        || matches!(fields.as_slice(), [Value::String(only)] if only == text)
}

/// The user has connected many more tools, of MCP servers. Find those that could help with a request by a few words
/// about what they should do; afterwards you can call them by their names.
#[derive(Deserialize, JsonSchema)]
pub struct FindToolsInput {
    /// A few words, such as "read calendar" or "convert time zone".
    query: String,
}

#[derive(Serialize)]
pub struct FoundTools {
    tools: Vec<FoundTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Serialize)]
struct FoundTool {
    name: String,
    description: String,
}

/// Finds tools of MCP servers that may be called in this run.
pub struct FindTools {
    pub db: Db,
}

impl Tool for FindTools {
    const NAME: &'static str = "find_tools";
    type Input = FindToolsInput;
    type Output = FoundTools;

    async fn run(&self, input: FindToolsInput, run: &Run) -> Result<ToolOutput<FoundTools>, ToolError> {
        let usable = self.db.read(store::usable).await?;
        let callable: Vec<(&KnownTool, String)> =
            callable(&usable, run.kind, run.level).map(|tool| (tool, described(tool))).collect();
        let all = callable.iter().map(|(tool, about)| (*tool, tool.offered_as.as_str(), about.as_str()));
        let shown = |tool: &KnownTool| FoundTool {
            name: tool.offered_as.clone(),
            description: Untrusted::new(described(tool)).line(SHOWN),
        };
        let tools: Vec<FoundTool> = finding::best(&input.query, all).into_iter().map(shown).collect();
        let note = tools.is_empty().then_some("Nothing fits these words. Try others.");
        Ok(ToolOutput::own(FoundTools { tools, note }))
    }
}

/// Passes on how far a call is, but not every word: servers may tell it a thousand times a second.
pub struct Steady<F> {
    tell: F,
    last: Mutex<Option<tokio::time::Instant>>,
}

/// How often progress is passed on.
const STEADY: Duration = Duration::from_millis(200);
/// How many characters of it are.
const LONGEST_PROGRESS: usize = 80;

impl<F: Fn(String) + Send + Sync> Steady<F> {
    pub fn new(tell: F) -> Self {
        Self { tell, last: Mutex::default() }
    }

    pub fn tell(&self, progress: &Untrusted) {
        let now = tokio::time::Instant::now();
        let mut last = lock(&self.last);
        if last.is_none_or(|last| now.duration_since(last) >= STEADY) {
            *last = Some(now);
            (self.tell)(progress.line(LONGEST_PROGRESS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::ServerId;

    /// Anthropic refuses every request that has a tool with `anyOf` at the root of its schema.
    #[test]
    fn a_tool_is_offered_as_services_accept_it() {
        let schema =
            json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "array"}}, "required": ["a"]}]});
        let tool = KnownTool {
            server: ServerId(1),
            server_name: "notes".to_owned(),
            offered_as: "mcp_notes_add".to_owned(),
            approved: Some(ToolText::read("add", "Adds.", &schema, false).unwrap()),
            latest: None,
            enabled: true,
            dont_ask: false,
            in_tasks: false,
        };
        let properties = json!({"a": {"type": "array", "items": {}}});
        let expected = json!({"type": "object", "properties": properties, "required": ["a"]});
        assert_eq!(*spec(&tool).parameters, expected);
    }

    /// Whatever a server answers, the result fits, stays JSON and keeps its mark.
    #[test]
    fn a_long_answer_keeps_its_mark() {
        let text = Untrusted::new("a\u{2028}\"b".repeat(5_000));
        let long = Value::String("x".repeat(20_000));
        let link = (Untrusted::new("n".repeat(300)), Untrusted::new("u".repeat(300)));
        let answer = |text: &Untrusted, structured: &Value, failed| Outcome {
            failed,
            text: text.clone(),
            structured: Some(structured.clone()),
            media: vec!["image/png, 3 KB".to_owned(); 100],
            links: vec![link.clone(); 100],
        };
        for (name, outcome) in [
            ("a long text", answer(&text, &json!({"a": 1}), false)),
            ("a long error", answer(&text, &long, true)),
            ("long structured content", answer(&Untrusted::default(), &long, false)),
            ("many links", answer(&Untrusted::new("hi"), &json!({"a": 1}), false)),
        ] {
            for limit in [500, 8_000] {
                let fields = fields("a-server-with-a-long-nam", &outcome, limit - 300);
                let mut written = fields.clone();
                written.insert("success".to_owned(), (!outcome.failed).into());
                let written = escaped(&Value::Object(written).to_string());
                assert!(written.chars().count() <= limit, "{name} in {limit}: {}", written.chars().count());
                assert_eq!((&fields["untrusted"], &fields["note"]), (&json!(true), &json!(CUT)), "{name}");
            }
        }
        let short = fields("srv", &Outcome { text: Untrusted::new("hi"), ..Outcome::default() }, 7_700);
        assert_eq!(Value::Object(short), json!({"server": "srv", "text": "hi", "untrusted": true}));
    }
}
