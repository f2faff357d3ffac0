//! Executes a model's tool call: parses the arguments, runs the tool with a timeout, and cuts the result to its limit.
//!
//! Every failure becomes a result that the model can read; nothing here ends a turn.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Map, Value, json};

use super::{AnyTool, Provenance, Run, ToolOutput, room};
use crate::settings::{self, TOOL_RESULT_LIMIT, Values};
use crate::untrusted::escaped;

/// The result of a call: the text that the model reads, and where that text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub text: String,
    pub success: bool,
    pub meaning: Provenance,
}

/// Runs one call. `tool` is the tool that the toolbox found, or why it cannot be used. `arguments` is what the model
/// wrote: a JSON object, or nothing at all.
pub async fn execute(
    tool: Result<&dyn AnyTool, String>,
    values: &Values,
    arguments: &str,
    within: &Run,
) -> ToolResult {
    let outcome = match tool.and_then(|tool| Ok((tool, parse(arguments)?))) {
        Ok((tool, arguments)) => {
            let limit = time_limit(tool, values, &arguments);
            run(tool, arguments, within, limit).await
        }
        Err(sentence) => Err(sentence),
    };
    // A tool that has details to report about a failure returns them with `success: false`.
    let has_failed = |fields: &Map<String, Value>| fields.get("success") == Some(&Value::Bool(false));
    let (fields, success, meaning) = match outcome {
        Ok(ToolOutput { output: fields, .. }) if has_failed(&fields) => {
            (Value::Object(fields), false, Provenance::default())
        }
        Ok(ToolOutput { output: mut fields, meaning }) => {
            fields.insert("success".to_owned(), true.into());
            (Value::Object(fields), true, meaning)
        }
        Err(sentence) => (json!({"success": false, "error": sentence}), false, Provenance::default()),
    };
    let limit = usize::try_from(values.number(&TOOL_RESULT_LIMIT)).unwrap_or(usize::MAX);
    ToolResult { text: bounded(&fields, limit), success, meaning }
}

/// A result within `limit` characters. Tools see to it that theirs fit; if one does not, its end is cut off, but never
/// the mark that it is a stranger's text.
fn bounded(fields: &Value, limit: usize) -> String {
    let text = escaped(&fields.to_string());
    if fields["untrusted"] != true || text.chars().count() <= limit {
        return cut(text, limit);
    }
    let (beginning, _) = room::beginning(&text, limit.saturating_sub(AROUND_BEGINNING));
    let note = "The result was too long. This is the beginning of it.";
    let marked =
        json!({"beginning": beginning, "note": note, "success": fields["success"], "untrusted": true});
    escaped(&marked.to_string())
}

/// What the beginning of a result stands in, in characters.
const AROUND_BEGINNING: usize = 150;

/// Parses the arguments. Empty text and `null` mean "no arguments".
pub(super) fn parse(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("The arguments must be a JSON object, such as {\"key\": \"value\"}.".to_owned()),
        Err(error) => Err(format!("The arguments are not valid JSON: {error}.")),
    }
}

/// Extra time for a tool that enforces its own timeout: enough to clean up and report it.
const GRACE: Duration = Duration::from_secs(30);

/// The timeout of a call, from the settings. If the tool has a time argument, a call may ask for more, and gets the
/// grace period on top.
fn time_limit(tool: &dyn AnyTool, values: &Values, arguments: &Map<String, Value>) -> Duration {
    let set = values.number(&settings::tool_timeout(tool.name(), tool.timeout().as_secs()));
    let Some(argument) = tool.time_argument() else { return Duration::from_secs(set.into()) };
    let asked = arguments.get(argument).and_then(super::schema::whole).unwrap_or_default();
    Duration::from_secs(asked.max(set.into())).saturating_add(GRACE)
}

async fn run(
    tool: &dyn AnyTool,
    arguments: Map<String, Value>,
    within: &Run,
    limit: Duration,
) -> Result<ToolOutput<Map<String, Value>>, String> {
    // A panicking tool must not take the daemon down. The panic hook has already logged what happened.
    let guarded = AssertUnwindSafe(tool.call(arguments, within)).catch_unwind();
    match tokio::time::timeout(limit, guarded).await {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(Ok(Err(error))) => Err(error.0),
        Ok(Err(_panic)) => Err(format!("The tool {} failed because of a bug in Kai.", tool.name())),
        Err(_elapsed) => {
            Err(format!("The tool {} took longer than {} s and was stopped.", tool.name(), limit.as_secs()))
        }
    }
}

