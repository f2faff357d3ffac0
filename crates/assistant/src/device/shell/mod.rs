//! `shell_command`: runs a command that the model wrote, in a sandbox.
//!
//! The tool checks its input (`place` decides where the command may run) and passes the command to a [`Sandbox`], which
//! keeps it away from everything of the user's. Without a sandbox, no command runs. `printed` fits the output into the
//! result, so that the message about a timeout is never cut off.

mod place;
mod printed;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kai_words::{Said, said};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PortError;
use crate::db::Db;
use crate::settings::{self, SHELL_FOLDERS, Values};
use crate::tool::{Lack, Run, Tool, ToolError, ToolOutput, room};

pub use printed::{Collector, Printed};

/// The port that runs a command without letting it touch anything of the user's.
pub trait Sandbox: Send + Sync {
    /// Tests the sandbox, once. Returns its name, or why no command can run here.
    fn probe(&self) -> Probing<'_>;
    /// The result of [`Sandbox::probe`], or `None` before the first probe.
    fn seen(&self) -> Option<&Found>;
    /// Runs one command until it ends. If the future is dropped, the command and all processes it started are killed.
    fn run<'a>(&'a self, job: &'a Job) -> Ending<'a>;
}

/// The name of the sandbox ("bubblewrap"), or a sentence that says why commands cannot run.
pub type Found = Result<&'static str, Said>;
/// The future of [`Sandbox::probe`].
pub type Probing<'a> = Pin<Box<dyn Future<Output = &'a Found> + Send + 'a>>;
/// The future of [`Sandbox::run`].
pub type Ending<'a> = Pin<Box<dyn Future<Output = Result<Ran, PortError>> + Send + 'a>>;

/// One command to run, already checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The command line for `sh -c`.
    pub command: String,
    pub env: BTreeMap<String, String>,
    /// A folder of the user's that the command may read and starts in; without one it starts in an empty folder.
    pub folder: Option<PathBuf>,
    /// How long the command may run.
    pub patience: Duration,
}

/// The output of a command, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    pub stdout: Printed,
    pub stderr: Printed,
    pub end: End,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The command exited with this code; 128 plus the signal's number if a signal ended it.
    Exited(i32),
    TimedOut,
    /// The sandbox stopped the command because it exceeded a limit. Holds the reason as the second half of a sentence:
    /// "it used more than 1024 MB of memory".
    Stopped(String),
}

/// Run a command in a shell and get its output. It runs in a sandbox: no network, no files of the user's (unless
/// `working_dir` names a folder that the user allowed, which can then be read), and an empty scratch folder that is gone
/// afterwards. Whatever is still running when the command ends is stopped.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ShellCommandInput {
    /// The command line, as for sh -c.
    pub command: String,
    /// Seconds the command may take, 1 to 120; 30 if left out.
    pub timeout: Option<u32>,
    /// A folder that the user allowed, to read and to begin in; an empty scratch folder if left out.
    pub working_dir: Option<String>,
    /// Environment variables to set.
    pub env: Option<BTreeMap<String, String>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ShellOutput {
    /// False if the command timed out. Its output up to then is included all the same.
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    stdout: String,
    stderr: String,
    exit_code: i32,
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub struct ShellCommand {
    pub db: Db,
    pub sandbox: Option<Arc<dyn Sandbox>>,
    /// Kai's home, which no command may read.
    pub home: PathBuf,
}

/// The longest command, in bytes. `sh -c` takes it as one argument, which Linux limits to 128 KiB.
const LONGEST_COMMAND: usize = 100_000;
const LONGEST_ENV: usize = 32_000;
const LONGEST_TIME: u32 = 120;
/// The exit code that a shell reports for a command killed by SIGKILL.
const KILLED: i32 = 137;

impl Tool for ShellCommand {
    const NAME: &'static str = "shell_command";
    const ALIASES: &'static [&'static str] = &["execute_shell_command"];
    const TIME_ARGUMENT: Option<&'static str> = Some("timeout");
    type Input = ShellCommandInput;
    type Output = ShellOutput;

    fn lacks(&self) -> Option<Lack> {
        match &self.sandbox {
            None => Some(said::lacks_sandbox().into()),
            Some(sandbox) => sandbox.seen().and_then(|found| found.clone().err()).map(Lack::from),
        }
    }

    fn note(&self) -> Option<String> {
        let kept_in = self.sandbox.as_ref()?.seen()?.as_ref().ok()?;
        Some(format!("sandbox: {kept_in}"))
    }

    async fn probe_access(&self) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.probe().await;
        }
    }

    async fn run(&self, input: ShellCommandInput, _: &Run) -> Result<ToolOutput<ShellOutput>, ToolError> {
        let sandbox = self.sandbox.as_ref().ok_or_else(said::lacks_sandbox)?;
        let values = self.db.read(settings::load).await?;
        let folder = input.working_dir.as_deref().map(str::trim).filter(|typed| !typed.is_empty());
        let folder = folder.map(|typed| place::allowed(typed, &values.of(&SHELL_FOLDERS), &self.home));
        let folder = folder.transpose().map_err(ToolError)?;
        let job = Job { folder, ..check(input, &values).map_err(ToolError)? };
        let failed = |e| ToolError(format!("The command could not be run: {e}."));
        let ran = sandbox.run(&job).await.map_err(failed)?;
        Ok(ToolOutput::own(shell_output(&ran, job.patience, room::room(&values))))
    }
}

