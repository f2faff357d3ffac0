//! Tool calls in words. Pure functions; the caller shows the exact call next to them.
//!
//! This file has the text of an approval question: what a call would do, the arguments to show, and the button labels.
//! [`done`] says what a call did.

mod done;
mod fields;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
mod outcome;

pub(crate) use done::FinishedCall;
use fields::Fields;
pub(crate) use fields::span;
use kai_assistant::legible::{folded_in, folded_line_in};
use kai_words::Lang;
use serde_json::Value;

/// A tool call that needs the user's approval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApprovalCall<'a> {
    pub(crate) tool: &'a str,
    /// The tool's display name.
    pub(crate) title: &'a str,
    pub(crate) arguments: &'a str,
    /// What an id or a key in the arguments refers to, such as the name of a task.
    pub(crate) about: Option<&'a str>,
}

/// The approval question as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) says: String,
    /// Why Kai asks, and what an approval covers.
    pub(crate) why: &'static str,
    pub(crate) quotes: Vec<Quote>,
    pub(crate) yes: &'static str,
    pub(crate) no: &'static str,
}

/// An argument of the call, shown apart from our own words. Long padding is replaced by a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(crate) label: String,
    pub(crate) text: String,
}

/// The sentence, the names of the arguments quoted below it, and the label of the button.
type Words<'n> = (String, Vec<&'n str>, &'static str);

impl ApprovalCall<'_> {
    /// The question in this language. The command line asks in English.
    pub(crate) fn card(&self, lang: Lang) -> Card {
        let Ok(Value::Object(arguments)) = serde_json::from_str(self.arguments) else {
            return self.unread(lang);
        };
        let fields = Fields { given: &arguments, lang };
        let (says, below, yes) = self.words(&fields);
        let mut quotes: Vec<Quote> = below.iter().filter_map(|name| fields.quote(name)).collect();
        if let Some(about) = self.about {
            quotes.push(Quote { label: lang.argument_about().to_owned(), text: folded_in(about, lang) });
        }
        // Arguments that the sentence does not mention are shown as well.
        let told = [below, mentioned(self.tool)].concat();
        let rest = arguments.keys().filter(|name| !told.contains(&name.as_str()));
        quotes.extend(rest.filter_map(|name| fields.quote(name)));
        let no = if is_memory(self.tool) { lang.asking_dont_remember() } else { lang.asking_deny() };
        Card { says, why: self.why(lang), quotes, yes, no }
    }

    fn words<'n>(&self, fields: &Fields<'_>) -> Words<'n> {
        let lang = fields.lang;
        let named = |name: &str| fields.line(name);
        match self.tool {
            tool if is_memory(tool) => {
                (lang.asking_remember(named("key")), vec!["content"], lang.asking_do_remember())
            }
            "memory_forget" => (lang.asking_forget(named("key")), vec![], lang.asking_do_forget()),
            "schedule_task" => (schedules(fields), vec!["prompt"], lang.asking_do_schedule()),
            "cancel_task" => {
                (lang.asking_cancel_task(named("task_id")), vec![], lang.asking_do_cancel_task())
            }
            "send_notification" => {
                (lang.asking_notify().to_owned(), vec!["title", "message"], lang.asking_do_notify())
            }
            "set_alarm" => (alarm(fields), vec!["label"], lang.asking_do_ring()),
            "create_calendar_event" => {
                (event(fields), vec!["location", "description"], lang.asking_do_event())
            }
            _ => messages::words(self.tool, lang).unwrap_or_else(|| self.outward(lang)),
        }
    }

    /// The same as [`Self::words`] for calls that reach the network or run commands, and for any other tool.
    fn outward<'n>(&self, lang: Lang) -> Words<'n> {
        let (says, below, yes) = match self.tool {
            "web_search" => (lang.asking_search(), vec!["query"], lang.asking_do_search()),
            "get_location_from_ip" => (lang.asking_locate(), vec![], lang.asking_do_locate()),
            "fetch_url" => (lang.asking_fetch(), vec!["url"], lang.asking_do_fetch()),
            "open_url" => (lang.asking_open(), vec!["url"], lang.asking_do_open()),
            "shell_command" | "execute_shell_command" => {
                (lang.asking_run(), vec!["command"], lang.asking_do_run())
            }
            _ => return (self.uses(lang), vec![], lang.asking_allow_once()),
        };
        (says.to_owned(), below, yes)
    }

    fn why(&self, lang: Lang) -> &'static str {
        if kai_words::foreign(self.tool).is_some() { lang.asking_why_mcp() } else { lang.asking_why() }
    }

    fn uses(&self, lang: Lang) -> String {
        if let Some((server, tool)) = kai_words::foreign(self.tool) {
            return lang.asking_mcp(folded_line_in(tool, lang), folded_line_in(server, lang));
        }
        lang.asking_use(folded_line_in(self.title, lang), folded_line_in(self.tool, lang))
    }

    /// The question for arguments that are not a JSON object; the tool itself will reject them.
    fn unread(&self, lang: Lang) -> Card {
        let text = folded_in(self.arguments, lang);
        let quotes = if text.trim().is_empty() { vec![] } else { vec![Quote { label: String::new(), text }] };
        let (yes, no) = (lang.asking_allow_once(), lang.asking_deny());
        Card { says: self.uses(lang), why: self.why(lang), quotes, yes, no }
    }
}