/// Cuts the text to `limit` characters, and adds a line that says how many there were.
fn cut(text: String, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text };
    let length = text.chars().count();
    format!("{}\n[Cut off: the first {limit} of {length} characters are shown.]", &text[..end])
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::gate::Level;
    use crate::tool::{Run, Tool, ToolError};

    /// Does as it is told.
    #[derive(Deserialize, JsonSchema)]
    struct PuppetInput {
        act: String,
    }
    struct Puppet;
    impl Tool for Puppet {
        const NAME: &'static str = "puppet";
        type Input = PuppetInput;
        type Output = Value;
        async fn run(&self, input: PuppetInput, _: &Run) -> Result<ToolOutput<Value>, ToolError> {
            match input.act.as_str() {
                "sleep" => tokio::time::sleep(Duration::from_hours(1)).await,
                "panic" => panic!("as told"),
                "refuse" => return Err(ToolError("No \"thanks\".".to_owned())),
                "fail" => return Ok(ToolOutput::from_web(json!({"success": false, "exit": 1}))),
                "browse" => return Ok(ToolOutput::from_web(json!({"said": "a page"}))),
                "read" => {
                    return Ok(ToolOutput::with_messages(json!({"said": "hi"}), vec!["sms 1".to_owned()]));
                }
                "read nothing" => return Ok(ToolOutput::with_messages(json!({"said": ""}), vec![])),
                _ => {}
            }
            Ok(ToolOutput::own(json!({"said": input.act})))
        }
    }

    async fn play(arguments: &str) -> ToolResult {
        execute(Ok(&Puppet), &Values::default(), arguments, &Run::BY_HAND).await
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_happens_becomes_a_result() {
        for (arguments, expected) in [
            (r#"{"act":"hi"}"#, json!({"success": true, "said": "hi"})),
            (r#"{"act":"refuse"}"#, json!({"success": false, "error": "No \"thanks\"."})),
            (
                r#"{"act":"sleep"}"#,
                json!({"success": false, "error": "The tool puppet took longer than 30 s and was stopped."}),
            ),
            (
                r#"{"act":"panic"}"#,
                json!({"success": false, "error": "The tool puppet failed because of a bug in Kai."}),
            ),
            (
                "null",
                json!({"success": false, "error": "The parameter \"act\" must be a string, but it is missing."}),
            ),
            (
                "[1]",
                json!({"success": false, "error": "The arguments must be a JSON object, such as {\"key\": \"value\"}."}),
            ),
        ] {
            let result = play(arguments).await;
            let read: Value = serde_json::from_str(&result.text).unwrap();
            assert_eq!(read, expected, "{arguments}");
            assert_eq!(result.success, expected["success"] == true);
        }
    }

    /// A failed call or an empty read does not raise the level, whatever the tool.
    #[tokio::test(start_paused = true)]
    async fn a_result_means_what_the_tool_said_unless_it_failed() {
        for (act, taint, mentions) in [
            ("hi", Level::Nothing, &[][..]),
            ("browse", Level::Web, &[]),
            ("read", Level::People, &["sms 1"]),
            ("read nothing", Level::Nothing, &[]),
            ("fail", Level::Nothing, &[]),
            ("refuse", Level::Nothing, &[]),
            ("panic", Level::Nothing, &[]),
            ("sleep", Level::Nothing, &[]),
        ] {
            let result = play(&json!({ "act": act }).to_string()).await;
            assert_eq!(result.meaning.taint, taint, "{act}");
            assert_eq!(result.meaning.mentions, mentions, "{act}");
        }
    }

    /// A result that does not fit loses its end, but stays JSON and keeps its mark.
    #[test]
    fn a_strangers_text_keeps_its_mark_when_it_is_cut() {
        for text in ["x".repeat(9_000), "\u{2028}\"\\".repeat(3_000)] {
            for success in [true, false] {
                let long = json!({"text": text, "success": success, "untrusted": true});
                let told = bounded(&long, 1_000);
                let read: Value = serde_json::from_str(&told).unwrap();
                assert!(told.chars().count() <= 1_000, "{}", told.chars().count());
                assert_eq!((&read["untrusted"], &read["success"]), (&json!(true), &json!(success)));
                assert!(read["beginning"].as_str().unwrap().starts_with("{\"success\""), "{told}");
            }
        }
        let short = json!({"text": "hi", "untrusted": true});
        assert_eq!(bounded(&short, 1_000), short.to_string());
        assert!(bounded(&json!({"text": "x".repeat(9_000)}), 1_000).contains("[Cut off"));
    }

    #[tokio::test]
    async fn half_a_json_is_refused_in_words() {
        let result = play(r#"{"act":"#).await;
        assert!(result.text.contains("not valid JSON"), "{}", result.text);
    }

    #[test]
    fn a_long_result_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("ä".repeat(5), 5), "ä".repeat(5));
        let cut = cut("ä".repeat(6), 5);
        assert_eq!(cut, format!("{}\n[Cut off: the first 5 of 6 characters are shown.]", "ä".repeat(5)));
    }
}
