//! The sandbox for shell commands: its status for `kai status` and `kai doctor`, and the helper processes that Kai
//! itself runs inside it.

use std::process::ExitCode;

use kai_assistant::device::ShellCommand;
use kai_assistant::settings::{self, Values};
use kai_assistant::tool::Tool;
use kai_words::said;

use crate::app::App;
use crate::call::status::ShellStatus;
use crate::failure::Failure;

pub(crate) fn enabled(values: &Values) -> bool {
    values.on(&settings::tool_enabled(ShellCommand::NAME, false))
}

/// The sandbox's status. It is only probed if shell commands are enabled, because that takes a moment.
pub(crate) async fn status(app: &App, values: &Values) -> ShellStatus {
    let enabled = enabled(values);
    if !enabled {
        return ShellStatus { enabled, sandbox: None, why_not: None };
    }
    let found = looked(app).await;
    ShellStatus { enabled, sandbox: found.clone().ok(), why_not: found.err() }
}

/// The name of the sandbox, or why there is none.
pub(crate) async fn looked(app: &App) -> Result<String, String> {
    match &app.sandbox {
        Some(sandbox) => sandbox.probe().await.clone().map(str::to_owned).map_err(|why| why.to_string()),
        None if app.home.is_demo() => Err(said::lacks_in_demo().to_string()),
        None => Err("Kai has no sandbox for this system, so it cannot run commands.".to_owned()),
    }
}

/// Runs as one of the sandbox's helper processes.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn play(part: &str) -> Result<ExitCode, Failure> {
    let part = kai_bridges::sandbox::Part::named(part);
    part.map(kai_bridges::sandbox::play).ok_or_else(|| Failure::usage("Only Kai itself uses this command."))
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn play(_: &str) -> Result<ExitCode, Failure> {
    Err(Failure::usage("Only Kai itself uses this command."))
}
