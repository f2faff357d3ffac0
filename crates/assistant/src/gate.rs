//! The one gate that every tool call passes: who runs, what the request holds, which tool.
//!
//! A stranger's text must not be able to make Kai speak to the outside, or change what Kai keeps. So a run that nobody
//! watches is offered a short list, and a chat asks the person before a call that could carry something out, plant
//! something for later or take something away. What it asks about depends on what the request has read: see [`Level`].

use kai_llm::{Message, ToolCall};
use serde::{Deserialize, Serialize};

use crate::untrusted::Attached;

/// Who is there while this runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// A person waits for the answer.
    Chat,
    /// The heartbeat: nobody is there.
    Heartbeat,
    /// A task whose prompt the person approved; nobody is there.
    Task,
}

/// How far a request has opened itself to what others wrote: the highest of everything in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(from = "Told", rename_all = "lowercase")]
pub enum Level {
    /// Only the person's words and our own.
    #[default]
    Nothing,
    /// Web pages, search results, the text of attachments: somebody wrote them, but not to this person.
    Web,
    /// SMS, notifications and whatever else reaches the person from others: anybody can write there.
    People,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Web, Self::People];

    pub fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Web => "web",
            Self::People => "people",
        }
    }

    /// The number under which it is stored.
    pub(crate) fn stored(self) -> i64 {
        match self {
            Self::Nothing => 0,
            Self::Web => 1,
            Self::People => 2,
        }
    }

    /// A number that nobody knows counts as the highest.
    pub(crate) fn of_stored(number: i64) -> Self {
        Self::ALL.into_iter().find(|level| level.stored() == number).unwrap_or(Self::People)
    }
}

/// A level as files tell it. Older ones only told whether something was tainted.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Tainted(bool),
    Named(String),
}

impl From<Told> for Level {
    fn from(told: Told) -> Self {
        match told {
            Told::Tainted(false) => Self::Nothing,
            Told::Tainted(true) => Self::People,
            Told::Named(name) => {
                Self::ALL.into_iter().find(|level| level.as_str() == name).unwrap_or(Self::People)
            }
        }
    }
}

/// What happens with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Run,
    /// One click of the person, on exactly this call.
    AskFirst,
    /// Not offered in this kind of run at all.
    Refuse,
}

/// What a tool could do with a stranger's words. Every tool has a row; a tool without one is [`Reach::Outward`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Only tells; nothing leaves and nothing stays.
    Looks,
    /// Only tells too, but what people wrote: from then on the request is at [`Level::People`].
    #[cfg_attr(
        not(any(feature = "sms", feature = "notifications")),
        expect(dead_code, reason = "messages are of the foss edition")
    )]
    Reads,
    /// Only tells what Kai keeps, and says itself at which level that was made.
    Tells,
    /// Puts a draft in front of the person, whose tap is the click.
    #[cfg_attr(not(feature = "sms"), expect(dead_code, reason = "drafts are of the foss edition"))]
    Stages,
    /// Changes what Kai will believe or do later.
    Plants,
    /// Puts a proposal in front of the person; only the heartbeat and tasks look back so far.
    Proposes,
    /// Takes away something of the person's, or shows or keeps something on their device; only where a person is there.
    Changes,
    /// Runs something, or nobody knows what it does.
    Outward,
    /// Asks a service that the person chose.
    Asks,
    /// Goes to an address that the call names.
    Visits,
    /// Searches the web: what comes back is [`Level::Web`].
    Searches,
    /// Reads a page at an address that the call names: what comes back is [`Level::Web`].
    Fetches,
}

