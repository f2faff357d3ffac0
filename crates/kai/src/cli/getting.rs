//! `kai models get` and `kai models remove`: downloads with a progress line, and asks what becomes of a model's file.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use kai_assistant::agent::ApprovalRequest;
use kai_words::Lang;

use super::asking::Cli;
use super::{show, yes};
use crate::call::local::{Catalogue, FileDeleted, LocalCall, ModelFile, NewFile};
use crate::call::models::{ModelRemoved, ModelRow};
use crate::call::{Call, Event};
use crate::caller::{CANCELLED, Watcher};
use crate::commands::sizes::size;
use crate::failure::{self, Failure};
use crate::terminal::{input, out};

/// Lists what can be downloaded, or downloads one.
pub(super) fn get(ask: &Cli, name: Option<String>) -> Result<ExitCode, Failure> {
    let Some(name) = name else {
        return ask.show(Call::Local(LocalCall::Catalogue), |all: &Catalogue| show::local::catalogue(all));
    };
    let shows = io::stderr().is_terminal() && !cfg!(test);
    let watcher: Arc<dyn Watcher> = Arc::new(ProgressLine { shows });
    let got = ask.caller.line()?.call(Call::Local(LocalCall::Get { name }), &watcher);
    if shows {
        out::sign("");
    }
    let row: ModelRow = got.map_err(stopped)?;
    if !ask.json {
        out::note("Downloaded and checked. To test it: kai models test");
    }
    ask.print(&row, |row| show::models(std::slice::from_ref(row)));
    Ok(ExitCode::SUCCESS)
}

/// Ctrl-C stops the download, and what was received is kept.
fn stopped(failure: Failure) -> Failure {
    if failure.message.to_string() == CANCELLED {
        return Failure::failed("Stopped. The same command continues the download.");
    }
    failure
}

/// The progress of a download on one line.
struct ProgressLine {
    shows: bool,
}

impl Watcher for ProgressLine {
    fn sees(&self, event: &Event) {
        if let Event::Tool { why: Some(progress), .. } = event
            && self.shows
        {
            out::sign(&out::visible(progress));
        }
    }

    fn allows(&self, _: &ApprovalRequest) -> Option<bool> {
        None
    }
}

/// Adds a model that is a file on this machine.
pub(super) fn add(
    ask: &Cli,
    file: Option<&Path>,
    name: Option<String>,
    context: Option<String>,
) -> Result<ExitCode, Failure> {
    let file = file.ok_or_else(|| {
        Failure::usage("Name the model's file: kai models add local --file FILE.gguf")
            .try_instead("kai models get")
    })?;
    // The daemon has another current folder.
    let whole = std::fs::canonicalize(file).map_err(|why| Failure::failed(failure::unread(file, &why)))?;
    let file =
        whole.to_str().ok_or_else(|| Failure::usage("The file's path is not valid UTF-8."))?.to_owned();
    let row: ModelRow = ask.caller.ask(Call::Local(LocalCall::Add(NewFile { file, name, context })))?;
    if !ask.json {
        out::note("Added. To test it: kai models test");
    }
    ask.print(&row, |row| show::models(std::slice::from_ref(row)));
    Ok(ExitCode::SUCCESS)
}

/// What the user typed about the file of a model to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChoice {
    Delete,
    Keep,
    Ask,
}

pub(super) fn remove(ask: &Cli, name: String, choice: FileChoice) -> Result<ExitCode, Failure> {
    let mut gone: ModelRemoved = ask.caller.ask(Call::ModelsRemove { name })?;
    if gone.heartbeat_reset {
        out::note("Heartbeats used this model. They now use the first available one.");
    }
    if let Some(file) = gone.file.clone() {
        if is_wanted(&file, choice) {
            let call = Call::Local(LocalCall::DeleteFile { file: file.name });
            let _: FileDeleted = ask.caller.ask(call)?;
            gone.file_deleted = true;
        } else {
            out::note(&format!("Its file was kept: {} ({}).", file.path, size(file.bytes, Lang::ENGLISH)));
        }
    }
    ask.print(&gone, |gone| {
        let file = if gone.file_deleted { " and its file" } else { "" };
        format!("Removed {}{file}.\n", out::visible(&gone.removed))
    });
    Ok(ExitCode::SUCCESS)
}

/// Whether the file is to be deleted.
fn is_wanted(file: &ModelFile, choice: FileChoice) -> bool {
    match choice {
        FileChoice::Delete => true,
        FileChoice::Keep => false,
        FileChoice::Ask => {
            let question = format!("Delete its file as well ({})?", size(file.bytes, Lang::ENGLISH));
            input::has_person() && yes::plain(&question)
        }
    }
}
