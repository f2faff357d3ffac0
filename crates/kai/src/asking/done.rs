//! What a tool call did, in one sentence. Pure; the caller shows the exact call and its result next to it.

use kai_words::Lang;
use serde_json::{Map, Value};

use super::fields::{Fields, brief, span};
use super::messages;
use super::outcome::{Done, names};

/// A tool call, with its result if it has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinishedCall<'a> {
    pub(crate) tool: &'a str,
    /// The tool's display name.
    pub(crate) title: &'a str,
    pub(crate) arguments: &'a str,
    /// `None` if the call was stopped.
    pub(crate) result: Option<&'a str>,
}

impl FinishedCall<'_> {
    /// What it did, in this language. A tool that nobody described here was simply used.
    pub(crate) fn says(&self, lang: Lang) -> String {
        let title = brief(self.title, lang);
        let Some(result) = self.result else { return lang.did_unfinished(title) };
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        if result["success"] == false {
            let why = brief(result["error"].as_str().unwrap_or_default(), lang);
            return lang.did_failed(title, why);
        }
        let given: Map<String, Value> = serde_json::from_str(self.arguments).unwrap_or_default();
        let done = Done { fields: Fields { given: &given, lang }, result: &result };
        let described = done.at_hand(self.tool).or_else(|| done.outward(self.tool));
        let described = described.or_else(|| done.mail(self.tool));
        described.or_else(|| messages::did(self.tool, &done)).unwrap_or_else(|| lang.did_used(title))
    }
}