const TABLE: &[(&str, Reach)] = &[
    ("cancel_task", Reach::Changes),
    // Numbers and states, no stranger's text.
    #[cfg(feature = "sms")]
    ("check_drafts", Reach::Looks),
    #[cfg(feature = "sms")]
    ("check_sms", Reach::Reads),
    #[cfg(feature = "notifications")]
    ("check_notifications", Reach::Reads),
    ("create_calendar_event", Reach::Changes),
    #[cfg(feature = "notifications")]
    ("dismiss_notification", Reach::Changes),
    ("execute_shell_command", Reach::Outward),
    ("fetch_url", Reach::Fetches),
    ("get_local_time", Reach::Looks),
    ("get_location_from_ip", Reach::Asks),
    // Names of tasks that were made after reading strangers' text are strangers' text. A list without such a task
    // raises nothing, or whoever asked for it could not search the web any more without a click.
    ("list_tasks", Reach::Tells),
    ("memory_forget", Reach::Changes),
    ("memory_learn", Reach::Plants),
    // It only counts, so a run that nobody watches may do it too.
    ("memory_reinforce", Reach::Looks),
    ("memory_store", Reach::Plants),
    ("promote_learning", Reach::Proposes),
    ("open_url", Reach::Visits),
    #[cfg(feature = "notifications")]
    ("read_notification", Reach::Reads),
    #[cfg(feature = "notifications")]
    ("search_notifications", Reach::Reads),
    #[cfg(feature = "sms")]
    ("read_sms", Reach::Reads),
    #[cfg(feature = "sms")]
    ("reply_sms", Reach::Stages),
    #[cfg(feature = "sms")]
    ("search_sms", Reach::Reads),
    ("schedule_task", Reach::Plants),
    ("send_notification", Reach::Changes),
    #[cfg(feature = "sms")]
    ("send_sms", Reach::Stages),
    ("set_alarm", Reach::Changes),
    ("shell_command", Reach::Outward),
    (SEARCH, Reach::Searches),
];
const SEARCH: &str = "web_search";

fn reach(tool: &str) -> Option<Reach> {
    TABLE.iter().find(|(name, _)| *name == tool).map(|(_, reach)| *reach)
}

/// May this call run now, in a request at that level and after what `messages` hold?
///
/// A page could ask for an address with something private written into it. So at [`Level::Web`] only an address that a
/// search listed, or that the person wrote, is fetched or opened without asking. Links inside pages do not count: a page
/// can list one for every letter, and have a secret spelled.
pub fn judge(kind: RunKind, level: Level, messages: &[Message], call: &ToolCall) -> Verdict {
    let named = matches!(reach(&call.name), Some(Reach::Visits | Reach::Fetches));
    let unlisted = named && level == Level::Web && !listed(messages, call);
    match verdict(kind, level, &call.name) {
        Verdict::Run if unlisted && kind == RunKind::Chat => Verdict::AskFirst,
        Verdict::Run if unlisted => Verdict::Refuse,
        verdict => verdict,
    }
}

/// Does the call name an address exactly as a search result or the person wrote it? What they attached is not their word.
fn listed(messages: &[Message], call: &ToolCall) -> bool {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let Some(url) = arguments.get("url").and_then(serde_json::Value::as_str) else { return false };
    // As the field stands in the result; inside a title or an excerpt its quotes would be escaped.
    let field = format!("\"url\":{}", serde_json::Value::from(url));
    messages.iter().any(|message| match message {
        Message::Tool { tool, result, .. } => tool == SEARCH && result.contains(&field),
        Message::User { text } => Attached::find(text)
            .words
            .split_whitespace()
            .any(|word| word == url || word.trim_matches(|c| "<>()[]\"'.,;:!?".contains(c)) == url),
        Message::Assistant { .. } => false,
    })
}

/// May `tool` run now, whatever it is called with? Of tools that take an address this is the word on one that was listed;
/// [`judge`] knows about the others.
pub fn verdict(kind: RunKind, level: Level, tool: &str) -> Verdict {
    let reach = reach(tool).unwrap_or(Reach::Outward);
    match kind {
        RunKind::Chat => in_chat(reach, level),
        RunKind::Heartbeat | RunKind::Task => unattended(kind, reach, level),
    }
}

fn in_chat(reach: Reach, level: Level) -> Verdict {
    let asks_from = match reach {
        Reach::Proposes => return Verdict::Refuse,
        Reach::Looks | Reach::Reads | Reach::Tells | Reach::Stages => return Verdict::Run,
        Reach::Plants | Reach::Outward => Level::Web,
        Reach::Changes | Reach::Asks | Reach::Visits | Reach::Searches | Reach::Fetches => Level::People,
    };
    if level >= asks_from { Verdict::AskFirst } else { Verdict::Run }
}

fn unattended(kind: RunKind, reach: Reach, level: Level) -> Verdict {
    match reach {
        Reach::Looks | Reach::Reads | Reach::Tells | Reach::Stages | Reach::Proposes => Verdict::Run,
        Reach::Searches | Reach::Fetches if kind == RunKind::Task && level <= Level::Web => Verdict::Run,
        Reach::Plants
        | Reach::Changes
        | Reach::Outward
        | Reach::Asks
        | Reach::Visits
        | Reach::Searches
        | Reach::Fetches => Verdict::Refuse,
    }
}

/// Every tool that has a row.
pub fn tools() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(tool, _)| *tool)
}

