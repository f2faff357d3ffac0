//! `kai export`, `kai import` and `kai erase`: reads and writes the files and asks for confirmation.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kai_assistant::agent::conversation::ConversationId;
use kai_assistant::home::Home;
use kai_assistant::legible::folded_line;
use kai_assistant::transfer::{Export, Mode, Outcome, Piece, Section};
use rustix::fs::{FlockOperation, OFlags, flock};

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

/// Writes a new file that only its owner can read; never overwrites one. The file gets its name only when it is whole,
/// so whatever interrupts this leaves nothing half under that name. If a piece is missing, nothing is left at all.
fn write_new(file: &Path, pieces: impl IntoIterator<Item = Result<String, Failure>>) -> Result<(), Failure> {
    let failed = |e: io::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            Failure::failed(format!("{} already exists. Choose another file name.", file.display()))
        }
        _ => Failure::failed(format!("{} could not be written: {e}.", file.display())),
    };
    // Nobody should wait for a long export only to hear this.
    must_be_free(file).map_err(failed)?;
    remove_leftovers(file);
    let (mut open, part) = begin_part(file).map_err(failed)?;
    let written = pieces.into_iter().try_for_each(|piece| open.write_all(piece?.as_bytes()).map_err(failed));
    let written = written.and_then(|()| open.sync_all().map_err(failed));
    let written = written.and_then(|()| publish(&part, file).map_err(failed));
    written.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// How the name of a file ends that an export is still writing. It is so unusual because leftovers are deleted by it.
const PART: &str = ".kai-part";

/// Creates the file that an export grows in, beside its destination. No other export has the same name for it.
fn begin_part(file: &Path) -> io::Result<(File, PathBuf)> {
    let number = getrandom::u64().map_err(|e| io::Error::other(e.to_string()))?;
    let part = file.with_added_extension(format!("{number:016x}{PART}"));
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    // Tells other exports that this one is not over. Where nothing can be locked, they delete nothing.
    let _ = flock(&open, FlockOperation::NonBlockingLockExclusive);
    Ok((open, part))
}

/// Deletes what interrupted exports to this file left. It could also hit one that has begun in this instant and is not
/// locked yet, but of two exports to the same file one fails in any case.
fn remove_leftovers(file: &Path) {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().as_bytes();
    let is_part = |entry: &DirEntry| {
        let other = entry.file_name();
        let rest = other.as_bytes().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(b".") && rest.ends_with(PART.as_bytes()))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(is_part) {
        let left = entry.path();
        if is_abandoned(&left) {
            drop(fs::remove_file(&left));
        }
    }
}

/// Whether no export is writing this part any more.
fn is_abandoned(part: &Path) -> bool {
    let mut options = OpenOptions::new();
    // Follows no link, and does not wait at a pipe, that somebody put here.
    options.write(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    let opened = options.open(part);
    opened.is_ok_and(|part| flock(&part, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Gives a whole file its name, unless something else has that name by now.
fn publish(part: &Path, file: &Path) -> io::Result<()> {
    match fs::hard_link(part, file) {
        Ok(()) => {
            drop(fs::remove_file(part));
            Ok(())
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(e),
        Err(_) => rename_if_free(part, file),
    }
}

/// For file systems without hard links, and for Android, where apps may not make any. A rename overwrites, so a file that
/// somebody else puts there after we looked is lost.
fn rename_if_free(part: &Path, file: &Path) -> io::Result<()> {
    must_be_free(file)?;
    fs::rename(part, file)
}

fn must_be_free(file: &Path) -> io::Result<()> {
    match fs::symlink_metadata(file) {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
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

#[cfg(test)]
mod tests {
    use std::iter;
    use std::os::unix::fs::PermissionsExt;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;

    fn pieces<const N: usize>(texts: [&str; N]) -> [Result<String, Failure>; N] {
        texts.map(|text| Ok(text.to_owned()))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_interrupted_export_leaves_nothing_under_its_name_and_the_next_one_works() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kai.json");
        let others = ["kai.json.part", "other.json.1.kai-part"];
        for other in others {
            fs::write(folder.path().join(other), "").unwrap();
        }
        // Unwinding leaves what a kill leaves: the open file is closed, and nothing else is done.
        let killed = iter::once_with(|| -> Result<String, Failure> { resume_unwind(Box::new("killed")) });
        let killed = pieces(["{\"half\": "]).into_iter().chain(killed);
        assert!(catch_unwind(AssertUnwindSafe(|| write_new(&file, killed))).is_err());
        let left = names(folder.path());
        assert!(!left.contains(&"kai.json".to_owned()), "{left:?}");
        let part = left.iter().find(|name| name.starts_with("kai.json.") && name.ends_with(PART));
        let part = folder.path().join(part.expect("it was interrupted in the middle"));
        assert_eq!(fs::read_to_string(part).unwrap(), "{\"half\": ");

        write_new(&file, pieces(["{", "}"])).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["kai.json", others[0], others[1]], "only the leftover is deleted");
    }

    #[test]
    fn a_missing_piece_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kai.json");
        let half = [Ok("{".to_owned()), Err(Failure::failed("Kai is gone."))];
        let failure = write_new(&file, half).unwrap_err();
        assert_eq!(failure.message.to_string(), "Kai is gone.");
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    /// While one export waits for its second piece, another writes the same file from its beginning to its end.
    #[test]
    fn an_export_deletes_no_other_that_is_under_way_and_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kai.json");
        let meanwhile = || {
            write_new(&file, pieces(["second"])).unwrap();
            assert_eq!(names(folder.path()).len(), 2, "the first is still being written");
            Ok("first".to_owned())
        };
        let first = pieces(["the "]).into_iter().chain(iter::once_with(meanwhile));
        let failure = write_new(&file, first).unwrap_err();
        assert!(failure.message.to_string().contains("already exists"));
        assert_eq!(names(folder.path()), ["kai.json"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
    }

    #[test]
    fn without_hard_links_a_name_is_taken_only_if_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let [part, file] = ["part", "kai.json"].map(|name| folder.path().join(name));
        fs::write(&part, "new").unwrap();
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        let refused = rename_if_free(&part, &file).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "a link to nothing has the name too");
        fs::remove_file(&file).unwrap();
        rename_if_free(&part, &file).unwrap();
        assert_eq!(names(folder.path()), ["kai.json"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}