/// Checks the input against the limits and builds the job, or returns an error message. The caller decides where it may
/// run. Pure.
fn check(input: ShellCommandInput, values: &Values) -> Result<Job, String> {
    let env = input.env.unwrap_or_default();
    if input.command.trim().is_empty() {
        return Err("The command must not be empty.".to_owned());
    }
    if input.command.len() > LONGEST_COMMAND {
        return Err(format!("The command must be at most {LONGEST_COMMAND} bytes long."));
    }
    if input.command.contains('\0') || env.values().any(|value| value.contains('\0')) {
        return Err("Neither the command nor a variable may contain a NUL character.".to_owned());
    }
    if env.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > LONGEST_ENV {
        return Err(format!("The env must be at most {LONGEST_ENV} bytes in all."));
    }
    if let Some(name) = env.keys().find(|name| !is_name(name)) {
        let shown: String = name.chars().take(60).collect();
        return Err(format!("{shown:?} is not a valid variable name. Use letters, digits and _."));
    }
    let default = values.number(&settings::tool_timeout(ShellCommand::NAME, ShellCommand::TIMEOUT.as_secs()));
    let seconds = match input.timeout {
        None => default,
        Some(seconds) if (1..=LONGEST_TIME).contains(&seconds) => seconds,
        Some(_) => return Err(format!("The timeout must be from 1 to {LONGEST_TIME} seconds.")),
    };
    Ok(Job { command: input.command, env, folder: None, patience: Duration::from_secs(seconds.into()) })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Builds the result that the model reads, in at most `room` characters of JSON. Pure.
fn shell_output(ran: &Ran, patience: Duration, room: usize) -> ShellOutput {
    let for_out = (room / 4 * 3).max(room.saturating_sub(ran.stderr.size()));
    let for_err = room.saturating_sub(for_out.min(ran.stdout.size()));
    let timed_out = ran.end == End::TimedOut;
    let (exit_code, said) = match &ran.end {
        End::Exited(code) => (*code, None),
        End::TimedOut => (KILLED, Some(format!("The command was stopped after {} s.", patience.as_secs()))),
        End::Stopped(why) => (KILLED, Some(format!("The command was stopped: {why}."))),
    };
    let (error, note) = if timed_out { (said, None) } else { (None, said) };
    ShellOutput {
        success: !timed_out,
        error,
        stdout: ran.stdout.fitted(for_out),
        stderr: ran.stderr.fitted(for_err),
        exit_code,
        timed_out,
        note,
    }
}

#[cfg(test)]
mod tests;