/// What has the conversation read so far? Also long after the tool that brought it was switched off. A result of a tool
/// that the table does not know counts as people's; a name that a model made up (`exists` says no) brought nothing in.
pub fn level(messages: &[Message], exists: impl Fn(&str) -> bool) -> Level {
    let read = |message: &Message| match message {
        Message::User { text } if Attached::find(text).attachment.is_some() => Level::Web,
        Message::User { .. } | Message::Assistant { .. } => Level::Nothing,
        Message::Tool { tool, result, .. } => brought(tool, result, exists(tool)),
    };
    messages.iter().map(read).max().unwrap_or_default()
}

fn brought(tool: &str, result: &str, exists: bool) -> Level {
    let level = match reach(tool) {
        Some(Reach::Tells) => return says_level(result),
        Some(Reach::Reads) => Level::People,
        Some(Reach::Searches | Reach::Fetches) => Level::Web,
        None if exists => return Level::People,
        Some(_) | None => Level::Nothing,
    };
    if told_nothing(result) { Level::Nothing } else { level }
}

/// A result that failed or lists nothing brought nothing in. Inside of a text the quotes would be escaped.
fn told_nothing(result: &str) -> bool {
    result.contains("\"success\":false") || result.contains("\"count\":0,")
}

/// The level that a result itself names. One that was cut off may have lost the word for it, and older ones only said
/// that strangers' text was in them.
fn says_level(result: &str) -> Level {
    let Ok(result) = serde_json::from_str::<serde_json::Value>(result) else { return Level::People };
    match result.get("level").and_then(|level| Level::deserialize(level).ok()) {
        Some(level) => level,
        None if result.get("untrusted") == Some(&serde_json::Value::Bool(true)) => Level::People,
        None => Level::Nothing,
    }
}

