//! `kai stop`: asks the daemon of a home to shut down, and waits until it has.

use std::process::ExitCode;
use std::time::Duration;

use kai_assistant::home::Home;

use super::asking::Cli;
use crate::call::Call;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::terminal::out;

/// How often to check whether the daemon is gone.
const PAUSE: Duration = Duration::from_millis(50);
/// How many times to check. Long enough for the daemon to finish sending a message.
const LOOKS: u32 = 500;

pub(super) fn stop(ask: &Cli) -> Result<ExitCode, Failure> {
    let other = demo_runs(&ask.caller.home);
    let stopped = end(&ask.caller)?;
    match (ask.json, stopped) {
        (true, _) => out::json(&serde_json::json!({"stopped": stopped})),
        (false, true) => out::line("Kai has stopped."),
        (false, false) => out::line(&format!("Kai is not running.{other}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops the daemon. False if none was running.
fn end(caller: &Caller) -> Result<bool, Failure> {
    if is_gone(&caller.home)? {
        return Ok(false);
    }
    let mut asked = None::<()>;
    for _ in 0..LOOKS {
        // A daemon that is still starting cannot be asked yet.
        if asked.is_none() {
            asked = caller.ask_daemon(Call::Stop)?;
        }
        std::thread::sleep(PAUSE);
        if is_gone(&caller.home)? {
            return Ok(true);
        }
    }
    Err(Failure::failed(match asked {
        Some(()) => "Kai has not stopped after 25 seconds. Its log may say why.",
        None => "Kai is running but cannot be reached, so it was not stopped. Its log may say why.",
    }))
}

/// Whether no daemon is running: a daemon holds its home's lock until the very end.
fn is_gone(home: &Home) -> Result<bool, Failure> {
    // Asking for the lock would create it.
    if !home.has_daemon_lock() {
        return Ok(true);
    }
    let unusable = |e| Failure::store(format!("The home {} cannot be used: {e}.", home.dir.display()));
    home.lock_daemon().map(|free| free.is_some()).map_err(unusable)
}

/// A hint if the demo is running: its user may have meant that one.
fn demo_runs(home: &Home) -> &'static str {
    let runs = home.old_demo().is_some_and(|demo| is_gone(&demo).is_ok_and(|gone| !gone));
    if runs { " The demo is; stop it: kai stop --demo" } else { "" }
}