impl Done<'_> {
    /// What was done with memories, tasks and this machine.
    fn at_hand(&self, tool: &str) -> Option<String> {
        let lang = self.lang();
        Some(match tool {
            "memory_store" | "memory_learn" => lang.did_remember(self.argument("key")?),
            "memory_forget" => lang.did_forget(self.argument("key")?),
            "memory_reinforce" => lang.did_reinforce(self.argument("key")?),
            "promote_learning" => lang.did_promote(self.argument("key")?),
            "schedule_task" => lang.did_schedule(self.argument("description")?),
            "list_tasks" if self.list("tasks")?.is_empty() => lang.did_no_tasks().to_owned(),
            "list_tasks" => lang.did_tasks(self.list("tasks")?.len()),
            "cancel_task" => lang.did_cancel_task(self.argument("task_id")?),
            "get_local_time" => lang.did_time().to_owned(),
            "set_alarm" => self.alarm(),
            "create_calendar_event" => lang.did_event(self.argument("title")?),
            "send_notification" => lang.did_notify(self.argument("message")?),
            _ => return None,
        })
    }

    /// What was done on the network, or by a command.
    fn outward(&self, tool: &str) -> Option<String> {
        let lang = self.lang();
        Some(match tool {
            "web_search" => lang.did_search(self.argument("query")?),
            "fetch_url" => lang.did_fetch(self.argument("url")?),
            "open_url" => lang.did_open(self.argument("url")?),
            "get_location_from_ip" => lang.did_locate().to_owned(),
            "shell_command" | "execute_shell_command" => lang.did_run(self.argument("command")?),
            _ => return None,
        })
    }

    /// What was done with mail and drafts.
    fn mail(&self, tool: &str) -> Option<String> {
        let lang = self.lang();
        Some(match tool {
            "check_email" if self.list("emails")?.is_empty() => lang.did_no_mail().to_owned(),
            "check_email" => {
                let found = self.list("emails")?;
                lang.did_mail(found.len(), names(found, &["from"], lang))
            }
            "search_email" => lang.did_mail_found(self.argument("query")?, self.list("emails")?.len()),
            "read_email" => lang.did_mail_one(self.returned("from")?),
            "compose_email" => lang.did_draft_mail(self.returned("to")?),
            "reply_email" => lang.did_draft_reply(self.returned("to")?),
            "check_drafts" => lang.did_drafts(self.list("drafts")?.len()),
            _ => return None,
        })
    }

    fn alarm(&self) -> String {
        let (lang, whole) = (self.lang(), |name| self.fields.whole(name));
        match (whole("hour"), whole("duration_seconds")) {
            (Some(hour), None) => {
                lang.did_alarm_at(format!("{hour}:{:02}", whole("minutes").unwrap_or_default()))
            }
            (None, Some(seconds)) if seconds >= 0 => lang.did_alarm_in(span(seconds, lang)),
            _ => lang.did_alarm().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(tool: &str, arguments: &Value, result: &Value, lang: Lang) -> String {
        let (title, arguments, result) = (lang.tool_name(tool), arguments.to_string(), result.to_string());
        FinishedCall { tool, title: &title, arguments: &arguments, result: Some(&result) }.says(lang)
    }

    #[test]
    fn what_was_done_with_mail_is_said_in_both_languages() {
        for (tool, arguments, result, expected, erwartet) in [
            (
                "check_email",
                json!({}),
                json!({"emails": [{"from": "Ann <ann@x.test>"}]}),
                "Read 1 mail from Ann <ann@x.test>.",
                "1 Mail von Ann <ann@x.test> gelesen.",
            ),
            (
                "check_email",
                json!({}),
                json!({"emails": []}),
                "Found no new mail.",
                "Keine neue Mail gefunden.",
            ),
            (
                "search_email",
                json!({"query": "rent"}),
                json!({"emails": [{}, {}]}),
                "Searched your mail for “rent” and found 2.",
                "Ihre Mail nach „rent“ durchsucht und 2 gefunden.",
            ),
            (
                "read_email",
                json!({}),
                json!({"from": "Ann"}),
                "Read a mail from Ann.",
                "Eine Mail von Ann gelesen.",
            ),
            (
                "compose_email",
                json!({}),
                json!({"to": "ann@x.test"}),
                "Drafted a mail to ann@x.test.",
                "Eine Mail an ann@x.test entworfen.",
            ),
        ] {
            assert_eq!(says(tool, &arguments, &result, Lang::ENGLISH), expected);
            assert_eq!(says(tool, &arguments, &result, Lang::of("de")), erwartet);
        }
    }

    #[test]
    fn what_was_done_is_said_in_both_languages() {
        let (english, german) = (Lang::ENGLISH, Lang::of("de"));
        for (tool, arguments, result, expected, erwartet) in [
            (
                "web_search",
                json!({"query": "tea"}),
                json!({"success": true}),
                "Searched the web for “tea”.",
                "Im Web nach „tea“ gesucht.",
            ),
            ("memory_store", json!({"key": "tea"}), json!({}), "Remembered “tea”.", "„tea“ gemerkt."),
            (
                "list_tasks",
                json!({}),
                json!({"tasks": [{}]}),
                "Looked at 1 scheduled task.",
                "1 geplante Aufgabe angesehen.",
            ),
            (
                "set_alarm",
                json!({"hour": 7, "minutes": 5}),
                json!({}),
                "Set an alarm for 7:05.",
                "Einen Wecker auf 7:05 gestellt.",
            ),
            (
                "set_alarm",
                json!({"duration_seconds": 60}),
                json!({}),
                "Set an alarm that rings in 1 minute.",
                "Einen Wecker gestellt, der in 1 Minute klingelt.",
            ),
            ("cancel_task", json!({"task_id": 3}), json!({}), "Cancelled task 3.", "Aufgabe 3 abgesagt."),
            (
                "something_new",
                json!({"a": 1}),
                json!({"b": 2}),
                "Used “something_new”.",
                "„something_new“ verwendet.",
            ),
            ("web_search", json!({}), json!({}), "Used “Web search”.", "„Websuche“ verwendet."),
            (
                "fetch_url",
                json!({"url": "https://a.test/"}),
                json!({"success": false, "error": "No such host."}),
                "“Read a page” didn’t work: No such host.",
                "„Seite lesen“ hat nicht funktioniert: No such host.",
            ),
        ] {
            assert_eq!(says(tool, &arguments, &result, english), expected);
            assert_eq!(says(tool, &arguments, &result, german), erwartet);
        }
    }

    #[test]
    fn neither_a_call_that_was_stopped_nor_hostile_text_breaks_the_sentence() {
        let call =
            |arguments, result| FinishedCall { tool: "web_search", title: "Web search", arguments, result };
        let lang = Lang::ENGLISH;
        assert_eq!(call("{}", None).says(lang), "“Web search” didn’t finish.");
        assert_eq!(call("not json", Some("not json")).says(lang), "Used “Web search”.");
        let hostile = json!({"query": format!("a\n\u{202e}b{}", "x y ".repeat(200))}).to_string();
        let said = call(&hostile, Some("{}")).says(lang);
        assert!(said.starts_with("Searched the web for “a ") && said.contains("\\u{202e}"), "{said}");
        assert!(said.chars().count() < 140 && said.ends_with("…”."), "{said}");
    }
}