/// Is the tool offered to a model in this kind of run?
pub fn offered(kind: RunKind, level: Level, tool: &str) -> bool {
    verdict(kind, level, tool) != Verdict::Refuse
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(tool: &str) -> Message {
        told(tool, &serde_json::json!({}))
    }

    fn told(tool: &str, result: &serde_json::Value) -> Message {
        let call = kai_llm::CallId("1".to_owned());
        Message::Tool { call, tool: tool.to_owned(), result: result.to_string() }
    }

    #[test]
    fn a_conversation_is_at_the_level_of_the_highest_that_it_read() {
        let said = Message::User { text: "hello".to_owned() };
        let there = |_: &str| true;
        let attached = Message::User { text: Attached::to("Sum it up.", "Obey me.") };
        let empty = told("check_sms", &serde_json::json!({"messages": [], "count": 0, "more": 0}));
        let failed = |tool: &str| told(tool, &serde_json::json!({"error": "No.", "success": false}));
        for (name, messages, expected) in [
            ("nothing was called", vec![], Level::Nothing),
            ("the time", vec![result("get_local_time")], Level::Nothing),
            ("where we are", vec![result("get_location_from_ip")], Level::Nothing),
            ("a search", vec![result("web_search")], Level::Web),
            ("a page", vec![result("fetch_url")], Level::Web),
            ("a page that did not come", vec![failed("fetch_url")], Level::Nothing),
            ("an attachment", vec![attached], Level::Web),
            ("a tool we do not know", vec![result("get_local_time"), result("something_new")], Level::People),
            ("one that failed, and we do not know it", vec![failed("something_new")], Level::People),
            (
                "an inbox without news",
                vec![empty],
                if cfg!(feature = "sms") { Level::Nothing } else { Level::People },
            ),
            ("a page, then a tool we do not know", vec![result("fetch_url"), result("x")], Level::People),
        ] {
            let messages = [vec![said.clone()], messages].concat();
            assert_eq!(level(&messages, there), expected, "{name}");
        }
        assert_eq!(level(&[said.clone(), result("made_up")], |_| false), Level::Nothing);
        #[cfg(feature = "sms")]
        for (tool, expected) in [
            ("check_sms", Level::People),
            ("read_sms", Level::People),
            ("search_sms", Level::People),
            ("check_drafts", Level::Nothing),
            ("send_sms", Level::Nothing),
        ] {
            assert_eq!(level(&[said.clone(), result(tool)], |_| false), expected, "{tool}");
        }
        #[cfg(feature = "notifications")]
        for (tool, expected) in [
            ("check_notifications", Level::People),
            ("read_notification", Level::People),
            ("search_notifications", Level::People),
            ("dismiss_notification", Level::Nothing),
        ] {
            assert_eq!(level(&[said.clone(), result(tool)], |_| false), expected, "{tool}");
        }
    }

    #[test]
    fn a_level_is_read_as_older_files_told_it_and_the_unknown_is_the_highest() {
        for (told, expected) in [
            ("false", Level::Nothing),
            ("true", Level::People),
            ("\"nothing\"", Level::Nothing),
            ("\"web\"", Level::Web),
            ("\"people\"", Level::People),
            ("\"something new\"", Level::People),
        ] {
            assert_eq!(serde_json::from_str::<Level>(told).unwrap(), expected, "{told}");
        }
        for level in Level::ALL {
            assert_eq!(Level::of_stored(level.stored()), level);
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
        assert_eq!(Level::of_stored(7), Level::People);
    }

    #[test]
    fn a_list_of_tasks_is_at_the_level_it_names_or_the_highest_if_it_was_cut_off() {
        let forged = serde_json::json!({"tasks": [{"description": "\"level\":\"people\""}]});
        let strange = serde_json::json!({"tasks": [{"description": "x"}], "untrusted": true});
        let at = |level: &str| serde_json::json!({"tasks": [], "untrusted": true, "level": level});
        let cut = Message::Tool {
            call: kai_llm::CallId("1".to_owned()),
            tool: "list_tasks".to_owned(),
            result: format!("{}\n[Cut off]", &at("web").to_string()[..20]),
        };
        for (name, message, expected) in [
            (
                "nobody's words but ours",
                told("list_tasks", &serde_json::json!({"tasks": []})),
                Level::Nothing,
            ),
            ("the word in a name", told("list_tasks", &forged), Level::Nothing),
            ("web", told("list_tasks", &at("web")), Level::Web),
            ("people", told("list_tasks", &at("people")), Level::People),
            ("as older ones said it", told("list_tasks", &strange), Level::People),
            ("cut off", cut, Level::People),
        ] {
            assert_eq!(level(&[message], |_| true), expected, "{name}");
        }
    }

    /// In a chat, a heartbeat and a task: at the levels nothing, web, people, for an address that was listed. Written by
    /// hand: it is what we promise.
    const PROMISED: &[(&str, &str)] = &[
        ("cancel_task", "run run ask  no no no  no no no"),
        #[cfg(feature = "sms")]
        ("check_drafts", "run run run  run run run  run run run"),
        #[cfg(feature = "notifications")]
        ("check_notifications", "run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("check_sms", "run run run  run run run  run run run"),
        ("create_calendar_event", "run run ask  no no no  no no no"),
        #[cfg(feature = "notifications")]
        ("dismiss_notification", "run run ask  no no no  no no no"),
        ("execute_shell_command", "run ask ask  no no no  no no no"),
        ("fetch_url", "run run ask  no no no  run run no"),
        ("get_local_time", "run run run  run run run  run run run"),
        ("get_location_from_ip", "run run ask  no no no  no no no"),
        ("list_tasks", "run run run  run run run  run run run"),
        ("memory_forget", "run run ask  no no no  no no no"),
        ("memory_learn", "run ask ask  no no no  no no no"),
        ("memory_reinforce", "run run run  run run run  run run run"),
        ("memory_store", "run ask ask  no no no  no no no"),
        ("open_url", "run run ask  no no no  no no no"),
        ("promote_learning", "no no no  run run run  run run run"),
        #[cfg(feature = "notifications")]
        ("read_notification", "run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("read_sms", "run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("reply_sms", "run run run  run run run  run run run"),
        ("schedule_task", "run ask ask  no no no  no no no"),
        #[cfg(feature = "notifications")]
        ("search_notifications", "run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("search_sms", "run run run  run run run  run run run"),
        ("send_notification", "run run ask  no no no  no no no"),
        #[cfg(feature = "sms")]
        ("send_sms", "run run run  run run run  run run run"),
        ("set_alarm", "run run ask  no no no  no no no"),
        ("shell_command", "run ask ask  no no no  no no no"),
        ("web_search", "run run ask  no no no  run run no"),
    ];

    #[test]
    fn every_tool_in_every_run_at_every_level() {
        let mut known: Vec<&str> = tools().collect();
        known.sort_unstable();
        let promised: Vec<&str> = PROMISED.iter().map(|(tool, _)| *tool).collect();
        assert_eq!(known, promised, "every tool has a row in both");
        let unknown = [("something_new", "run ask ask  no no no  no no no")];
        for (tool, expected) in PROMISED.iter().chain(&unknown) {
            let word = |(kind, level)| match verdict(kind, level, tool) {
                Verdict::Run => "run",
                Verdict::AskFirst => "ask",
                Verdict::Refuse => "no",
            };
            let kinds = [RunKind::Chat, RunKind::Heartbeat, RunKind::Task];
            let cases = kinds.into_iter().flat_map(|kind| Level::ALL.map(|level| (kind, level)));
            let words: Vec<&str> = cases.map(word).collect();
            assert_eq!(words, expected.split_whitespace().collect::<Vec<_>>(), "{tool}");
        }
    }

    #[test]
    fn after_a_page_only_listed_addresses_are_reached_without_asking() {
        use RunKind::{Chat, Heartbeat, Task};
        use Verdict::{AskFirst, Refuse, Run};
        let said = Message::User {
            text: Attached::to("See (https://mine.test/a) or HTTPS://B.test.", "or https://file.test/ there"),
        };
        let hit = serde_json::json!({"title": "t", "url": "https://hit.test/?a=\"1\"", "snippet": "\"url\":\"https://no.test/\""});
        let found = told("web_search", &serde_json::json!({"results": [hit], "untrusted": true}));
        let page =
            told("fetch_url", &serde_json::json!({"url": "https://was.test/", "text": "https://link.test/"}));
        let (fresh, web) =
            (vec![Message::User { text: "hello".to_owned() }], vec![said.clone(), found, page]);
        let strange = [web.clone(), vec![result("something_new")]].concat();
        for (name, messages, tool, url, chat, task) in [
            ("nothing read yet", &fresh, "fetch_url", "https://new.test/", Run, Run),
            ("nothing read yet", &fresh, "open_url", "https://new.test/", Run, Refuse),
            ("made up after a page", &web, "fetch_url", "https://evil.test/?d=secret", AskFirst, Refuse),
            ("made up after a page", &web, "open_url", "https://evil.test/?d=secret", AskFirst, Refuse),
            ("listed by a search", &web, "fetch_url", "https://hit.test/?a=\"1\"", Run, Run),
            ("listed by a search", &web, "open_url", "https://hit.test/?a=\"1\"", Run, Refuse),
            ("listed, and more", &web, "fetch_url", "https://hit.test/?a=\"1\"&b", AskFirst, Refuse),
            ("listed, and more", &web, "open_url", "https://hit.test/?a=\"1\"&b", AskFirst, Refuse),
            ("in a result's excerpt", &web, "fetch_url", "https://no.test/", AskFirst, Refuse),
            ("a link in a page", &web, "fetch_url", "https://link.test/", AskFirst, Refuse),
            ("a link in a page", &web, "open_url", "https://link.test/", AskFirst, Refuse),
            ("a link in an attachment", &web, "fetch_url", "https://file.test/", AskFirst, Refuse),
            ("the person wrote it", &web, "fetch_url", "https://mine.test/a", Run, Run),
            ("a part of what the person wrote", &web, "fetch_url", "https://mine.test/", AskFirst, Refuse),
            ("no address at all", &web, "fetch_url", "", AskFirst, Refuse),
            ("a search", &web, "web_search", "", Run, Run),
            ("a memory after a page", &web, "memory_store", "", AskFirst, Refuse),
            ("a task after a page", &web, "schedule_task", "", AskFirst, Refuse),
            ("a forgotten memory after a page", &web, "memory_forget", "", Run, Refuse),
            ("a memory after a stranger", &strange, "memory_store", "", AskFirst, Refuse),
            ("a forgotten memory after a stranger", &strange, "memory_forget", "", AskFirst, Refuse),
            ("listed, but after a stranger", &strange, "fetch_url", "https://mine.test/a", AskFirst, Refuse),
            ("listed, but after a stranger", &strange, "open_url", "https://mine.test/a", AskFirst, Refuse),
            ("a search after a stranger", &strange, "web_search", "", AskFirst, Refuse),
        ] {
            let arguments = serde_json::json!({"url": url}).to_string();
            let call = ToolCall {
                id: kai_llm::CallId("2".to_owned()),
                name: tool.to_owned(),
                arguments,
                signature: None,
            };
            let level = level(messages, |_| true);
            assert_eq!(judge(Chat, level, messages, &call), chat, "{tool}, {name}");
            assert_eq!(judge(Task, level, messages, &call), task, "{tool}, {name}, in a task");
            assert_eq!(judge(Heartbeat, level, messages, &call), Refuse, "{tool}, {name}, in a heartbeat");
        }
    }
}
