//! A server that is a program: how it is started, what it complains about, and how it ends.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kai_assistant::mcp::port::{LinkError, Secret};
use kai_assistant::untrusted::Untrusted;
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::leash::{GRACE, Leash, Order};
use crate::environment::Environment;

/// A running program. It ends when this is dropped.
pub(super) struct Program {
    end: End,
    _let_go: DropGuard,
}

/// How a program ends: when, and with which last words.
#[derive(Clone, Default)]
pub(super) struct End {
    stderr: Arc<Complaints>,
    /// All of its standard error is read.
    stderr_read: CancellationToken,
    ended: CancellationToken,
}

/// Longer than the leash needs.
const LEASH_GRACE: Duration = Duration::from_secs(10);
/// How long we wait for the last words of a program that has ended. A child of it may hold them open.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Program {
    /// Starts a program. Returns its input and its output too.
    pub(super) async fn start(
        order: &Order,
        leash: &Leash,
    ) -> Result<(Self, ChildStdin, ChildStdout), LinkError> {
        let failed = |error: &std::io::Error| not_started(&order.program, error);
        let (mut child, patience) = match leash.holder() {
            Some(holder) => (held(order, holder).await.map_err(|e| failed(&e))?, LEASH_GRACE),
            None => (unheld(order).map_err(|e| failed(&e))?, GRACE),
        };
        let (Some(input), Some(output), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(not_started(&order.program, &std::io::Error::other("it has no pipes")));
        };
        let (end, let_go) = (End::default(), CancellationToken::new());
        tokio::spawn(listen(stderr, Arc::clone(&end.stderr), end.stderr_read.clone()));
        tokio::spawn(watch(child, patience, let_go.clone(), end.ended.clone()));
        Ok((Self { end, _let_go: let_go.drop_guard() }, input, output))
    }

    pub(super) fn end(&self) -> End {
        self.end.clone()
    }

    pub(super) fn stderr(&self) -> Vec<Untrusted> {
        self.end.stderr.lines()
    }
}

impl End {
    /// Waits for the program to end.
    pub(super) async fn happens(&self) {
        self.ended.cancelled().await;
    }

    /// What a program that has ended complained about last. Waits a moment until all of it is read.
    pub(super) async fn last_words(&self) -> Untrusted {
        let _ = tokio::time::timeout(LAST_WORDS, self.stderr_read.cancelled()).await;
        let mut lines = self.stderr.lines().into_iter().rev();
        lines.find(|line| !line.is_blank()).unwrap_or_default()
    }
}

/// What is started: the program that the command names, with the variables that it may see.
pub(super) fn order(
    command: &str,
    args: &[String],
    secrets: &[(String, Secret)],
    environment: &Environment,
) -> Result<Order, LinkError> {
    let mut env: BTreeMap<String, String> =
        environment.basics().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    env.extend(secrets.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())));
    // A program that keeps a file where it stands can write there.
    let folder = env.get("HOME").map(PathBuf::from).filter(|home| home.is_dir()).unwrap_or("/".into());
    let path = env.get("PATH").map_or("", String::as_str);
    let program = find(command, path, &folder).map_err(|why| LinkError::NotStarted {
        command: Untrusted::new(command).line(LONGEST_COMMAND),
        why: why.to_owned(),
    })?;
    Ok(Order { program, args: args.to_owned(), env, folder })
}

/// How many characters of a command an error shows.
const LONGEST_COMMAND: usize = 100;

/// Finds a program as a shell would. The leash could not tell that apart from a program that failed.
fn find(command: &str, path: &str, folder: &Path) -> Result<PathBuf, &'static str> {
    let runs = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if command.contains('/') {
        let file = folder.join(command);
        return match file.exists() {
            true if runs(&file) => Ok(file),
            true => Err("it is not a program"),
            false => Err("there is no such file"),
        };
    }
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    let found = folders.map(|folder| Path::new(folder).join(command)).find(runs);
    found.filter(|_| !command.is_empty()).ok_or("it is not installed, or not in PATH")
}

fn not_started(program: &Path, error: &std::io::Error) -> LinkError {
    let command = Untrusted::new(program.to_string_lossy()).line(LONGEST_COMMAND);
    LinkError::NotStarted { command, why: error.to_string() }
}

