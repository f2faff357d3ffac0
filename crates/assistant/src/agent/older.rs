//! Infers the meaning of tool results that were stored without one: those from before tools declared it, and those from
//! import files. It is guessed from the tool's name and the JSON. The lists name the tools of that time, so no new tool
//! belongs here. Pure.

use serde::Deserialize;
use serde_json::Value;

use crate::gate::Level;

/// A tool whose results contain messages from other people: its name, the field that lists them (`None` if the result
/// is one message), and what identifies one.
type MessageTool = (&'static str, Option<&'static str>, fn(&Value) -> Option<String>);

const MESSAGE_TOOLS: &[MessageTool] = &[
    #[cfg(feature = "sms")]
    ("check_sms", Some("messages"), sms),
    #[cfg(feature = "sms")]
    ("read_sms", None, sms),
    #[cfg(feature = "sms")]
    ("search_sms", Some("messages"), sms),
    #[cfg(feature = "notifications")]
    ("check_notifications", Some("notifications"), notification),
    #[cfg(feature = "notifications")]
    ("read_notification", None, notification),
    #[cfg(feature = "notifications")]
    ("search_notifications", Some("notifications"), notification),
];
/// Tools whose results contain text from the web.
const WEB_TOOLS: &[&str] = &["fetch_url", "web_search"];
/// The tool whose results state their level themselves.
const LISTS_TASKS: &str = "list_tasks";
/// Tools whose results are in Kai's own words.
const OWN_TOOLS: &[&str] = &[
    "cancel_task",
    "check_drafts",
    "create_calendar_event",
    #[cfg(feature = "notifications")]
    "dismiss_notification",
    "execute_shell_command",
    "get_local_time",
    "get_location_from_ip",
    "memory_forget",
    "memory_learn",
    "memory_reinforce",
    "memory_store",
    "open_url",
    "promote_learning",
    #[cfg(feature = "sms")]
    "reply_sms",
    "schedule_task",
    "send_notification",
    #[cfg(feature = "sms")]
    "send_sms",
    "set_alarm",
    "shell_command",
];

/// Whether the tool's results contain messages from other people.
pub(super) fn holds_messages(tool: &str) -> bool {
    MESSAGE_TOOLS.iter().any(|(name, ..)| *name == tool)
}

/// The level that the result raised. A tool that is in no list counts as [`Level::People`]; a name that a model made up
/// (`exists` is false) returned nothing.
pub(super) fn taint(tool: &str, result: &str, exists: bool) -> Level {
    let read = |level: Level| if has_no_content(result) { Level::Nothing } else { level };
    match tool {
        LISTS_TASKS => level_named_in(result),
        tool if holds_messages(tool) => read(Level::People),
        tool if WEB_TOOLS.contains(&tool) => read(Level::Web),
        tool if OWN_TOOLS.contains(&tool) => Level::Nothing,
        _ if exists => Level::People,
        _ => Level::Nothing,
    }
}

/// Whether the result is an error or an empty list. The search cannot match inside a string, where the quotes would be
/// escaped.
fn has_no_content(result: &str) -> bool {
    result.contains("\"success\":false") || result.contains("\"count\":0,")
}

/// The level that a result states. A result that was cut off may have lost it, so it counts as [`Level::People`]; so
/// does an older one that says only that it is untrusted.
fn level_named_in(result: &str) -> Level {
    let Ok(result) = serde_json::from_str::<Value>(result) else { return Level::People };
    match result.get("level").and_then(|level| Level::deserialize(level).ok()) {
        Some(level) => level,
        None if result.get("untrusted") == Some(&Value::Bool(true)) => Level::People,
        None => Level::Nothing,
    }
}

/// The identities of the messages in the result.
pub(super) fn mentions(tool: &str, result: &str) -> Vec<String> {
    let Some((_, list, identity)) = MESSAGE_TOOLS.iter().find(|(name, ..)| *name == tool) else {
        return vec![];
    };
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    match list {
        Some(list) => result[list].as_array().into_iter().flatten().filter_map(identity).collect(),
        None => identity(&result).into_iter().collect(),
    }
}

/// The identity of an SMS. It includes date and sender, because phones reuse ids.
#[cfg(feature = "sms")]
fn sms(item: &Value) -> Option<String> {
    let (id, date, from) = (item["id"].as_i64()?, item["date"].as_i64()?, item["from"].as_str()?);
    Some(crate::sms::identity_name(id, date, from))
}

#[cfg(feature = "notifications")]
fn notification(item: &Value) -> Option<String> {
    Some(format!("notification {}", item["id"].as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_tasks_is_at_the_level_it_names_or_the_highest_if_it_was_cut_off() {
        let forged = json!({"tasks": [{"description": "\"level\":\"people\""}]});
        let strange = json!({"tasks": [{"description": "x"}], "untrusted": true});
        let at = |level: &str| json!({"tasks": [], "untrusted": true, "level": level}).to_string();
        for (name, result, expected) in [
            ("nobody's words but ours", json!({"tasks": []}).to_string(), Level::Nothing),
            ("the word in a name", forged.to_string(), Level::Nothing),
            ("web", at("web"), Level::Web),
            ("people", at("people"), Level::People),
            ("as older ones said it", strange.to_string(), Level::People),
            ("cut off", format!("{}\n[Cut off]", &at("web")[..20]), Level::People),
        ] {
            assert_eq!(taint("list_tasks", &result, true), expected, "{name}");
        }
    }
}
