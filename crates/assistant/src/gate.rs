//! The one gate that every tool call passes: who runs, what the request holds, which tool.
//!
//! A stranger's text must not be able to make Kai speak to the outside. So a run that nobody watches is offered
//! a short list, and a chat that has read strangers' text asks the person before anything that could carry
//! something out or plant something for later.

use kai_llm::Message;

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

/// Has anything in this request come from SMS, notifications, mail or MCP?
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
    /// Changes what Kai will believe or do later.
    Plants,
    /// Takes away something of the person's; only where a person is there.
    Removes,
    /// Shows or keeps something on the person's own device; only where a person is there.
    Device,
    /// Speaks to the outside, or runs something.
    Outward,
}

const TABLE: &[(&str, Reach)] = &[
    ("create_calendar_event", Reach::Device),
    ("execute_shell_command", Reach::Outward),
    ("get_local_time", Reach::Looks),
    ("memory_forget", Reach::Removes),
    ("memory_learn", Reach::Plants),
    // It only counts, so a run that nobody watches may do it too.
    ("memory_reinforce", Reach::Looks),
    ("memory_store", Reach::Plants),
    ("open_url", Reach::Outward),
    ("send_notification", Reach::Device),
    ("set_alarm", Reach::Device),
    ("shell_command", Reach::Outward),
];

/// May `tool` run now?
pub fn verdict(kind: RunKind, taint: Taint, tool: &str) -> Verdict {
    let reach = TABLE.iter().find(|(name, _)| *name == tool).map_or(Reach::Outward, |(_, reach)| *reach);
    match (kind, reach) {
        (_, Reach::Looks) | (RunKind::Chat, Reach::Removes | Reach::Device) => Verdict::Run,
        (RunKind::Heartbeat | RunKind::Task, _) => Verdict::Refuse,
        (RunKind::Chat, Reach::Plants | Reach::Outward) if taint == Taint::Tainted => Verdict::AskFirst,
        (RunKind::Chat, Reach::Plants | Reach::Outward) => Verdict::Run,
    }
}

/// Does anything in the conversation come from strangers? A result of a tool that the table does not know counts
/// as theirs; a name that a model made up (`exists` says no) brought nothing in.
pub fn taint(messages: &[Message], exists: impl Fn(&str) -> bool) -> Taint {
    let known = |tool: &str| TABLE.iter().any(|(name, _)| *name == tool);
    let strange =
        |message: &Message| matches!(message, Message::Tool { tool, .. } if !known(tool) && exists(tool));
    if messages.iter().any(strange) { Taint::Tainted } else { Taint::Clean }
}

/// Is the tool offered to a model in this kind of run?
pub fn offered(kind: RunKind, tool: &str) -> bool {
    verdict(kind, Taint::Tainted, tool) != Verdict::Refuse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_unknown_tool_brought_in_taints_the_conversation() {
        let result = |tool: &str| Message::Tool {
            call: kai_llm::CallId("1".to_owned()),
            tool: tool.to_owned(),
            result: "{}".to_owned(),
        };
        let said = Message::User { text: "hello".to_owned() };
        let there = |_: &str| true;
        assert_eq!(taint(&[said.clone(), result("get_local_time")], there), Taint::Clean);
        assert_eq!(taint(&[said.clone(), result("made_up")], |_| false), Taint::Clean);
        assert_eq!(taint(&[said, result("get_local_time"), result("something_new")], there), Taint::Tainted);
    }

    #[test]
    fn every_tool_in_every_run_clean_and_tainted() {
        use RunKind::{Chat, Heartbeat, Task};
        use Taint::{Clean, Tainted};
        use Verdict::{AskFirst, Refuse, Run};
        for (tool, kind, clean, tainted) in [
            ("get_local_time", Chat, Run, Run),
            ("get_local_time", Heartbeat, Run, Run),
            ("get_local_time", Task, Run, Run),
            ("memory_store", Chat, Run, AskFirst),
            ("memory_store", Heartbeat, Refuse, Refuse),
            ("memory_store", Task, Refuse, Refuse),
            ("memory_forget", Chat, Run, Run),
            ("memory_forget", Heartbeat, Refuse, Refuse),
            ("memory_forget", Task, Refuse, Refuse),
            ("memory_learn", Chat, Run, AskFirst),
            ("memory_learn", Heartbeat, Refuse, Refuse),
            ("memory_reinforce", Chat, Run, Run),
            ("memory_reinforce", Heartbeat, Run, Run),
            ("memory_reinforce", Task, Run, Run),
            ("open_url", Chat, Run, AskFirst),
            ("open_url", Heartbeat, Refuse, Refuse),
            ("open_url", Task, Refuse, Refuse),
            ("shell_command", Chat, Run, AskFirst),
            ("shell_command", Heartbeat, Refuse, Refuse),
            ("shell_command", Task, Refuse, Refuse),
            ("execute_shell_command", Chat, Run, AskFirst),
            ("execute_shell_command", Heartbeat, Refuse, Refuse),
            ("execute_shell_command", Task, Refuse, Refuse),
            ("send_notification", Chat, Run, Run),
            ("send_notification", Heartbeat, Refuse, Refuse),
            ("send_notification", Task, Refuse, Refuse),
            ("create_calendar_event", Chat, Run, Run),
            ("create_calendar_event", Heartbeat, Refuse, Refuse),
            ("create_calendar_event", Task, Refuse, Refuse),
            ("set_alarm", Chat, Run, Run),
            ("set_alarm", Heartbeat, Refuse, Refuse),
            ("set_alarm", Task, Refuse, Refuse),
            ("something_new", Chat, Run, AskFirst),
            ("something_new", Heartbeat, Refuse, Refuse),
        ] {
            assert_eq!(verdict(kind, Clean, tool), clean, "{tool} in {kind:?}");
            assert_eq!(verdict(kind, Tainted, tool), tainted, "{tool} in {kind:?}, tainted");
        }
    }
}
