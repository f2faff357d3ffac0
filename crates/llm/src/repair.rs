//! Makes a copy of a history that every provider accepts. Pure.
//!
//! A history may have been cancelled in the middle of a round, trimmed, or continued after a restart or with other
//! tools. Providers reject a call without a result, a result without a call, results in the wrong place or order,
//! duplicate ids, empty messages, and a user message directly after a result.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::{CallId, Message, Picture, ToolCall, ToolSpec, ids};

/// Sent as the result of a call that never finished.
const CANCELLED: &str = r#"{"success":false,"error":"This call was stopped before it gave a result. It may have taken effect: check before you repeat it."}"#;

/// Sent in place of a blank result.
const NO_OUTPUT: &str = "(no output)";
/// Sent in place of a blank user message.
const NO_TEXT: &str = "(no text)";

/// Sent as the answer of a turn that was stopped after its tools had run.
const STOPPED: &str = "(This turn was stopped before an answer was given.)";

/// Returns a copy of the history that every provider accepts.
///
/// `keep_from` is the index where the current turn starts. From there on, calls are kept even if their tool is no
/// longer offered; before it, such calls are dropped together with their results.
pub fn repair(messages: &[Message], offered: &[ToolSpec], keep_from: usize) -> Vec<Message> {
    let results = pair_up(messages);
    let offered: HashSet<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    let mut repaired = Repaired::default();
    for (index, message) in messages.iter().enumerate() {
        match message {
            // The turn to be answered must start with some text.
            Message::User { text, pictures } if blank(text) && pictures.is_empty() && index == keep_from => {
                repaired.user(NO_TEXT, &[]);
            }
            Message::User { text, pictures } => repaired.user(text, pictures),
            Message::Assistant { text, calls, signature } => {
                let kept = calls
                    .iter()
                    .enumerate()
                    .filter(|(_, call)| index >= keep_from || offered.contains(call.name.as_str()));
                let kept = kept.map(|(at, call)| (call, results.get(&(index, at)).copied()));
                repaired.assistant(text, signature.as_deref(), kept.collect());
            }
            // Results were already matched to their calls; one without a call is dropped.
            Message::Tool { .. } => {}
        }
    }
    repaired.messages
}

/// The result of each call, by the index of its message and its index within that message.
type Results<'a> = HashMap<(usize, usize), &'a str>;

/// Matches each result with a call that has its id, in the latest message that has one. Calls in one message that
/// share an id get their results in order.
fn pair_up(messages: &[Message]) -> Results<'_> {
    let mut waiting: HashMap<&CallId, VecDeque<(usize, usize)>> = HashMap::new();
    let mut results = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::User { .. } => {}
            Message::Assistant { calls, .. } => {
                for call in calls {
                    waiting.remove(&call.id);
                }
                for (at, call) in calls.iter().enumerate() {
                    waiting.entry(&call.id).or_default().push_back((index, at));
                }
            }
            Message::Tool { call, result, .. } => {
                if let Some(place) = waiting.get_mut(call).and_then(VecDeque::pop_front) {
                    results.insert(place, result.as_str());
                }
            }
        }
    }
    results
}

/// The repaired copy while it is built. It starts with a user message and is well-formed after each step.
#[derive(Default)]
struct Repaired {
    messages: Vec<Message>,
    ids: HashSet<String>,
    /// How often each id was seen. Some servers number the calls of every reply from the start.
    times: HashMap<String, usize>,
}

impl Repaired {
    fn user(&mut self, text: &str, pictures: &[Picture]) {
        if blank(text) && pictures.is_empty() {
            return;
        }
        if let Some(Message::Tool { .. }) = self.messages.last() {
            let (text, calls, signature) = (STOPPED.to_owned(), Vec::new(), None);
            self.messages.push(Message::Assistant { text, calls, signature });
        }
        self.messages.push(Message::User { text: text.to_owned(), pictures: pictures.to_vec() });
    }

    fn assistant(&mut self, text: &str, signature: Option<&str>, calls: Vec<(&ToolCall, Option<&str>)>) {
        if self.messages.is_empty() || (blank(text) && calls.is_empty()) {
            return;
        }
        let (mut kept, mut results) = (Vec::new(), Vec::new());
        for (call, result) in calls {
            let (id, name) = (self.fresh(&call.id), ids::tool_name(&call.name));
            let result = result.map_or(CANCELLED, |r| if blank(r) { NO_OUTPUT } else { r }).to_owned();
            results.push(Message::Tool { call: id.clone(), tool: name.clone(), result });
            kept.push(ToolCall { id, name, ..call.clone() });
        }
        let (text, signature) = self.joined(text, signature);
        self.messages.push(Message::Assistant { text, calls: kept, signature });
        self.messages.append(&mut results);
    }

    /// Merges two consecutive answers, which remain when the calls between them were dropped. A signature fits only
    /// the text it came with, so merged text has none.
    fn joined(&mut self, text: &str, signature: Option<&str>) -> (String, Option<String>) {
        let last = self.messages.pop_if(|last| matches!(last, Message::Assistant { .. }));
        match last {
            Some(Message::Assistant { text: before, .. }) if !blank(text) => {
                (format!("{before}\n\n{text}"), None)
            }
            Some(Message::Assistant { text: before, signature, .. }) => (before, signature),
            _ => (text.to_owned(), signature.map(str::to_owned)),
        }
    }

