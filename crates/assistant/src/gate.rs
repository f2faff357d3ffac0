//! The one gate that every tool call passes: who runs, what the request holds, which tool.
//!
//! A stranger's text must not be able to make Kai speak to the outside. So a run that nobody watches is offered
//! a short list, and a chat that has read strangers' text asks the person before anything that could carry
//! something out or plant something for later.

use kai_llm::{Message, ToolCall};

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

/// Has anything in this request come from SMS or notifications?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taint {
    Clean,
    Tainted,
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
    /// Only tells too, but what strangers wrote: from then on the request is tainted.
    Reads,
    /// Only tells what Kai keeps, and says itself whether some of it came from strangers: then it is like [`Self::Reads`].
    Tells,
    /// Puts a draft in front of the person, whose tap is the click.
    #[cfg_attr(not(feature = "sms"), expect(dead_code, reason = "drafts are of the foss edition"))]
    Stages,
    /// Changes what Kai will believe or do later.
    Plants,
    /// Puts a proposal in front of the person; only the heartbeat and tasks look back so far.
    Proposes,
    /// Takes away something of the person's; only where a person is there.
    Removes,
    /// Shows or keeps something on the person's own device; only where a person is there.
    Device,
    /// Speaks to the outside, or runs something.
    Outward,
    /// Speaks to the outside too, but a task may use it as long as nothing of a stranger's is in its request.
    Web,
}

const TABLE: &[(&str, Reach)] = &[
    ("cancel_task", Reach::Removes),
    // Numbers and states, no stranger's text.
    #[cfg(feature = "sms")]
    ("check_drafts", Reach::Looks),
    #[cfg(feature = "sms")]
    ("check_sms", Reach::Reads),
    #[cfg(feature = "notifications")]
    ("check_notifications", Reach::Reads),
    ("create_calendar_event", Reach::Device),
    #[cfg(feature = "notifications")]
    ("dismiss_notification", Reach::Device),
    ("execute_shell_command", Reach::Outward),
    (FETCH, Reach::Web),
    ("get_local_time", Reach::Looks),
    ("get_location_from_ip", Reach::Outward),
    // Names of tasks that were made after reading strangers' text are strangers' text. A list without such a task
    // taints nothing, or whoever asked for it could not search the web any more without a click.
    ("list_tasks", Reach::Tells),
    ("memory_forget", Reach::Removes),
    ("memory_learn", Reach::Plants),
    // It only counts, so a run that nobody watches may do it too.
    ("memory_reinforce", Reach::Looks),
    ("memory_store", Reach::Plants),
    ("promote_learning", Reach::Proposes),
    ("open_url", Reach::Outward),
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
    ("send_notification", Reach::Device),
    #[cfg(feature = "sms")]
    ("send_sms", Reach::Stages),
    ("set_alarm", Reach::Device),
    ("shell_command", Reach::Outward),
    (SEARCH, Reach::Web),
];
const FETCH: &str = "fetch_url";
const SEARCH: &str = "web_search";

/// May this call run now, in a request with that taint and after what `messages` hold?
///
/// Web pages do not taint. But a page could ask for an address with something private written into it; so once a page
/// was read, only an address that a search listed, or that the person wrote, is fetched without asking. Links inside
/// pages do not count: a page can list one for every letter, and have a secret spelled.
pub fn judge(kind: RunKind, taint: Taint, messages: &[Message], call: &ToolCall) -> Verdict {
    let verdict = verdict(kind, taint, &call.name);
    if verdict != Verdict::Run || call.name != FETCH || !read_the_web(messages) || listed(messages, call) {
        return verdict;
    }
    if kind == RunKind::Chat { Verdict::AskFirst } else { Verdict::Refuse }
}

fn read_the_web(messages: &[Message]) -> bool {
    messages
        .iter()
        .any(|message| matches!(message, Message::Tool { tool, .. } if tool == FETCH || tool == SEARCH))
}

