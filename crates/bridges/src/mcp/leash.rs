//! `kai __leash`: starts one program and ends it, with everything in its process group, when Kai lets go or dies.
//!
//! The leash's input is a pipe from Kai: one line that says what to start, then everything for the program, which the
//! leash passes on. The program writes to Kai directly. When the pipe's other end is closed, however that came about,
//! the program's input is closed too; if it has not ended a moment later, it is killed.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__leash";
/// The file that this process runs, even if it was replaced since.
const OURSELVES: &str = "/proc/self/exe";
/// How long a program may take to end by itself once its input is closed.
pub(super) const GRACE: Duration = Duration::from_secs(2);
const LONGEST_ORDER: u64 = 1024 * 1024;

/// Who holds a program while it runs.
#[derive(Debug, Clone)]
pub struct Leash(Option<(PathBuf, Vec<String>)>);

impl Leash {
    /// This executable, started again. It has to call [`hold_leash`](super::hold_leash) for [`SUBCOMMAND`].
    pub fn ourselves() -> Self {
        Self::of(OURSELVES, [SUBCOMMAND])
    }

    /// Another executable that calls [`hold_leash`](super::hold_leash) when it is started like this.
    pub fn of<'a>(program: impl Into<PathBuf>, args: impl IntoIterator<Item = &'a str>) -> Self {
        Self(Some((program.into(), args.into_iter().map(str::to_owned).collect())))
    }

    /// Nobody. Programs still end with their connection, but one that ignores its closed input outlives a Kai that is
    /// killed.
    pub fn none() -> Self {
        Self(None)
    }

    pub(super) fn holder(&self) -> Option<(&Path, &[String])> {
        self.0.as_ref().map(|(program, args)| (program.as_path(), args.as_slice()))
    }
}

/// The program that is started. Its variables are secrets, so they travel over the pipe and never as the leash's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
}

enum Event {
    Ended,
    /// Kai is gone, or has let go of the program.
    LetGo,
}

/// Starts the program that Kai orders and holds it until it ends.
pub fn hold() -> ExitCode {
    match hold_one() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Kai reads it as the program's last words.
            let _ = io::stderr().write_all(format!("{why}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn hold_one() -> Result<(), String> {
    let mut line = String::new();
    io::stdin().lock().take(LONGEST_ORDER).read_line(&mut line).map_err(|e| e.to_string())?;
    let order: Order = serde_json::from_str(&line).map_err(|_| "Only Kai itself uses this.".to_owned())?;
    let mut child = started(&order).map_err(|e| format!("It could not be started: {e}"))?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("It has no number.")?;
    let input = child.stdin.take();
    let (tell, events) = mpsc::channel();
    let line = tell.clone();
    thread::spawn(move || wait_for_end(group, &tell));
    thread::spawn(move || wait_for_kai(&line));
    thread::spawn(move || pass_on(input));
    if let Ok(Event::LetGo) = events.recv() {
        let _ = events.recv_timeout(GRACE);
    }
    // It is not reaped yet, so its number still means its group: the program, or what it left behind.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    Ok(())
}

fn started(order: &Order) -> io::Result<Child> {
    let mut command = Command::new(&order.program);
    command.args(&order.args).env_clear().envs(&order.env).current_dir(&order.folder);
    command.process_group(0).stdin(Stdio::piped()).spawn()
}

/// Waits for the program to end but does not reap it.
fn wait_for_end(program: Pid, tell: &Sender<Event>) {
    let end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(WaitId::Pid(program), end) {}
    let _ = tell.send(Event::Ended);
}

/// Waits for the other end of our input to be closed. Reading would not tell while a program that does not read keeps
/// us from it.
fn wait_for_kai(tell: &Sender<Event>) {
    let input = io::stdin();
    let mut watched = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::empty())];
    while let Err(Errno::INTR) = poll(&mut watched, None) {}
    let _ = tell.send(Event::LetGo);
}

/// Passes on what Kai writes; then the program's input is closed.
fn pass_on(to: Option<ChildStdin>) {
    if let Some(mut to) = to {
        // The program may close its input or end at any time.
        let _ = io::copy(&mut io::stdin().lock(), &mut to);
    }
}