    /// The id itself if it is unused, otherwise one derived from it.
    fn fresh(&mut self, id: &CallId) -> CallId {
        let base = if id.0.is_empty() { "call" } else { &id.0 };
        let times = self.times.entry(base.to_owned()).or_default();
        loop {
            *times += 1;
            let candidate = if *times == 1 { base.to_owned() } else { format!("{base}_{times}") };
            if self.ids.insert(candidate.clone()) {
                return CallId(candidate);
            }
        }
    }
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a history from shorthand: `U text`, `A text [id=tool …]`, `T id tool result`, separated by ` / `.
    fn history(short: &str) -> Vec<Message> {
        let full =
            [("CANCELLED", CANCELLED), ("STOPPED", STOPPED), ("NO_OUTPUT", NO_OUTPUT), ("NO_TEXT", NO_TEXT)];
        let full =
            |text: &str| full.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        let one = |line: &str| match line.split_at(2) {
            ("U ", text) => Message::user(full(text)),
            ("A ", rest) => {
                let (text, calls) = rest.split_once('[').unwrap_or((rest, ""));
                let calls = calls.trim_end_matches(']').split_whitespace().map(call).collect();
                Message::Assistant {
                    text: full(text.trim_end()).replace('+', "\n\n"),
                    calls,
                    signature: None,
                }
            }
            (_, rest) => {
                let words: Vec<&str> = rest.splitn(3, ' ').collect();
                let (call, tool) = (CallId(words[0].to_owned()), words[1].to_owned());
                Message::Tool { call, tool, result: full(words[2]) }
            }
        };
        short.split(" / ").map(one).collect()
    }

    fn call(short: &str) -> ToolCall {
        let (id, name) = short.split_once('=').unwrap();
        ToolCall {
            id: CallId(id.to_owned()),
            name: name.to_owned(),
            arguments: "{}".to_owned(),
            signature: None,
        }
    }

    /// Name of the case, the history, the index of the current turn, and the expected result when only tool `a` is
    /// offered.
    #[rustfmt::skip]
    const TABLE: &[(&str, &str, usize, &str)] = &[
        ("nothing to do",
            "U q / A [1=a 2=a] / T 1 a x / T 2 a y / A done", 0,
            "U q / A [1=a 2=a] / T 1 a x / T 2 a y / A done"),
        ("results in another order",
            "U q / A [1=a 2=a] / T 2 a y / T 1 a x", 0,
            "U q / A [1=a 2=a] / T 1 a x / T 2 a y"),
        ("a result after the next message",
            "U q / A [1=a] / U r / T 1 a x", 2,
            "U q / A [1=a] / T 1 a x / A STOPPED / U r"),
        ("cancelled in the middle of a round",
            "U q / A [1=a 2=a] / T 1 a x / U stop", 3,
            "U q / A [1=a 2=a] / T 1 a x / T 2 a CANCELLED / A STOPPED / U stop"),
        ("a result without a call", "U q / T 9 a x", 0, "U q"),
        ("two results for one call", "U q / A [1=a] / T 1 a x / T 1 a y", 0, "U q / A [1=a] / T 1 a x"),
        ("trimmed at the front", "T 1 a x / A old / U q", 2, "U q"),
        ("a tool switched off, its answer kept",
            "U q / A I look [1=off] / T 1 off x / A done / U r", 4,
            "U q / A I look+done / U r"),
        ("one of two tools switched off",
            "U q / A [1=off 2=a] / T 1 off x / T 2 a y / A done / U r", 5,
            "U q / A [2=a] / T 2 a y / A done / U r"),
        ("a tool switched off in the current turn",
            "U q / A [1=off] / T 1 off x", 0,
            "U q / A [1=off] / T 1 off x"),
        ("the same id in two rounds",
            "U q / A [1=a] / T 1 a x / A [1=a] / T 1 a y", 0,
            "U q / A [1=a] / T 1 a x / A [1_2=a] / T 1_2 a y"),
        ("the same id in two rounds, the first cancelled",
            "U q / A [1=a] / A [1=a] / T 1 a y", 0,
            "U q / A [1=a] / T 1 a CANCELLED / A [1_2=a] / T 1_2 a y"),
        ("the same id twice in one round, and no id",
            "U q / A [1=a 1=a =a] / T 1 a x / T 1 a y / T  a  ", 0,
            "U q / A [1=a 1_2=a call=a] / T 1 a x / T 1_2 a y / T call a NO_OUTPUT"),
        ("blank texts", "U   / U q / A   / U  ", 3, "U q / U NO_TEXT"),
        ("a name no provider takes", "U q / A [1=look?] / T 1 look? x", 0, "U q / A [1=look_] / T 1 look_ x"),
    ];

    #[test]
    fn histories_become_acceptable() {
        let a = [ToolSpec {
            name: "a".into(),
            description: String::new(),
            parameters: serde_json::json!({}).into(),
        }];
        for (name, before, keep_from, expected) in TABLE {
            let repaired = repair(&history(before), &a, *keep_from);
            assert_eq!(repaired, history(expected), "{name}");
            let start = repaired.iter().rposition(|m| matches!(m, Message::User { .. })).unwrap_or(0);
            assert_eq!(repair(&repaired, &a, start), repaired, "{name}, repaired twice");
        }
    }
}
