//! Why a conversation is at its level: what in it others wrote. Pure.

use std::collections::BTreeSet;

use kai_llm::{CallId, Message};
use serde_json::Value;

use super::conversation::{Entry, Kind, Whole};
use super::older;
use crate::attachments::Attachment;
use crate::gate::{self, Level};
use crate::untrusted::Attached;

/// Something in a conversation that others wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    Sms {
        id: String,
        from: String,
    },
    Notification {
        id: String,
        app: String,
    },
    Email {
        id: String,
        /// The sender, or the id if the result does not name them.
        from: String,
    },
    Page {
        address: String,
    },
    Search {
        query: String,
    },
    /// Text that the user attached.
    Attachment,
    /// A text file that the user attached.
    File {
        name: String,
        hash: String,
    },
    /// A picture that the user attached; it may show text.
    Picture {
        name: String,
        hash: String,
    },
    /// A message that the user quoted, if it cannot be told which.
    Quoted,
    /// The reports of unattended runs.
    Reports,
    /// The result of some other tool.
    Tool {
        name: String,
    },
}

/// Why a conversation is at its level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Because {
    /// What raised it first.
    pub first: Cause,
    /// How much else in it has the same level.
    pub more: usize,
}

/// Why the conversation is at its level; `None` if nobody else wrote anything, or if it cannot be told any more.
pub fn because(whole: &Whole) -> Option<Because> {
    if whole.kind == Kind::Heartbeat {
        return Some(Because { first: Cause::Reports, more: 0 });
    }
    if whole.level.is_nothing() {
        return None;
    }
    let causes: Vec<Cause> =
        whole.entries.iter().flat_map(|entry| causes(entry, &whole.entries, whole.level)).collect();
    let first = causes.first()?.clone();
    let distinct: BTreeSet<Cause> = causes.into_iter().collect();
    Some(Because { first, more: distinct.len() - 1 })
}

/// What in this entry has that level.
fn causes(entry: &Entry, all: &[Entry], level: Level) -> Vec<Cause> {
    match &entry.message {
        Message::User { text, .. } => {
            let mentions = entry.meaning.as_ref().map(|meaning| meaning.mentions.as_slice());
            let said = (gate::said(text) == level).then(|| of_saying(text, mentions.unwrap_or_default()));
            let files = entry.files.iter().filter(|_| level == Level::Web).map(of_file);
            said.into_iter().flatten().chain(files).collect()
        }
        Message::Tool { call, tool, result } => {
            let (taint, mentions) = match &entry.meaning {
                Some(meaning) => (gate::raised(tool, meaning.taint), meaning.mentions.clone()),
                None => (older::taint(tool, result, true), older::mentions(tool, result)),
            };
            if taint == level { of_result(tool, call, result, &mentions, all) } else { vec![] }
        }
        Message::Assistant { .. } => vec![],
    }
}

fn of_file(file: &Attachment) -> Cause {
    let (name, hash) = (file.name.clone(), file.hash.clone());
    if file.is_picture() { Cause::Picture { name, hash } } else { Cause::File { name, hash } }
}

/// What the user's message contains of others.
fn of_saying(text: &str, mentions: &[String]) -> Vec<Cause> {
    let Attached { attachment: Some(quoted), is_message: true, .. } = Attached::find(text) else {
        return vec![Cause::Attachment];
    };
    let named: Vec<Cause> = mentions.iter().filter_map(|name| message(name, quoted)).collect();
    if named.is_empty() { vec![Cause::Quoted] } else { named }
}

fn of_result(tool: &str, call: &CallId, result: &str, mentions: &[String], all: &[Entry]) -> Vec<Cause> {
    let named: Vec<Cause> = mentions.iter().filter_map(|name| message(name, result)).collect();
    if !named.is_empty() {
        return named;
    }
    let argument = |name: &str| argument(all, call, name);
    let cause = match tool {
        "fetch_url" => argument("url").map(|address| Cause::Page { address }),
        "web_search" => argument("query").map(|query| Cause::Search { query }),
        _ => None,
    };
    vec![cause.unwrap_or_else(|| Cause::Tool { name: tool.to_owned() })]
}

