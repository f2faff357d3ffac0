//! `kai open`: opens the page in the user's browser, and starts Kai for it if asked to.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use kai_assistant::device::Place;
use kai_assistant::home::{Home, KeyKind};
use serde_json::json;

use super::asking::Cli;
use super::service;
use crate::call::Call;
use crate::commands::visit;
use crate::failure::Failure;
use crate::socket;
use crate::terminal::out;

/// How often to check whether the daemon answers.
const PAUSE: Duration = Duration::from_millis(50);
/// How many times to check. Opening a large store for the first time after an upgrade can take a while.
const LOOKS: u32 = 1200;

pub(super) fn open(ask: &Cli, place: Place, start: bool) -> Result<ExitCode, Failure> {
    if start && socket::connect(&ask.caller.home).is_none() {
        start_in_background(&ask.caller.home)?;
    }
    // Only the daemon has a page, so only it can answer this.
    let opened: Option<()> = ask.caller.ask_daemon(Call::Open { place })?;
    opened.ok_or_else(visit::not_running)?;
    ask.print(&json!({"opened": place.name()}), |_| "Opened Kai in your browser.\n".to_owned());
    Ok(ExitCode::SUCCESS)
}

/// Starts the user's service if they have one, otherwise a daemon that outlives this command.
fn start_in_background(home: &Home) -> Result<(), Failure> {
    if service::start_if_enabled(home)? {
        return wait(home, None);
    }
    let is_locked = home.read_key_file()?.is_some_and(|key| key.place.kind() == KeyKind::Passphrase);
    if is_locked {
        return Err(Failure::failed(
            "This home is locked with a passphrase, which nobody can type in the background. Start Kai in a terminal: \
             kai",
        ));
    }
    let child = spawn(home).map_err(|e| Failure::failed(format!("Kai could not be started: {e}.")))?;
    wait(home, Some(child))
}

/// In a process group of its own, so that Ctrl-C on this command's terminal does not reach it.
fn spawn(home: &Home) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--home").arg(&home.dir).arg("serve").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(new_log(home)?).spawn()
}

fn log_file(home: &Home) -> PathBuf {
    home.logs().join("daemon.log")
}

/// One old log is kept, as the script for Termux does.
fn new_log(home: &Home) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(home.logs())?;
    let log = log_file(home);
    if log.exists() {
        std::fs::rename(&log, log.with_extension("log.old"))?;
    }
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(log)
}

/// Waits until the daemon answers.
fn wait(home: &Home, mut child: Option<Child>) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        if socket::connect(home).is_some() {
            return Ok(());
        }
        let ended = child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        // Somebody else may have started Kai at the same moment; then that one will answer.
        if ended.is_some() && home.lock_daemon().is_ok_and(|free| free.is_some()) {
            return Err(Failure::failed(format!("Kai could not start. {}", last_words(home))));
        }
        std::thread::sleep(PAUSE);
    }
    Err(Failure::failed("Kai has not started after a minute. To see why, start it in a terminal: kai"))
}

/// What the daemon said last.
fn last_words(home: &Home) -> String {
    let log = log_file(home);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => out::visible(line.trim_start_matches("kai: ")),
        None => format!("Its log is {}.", log.display()),
    }
}
