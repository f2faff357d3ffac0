//! `kai export`, `kai import` and `kai erase`: reads and writes the files and asks for confirmation.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use kai_assistant::agent::conversation::ConversationId;
use kai_assistant::home::Home;
use kai_assistant::legible::folded_line;
use kai_assistant::transfer::{Export, Mode, Outcome, Piece, Section};

use super::asking::Cli;
use crate::call::chats::ChatFile;
use crate::call::{Call, ExportCall, ImportCall};
use crate::erase;
use crate::failure::{self, Failure};
use crate::home::ask_text;
use crate::terminal::{input, out};

pub(super) fn export(
    ask: &Cli,
    file: &Path,
    sections: Vec<String>,
    secrets: bool,
) -> Result<ExitCode, Failure> {
    let passphrase = if secrets { Some(new_passphrase()?) } else { None };
    let pieces =
        Pieces { ask, call: Some(ExportCall { sections: sections.clone(), passphrase, from: None }) };
    if file == Path::new("-") {
        for piece in pieces {
            out::text(&out::escaped(&piece?));
        }
        return Ok(ExitCode::SUCCESS);
    }
    write_new(file, pieces)?;
    let usual = || Section::ALL.map(|section| section.name().to_owned()).to_vec();
    let mut names = if sections.is_empty() { usual() } else { sections };
    names.sort_unstable();
    names.dedup();
    out::note(&format!(
        "The file is not encrypted: anyone who can open it can read your {}.",
        names.join(", ")
    ));
    let wrote = serde_json::json!({"file": file.display().to_string(), "sections": names});
    ask.print(&wrote, |_| {
        format!("Exported {} to {}.\n", names.join(", "), out::visible(&file.display().to_string()))
    });
    Ok(ExitCode::SUCCESS)
}

/// The pieces of an export, asked for one after the other.
struct Pieces<'a> {
    ask: &'a Cli,
    /// What is asked next.
    call: Option<ExportCall>,
}

impl Iterator for Pieces<'_> {
    type Item = Result<String, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let call = self.call.take()?;
        let piece = self.ask.caller.ask(Call::Export(call.clone()));
        Some(piece.map(|Piece { text, next }| {
            self.call = next.map(|next| ExportCall { from: Some(next), ..call });
            text
        }))
    }
}

/// `kai chats export`: prints a chat, or writes it into a new file.
pub(super) fn export_chat(ask: &Cli, id: ConversationId, file: Option<&Path>) -> Result<ExitCode, Failure> {
    let chat: ChatFile = ask.caller.ask(Call::ChatsExport { id })?;
    let Some(file) = file else {
        let shown = |line: &str| if out::has_person() { out::visible(line) } else { out::plain(line) };
        ask.print(&chat, |chat| chat.text.lines().map(|line| shown(line) + "\n").collect());
        return Ok(ExitCode::SUCCESS);
    };
    write_new(file, [Ok(chat.text.clone())])?;
    let path = file.display().to_string();
    let wrote = serde_json::json!({"id": id, "file": path});
    ask.print(&wrote, |_| format!("Exported chat {} to {}.\n", id.0, out::visible(&path)));
    Ok(ExitCode::SUCCESS)
}

/// Writes a new file that only its owner can read; never overwrites one. If a piece is missing, no file is left.
fn write_new(file: &Path, pieces: impl IntoIterator<Item = Result<String, Failure>>) -> Result<(), Failure> {
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::failed(format!("{} already exists. Choose another file name.", file.display()))
        }
        _ => Failure::failed(format!("{} could not be written: {e}.", file.display())),
    };
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
    let written = pieces.into_iter().try_for_each(|piece| open.write_all(piece?.as_bytes()).map_err(failed));
    let written = written.and_then(|()| open.sync_all().map_err(failed));
    written.inspect_err(|_| drop(fs::remove_file(file)))
}

fn new_passphrase() -> Result<String, Failure> {
    let nobody =
        || Failure::usage("Kai has to ask for a passphrase to encrypt the keys. Run this on a terminal.");
    let first = ask_text("Passphrase to encrypt the keys in the file: ").ok_or_else(nobody)?;
    let again = ask_text("Repeat the passphrase: ").ok_or_else(nobody)?;
    if first == again && !first.is_empty() {
        Ok(first)
    } else {
        Err(Failure::usage("The two passphrases do not match, or are empty. Nothing was exported."))
    }
}

/// The flags of `kai import`.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(super) struct How {
    pub(super) replace: bool,
    pub(super) preview: bool,
    pub(super) yes: bool,
    pub(super) no_secrets: bool,
}

