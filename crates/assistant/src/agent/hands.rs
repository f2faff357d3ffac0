//! Runs a tool call: applies the gate's verdict, asks the user if necessary, and executes the tool. Both turns and `kai
//! tools call` use this.

use jiff::Timestamp;
use kai_llm::{Message, ToolCall};
use kai_words::said;
use rusqlite::Transaction;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{ApprovalRequest, Event, Face};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::{self, Level, Verdict};
use crate::hex;
use crate::ledger::{self, Record};
use crate::mcp::KnownTool;
use crate::mcp::naming::PREFIX;
use crate::mcp::tools::{ForeignCall, Steady};
use crate::memory;
use crate::settings::Values;
use crate::tasks::{self, TaskId};
use crate::tool::room::room;
use crate::tool::{self, Run, ToolResult};
use crate::toolbox::Toolbox;
use crate::untrusted::Untrusted;

/// What is needed to run a tool call.
#[derive(Clone, Copy)]
pub struct CallRunner<'a> {
    pub db: &'a Db,
    pub clock: &'a dyn Clock,
    pub toolbox: &'a Toolbox,
    /// The tools of MCP servers that may be used.
    pub foreign: &'a [KnownTool],
    pub face: &'a dyn Face,
    pub run: Run,
}

impl CallRunner<'_> {
    /// The ledger record that announces a call; stored before the call runs.
    pub fn announced(&self, call: &ToolCall) -> Record {
        let (tool, conversation, by_hand) = (call.name.clone(), self.run.conversation, self.run.is_by_hand());
        match self.foreign(call) {
            None => Record::ToolCall { conversation, tool, arguments: call.arguments.clone(), by_hand },
            Some(KnownTool { server_name, .. }) => Record::McpCall {
                conversation,
                server: server_name.clone(),
                tool,
                arguments: hex::encode(&Sha256::digest(call.arguments.as_bytes())),
                bytes: call.arguments.len(),
                by_hand,
            },
        }
    }

    fn foreign(&self, call: &ToolCall) -> Option<&KnownTool> {
        self.foreign.iter().find(|tool| tool.offered_as == call.name)
    }

    /// What the gate says about a call in a request with these messages.
    pub fn verdict(&self, messages: &[Message], call: &ToolCall) -> Verdict {
        let Run { kind, level, .. } = self.run;
        match self.foreign(call) {
            Some(tool) => gate::foreign(kind, level, tool.rights()),
            None => gate::judge(kind, level, messages, call),
        }
    }

    /// Runs a call according to the gate's verdict; a refused call gets a result that says why. The record is for the
    /// ledger.
    pub async fn run(
        &self,
        call: &ToolCall,
        values: &Values,
        verdict: Verdict,
    ) -> Result<(ToolResult, Record), DbError> {
        let refused = self.refused(call, verdict).await?;
        let within = Run { confirmed: verdict == Verdict::AskFirst, ..self.run };
        let (id, name) = (call.id.0.clone(), call.name.clone());
        self.face.shows(Event::ToolStarted { call: id.clone(), tool: name.clone() });
        let result = match (refused, self.foreign(call).zip(self.toolbox.servers())) {
            (Some(why), _) => tool::execute(Err(why), values, &call.arguments, &within).await,
            (None, Some((tool, hub))) => {
                let progress = Steady::new(|progress| {
                    let (call, tool) = (id.clone(), name.clone());
                    self.face.shows(Event::ToolProgress { call, tool, progress });
                });
                let tell = |said: Untrusted| progress.tell(&said);
                let foreign = ForeignCall { tool, hub, progress: &tell, room: room(values) };
                let mut result = tool::execute(Ok(&foreign), values, &call.arguments, &within).await;
                // A server's words stand in its errors too.
                result.meaning.taint = Level::People;
                result
            }
            (None, None) => {
                let tool = if call.name.starts_with(PREFIX) {
                    Err(said::mcp_tool_off().to_string())
                } else {
                    self.toolbox.usable(&call.name, values)
                };
                let mut result = tool::execute(tool, values, &call.arguments, &within).await;
                if self.toolbox.has(&name) {
                    result.meaning.taint = gate::raised(&name, result.meaning.taint);
                }
                result
            }
        };
        let failed = (!result.success).then(|| why(&result.text));
        self.face.shows(Event::ToolFinished { call: id, tool: name, failed });
        let record = self.ended(call, &result);
        Ok((result, record))
    }

    /// The ledger record of a call's outcome.
    fn ended(&self, call: &ToolCall, result: &ToolResult) -> Record {
        let (conversation, tool, success) = (self.run.conversation, call.name.clone(), result.success);
        match self.foreign(call) {
            None => {
                Record::ToolResult { conversation, tool, success, result_chars: result.text.chars().count() }
            }
            Some(KnownTool { server_name, .. }) => Record::McpResult {
                conversation,
                server: server_name.clone(),
                tool,
                success,
                bytes: result.text.len(),
            },
        }
    }

    /// The reason why the call may not run, or `None` if it may.
    async fn refused(&self, call: &ToolCall, verdict: Verdict) -> Result<Option<String>, DbError> {
        match verdict {
            Verdict::Run => Ok(None),
            Verdict::Refuse => Ok(Some(format!("{} is not available in this kind of run.", call.name))),
            Verdict::AskFirst => {
                let about = self.about(call).await?;
                let said = self.face.allows(&ApprovalRequest { call: call.clone(), about }).await;
                let click = self.click(call, said);
                let now = self.clock.now();
                // Stored before the call runs: an approval that is not in the ledger does not count.
                self.db.write(move |tx| ledger::append(tx, &click, now)).await?;
                Ok(refusal(said, &call.name))
            }
        }
    }

    /// Describes the item that a call refers to only by id or key, since the user cannot judge a bare number.
    async fn about(&self, call: &ToolCall) -> Result<Option<String>, DbError> {
        let Value::Object(arguments) = serde_json::from_str(&call.arguments).unwrap_or_default() else {
            return Ok(None);
        };
        let Some((_, describe)) = NAMED.iter().find(|(tool, _)| *tool == call.name) else { return Ok(None) };
        let now = self.clock.now();
        self.db.read(move |tx| describe(tx, &arguments, now)).await
    }

    fn click(&self, call: &ToolCall, said: Option<bool>) -> Record {
        Record::Click {
            conversation: self.run.conversation,
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            allowed: said == Some(true),
            unanswered: said.is_none(),
        }
    }
}

