//! What the docs say: the table in docs/trust.md is made from the gate itself (`KAI_WRITE_DOCS=1 cargo test` writes it anew),
//! and the files that they name are there.

#![cfg(all(feature = "sms", feature = "notifications"))]
#![expect(clippy::disallowed_methods, reason = "who runs it says whether to write")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};

use kai_assistant::gate::{ForeignRights, Level, RunKind, Verdict, foreign, judge, tools, verdict};
use kai_llm::{CallId, ToolCall};

const BEGIN: &str = "<!-- the gate's table: written by tests/promises.rs -->\n";
const END: &str = "<!-- the end of the gate's table -->\n";

/// Every level in turn, each in a word, or in one where the word is the same.
fn cell(word: impl Fn(Level) -> &'static str) -> String {
    let words = Level::ALL.map(word);
    if words.iter().all(|word| *word == words[0]) { words[0].to_owned() } else { words.join(" · ") }
}

fn word(kind: RunKind, level: Level, tool: &str) -> &'static str {
    let call = ToolCall {
        id: CallId("1".to_owned()),
        name: tool.to_owned(),
        arguments: r#"{"url": "https://nobody.listed.test/"}"#.to_owned(),
        signature: None,
    };
    match (verdict(kind, level, tool), judge(kind, level, &[], &call)) {
        (Verdict::Run, Verdict::Run) => "yes",
        (Verdict::Run, Verdict::AskFirst) => "yes, **asks** if not listed",
        (Verdict::Run, Verdict::Refuse) => "yes, if listed",
        (Verdict::AskFirst, _) => "**asks**",
        (Verdict::Refuse, _) => "–",
    }
}

fn foreign_word(kind: RunKind, level: Level, rights: ForeignRights) -> &'static str {
    match foreign(kind, level, rights) {
        Verdict::Run => "yes",
        Verdict::AskFirst => "**asks**",
        Verdict::Refuse => "–",
    }
}

/// The kinds of tools of MCP servers, as the docs call them.
const FOREIGN: [(&str, ForeignRights); 3] = [
    ("tool of an MCP server", ForeignRights { asks: true, in_tasks: false }),
    ("one that only reads, or *don't ask*", ForeignRights { asks: false, in_tasks: false }),
    ("one that only reads, allowed for tasks", ForeignRights { asks: false, in_tasks: true }),
];

const KINDS: [RunKind; 4] = [RunKind::Chat, RunKind::Heartbeat, RunKind::Task, RunKind::Guest];

fn table() -> String {
    let mut names: Vec<&str> = tools().collect();
    names.sort_unstable();
    let row = |tool: &&str| {
        let cells = KINDS.map(|kind| cell(|level| word(kind, level, tool)));
        format!("| `{tool}` | {} |\n", cells.join(" | "))
    };
    let foreign_row = |(name, rights): (&str, ForeignRights)| {
        let cells = KINDS.map(|kind| cell(|level| foreign_word(kind, level, rights)));
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let rows: String = names.iter().map(row).chain(FOREIGN.map(foreign_row)).collect();
    format!(
        "| tool | in a chat | in a heartbeat | in a task | for another program |\n|---|---|---|---|---|\n{rows}"
    )
}

#[test]
fn the_table_in_the_docs_is_the_gates() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trust.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (written, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("KAI_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{head}{BEGIN}\n{}\n{END}{tail}", table())).unwrap();
        return;
    }
    assert_eq!(written.trim(), table().trim(), "run this test with KAI_WRITE_DOCS=1");
}

/// A file that a document names as its evidence is there.
#[test]
fn the_files_that_the_docs_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![];
    for part in ["words", "codes", "llm", "assistant", "bridges", "kai", "mutate"] {
        sources(&root.join("crates").join(part), &mut files);
    }
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages =
        ["README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page));
    let pages = pages.into_iter().chain(docs.filter(|path| path.extension().is_some_and(|it| it == "md")));
    let mut named = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let quoted = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| Path::new(word).extension().is_some_and(|it| it == "rs"));
        for name in quoted.filter(|name| !name.contains(['{', ' ', '*'])) {
            named += 1;
            let there = files.iter().any(|file| file.ends_with(name.trim_start_matches("crates/")));
            assert!(there, "{} names {name}, which is not there", page.display());
        }
    }
    assert!(named > 30, "only {named} names were found");
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, files);
        } else {
            files.push(path);
        }
    }
}