pub(super) fn import(ask: &Cli, file: &Path, sections: &[String], how: How) -> Result<ExitCode, Failure> {
    let unread = |why| Failure::failed(failure::unread(file, &why));
    let text = fs::read_to_string(file).map_err(unread)?;
    let passphrase = passphrase_for(&text, how)?;
    let mode = if how.replace { Mode::Replace } else { Mode::Merge };
    let call = |preview| {
        let (text, sections, passphrase) = (text.clone(), sections.to_vec(), passphrase.clone());
        Call::Import(ImportCall { text, sections, mode, passphrase, preview })
    };
    let expected: Vec<Outcome> = ask.caller.ask(call(true))?;
    if how.preview {
        ask.print(&expected, |outcomes| WOULD.to_owned() + &describe_outcomes(outcomes));
        return Ok(ExitCode::SUCCESS);
    }
    if !how.yes {
        out::note((WOULD.to_owned() + &describe_outcomes(&expected)).trim_end());
        confirm("Import this? [y/N] ", "y")?;
    }
    let done: Vec<Outcome> = ask.caller.ask(call(false))?;
    ask.print(&done, |outcomes| describe_outcomes(outcomes));
    Ok(ExitCode::from(u8::from(done.iter().any(|outcome| outcome.problem.is_some()))))
}

fn passphrase_for(text: &str, how: How) -> Result<Option<String>, Failure> {
    let sealed = Export::parse(text).map_err(|e| Failure::failed(e.to_string()))?.secrets.is_some();
    if !sealed || how.no_secrets {
        return Ok(None);
    }
    let needed = || {
        Failure::failed(
            "The file contains encrypted keys, and Kai has to ask for their passphrase. Run this on a terminal, or \
             leave the keys out with --no-secrets.",
        )
    };
    ask_text("Passphrase for the keys in the file: ").ok_or_else(needed).map(Some)
}

const WOULD: &str = "Nothing is changed yet. This would happen:\n";

fn describe_outcomes(outcomes: &[Outcome]) -> String {
    let line = |outcome: &Outcome| {
        let Outcome { section, new, changed, same, removed, changes, skipped, problem } = outcome;
        let counts =
            format!("{section}: {new} added, {changed} overwritten, {removed} removed, {same} unchanged");
        let head = problem.as_ref().map_or(counts, |why| format!("{section}: not imported ({why})"));
        let head = folded_line(&head) + "\n";
        [head]
            .into_iter()
            .chain(named(changes, ""))
            .chain(named(skipped, "not imported: "))
            .collect::<String>()
    };
    match outcomes {
        [] => "The file contains nothing that Kai can import.\n".to_owned(),
        some => some.iter().map(line).collect(),
    }
}

/// How many changes per section are listed by name.
const NAMED: usize = 20;

fn named<'a>(all: &'a [String], before: &'a str) -> impl Iterator<Item = String> + 'a {
    let more = all.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("  {before}… and {more} more\n"));
    all.iter().take(NAMED).map(move |one| format!("  {before}{}\n", folded_line(one))).chain(more)
}

/// Asks on the terminal, and fails unless the answer is exactly `expected`.
fn confirm(question: &str, expected: &str) -> Result<(), Failure> {
    if !input::has_person() {
        return Err(Failure::usage("Kai has to ask you first. Run this on a terminal, or add --yes."));
    }
    drop(write!(std::io::stderr(), "{question}"));
    let mut typed = String::new();
    drop(std::io::stdin().read_line(&mut typed));
    if typed.trim() == expected { Ok(()) } else { Err(Failure::failed("Nothing was changed.")) }
}

pub(super) fn erase(home: &Home) -> Result<ExitCode, Failure> {
    let Some(_lock) = home.lock_daemon().map_err(|e| erase::failed(home, &e))? else {
        return Err(Failure::failed("Kai is running. Stop it first: kai stop"));
    };
    out::note(&format!(
        "This deletes everything Kai keeps in {}: chats, memories, settings, keys and the ledger. This \
         cannot be undone.",
        home.dir.display()
    ));
    if !input::has_person() {
        return Err(Failure::usage("Kai has to ask before it erases everything. Run this on a terminal."));
    }
    confirm(&format!("Type  {}  to confirm: ", erase::WORDS), erase::WORDS)?;
    erase::everything(home)?;
    out::line("Everything is erased.");
    Ok(ExitCode::SUCCESS)
}