/// Does the call name an address exactly as a search result or the person wrote it?
fn listed(messages: &[Message], call: &ToolCall) -> bool {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let Some(url) = arguments.get("url").and_then(serde_json::Value::as_str) else { return false };
    // As the field stands in the result; inside a title or an excerpt its quotes would be escaped.
    let field = format!("\"url\":{}", serde_json::Value::from(url));
    messages.iter().any(|message| match message {
        Message::Tool { tool, result, .. } => tool == SEARCH && result.contains(&field),
        Message::User { text } => text
            .split_whitespace()
            .any(|word| word == url || word.trim_matches(|c| "<>()[]\"'.,;:!?".contains(c)) == url),
        Message::Assistant { .. } => false,
    })
}

/// May `tool` run now, whatever it is called with?
pub fn verdict(kind: RunKind, taint: Taint, tool: &str) -> Verdict {
    let reach = TABLE.iter().find(|(name, _)| *name == tool).map_or(Reach::Outward, |(_, reach)| *reach);
    match (kind, reach) {
        (_, Reach::Looks | Reach::Reads | Reach::Tells | Reach::Stages)
        | (RunKind::Chat, Reach::Removes | Reach::Device)
        | (RunKind::Heartbeat | RunKind::Task, Reach::Proposes) => Verdict::Run,
        (RunKind::Task, Reach::Web) if taint == Taint::Clean => Verdict::Run,
        (RunKind::Heartbeat | RunKind::Task, _) | (RunKind::Chat, Reach::Proposes) => Verdict::Refuse,
        (RunKind::Chat, _) if taint == Taint::Tainted => Verdict::AskFirst,
        (RunKind::Chat, _) => Verdict::Run,
    }
}

/// Every tool that has a row.
pub fn tools() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(tool, _)| *tool)
}

/// Does anything in the conversation come from those who can write to the person: SMS, notifications? Also
/// long after the tool was switched off. A result of a tool that the table does not know counts as theirs; a name that
/// a model made up (`exists` says no) brought nothing in. Web pages do not count; see [`judge`].
pub fn taint(messages: &[Message], exists: impl Fn(&str) -> bool) -> Taint {
    let strangers = |tool: &str, result: &str| match TABLE.iter().find(|(name, _)| *name == tool) {
        Some((_, Reach::Tells)) => says_untrusted(result),
        Some((_, reach)) => *reach == Reach::Reads && !told_nothing(result),
        None => exists(tool),
    };
    let strange =
        |message: &Message| matches!(message, Message::Tool { tool, result, .. } if strangers(tool, result));
    if messages.iter().any(strange) { Taint::Tainted } else { Taint::Clean }
}

/// A result that failed or lists nothing brought nothing in. Inside of a text the quotes would be escaped.
fn told_nothing(result: &str) -> bool {
    result.contains("\"success\":false") || result.contains("\"count\":0,")
}

/// Does a result say that strangers' text is in it? One that was cut off may have lost the word for it.
fn says_untrusted(result: &str) -> bool {
    let read = serde_json::from_str::<serde_json::Value>(result);
    read.map_or(true, |result| result.get("untrusted") == Some(&serde_json::Value::Bool(true)))
}

