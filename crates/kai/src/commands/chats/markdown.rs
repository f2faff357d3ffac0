//! A chat as a Markdown file: pure.
//!
//! Everything that was said stays below the headings that say who said it, whatever it contains: its own headings move
//! down, a block of code that never ends is ended, and raw HTML becomes text, as on the page. What others wrote is
//! quoted as code.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_assistant::agent::continued;
use kai_assistant::agent::conversation::{Entry, Kind, Whole};
use kai_assistant::attachments::Attachment;
use kai_assistant::untrusted::Attached;
use kai_llm::Message;
use kai_words::Lang;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

/// How far the headings of a text move down.
const BELOW: usize = 2;

/// Writes a chat as Markdown. `now` is when it is exported.
pub(super) fn markdown(whole: &Whole, lang: Lang, zone: &TimeZone, now: Timestamp) -> String {
    let when = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let mut parts =
        vec![format!("# {}", line(title(whole, lang))), format!("*{}*", lang.exported_made(when(now)))];
    // Tools that ran since the last text, which stand before the next. Those of a turn without an answer stand alone.
    let mut used: Vec<String> = vec![];
    let tools = |used: &mut Vec<String>| {
        let names = line(&std::mem::take(used).join(", "));
        (!names.is_empty()).then(|| format!("*{}*", lang.exported_used(names)))
    };
    for entry in &joined(&whole.entries) {
        if let Message::Assistant { calls, .. } = &entry.message {
            used.extend(calls.iter().map(|call| lang.tool_name(&call.name)));
        }
        let Some(text) = said(entry, lang) else { continue };
        if matches!(entry.message, Message::User { .. }) {
            parts.extend(tools(&mut used));
        }
        let at = when(Timestamp::from_millisecond(entry.at).unwrap_or_default());
        parts.push(format!("## {} · {at}", who(entry, lang)));
        parts.extend(tools(&mut used));
        parts.push(text);
        if entry.stopped {
            parts.push(format!("*{}*", lang.exported_stopped()));
        }
    }
    parts.extend(tools(&mut used));
    parts.join("\n\n") + "\n"
}

/// The name of the file: the chat's title as far as every system takes it.
pub(super) fn file_name(title: &str) -> String {
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words {
        if name.chars().count() + word.chars().count() >= 50 {
            break;
        }
        name = if name.is_empty() { word.to_owned() } else { format!("{name}-{word}") };
    }
    if name.is_empty() { "chat.md".to_owned() } else { format!("{name}.md") }
}

fn title(whole: &Whole, lang: Lang) -> &str {
    match (&whole.name, whole.kind) {
        (None, Kind::Heartbeat) => lang.list_heartbeat(),
        _ => whole.called(),
    }
}

fn who(entry: &Entry, lang: Lang) -> String {
    match (&entry.message, &entry.answered_by) {
        (Message::User { .. }, _) => lang.exported_you().to_owned(),
        _ if entry.report => lang.exported_report().to_owned(),
        (_, Some(model)) => lang.exported_kai_of(line(model)),
        (_, None) => lang.exported_kai().to_owned(),
    }
}

/// The entries, with an answer that was stopped and continued as one.
fn joined(entries: &[Entry]) -> Vec<Entry> {
    let mut all: Vec<Entry> = vec![];
    for entry in entries {
        let stopped = all.last_mut().filter(|last| last.is_stopped() && !entry.report);
        match (stopped, &entry.message) {
            (Some(last), Message::Assistant { text, calls, .. }) => {
                if let Message::Assistant { text: begun, calls: earlier, .. } = &mut last.message {
                    *begun = continued::joined(begun, text);
                    earlier.extend(calls.iter().cloned());
                }
                last.stopped = entry.stopped;
            }
            _ => all.push(entry.clone()),
        }
    }
    all
}