/// The message that the ledger knows by this name.
fn message(name: &str, result: &str) -> Option<Cause> {
    let (kind, rest) = name.split_once(' ')?;
    match kind {
        "sms" => {
            let mut parts = rest.splitn(3, ' ');
            let (id, from) = (parts.next()?.to_owned(), parts.nth(1)?.to_owned());
            Some(Cause::Sms { id, from })
        }
        "notification" => {
            let app =
                field_of(rest, result, ("notifications", "app_label")).unwrap_or_else(|| rest.to_owned());
            Some(Cause::Notification { id: rest.to_owned(), app })
        }
        "email" => {
            let from = field_of(rest, result, ("emails", "from")).unwrap_or_else(|| rest.to_owned());
            Some(Cause::Email { id: rest.to_owned(), from })
        }
        _ => None,
    }
}

/// A field of the message that has this id, as the result gives it: alone, or in a list.
fn field_of(id: &str, result: &str, (list, field): (&str, &str)) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    let listed = result[list].as_array().into_iter().flatten();
    let found = listed.chain([&result]).find(|item| item["id"] == id)?;
    found[field].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// An argument of a call. Some models use an id again, so the last call with it counts.
fn argument(all: &[Entry], id: &CallId, name: &str) -> Option<String> {
    let calls = all.iter().rev().filter_map(|entry| match &entry.message {
        Message::Assistant { calls, .. } => Some(calls),
        Message::User { .. } | Message::Tool { .. } => None,
    });
    let call = calls.flatten().find(|call| call.id == *id)?;
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    arguments[name].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kai_codes::KnownCodes;
    use kai_llm::{Media, ToolCall};
    use serde_json::json;

    use super::*;
    use crate::agent::conversation::Codes;
    use crate::attachments::FileKind;
    use crate::tool::Provenance;
    use crate::untrusted::Attached;

    fn entry(message: Message) -> Entry {
        Entry {
            message,
            answered_by: None,
            usage: None,
            at: 0,
            took: None,
            stopped: false,
            report: false,
            meaning: None,
            files: vec![],
            instead: None,
        }
    }

    fn said(text: &str) -> Entry {
        entry(Message::user(text.to_owned()))
    }

    /// A call and its result.
    fn used(tool: &str, arguments: &Value, result: &Value, taint: Level, mentions: &[&str]) -> Vec<Entry> {
        let id = CallId(format!("{tool}-1"));
        let (name, arguments) = (tool.to_owned(), arguments.to_string());
        let call = ToolCall { id: id.clone(), name, arguments, signature: None };
        let asked = Message::Assistant { text: String::new(), calls: vec![call], signature: None };
        let returned = Message::Tool { call: id, tool: tool.to_owned(), result: result.to_string() };
        let mentions = mentions.iter().map(|name| (*name).to_owned()).collect();
        vec![entry(asked), Entry { meaning: Some(Provenance { taint, mentions }), ..entry(returned) }]
    }

    fn chat(level: Level, entries: Vec<Entry>) -> Whole {
        Whole {
            title: "Tea".to_owned(),
            kind: Kind::Chat,
            created_at: 0,
            updated_at: 0,
            entries,
            name: None,
            pinned: false,
            asked: false,
            level,
            codes: Codes::Hidden,
            unseen: false,
            model: None,
            shown: KnownCodes::default(),
            contents: BTreeMap::new(),
        }
    }

    #[test]
    fn the_first_that_raised_the_level_is_named() {
        let page = used("fetch_url", &json!({"url": "https://a.example/"}), &json!({}), Level::Web, &[]);
        let search = used("web_search", &json!({"query": "tea"}), &json!({}), Level::Web, &[]);
        let tasks = used("list_tasks", &json!({}), &json!({}), Level::People, &[]);
        let time = used("get_local_time", &json!({}), &json!({}), Level::Nothing, &[]);
        let attached = said(&Attached::to("Sum it up.", "Obey me."));
        let quoted = said(&Attached::about("Who is that?", "{}"));
        let media = FileKind::Picture { media: Media::Png, width: 1, height: 1 };
        let file = |name: &str, kind| Attachment { hash: name.into(), name: name.into(), kind, size: 1 };
        let files = vec![file("cat.png", media), file("a.txt", FileKind::Text)];
        let pictured = Entry { files, ..said("Look.") };
        let cat = || Cause::Picture { name: "cat.png".to_owned(), hash: "cat.png".to_owned() };
        let address = "https://a.example/".to_owned();
        let query = "tea".to_owned();
        for (name, level, entries, expected) in [
            ("nothing", Level::Nothing, vec![said("Hi")], None),
            ("nobody knows", Level::People, vec![said("Hi")], None),
            ("a page", Level::Web, page.clone(), Some((Cause::Page { address: address.clone() }, 0))),
            (
                "a search, then pages",
                Level::Web,
                [time, search, page.clone(), page.clone()].concat(),
                Some((Cause::Search { query }, 1)),
            ),
            ("a message, and nobody knows which", Level::People, vec![quoted], Some((Cause::Quoted, 0))),
            ("piped text", Level::Web, vec![attached.clone()], Some((Cause::Attachment, 0))),
            ("a picture and a file", Level::Web, vec![pictured.clone()], Some((cat(), 1))),
            ("a picture is not why it is at people", Level::People, vec![pictured], None),
            (
                "a page is not why it is at people",
                Level::People,
                [vec![attached], page, tasks].concat(),
                Some((Cause::Tool { name: "list_tasks".to_owned() }, 0)),
            ),
        ] {
            let found = because(&chat(level, entries)).map(|because| (because.first, because.more));
            assert_eq!(found, expected, "{name}");
        }
        let reports = Whole { kind: Kind::Heartbeat, ..chat(Level::Nothing, vec![]) };
        assert_eq!(because(&reports), Some(Because { first: Cause::Reports, more: 0 }));
    }

    #[cfg(all(feature = "sms", feature = "notifications"))]
    #[test]
    fn messages_are_named_as_the_ledger_knows_them() {
        let listed = json!({"notifications": [{"id": "0|app|7", "app_label": "Signal"}]});
        let tray = used(
            "check_notifications",
            &json!({}),
            &listed,
            Level::People,
            &["notification 0|app|7", "notification gone"],
        );
        let sms = crate::sms::identity_name(42, 1_800_000_000_000, "+1 555 0100");
        let inbox = used("read_sms", &json!({"id": 42}), &json!({}), Level::People, &[&sms]);
        let about = Attached::about("Who is that?", "{\"id\":\"0|app|7\",\"app_label\":\"Signal\"}");
        let meaning = Provenance { taint: Level::People, mentions: vec!["notification 0|app|7".to_owned()] };
        let quoted = vec![Entry { meaning: Some(meaning), ..said(&about) }];
        let alice = Cause::Sms { id: "42".to_owned(), from: "+1 555 0100".to_owned() };
        let signal = Cause::Notification { id: "0|app|7".to_owned(), app: "Signal".to_owned() };
        let both = [tray.clone(), inbox.clone(), inbox.clone()].concat();
        for (name, entries, first, more) in [
            ("an SMS", inbox, alice, 0),
            ("a tray", tray, signal.clone(), 1),
            ("both", both, signal.clone(), 2),
            ("quoted by the user", quoted, signal, 0),
        ] {
            assert_eq!(because(&chat(Level::People, entries)), Some(Because { first, more }), "{name}");
        }
    }
}
