//! Ranks tools by how likely a model is to call them, for requests that cannot hold all of them. Pure.

use kai_llm::{Message, ToolSpec};

/// The tools that users need least often, the rarest first. Any other tool is likelier than these.
const RARE: &[&str] = &[
    "setup_email",
    "get_location_from_ip",
    "promote_learning",
    "memory_reinforce",
    #[cfg(feature = "notifications")]
    "dismiss_notification",
    #[cfg(all(feature = "sms", feature = "notifications"))]
    "reply_notification",
    "shell_command",
    "cancel_task",
    "memory_forget",
    "send_notification",
    "create_calendar_event",
    "memory_learn",
    "open_url",
    "list_tasks",
    "set_alarm",
    "check_drafts",
    "search_email",
    #[cfg(feature = "notifications")]
    "search_notifications",
    "schedule_task",
    "fetch_url",
];

/// How likely this tool is to be called next; higher is likelier. A tool that the user's last message mentions ranks
/// above all others.
pub(super) fn likely(tool: &ToolSpec, messages: &[Message]) -> u32 {
    let rarity = RARE.iter().position(|rare| *rare == tool.name).unwrap_or(RARE.len());
    let rank = u32::try_from(rarity).unwrap_or(u32::MAX);
    let said = messages.iter().rev().find_map(|message| match message {
        Message::User { text, .. } => Some(text.to_lowercase()),
        Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    let spoken_of = said.is_some_and(|said| tool.name.split('_').any(|word| is_spoken(word, &said)));
    if spoken_of { rank.saturating_add(100) } else { rank }
}

/// Words of tool names that say nothing about the tool, because they occur in any sentence.
const EMPTY: &[&str] = &["get", "from", "check", "read", "send", "create", "set", "list", "open"];

fn is_spoken(word: &str, said: &str) -> bool {
    !EMPTY.contains(&word) && word.len() >= 3 && said.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_person_speaks_of_comes_first_and_what_is_rare_last() {
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: serde_json::json!({}).into(),
        };
        let said = [Message::user("Wake me with an ALARM at 7.".to_owned())];
        let mut names = ["get_location_from_ip", "read_sms", "set_alarm", "fetch_url", "shell_command"];
        names.sort_by_key(|name| std::cmp::Reverse(likely(&tool(name), &said)));
        assert_eq!(names, ["set_alarm", "read_sms", "fetch_url", "shell_command", "get_location_from_ip"]);
    }
}