/// Does the tool save a memory?
fn is_memory(tool: &str) -> bool {
    matches!(tool, "memory_store" | "memory_learn")
}

/// The arguments that the sentence already mentions.
fn mentioned(tool: &str) -> Vec<&'static str> {
    match tool {
        "memory_store" | "memory_learn" | "memory_forget" => vec!["key"],
        "schedule_task" => vec!["description", "execute_at", "cron", "on_heartbeat"],
        "cancel_task" => vec!["task_id"],
        "set_alarm" => vec!["hour", "minutes", "duration_seconds"],
        "create_calendar_event" => vec!["title", "start_time", "end_time"],
        _ => vec![],
    }
}

fn schedules(fields: &Fields<'_>) -> String {
    let given = |name: &str| Some(fields.line(name)).filter(|text| !text.is_empty() && text != "false");
    let (task, lang) = (fields.line("description"), fields.lang);
    match (given("execute_at"), given("cron"), given("on_heartbeat")) {
        (Some(at), None, None) => lang.asking_schedule_once(task, at),
        (None, Some(cron), None) => lang.asking_schedule_often(task, cron),
        (None, None, Some(_)) => lang.asking_schedule_with_heartbeat(task),
        _ => lang.asking_schedule_unclear(task, fields.list(&["execute_at", "cron", "on_heartbeat"])),
    }
}

fn alarm(fields: &Fields<'_>) -> String {
    const NAMES: [&str; 3] = ["hour", "minutes", "duration_seconds"];
    let odd = NAMES.iter().any(|name| !fields.line(name).is_empty() && fields.whole(name).is_none());
    match NAMES.map(|name| fields.whole(name)) {
        [Some(hour), minutes, None] if !odd => {
            fields.lang.asking_alarm_at(format!("{hour}:{:02}", minutes.unwrap_or_default()))
        }
        [None, None, Some(seconds)] if !odd && seconds >= 0 => {
            fields.lang.asking_alarm_in(span(seconds, fields.lang))
        }
        // Unusual values are shown as they are: the tool accepts them or reports what is wrong.
        _ => fields.lang.asking_alarm(fields.list(&NAMES)),
    }
}