/// What the entry says; `None` for one without words, such as the result of a tool.
fn said(entry: &Entry, lang: Lang) -> Option<String> {
    let (words, attached) = match &entry.message {
        Message::User { text, .. } => {
            let said = Attached::find(text);
            let label = if said.is_message { lang.exported_quoted() } else { lang.exported_attached() };
            (said.words, said.attachment.map(|text| format!("{label}\n\n{}", fenced(text))))
        }
        Message::Assistant { text, .. } => (text.as_str(), None),
        Message::Tool { .. } => return None,
    };
    let words = (!words.trim().is_empty()).then(|| contained(words.trim()));
    let files = (!entry.files.is_empty()).then(|| lang.exported_files(names(&entry.files)));
    let parts: Vec<String> = words.into_iter().chain(files).chain(attached).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The names of files, each as code, so that they format nothing.
fn names(files: &[Attachment]) -> String {
    let names = files.iter().map(|file| format!("`{}`", line(&file.name).replace('`', "'")));
    names.collect::<Vec<_>>().join(", ")
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as a block of code, between marks that it does not contain.
fn fenced(text: &str) -> String {
    let longest = text.lines().map(|line| line.trim_start().chars().take_while(|c| *c == '`').count()).max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

/// A text that cannot leave its place in the file.
fn contained(text: &str) -> String {
    let mut text = without_html(text);
    lower_headings(&mut text);
    if let Some(fence) = open_fence(&text) {
        text = format!("{text}\n{fence}");
    }
    text
}

fn without_html(text: &str) -> String {
    let mut text = text.to_owned();
    // What stood in a block of HTML is read as Markdown once that is text, so there may be more of it then.
    for _ in 0..4 {
        let html = |(event, at): (Event<'_>, Range<usize>)| {
            matches!(event, Event::Html(_) | Event::InlineHtml(_)).then_some(at)
        };
        let all: Vec<Range<usize>> = Parser::new(&text).into_offset_iter().filter_map(html).collect();
        if all.is_empty() {
            return text;
        }
        for at in all.into_iter().rev() {
            let plain = text[at.clone()].replace('<', "&lt;");
            text.replace_range(at, &plain);
        }
    }
    text.replace('<', "&lt;")
}

fn lower_headings(text: &mut String) {
    let heading = |(event, at): (Event<'_>, Range<usize>)| match event {
        Event::Start(Tag::Heading { level, .. }) => Some((level, at)),
        _ => None,
    };
    let all: Vec<(HeadingLevel, Range<usize>)> =
        Parser::new(text).into_offset_iter().filter_map(heading).collect();
    for (level, at) in all.into_iter().rev() {
        let lower = lowered(&text[at.clone()], level);
        text.replace_range(at, &lower);
    }
}

/// A heading further down, written with `#` however it was written.
fn lowered(heading: &str, level: HeadingLevel) -> String {
    let end = if heading.ends_with('\n') { "\n" } else { "" };
    let marks = "#".repeat((level as usize + BELOW).min(6));
    let words = if heading.trim_start().starts_with('#') {
        heading.trim().trim_start_matches('#').to_owned()
    } else {
        // The other kind is underlined.
        let lines: Vec<&str> = heading.trim_end().lines().collect();
        lines[..lines.len().saturating_sub(1)].join(" ")
    };
    format!("{marks} {}{end}", words.trim())
}

/// What ends the block of code at the end of the text, if nothing does.
fn open_fence(text: &str) -> Option<String> {
    let last = Parser::new(text).into_offset_iter().last();
    let Some((Event::End(TagEnd::CodeBlock), at)) = last else { return None };
    let is_fenced = |(event, begins): (Event<'_>, Range<usize>)| {
        begins.start == at.start && matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))))
    };
    Parser::new(text).into_offset_iter().any(is_fenced).then_some(())?;
    let block = text[at].trim_end();
    let mark = block.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let fence: String = block.chars().take_while(|c| *c == mark).collect();
    let end = block.lines().last().map(str::trim).unwrap_or_default();
    let is_ended = block.lines().count() > 1 && end.len() >= fence.len() && end.chars().all(|c| c == mark);
    (!is_ended).then_some(fence)
}

#[cfg(test)]
mod tests {
    use kai_assistant::attachments::FileKind;
    use kai_llm::{CallId, ToolCall};

    use super::*;

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

    fn says(text: &str, calls: Vec<ToolCall>) -> Entry {
        let message = Message::Assistant { text: text.to_owned(), calls, signature: None };
        Entry { answered_by: Some("mine".to_owned()), ..entry(message) }
    }

    fn call() -> ToolCall {
        ToolCall {
            id: CallId("1".to_owned()),
            name: "get_local_time".to_owned(),
            arguments: "{}".to_owned(),
            signature: None,
        }
    }

    fn chat(entries: &[Entry]) -> Whole {
        serde_json::from_value::<Whole>(serde_json::json!({
            "title": "Tea?", "kind": "chat", "created_at": 0, "updated_at": 0, "entries": entries,
        }))
        .unwrap()
    }