/// Finds the item that a call's arguments refer to, and describes it.
type Describe = fn(&Transaction<'_>, &Map<String, Value>, Timestamp) -> Result<Option<String>, DbError>;

/// The tools whose calls name something only by id or key.
const NAMED: &[(&str, Describe)] = &[
    ("memory_forget", memory),
    ("cancel_task", task),
    #[cfg(feature = "notifications")]
    ("dismiss_notification", notification),
];

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default().trim()
}

fn memory(
    tx: &Transaction<'_>,
    arguments: &Map<String, Value>,
    _: Timestamp,
) -> Result<Option<String>, DbError> {
    let key = text(arguments, "key");
    let found = memory::store::all(tx)?.into_iter().find(|memory| memory.key.as_str() == key);
    Ok(found.map(|memory| memory.content))
}

fn task(
    tx: &Transaction<'_>,
    arguments: &Map<String, Value>,
    _: Timestamp,
) -> Result<Option<String>, DbError> {
    // A model may write the number as a string or with a trailing `.0`; the tool accepts both.
    let number = arguments.get("task_id").map(ToString::to_string).unwrap_or_default();
    let number = number.trim_matches('"').trim();
    let number = number.strip_suffix(".0").unwrap_or(number).parse().ok();
    let found = number.map(|number| tasks::store::get(tx, TaskId(number))).transpose()?.flatten();
    Ok(found.map(|task| task.description))
}

#[cfg(feature = "notifications")]
fn notification(
    tx: &Transaction<'_>,
    arguments: &Map<String, Value>,
    now: Timestamp,
) -> Result<Option<String>, DbError> {
    let id = crate::notifications::NotificationId::new(text(arguments, "id"));
    let found = crate::notifications::store::find(tx, &id, now)?;
    let line = |text: &Untrusted| text.line(LONGEST_WHY);
    let parts = found.map(|found| [line(&found.app_label), line(&found.title), line(&found.text)]);
    Ok(parts.map(|parts| parts.join(" · ")))
}

/// The error message in a result; if the result is not valid JSON (it may have been cut off), its beginning.
fn why(result: &str) -> String {
    let read: serde_json::Value = serde_json::from_str(result).unwrap_or_default();
    Untrusted::new(read["error"].as_str().unwrap_or(result)).line(LONGEST_WHY)
}

/// How many characters of an error message are shown; the model gets all of it.
const LONGEST_WHY: usize = 300;

fn refusal(said: Option<bool>, tool: &str) -> Option<String> {
    match said {
        Some(true) => None,
        Some(false) => {
            Some(format!("The user did not allow {tool}. Go on without it, or say why it is needed."))
        }
        None => Some(format!(
            "{tool} needs the user's approval here, and nobody was there to give it. Go on without it; they can \
             approve it on the page or on a terminal."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_always_says_something_in_one_short_line() {
        assert_eq!(why(r#"{"error":"No\nphone.","success":false}"#), "No phone.");
        assert!(why("{\"error\":\"Too mu\n[Cut off: 9 of 99 characters]").starts_with("{\"error\":\"Too mu"));
        assert!(why(&"x".repeat(9_000)).chars().count() <= LONGEST_WHY + 1);
    }
}
