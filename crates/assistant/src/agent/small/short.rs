//! The tools of the sets in short words. Pure.
//!
//! A tool keeps its name and the types of its parameters. A parameter that a call can do without and that has no words
//! here is left out.

use kai_llm::ToolSpec;
use serde_json::{Map, Value};

/// A tool's description, and those of the parameters that are kept.
pub(super) type Words = (&'static str, &'static [(&'static str, &'static str)]);

pub(super) const TABLE: &[(&str, Words)] = &[
    ("cancel_task", ("Cancel a scheduled task.", &[("task_id", "Number of the task, from list_tasks.")])),
    ("check_drafts", ("List drafts: waiting, sent or failed.", &[])),
    ("check_email", ("List new emails.", &[])),
    #[cfg(feature = "notifications")]
    ("check_notifications", ("List new notifications of other apps.", &[])),
    #[cfg(feature = "sms")]
    ("check_sms", ("List new SMS.", &[])),
    (
        "compose_email",
        (
            "Draft an email. The user sends it.",
            &[("to", "Addresses, separated by commas."), ("subject", "The subject."), ("body", "The text.")],
        ),
    ),
    (
        "create_calendar_event",
        (
            "Create an event in the user's calendar.",
            &[
                ("title", "What it is called."),
                ("start_time", "Local time, such as 2026-03-09T15:00."),
                ("end_time", "An hour later if left out."),
                ("location", "Where it takes place."),
            ],
        ),
    ),
    ("fetch_url", ("Read a web page.", &[("url", "The full address, with https://.")])),
    ("get_local_time", ("Get the current date and time.", &[])),
    ("list_tasks", ("List scheduled tasks.", &[])),
    ("memory_forget", ("Delete a memory.", &[("key", "Its exact name, as you remember it.")])),
    (
        "memory_store",
        (
            "Remember a fact about the user.",
            &[
                ("key", "Short name, such as favourite colour."),
                ("content", "What to remember, in a sentence."),
            ],
        ),
    ),
    ("read_email", ("Read one email whole.", &[("id", "Id, from check_email or search_email.")])),
    #[cfg(feature = "sms")]
    ("read_sms", ("Read one SMS whole.", &[("id", "Id, from check_sms or search_sms.")])),
    (
        "reply_email",
        (
            "Draft a reply to an email. The user sends it.",
            &[("email_id", "Id, from check_email or search_email."), ("body", "The text, without a quote.")],
        ),
    ),
    #[cfg(all(feature = "sms", feature = "notifications"))]
    (
        "reply_notification",
        (
            "Draft a reply to a chat notification. The user sends it.",
            &[("id", "Id, from check_notifications."), ("body", "The text.")],
        ),
    ),
    #[cfg(feature = "sms")]
    (
        "reply_sms",
        (
            "Draft a reply to a received SMS. The user sends it.",
            &[("sms_id", "Id, from check_sms or search_sms."), ("body", "The text.")],
        ),
    ),
    (
        "schedule_task",
        (
            "Schedule something for Kai to do later. Give execute_at or cron.",
            &[
                ("description", "Short name of the task."),
                ("prompt", "What to do then, with everything one needs to know."),
                ("execute_at", "Once: local time, such as 2026-03-09T15:00."),
                ("cron", "Repeatedly: such as 30 7 * * 1-5 for weekdays at 7:30."),
            ],
        ),
    ),
    ("search_email", ("Search the received emails.", &[("query", "Words in sender, subject or text.")])),
    #[cfg(feature = "sms")]
    ("search_sms", ("Search the received SMS.", &[("query", "A word, a name or a number.")])),
    (
        "send_notification",
        ("Show a notification on the user's device.", &[("title", "A headline."), ("message", "The text.")]),
    ),
    #[cfg(feature = "sms")]
    (
        "send_sms",
        (
            "Draft an SMS. The user sends it.",
            &[("to", "Phone number, or the contact's name as the user said it."), ("body", "The text.")],
        ),
    ),
    (
        "set_alarm",
        (
            "Set an alarm (hour and minutes) or a timer (duration_seconds).",
            &[
                ("hour", "0 to 23."),
                ("minutes", "0 to 59."),
                ("duration_seconds", "Length of a timer."),
                ("label", "What it is for."),
            ],
        ),
    ),
    ("web_search", ("Search the web.", &[("query", "What to look for.")])),
];

/// The tool in short words; as it is if there are none.
pub(super) fn shortened(tool: &ToolSpec) -> ToolSpec {
    let Some((_, (says, parameters))) = TABLE.iter().find(|(name, _)| *name == tool.name) else {
        return tool.clone();
    };
    let mut schema = Value::clone(&tool.parameters);
    let required: Vec<String> = schema
        .get("required")
        .and_then(|names| serde_json::from_value(names.clone()).ok())
        .unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        shorten(properties, parameters, &required);
    }
    ToolSpec { name: tool.name.clone(), description: (*says).to_owned(), parameters: schema.into() }
}

/// Keeps the parameters that have words here or are required.
fn shorten(properties: &mut Map<String, Value>, words: &[(&str, &str)], required: &[String]) {
    properties.retain(|name, schema| {
        let says = words.iter().find(|(known, _)| known == name).map(|(_, says)| *says);
        if let (Some(says), Some(fields)) = (says, schema.as_object_mut()) {
            fields.insert("description".to_owned(), says.into());
        }
        says.is_some() || required.contains(name)
    });
}
