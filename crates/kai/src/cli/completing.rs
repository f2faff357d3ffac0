//! Shell completions. The script that `kai completions` prints asks Kai itself what fits, so that presets, settings and
//! the numbers of chats, drafts and tasks are offered as they are now.
//!
//! Somebody who presses Tab has asked for nothing yet. So nothing here creates a home, asks a question, unlocks a keyring
//! or says what went wrong: it offers what it can see at once, or nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate, Shell};
use kai_assistant::home::{Home, KeyKind};
use kai_assistant::settings::{self, Kind, Setting};
use kai_assistant::untrusted::Untrusted;
use serde_json::Value;

use crate::call::Call;
use crate::call::drafts::DraftsCall;
use crate::call::local::LocalCall;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::home::{self, Keys};
use crate::terminal::out;

/// The environment variable by which the script asks.
const VARIABLE: &str = "KAI_COMPLETE";

/// How many characters about a candidate are shown.
const ABOUT: usize = 60;

/// Answers if a shell asks what fits; `None` if this is a command like any other.
pub(super) fn answer_shell(command: fn() -> clap::Command) -> Option<ExitCode> {
    let asked = CompleteEnv::with_factory(command).var(VARIABLE).bin("kai").completer("kai");
    match asked.try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Prints the script for a shell.
pub(super) fn script(shell: Shell) -> Result<ExitCode, Failure> {
    let unknown = || Failure::failed(format!("Kai has no completions for {shell}."));
    let shells = Shells::builtins();
    let found = shells.completer(&shell.to_string()).ok_or_else(unknown)?;
    let mut script = Vec::new();
    found
        .write_registration(VARIABLE, "kai", "kai", "kai", &mut script)
        .map_err(|e| Failure::failed(format!("The script could not be written: {e}.")))?;
    out::raw(&script);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn presets() -> Vec<CompletionCandidate> {
    let own = candidate(kai_assistant::models::BUILT_IN, "a GGUF file that Kai runs itself");
    kai_llm::presets().iter().map(|preset| candidate(&preset.id, &preset.name)).chain([own]).collect()
}

pub(super) fn settings() -> Vec<CompletionCandidate> {
    settings::catalogue([]).iter().map(|setting| candidate(&setting.key, &setting.help)).collect()
}

/// The values that the setting before the cursor can have.
pub(super) fn setting_values() -> Vec<CompletionCandidate> {
    let words = typed();
    let all = settings::catalogue([]);
    let named = |setting: &&Setting| words.iter().any(|word| word.to_str() == Some(&*setting.key));
    let values = match all.iter().find(named).map(|setting| setting.kind) {
        Some(Kind::Switch) => &["true", "false"][..],
        Some(Kind::Choice(values)) => values,
        _ => &[],
    };
    values.iter().map(CompletionCandidate::new).collect()
}

pub(super) fn chats() -> Vec<CompletionCandidate> {
    let about = |row: &Value| text(row, "name").or_else(|| text(row, "title"));
    rows(Call::ChatsList).iter().filter_map(|row| listed(row, "id", about(row))).collect()
}

pub(super) fn drafts() -> Vec<CompletionCandidate> {
    let about = |row: &Value| Some(format!("{}: {}", text(row, "to")?, text(row, "body")?));
    rows(Call::Drafts(DraftsCall::List)).iter().filter_map(|row| listed(row, "id", about(row))).collect()
}

pub(super) fn tasks() -> Vec<CompletionCandidate> {
    rows(Call::TasksList).iter().filter_map(|row| listed(row, "id", text(row, "description"))).collect()
}

pub(super) fn alarms() -> Vec<CompletionCandidate> {
    rows(Call::AlarmsList).iter().filter_map(|row| listed(row, "id", text(row, "label"))).collect()
}

pub(super) fn models() -> Vec<CompletionCandidate> {
    rows(Call::ModelsList).iter().filter_map(|row| listed(row, "name", text(row, "model"))).collect()
}

/// The models that can be downloaded.
pub(super) fn local_models() -> Vec<CompletionCandidate> {
    let Some(catalogue) = ask(Call::Local(LocalCall::Catalogue)) else { return vec![] };
    let rows = catalogue.get("models").and_then(Value::as_array).cloned().unwrap_or_default();
    rows.iter().filter_map(|row| listed(row, "name", text(row, "file"))).collect()
}

pub(super) fn memories() -> Vec<CompletionCandidate> {
    rows(Call::MemoryList).iter().filter_map(|row| listed(row, "key", text(row, "content"))).collect()
}

pub(super) fn tools() -> Vec<CompletionCandidate> {
    rows(Call::ToolsList).iter().filter_map(|row| listed(row, "name", text(row, "title"))).collect()
}

/// One row of a list, by its id and a few words about it.
fn listed(row: &Value, id: &str, about: Option<String>) -> Option<CompletionCandidate> {
    let id = match row.get(id)? {
        Value::Number(number) => number.to_string(),
        Value::String(name) => name.clone(),
        _ => return None,
    };
    Some(candidate(&id, &about.unwrap_or_default()))
}

/// A candidate with a few words about it, which others may have written.
fn candidate(value: &str, about: &str) -> CompletionCandidate {
    let about = out::visible(&Untrusted::new(about).line(ABOUT));
    CompletionCandidate::new(out::visible(value)).help((!about.is_empty()).then(|| about.into()))
}

fn text(row: &Value, field: &str) -> Option<String> {
    row.get(field)?.as_str().map(str::to_owned)
}

fn rows(call: Call) -> Vec<Value> {
    match ask(call) {
        Some(Value::Array(rows)) => rows,
        _ => vec![],
    }
}

/// Asks the home that the typed command means.
fn ask(call: Call) -> Option<Value> {
    let words = typed();
    let home = home::existing(home_in(&words).as_deref())?;
    let home = if words.iter().any(|word| word == "--demo") { home.old_demo()? } else { home };
    Caller::new(home.clone(), Keys::default()).glance(call, opens_silently(&home))
}

/// Whether the store opens without a question: a passphrase would have to be typed, and a keyring may want to be unlocked.
fn opens_silently(home: &Home) -> bool {
    let key = home.read_key_file().ok().flatten();
    key.is_some_and(|key| key.place.kind() == KeyKind::File && !key.awaits_store)
}

/// The words of the command that is being completed.
fn typed() -> Vec<OsString> {
    std::env::args_os().skip_while(|word| word != "--").skip(1).collect()
}

/// The folder that `--home` names.
fn home_in(words: &[OsString]) -> Option<PathBuf> {
    let after = words.iter().skip_while(|word| *word != "--home").nth(1);
    let joined = || words.iter().find_map(|word| word.to_str()?.strip_prefix("--home=").map(Path::new));
    after.map(PathBuf::from).or_else(|| joined().map(Path::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_the_one_that_is_typed() {
        let home = |words: &[&str]| home_in(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(home(&["kai", "--home", "/a", "chats"]), Some("/a".into()));
        assert_eq!(home(&["kai", "chats", "--home=/b", "show", ""]), Some("/b".into()));
        assert_eq!(home(&["kai", "chats", "show", ""]), None);
        assert_eq!(home(&["kai", "--home"]), None);
    }

    #[test]
    fn a_candidate_is_one_line_that_steers_nothing() {
        let made = candidate("7", "two\nlines \u{1b}[2J");
        let help = made.get_help().unwrap().to_string();
        assert!(!help.contains(['\n', '\u{1b}']), "{help:?}");
    }
}