fn event(fields: &Fields<'_>) -> String {
    let (title, start, end) = (fields.line("title"), fields.line("start_time"), fields.line("end_time"));
    if end.is_empty() {
        fields.lang.asking_event(title, start)
    } else {
        fields.lang.asking_event_until(title, start, end)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(tool: &str, arguments: &Value, about: Option<&str>) -> (String, Vec<String>, &'static str) {
        let arguments = arguments.to_string();
        let card = ApprovalCall { tool, title: "A tool", arguments: &arguments, about }.card(Lang::ENGLISH);
        let quotes = card.quotes.into_iter().map(|quote| format!("{}: {}", quote.label, quote.text));
        (card.says, quotes.collect(), card.yes)
    }

    type Case = (&'static str, Value, Option<&'static str>, &'static str, Vec<&'static str>, &'static str);

    fn check(cases: Vec<Case>) {
        for (tool, arguments, about, says, quotes, yes) in cases {
            let quotes: Vec<String> = quotes.into_iter().map(str::to_owned).collect();
            assert_eq!(asked(tool, &arguments, about), (says.to_owned(), quotes, yes), "{tool}");
        }
    }

    #[test]
    fn the_words_say_what_would_be_kept_or_forgotten() {
        check(vec![
            (
                "memory_store",
                json!({"key": "tea", "content": "Likes\ngreen tea."}),
                None,
                "Kai wants to remember this as “tea” and read it in every later chat:",
                vec!["Content: Likes\ngreen tea."],
                "Remember",
            ),
            (
                "memory_learn",
                json!({"key": "tea", "content": "x", "category": "ERROR"}),
                None,
                "Kai wants to remember this as “tea” and read it in every later chat:",
                vec!["Content: x", "Category: ERROR"],
                "Remember",
            ),
            (
                "memory_forget",
                json!({"key": "tea"}),
                Some("Likes green tea."),
                "Kai wants to forget the memory “tea”.",
                vec!["About: Likes green tea."],
                "Forget",
            ),
            (
                "schedule_task",
                json!({"description": "Weather", "prompt": "Tell it.", "cron": "0 7 * * *", "on_heartbeat": false}),
                None,
                "Kai wants to schedule “Weather” to repeat (0 7 * * *). Each time, Kai will do this without asking:",
                vec!["Instructions: Tell it."],
                "Schedule",
            ),
        ]);
    }

    #[test]
    fn the_words_say_what_would_happen_on_the_device_or_outside() {
        check(vec![
            (
                "cancel_task",
                json!({"task_id": 3}),
                Some("Weather"),
                "Kai wants to cancel task 3.",
                vec!["About: Weather"],
                "Cancel task",
            ),
            (
                "set_alarm",
                json!({"duration_seconds": 3_660, "label": "Tea"}),
                None,
                "Kai wants to set an alarm that rings in 1 hour 1 minute.",
                vec!["Label: Tea"],
                "Set alarm",
            ),
            (
                "set_alarm",
                json!({"hour": 7, "minutes": 5}),
                None,
                "Kai wants to set an alarm for 7:05.",
                vec![],
                "Set alarm",
            ),
            (
                "create_calendar_event",
                json!({"title": "Lunch", "start_time": "2027-03-09T12:00", "all_day": null, "location": "Here"}),
                None,
                "Kai wants to create a calendar event: “Lunch”, 2027-03-09T12:00.",
                vec!["Location: Here"],
                "Add event",
            ),
            (
                "open_url",
                json!({"url": "https://a.test/?d=secret"}),
                None,
                "Kai wants to open this address. Whoever runs the site can see all of it:",
                vec!["Address: https://a.test/?d=secret"],
                "Open",
            ),
            (
                "something_new",
                json!({"a": 1, "b": ["x"], "c": {"d": [true, "e\nf"], "g": null}}),
                None,
                "Kai wants to use “A tool” (something_new).",
                vec!["a: 1", "b: x", "c: d: yes e f\ng: "],
                "Allow once",
            ),
        ]);
    }

    #[test]
    fn numbers_are_read_as_the_tools_read_them_and_odd_ones_are_shown() {
        check(vec![
            (
                "set_alarm",
                json!({"hour": 7.0, "minutes": "30"}),
                None,
                "Kai wants to set an alarm for 7:30.",
                vec![],
                "Set alarm",
            ),
            (
                "set_alarm",
                json!({"hour": 7, "duration_seconds": 9.5}),
                None,
                "Kai wants to set an alarm (hour 7, duration_seconds 9.5).",
                vec![],
                "Set alarm",
            ),
            (
                "set_alarm",
                json!({"duration_seconds": -5}),
                None,
                "Kai wants to set an alarm (duration_seconds -5).",
                vec![],
                "Set alarm",
            ),
        ]);
    }

    #[test]
    fn the_question_is_asked_in_the_users_language() {
        let german = Lang::of("de");
        for (tool, arguments, says, label, yes) in [
            (
                "set_alarm",
                json!({"duration_seconds": 7_261, "label": "Tee"}),
                "Kai möchte einen Wecker stellen, der in 2 Stunden 1 Minute 1 Sekunde klingelt.",
                "Bezeichnung",
                "Wecker stellen",
            ),
            (
                "schedule_task",
                json!({"description": "Wetter", "prompt": "Sag es.", "on_heartbeat": true}),
                "Kai möchte „Wetter“ bei jeder automatischen Prüfung ausführen. Jedes Mal führt Kai ohne Rückfrage Folgendes aus:",
                "Anweisung",
                "Planen",
            ),
            (
                "made_up",
                json!({"odd_name": 1}),
                "Kai möchte „T“ (made_up) verwenden.",
                "odd_name",
                "Einmal erlauben",
            ),
        ] {
            let arguments = arguments.to_string();
            let card = ApprovalCall { tool, title: "T", arguments: &arguments, about: None }.card(german);
            assert_eq!((card.says.as_str(), card.quotes[0].label.as_str(), card.yes), (says, label, yes));
            assert_eq!(card.no, "Nicht erlauben");
        }
    }

    #[test]
    fn no_padding_pushes_the_question_away() {
        let pad = " ".repeat(2_000);
        let content = format!("Tea{}and money", "\n".repeat(900));
        let arguments = json!({"key": format!("a{pad}b"), "content": content, "x": "=".repeat(3_000)});
        let (says, quotes, _) = asked("memory_store", &arguments, None);
        assert_eq!(says, "Kai wants to remember this as “a[2,000 spaces]b” and read it in every later chat:");
        assert_eq!(quotes, ["Content: Tea[900 line breaks]and money", "x: [3,000 × =]"]);
        let arguments = format!("not json{pad}at all");
        let card =
            ApprovalCall { tool: "t", title: "T", arguments: &arguments, about: None }.card(Lang::ENGLISH);
        assert_eq!(card.quotes[0].text, "not json[2,000 spaces]at all");
    }
}