/// Starts the leash and tells it what to start.
async fn held(order: &Order, (holder, args): (&Path, &[String])) -> std::io::Result<Child> {
    let mut command = Command::new(holder);
    command.arg0("kai").args(args).env_clear().current_dir("/");
    let mut child = piped(command).spawn()?;
    let line = serde_json::to_string(order)? + "\n";
    if let Some(input) = &mut child.stdin {
        input.write_all(line.as_bytes()).await?;
    }
    Ok(child)
}

fn unheld(order: &Order) -> std::io::Result<Child> {
    let mut command = Command::new(&order.program);
    command.args(&order.args).env_clear().envs(&order.env).current_dir(&order.folder);
    piped(command).spawn()
}

fn piped(mut command: Command) -> Command {
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for the process to end. If we let go of it and it does not end by itself, it is killed with its group.
async fn watch(mut child: Child, patience: Duration, let_go: CancellationToken, ended: CancellationToken) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    tokio::select! {
        _ = child.wait() => {}
        () = let_go.cancelled() => {
            if tokio::time::timeout(patience, child.wait()).await.is_err() {
                if let Some(group) = group {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait().await;
            }
        }
    }
    ended.cancel();
}

/// How many lines of standard error are kept, and how many bytes of each.
const KEPT_LINES: usize = 100;
const KEPT_OF_LINE: usize = 500;

/// The last lines that a program wrote to its standard error.
#[derive(Default)]
struct Complaints(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    lines: VecDeque<Vec<u8>>,
    /// The last line has not ended yet.
    open: bool,
}

impl Complaints {
    fn add(&self, read: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            if !std::mem::replace(&mut kept.open, !piece.ends_with(b"\n")) {
                if kept.lines.len() == KEPT_LINES {
                    kept.lines.pop_front();
                }
                kept.lines.push_back(Vec::new());
            }
            if let Some(line) = kept.lines.back_mut() {
                let text = piece.trim_ascii_end();
                let room = KEPT_OF_LINE.saturating_sub(line.len());
                line.extend_from_slice(&text[..text.len().min(room)]);
            }
        }
    }

    fn lines(&self) -> Vec<Untrusted> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lines.iter().map(|line| Untrusted::new(String::from_utf8_lossy(line))).collect()
    }
}

async fn listen(mut from: impl AsyncRead + Unpin, to: Arc<Complaints>, all_read: CancellationToken) {
    let _tell = all_read.drop_guard();
    let mut chunk = vec![0; 8 * 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        to.add(&chunk[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_each_is_cut() {
        let complaints = Complaints::default();
        complaints.add(b"fir");
        complaints.add(b"st\r\nsecond");
        let shown = |complaints: &Complaints| -> Vec<String> {
            complaints.lines().iter().map(|line| line.as_written().to_owned()).collect()
        };
        assert_eq!(shown(&complaints), ["first", "second"]);
        complaints.add(&vec![b'x'; 1024 * 1024]);
        assert_eq!(shown(&complaints)[1].len(), KEPT_OF_LINE);
        complaints.add("\nmore\n".repeat(KEPT_LINES).as_bytes());
        assert_eq!(shown(&complaints).len(), KEPT_LINES);
        assert_eq!(shown(&complaints)[KEPT_LINES - 1], "more");
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let root = Path::new("/");
        assert_eq!(find("sh", "nowhere:/nowhere:/bin", root), Ok("/bin/sh".into()));
        assert_eq!(find("bin/sh", "", root), Ok("/bin/sh".into()));
        assert_eq!(find("/etc/passwd", "", root), Err("it is not a program"));
        assert_eq!(find("/nowhere/x", "", root), Err("there is no such file"));
        for command in ["", "no-such-program", "sh -c true"] {
            assert_eq!(find(command, "/bin", root), Err("it is not installed, or not in PATH"), "{command}");
        }
    }

    #[test]
    fn a_program_sees_the_basics_and_its_secrets() {
        let given = [("PATH", "/usr/bin:/bin"), ("DISPLAY", ":0"), ("OPENAI_API_KEY", "sk-1")];
        let environment = Environment::of(given.map(|(name, value)| (name.into(), value.into())));
        let secrets = [("TOKEN".to_owned(), Secret::new("t"))];
        let order = order("sh", &[], &secrets, &environment).unwrap();
        let seen: Vec<_> = order.env.keys().map(String::as_str).collect();
        assert_eq!((seen, order.folder), (vec!["PATH", "TOKEN"], PathBuf::from("/")));
    }
}
