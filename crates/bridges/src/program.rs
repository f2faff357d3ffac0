//! Starts the platform's own programs: never through a shell, never with our terminal, never for ever.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// Why a program did not do what it was started for, as the rest of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed(pub(crate) String);

/// What a program says beyond this is not read.
const OUTPUT_LIMIT: u64 = 64 * 1024;
/// A program that opens something and has not failed by now is on its way.
#[cfg(target_os = "linux")]
const FIRST_STEPS: Duration = Duration::from_secs(3);

/// Runs a program to its end and returns what it printed. When `limit` has passed, or the caller has gone, it is
/// killed with everything it started.
pub(crate) async fn run<A: AsRef<OsStr>>(
    program: &Path,
    args: &[A],
    limit: Duration,
) -> Result<String, Failed> {
    let mut command = prepared(program, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|e| failed(program, &e))?;
    let mut group = Group(pid(&child));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let whole = async { tokio::join!(child.wait(), text(out), text(err)) };
    let Ok((status, out, err)) = tokio::time::timeout(limit, whole).await else {
        return Err(Failed(format!("{} did not answer within {} s", name(program), limit.as_secs())));
    };
    group.0 = None;
    if status.map_err(|e| failed(program, &e))?.success() {
        return Ok(out);
    }
    let said = err.lines().chain(out.lines()).map(str::trim).find(|line| !line.is_empty());
    Err(Failed(format!("{} failed: {}", name(program), said.unwrap_or("it did not say why"))))
}

/// Starts a program that outlives us. A failure within its first steps is told.
#[cfg(target_os = "linux")]
pub(crate) async fn launch<A: AsRef<OsStr>>(program: &Path, args: &[A]) -> Result<(), Failed> {
    let mut command = prepared(program, args);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| failed(program, &e))?;
    match tokio::time::timeout(FIRST_STEPS, child.wait()).await {
        Ok(Ok(status)) if !status.success() => {
            Err(Failed(format!("{} found no program for it ({status})", name(program))))
        }
        Ok(Err(error)) => Err(failed(program, &error)),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// In a process group of its own, so that it can be killed whole and our Ctrl-C does not reach it.
fn prepared<A: AsRef<OsStr>>(program: &Path, args: &[A]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).process_group(0);
    command
}

fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

async fn text(from: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = vec![];
    if let Some(from) = from {
        // What was read before a failure is all there is.
        drop(from.take(OUTPUT_LIMIT).read_to_end(&mut bytes).await);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn failed(program: &Path, error: &io::Error) -> Failed {
    Failed(format!("{} could not be started: {error}", name(program)))
}

fn name(program: &Path) -> String {
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// Kills the whole group unless the program has come to its end.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may just have ended by itself.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// A folder of programs that a test wrote.
#[cfg(test)]
pub(crate) mod fake {
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    pub(crate) struct Programs(tempfile::TempDir);

    impl Programs {
        pub(crate) fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        pub(crate) fn folder(&self) -> PathBuf {
            self.0.path().to_owned()
        }

        /// A program that runs `script`; `$LOG` in it is a file that [`Programs::log`] reads.
        pub(crate) fn write(&self, name: &str, script: &str) -> PathBuf {
            let path = self.0.path().join(name);
            let text = format!("#!/bin/sh\nLOG='{}'\n{script}\n", self.0.path().join("log").display());
            // Another process writes it: a fork of a neighbouring test must not hold it open for writing when we
            // start it.
            let mut writer = Command::new("sh")
                .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
                .arg(&path)
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            assert!(writer.wait().unwrap().success());
            path
        }

        pub(crate) fn log(&self) -> String {
            std::fs::read_to_string(self.0.path().join("log")).unwrap_or_default()
        }
    }

    /// Writes each argument on a line of its own.
    pub(crate) const NOTE_ARGUMENTS: &str = r#"for a in "$@"; do printf '%s\n' "$a" >> "$LOG"; done"#;
}

#[cfg(test)]
mod tests {
    use super::fake::Programs;
    use super::*;

    const NOTHING: [&str; 0] = [];

    #[tokio::test]
    async fn what_a_program_says_and_how_it_ends() {
        let programs = Programs::new();
        for (script, expected) in [
            ("echo hello", Ok("hello\n".to_owned())),
            ("cat", Ok(String::new())),
            ("echo no permission >&2; exit 3", Err("p failed: no permission".to_owned())),
            ("exit 1", Err("p failed: it did not say why".to_owned())),
        ] {
            let ran = run(&programs.write("p", script), &NOTHING, Duration::from_secs(10)).await;
            assert_eq!(ran.map_err(|failed| failed.0), expected, "{script}");
        }
        let absent = run(Path::new("/nowhere/p"), &NOTHING, Duration::from_secs(1)).await;
        assert!(absent.unwrap_err().0.contains("could not be started"));
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_with_its_children() {
        let programs = Programs::new();
        let hang = programs.write("hang", "sleep 600 & echo $! >> \"$LOG\"; echo $$ >> \"$LOG\"; wait");
        let failed = run(&hang, &NOTHING, Duration::from_millis(500)).await.unwrap_err();
        assert!(failed.0.starts_with("hang did not answer"), "{failed:?}");
        let pids = programs.log();
        assert_eq!(pids.lines().count(), 2);
        for pid in pids.lines() {
            assert!(gone(pid).await, "{pid} lives on");
        }
    }

    #[tokio::test]
    async fn a_program_whose_caller_went_away_is_killed() {
        let programs = Programs::new();
        let hang = programs.write("hang", "echo $$ >> \"$LOG\"; sleep 600");
        let patience = Duration::from_mins(1);
        let caller = run(&hang, &NOTHING, patience);
        assert!(tokio::time::timeout(Duration::from_millis(500), caller).await.is_err());
        assert!(gone(programs.log().trim()).await);
    }

    #[tokio::test]
    async fn a_launched_program_is_left_alone_and_an_early_failure_is_told() {
        let programs = Programs::new();
        let failed = launch(&programs.write("x", "exit 3"), &NOTHING).await.unwrap_err();
        assert!(failed.0.contains("found no program"), "{failed:?}");
        assert_eq!(launch(&programs.write("x", "sleep 4; echo done > \"$LOG\""), &NOTHING).await, Ok(()));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(programs.log(), "done\n");
    }

    /// Has the process ended (a dead one that nobody has collected counts)?
    async fn gone(pid: &str) -> bool {
        for _ in 0..100 {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if state.is_empty() || state.contains(") Z ") {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    }
}