/// Is the tool offered to a model in this kind of run?
pub fn offered(kind: RunKind, taint: Taint, tool: &str) -> bool {
    verdict(kind, taint, tool) != Verdict::Refuse
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
    fn what_an_unknown_tool_brought_in_taints_the_conversation() {
        let said = Message::User { text: "hello".to_owned() };
        let there = |_: &str| true;
        assert_eq!(taint(&[said.clone(), result("get_local_time")], there), Taint::Clean);
        for web in ["web_search", "fetch_url", "get_location_from_ip"] {
            assert_eq!(taint(&[said.clone(), result(web)], there), Taint::Clean, "{web}");
        }
        assert_eq!(taint(&[said.clone(), result("made_up")], |_| false), Taint::Clean);
        assert_eq!(
            taint(&[said.clone(), result("get_local_time"), result("something_new")], there),
            Taint::Tainted
        );
        #[cfg(feature = "sms")]
        for (tool, expected) in [
            ("check_sms", Taint::Tainted),
            ("read_sms", Taint::Tainted),
            ("search_sms", Taint::Tainted),
            ("check_drafts", Taint::Clean),
            ("send_sms", Taint::Clean),
        ] {
            assert_eq!(taint(&[said.clone(), result(tool)], |_| false), expected, "{tool}");
        }
        #[cfg(feature = "notifications")]
        for (tool, expected) in [
            ("check_notifications", Taint::Tainted),
            ("read_notification", Taint::Tainted),
            ("search_notifications", Taint::Tainted),
            ("dismiss_notification", Taint::Clean),
        ] {
            assert_eq!(taint(&[said.clone(), result(tool)], |_| false), expected, "{tool}");
        }
    }

    #[test]
    fn a_list_of_tasks_taints_if_it_says_so_or_was_cut_off() {
        let forged = serde_json::json!({"tasks": [{"description": "\"untrusted\":true"}]});
        let strange = serde_json::json!({"tasks": [{"description": "x"}], "untrusted": true});
        let cut = Message::Tool {
            call: kai_llm::CallId("1".to_owned()),
            tool: "list_tasks".to_owned(),
            result: format!("{}\n[Cut off]", &strange.to_string()[..20]),
        };
        for (name, message, expected) in [
            ("nobody's words but ours", told("list_tasks", &serde_json::json!({"tasks": []})), Taint::Clean),
            ("the word in a name", told("list_tasks", &forged), Taint::Clean),
            ("it says so", told("list_tasks", &strange), Taint::Tainted),
            ("cut off", cut, Taint::Tainted),
        ] {
            assert_eq!(taint(&[message], |_| true), expected, "{name}");
        }
    }

    /// In a chat, a heartbeat and a task: clean, then tainted. Written by hand: it is what we promise.
    const PROMISED: &[(&str, &str)] = &[
        ("cancel_task", "run run  no no  no no"),
        #[cfg(feature = "sms")]
        ("check_drafts", "run run  run run  run run"),
        #[cfg(feature = "notifications")]
        ("check_notifications", "run run  run run  run run"),
        #[cfg(feature = "sms")]
        ("check_sms", "run run  run run  run run"),
        ("create_calendar_event", "run run  no no  no no"),
        #[cfg(feature = "notifications")]
        ("dismiss_notification", "run run  no no  no no"),
        ("execute_shell_command", "run ask  no no  no no"),
        ("fetch_url", "run ask  no no  run no"),
        ("get_local_time", "run run  run run  run run"),
        ("get_location_from_ip", "run ask  no no  no no"),
        ("list_tasks", "run run  run run  run run"),
        ("memory_forget", "run run  no no  no no"),
        ("memory_learn", "run ask  no no  no no"),
        ("memory_reinforce", "run run  run run  run run"),
        ("memory_store", "run ask  no no  no no"),
        ("open_url", "run ask  no no  no no"),
        ("promote_learning", "no no  run run  run run"),
        #[cfg(feature = "notifications")]
        ("read_notification", "run run  run run  run run"),
        #[cfg(feature = "sms")]
        ("read_sms", "run run  run run  run run"),
        #[cfg(feature = "sms")]
        ("reply_sms", "run run  run run  run run"),
        ("schedule_task", "run ask  no no  no no"),
        #[cfg(feature = "notifications")]
        ("search_notifications", "run run  run run  run run"),
        #[cfg(feature = "sms")]
        ("search_sms", "run run  run run  run run"),
        ("send_notification", "run run  no no  no no"),
        #[cfg(feature = "sms")]
        ("send_sms", "run run  run run  run run"),
        ("set_alarm", "run run  no no  no no"),
        ("shell_command", "run ask  no no  no no"),
        ("web_search", "run ask  no no  run no"),
    ];

    #[test]
    fn every_tool_in_every_run_clean_and_tainted() {
        let mut known: Vec<&str> = tools().collect();
        known.sort_unstable();
        let promised: Vec<&str> = PROMISED.iter().map(|(tool, _)| *tool).collect();
        assert_eq!(known, promised, "every tool has a row in both");
        let unknown = [("something_new", "run ask  no no  no no")];
        for (tool, expected) in PROMISED.iter().chain(&unknown) {
            let word = |(kind, taint)| match verdict(kind, taint, tool) {
                Verdict::Run => "run",
                Verdict::AskFirst => "ask",
                Verdict::Refuse => "no",
            };
            let kinds = [RunKind::Chat, RunKind::Heartbeat, RunKind::Task];
            let cases = kinds.into_iter().flat_map(|kind| [(kind, Taint::Clean), (kind, Taint::Tainted)]);
            let words: Vec<&str> = cases.map(word).collect();
            assert_eq!(words, expected.split_whitespace().collect::<Vec<_>>(), "{tool}");
        }
    }

    #[test]
    fn after_a_page_only_listed_addresses_are_fetched_without_asking() {
        use RunKind::{Chat, Heartbeat, Task};
        use Verdict::{AskFirst, Refuse, Run};
        let said = Message::User { text: "See (https://mine.test/a) or HTTPS://B.test.".to_owned() };
        let hit = serde_json::json!({"title": "t", "url": "https://hit.test/?a=\"1\"", "snippet": "\"url\":\"https://no.test/\""});
        let found = told("web_search", &serde_json::json!({"results": [hit], "untrusted": true}));
        let page =
            told("fetch_url", &serde_json::json!({"url": "https://was.test/", "text": "https://link.test/"}));
        let (fresh, web) = (vec![said.clone()], vec![said.clone(), found, page]);
        let strange = [web.clone(), vec![result("something_new")]].concat();
        for (name, messages, tool, url, chat, task) in [
            ("nothing read yet", &fresh, "fetch_url", "https://new.test/", Run, Run),
            ("made up after a page", &web, "fetch_url", "https://evil.test/?d=secret", AskFirst, Refuse),
            ("listed by a search", &web, "fetch_url", "https://hit.test/?a=\"1\"", Run, Run),
            ("listed, and more", &web, "fetch_url", "https://hit.test/?a=\"1\"&b", AskFirst, Refuse),
            ("in a result's excerpt", &web, "fetch_url", "https://no.test/", AskFirst, Refuse),
            ("a link in a page", &web, "fetch_url", "https://link.test/", AskFirst, Refuse),
            ("the person wrote it", &web, "fetch_url", "https://mine.test/a", Run, Run),
            ("a part of what the person wrote", &web, "fetch_url", "https://mine.test/", AskFirst, Refuse),
            ("no address at all", &web, "fetch_url", "", AskFirst, Refuse),
            ("a search", &web, "web_search", "", Run, Run),
            ("a memory", &web, "memory_store", "", Run, Refuse),
            ("a memory after a stranger", &strange, "memory_store", "", AskFirst, Refuse),
            ("listed, but after a stranger", &strange, "fetch_url", "https://mine.test/a", AskFirst, Refuse),
            ("a search after a stranger", &strange, "web_search", "", AskFirst, Refuse),
        ] {
            let arguments = serde_json::json!({"url": url}).to_string();
            let call = ToolCall {
                id: kai_llm::CallId("2".to_owned()),
                name: tool.to_owned(),
                arguments,
                signature: None,
            };
            let taint = taint(messages, |_| true);
            assert_eq!(judge(Chat, taint, messages, &call), chat, "{name}");
            assert_eq!(judge(Task, taint, messages, &call), task, "{name}, in a task");
            assert_eq!(judge(Heartbeat, taint, messages, &call), Refuse, "{name}, in a heartbeat");
        }
    }
}
