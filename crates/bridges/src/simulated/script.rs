//! The demo's model, which plays a script.

use std::time::Duration;

use kai_llm::{CallId, Delta, Deltas, Message, Model, ModelError, Reply, Replying, Request, ToolCall, Usage};
use serde_json::{Value, json};

/// Answers a few kinds of questions using the tools it is offered, and otherwise explains that it is a script.
pub struct Script;

/// Pause after each word, so that it looks like a model.
const PACE: Duration = Duration::from_millis(25);

impl Model for Script {
    fn body(&self, request: &Request) -> Vec<u8> {
        serde_json::to_vec(request).unwrap_or_default()
    }

    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a> {
        Box::pin(async move {
            let reply = next(request);
            for word in reply.text.split_inclusive(' ') {
                deltas(Delta::Text(word));
                tokio::time::sleep(PACE).await;
            }
            Ok::<_, ModelError>(reply)
        })
    }

    fn window(&self) -> usize {
        32_000
    }
}

/// The script's next reply. Pure.
fn next(request: &Request) -> Reply {
    let offered = |tool: &str| request.tools.iter().any(|spec| spec.name == tool);
    match request.messages.last() {
        Some(Message::User { text, .. }) if text.contains(HEARTBEAT) => match asked_for_ok(text) {
            Some(id) if offered("reply_sms") => call("reply_sms", &json!({"sms_id": id, "body": FINE})),
            _ => says(&noticed(text)),
        },
        Some(Message::User { text, .. }) => match wish(text) {
            Some((tool, arguments)) if offered(tool) => call(tool, &arguments),
            Some(_) => says("I would need a tool that is off in the settings."),
            None => says(
                "I am the demo's script and know a few things: ask for new messages, for the time, or to answer \
                 somebody.",
            ),
        },
        Some(Message::Tool { tool, result, .. }) => {
            let result: Value = serde_json::from_str(result).unwrap_or_default();
            let wanted = request.messages.iter().rev().find_map(|message| match message {
                Message::User { text, .. } => Some(text.as_str()),
                _ => None,
            });
            match wanted.unwrap_or_default() {
                beat if beat.contains(HEARTBEAT) => says(&format!("{} {DRAFTED}", noticed(beat))),
                wanted => after(tool, &result, wanted),
            }
        }
        _ => says("Hello."),
    }
}

fn wish(text: &str) -> Option<(&'static str, Value)> {
    let text = text.to_lowercase();
    let about = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if about(&["reply", "answer", "antwort"]) {
        Some(("search_sms", json!({"query": "dinner tonight"})))
    } else if about(&["grandma", "birthday"]) {
        Some(("search_sms", json!({"query": "Grandma"})))
    } else if about(&["sms", "message", "nachricht", "new"]) {
        Some(("check_sms", json!({})))
    } else {
        about(&["time", "day", "uhr"]).then(|| ("get_local_time", json!({})))
    }
}

fn after(tool: &str, result: &Value, wanted: &str) -> Reply {
    match tool {
        "check_sms" => says(&listed(result)),
        "search_sms" if wanted.to_lowercase().contains("grandma") => says(
            "Next week, at **7 pm at Lena's place**. Grandma turns 80.\n\n\
             - Lena makes the lemon cake.\n\
             - She asks whether anybody on your side does not eat nuts.\n\
             - Jonas offers to share a car.",
        ),
        "search_sms" => match result["messages"][0]["id"].as_i64() {
            Some(id) => call("reply_sms", &json!({"sms_id": id, "body": "Yes, see you at eight!"})),
            None => says(&format!("I found nobody to answer for: {wanted}")),
        },
        "reply_sms" => says(DRAFTED),
        "get_local_time" => {
            says(&format!("It is {}.", result["display_datetime"].as_str().unwrap_or("late")))
        }
        _ => says("Done."),
    }
}

/// Text by which the script recognizes a heartbeat.
const HEARTBEAT: &str = "\n## New SMS\n";

const DRAFTED: &str = "I drafted an answer. It waits for your tap; nothing was sent.";

const FINE: &str = "Half past six is fine, see you then!";

/// The id of the message in a heartbeat's prompt that asks for a reply.
fn asked_for_ok(prompt: &str) -> Option<i64> {
    let line = prompt.lines().find(|line| line.starts_with("- **") && line.ends_with("OK?"))?;
    line.split_once("(id: ")?.1.split_once(')')?.0.parse().ok()
}

/// A heartbeat's report: who wrote.
fn noticed(prompt: &str) -> String {
    let all = prompt.lines().filter_map(|line| Some(line.strip_prefix("- **")?.split_once("**")?.0));
    let mut who: Vec<&str> = vec![];
    for sender in all {
        if !who.contains(&sender) {
            who.push(sender);
        }
    }
    format!("New messages wait for you, from {}.", who.join(", "))
}

fn listed(result: &Value) -> String {
    let messages = result["messages"].as_array().cloned().unwrap_or_default();
    let line = |sms: &Value| {
        let part = |name: &str| sms[name].as_str().unwrap_or_default().to_owned();
        format!("- **{}**: {}", part("from"), part("preview"))
    };
    match messages.len() {
        0 => "Nothing new has arrived.".to_owned(),
        n => format!("{n} new:\n{}", messages.iter().map(line).collect::<Vec<_>>().join("\n")),
    }
}

fn says(text: &str) -> Reply {
    Reply { text: text.to_owned(), usage: Usage { input: 1, output: 1 }, ..Reply::default() }
}

fn call(tool: &str, arguments: &Value) -> Reply {
    let call = ToolCall {
        id: CallId(format!("demo_{tool}")),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
        signature: None,
    };
    Reply { calls: vec![call], usage: Usage { input: 1, output: 1 }, ..Reply::default() }
}