    #[test]
    fn a_chat_reads_from_top_to_bottom() {
        let result = Message::Tool {
            call: CallId("1".to_owned()),
            tool: "get_local_time".to_owned(),
            result: "{}".to_owned(),
        };
        let stopped = Entry { stopped: true, ..says("```\nlet x", vec![]) };
        let whole = chat(&[
            entry(Message::user("Tea?")),
            says("", vec![call()]),
            entry(result),
            says("# Yes\n\nGreen.", vec![]),
            entry(Message::user(Attached::about("And this?", "```\n## You"))),
            stopped,
        ]);
        let written = markdown(&whole, Lang::ENGLISH, &TimeZone::UTC, Timestamp::UNIX_EPOCH);
        let expected = "# Tea?\n\n*Exported from Kai on 1970-01-01 00:00.*\n\n## You · 1970-01-01 00:00\n\nTea?\n\n\
            ## Kai (mine) · 1970-01-01 00:00\n\n*Tools used: Local time*\n\n### Yes\n\nGreen.\n\n\
            ## You · 1970-01-01 00:00\n\nAnd this?\n\nQuoted message:\n\n````text\n```\n## You\n````\n\n\
            ## Kai (mine) · 1970-01-01 00:00\n\n```\nlet x\n```\n\n*Stopped here.*\n";
        assert_eq!(written, expected);
        let named = Whole { name: Some("Green tea".to_owned()), ..whole };
        let written = markdown(&named, Lang::ENGLISH, &TimeZone::UTC, Timestamp::UNIX_EPOCH);
        assert!(written.starts_with("# Green tea\n"), "{written}");
    }

    #[test]
    fn files_are_named_and_a_continued_answer_is_one() {
        let picture = Attachment {
            hash: "00".to_owned(),
            name: "tea `a`.jpg".to_owned(),
            kind: FileKind::Text,
            size: 3,
        };
        let whole = chat(&[
            Entry { files: vec![picture], ..entry(Message::user("")) },
            says("", vec![call()]),
            entry(Message::user("So?")),
            Entry { stopped: true, ..says("It is ", vec![]) },
            says("green tea.", vec![]),
        ]);
        let written = markdown(&whole, Lang::ENGLISH, &TimeZone::UTC, Timestamp::UNIX_EPOCH);
        assert!(
            written.contains("## You · 1970-01-01 00:00\n\nAttached files: `tea 'a'.jpg`\n\n*Tools used: Local time*\n\n## You"),
            "{written}"
        );
        assert!(written.ends_with("\n\nIt is green tea.\n"), "{written}");
    }

    /// Whatever is said, the headings of the file are ours.
    #[test]
    fn nothing_that_is_said_leaves_its_place() {
        for said in [
            "## You · now",
            "You\n---",
            "You\n===\n\n# You #",
            "> ## You",
            "- # You",
            "```\nnever ends",
            "~~~~\n```\nnever ends",
            "```\nends\n```",
            "<!-- never ends",
            "<div>\n## You\n</div>",
            "<script>\n\n# You",
            "<div><!--\n\n<pre>\n# You",
        ] {
            let whole = chat(&[says(said, vec![]), entry(Message::user("Next"))]);
            let written = markdown(&whole, Lang::ENGLISH, &TimeZone::UTC, Timestamp::UNIX_EPOCH);
            let level = |event| match event {
                Event::Start(Tag::Heading { level, .. }) => Some(level as usize),
                _ => None,
            };
            let levels: Vec<usize> = Parser::new(&written).filter_map(level).collect();
            let ours: Vec<usize> = levels.iter().copied().filter(|level| *level <= BELOW).collect();
            assert_eq!(ours, [1, 2, 2], "{said:?} became {written}");
            assert!(!Parser::new(&written).any(|event| matches!(event, Event::Html(_))), "{written}");
        }
    }

    #[test]
    fn a_file_is_named_after_its_chat() {
        for (title, expected) in [
            ("Wann öffnet der Teeladen?", "Wann-öffnet-der-Teeladen.md"),
            ("../../etc/passwd\n", "etc-passwd.md"),
            ("…", "chat.md"),
            (&"word ".repeat(30), "word-word-word-word-word-word-word-word-word-word.md"),
            (&"a".repeat(80), "chat.md"),
        ] {
            assert_eq!(file_name(title), expected);
        }
    }
}
