//! Runs the platform's own programs: never through a shell, never on our terminal, and never waiting without a
//! timeout.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kai_words::{Said, said};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::environment::Environment;

/// Why a program failed. Each variant holds a sentence without its full stop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It is not installed.
    Absent(Said),
    /// It did not start, or it reported a failure itself.
    Refused(Said),
    /// It was interrupted, so it may still have done what it was started for.
    Interrupted(Said),
}

impl Failed {
    pub(crate) fn sentence(self) -> Said {
        match self {
            Self::Absent(why) | Self::Refused(why) | Self::Interrupted(why) => why,
        }
    }
}

/// Timeout, output limit and input of a program.
pub(crate) struct Terms<'a> {
    pub(crate) patience: Duration,
    /// A program that prints more bytes is killed, because half an answer is useless.
    pub(crate) longest_answer: u64,
    /// The program's input; `None` for none.
    pub(crate) input: Option<&'a str>,
}

impl Terms<'_> {
    /// No input, and a short answer.
    pub(crate) fn within(patience: Duration) -> Self {
        Self { patience, longest_answer: SHORT_ANSWER, input: None }
    }
}

/// A program and its complete environment.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Path,
    pub(crate) environment: &'a Environment,
}

const SHORT_ANSWER: u64 = 64 * 1024;
/// A launched program that has not failed by now is assumed to have worked.
#[cfg(target_os = "linux")]
const FIRST_STEPS: Duration = Duration::from_secs(3);
/// A shell exits with this plus the signal's number if the command it ran was killed.
const KILLED: i32 = 128;

/// Runs a program to its end and returns its output. If it times out or the caller goes away, it is killed together
/// with everything it started.
pub(crate) async fn run<A: AsRef<OsStr>>(
    start: Start<'_>,
    args: &[A],
    terms: &Terms<'_>,
) -> Result<String, Failed> {
    let (mut command, program) = (prepared(start, args), start.program);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A script that forgets to quote an argument could expand it to the names of our files.
    command.current_dir("/");
    let input = terms.input.map(Input::in_memory).transpose().map_err(|e| failed(program, &e))?;
    if let Some(input) = &input {
        command.stdin(input.handed_over().map_err(|e| failed(program, &e))?);
    }
    let mut child = command.spawn().map_err(|e| failed(program, &e))?;
    let mut group = Group(pid(&child));
    let ending = end_of(&mut child, terms, input);
    let Ok(ended) = tokio::time::timeout(terms.patience, ending).await else {
        return Err(Failed::Interrupted(said::program_timed_out(name(program), terms.patience.as_secs())));
    };
    let ended = ended.map_err(|lost| Failed::Interrupted(lost.said(&name(program))))?;
    group.0 = None;
    ended.judged(&name(program), terms)
}

/// How a program ended.
struct Ended {
    status: ExitStatus,
    out: String,
    err: String,
    /// Whether it read all of its input.
    listened: bool,
}

impl Ended {
    fn judged(self, name: &str, terms: &Terms<'_>) -> Result<String, Failed> {
        match self.status.code() {
            // Termux's own client exits with 0 even when it could not reach the app, and only prints an error.
            Some(0) if terms.input.is_some() && !self.err.trim().is_empty() => {
                Err(Failed::Interrupted(said::program_told(name, self.said())))
            }
            // A program that printed something need not have read its input: it may say why it refuses.
            Some(0) if self.listened || !self.out.trim().is_empty() => Ok(self.out),
            Some(0) => Err(Failed::Interrupted(said::program_unread(name))),
            Some(code) if code <= KILLED => Err(Failed::Refused(said::program_failed(name, self.said()))),
            Some(_) | None => Err(Failed::Interrupted(said::program_killed(name, self.said()))),
        }
    }

    fn said(&self) -> Said {
        let mut lines = self.err.lines().chain(self.out.lines()).map(str::trim);
        lines.find(|line| !line.is_empty()).map_or_else(said::program_silent, Said::from)
    }
}

/// Why the end of a program is not known.
enum Lost {
    /// It printed more than this many bytes.
    TooMuch(u64),
    Gone(io::Error),
}

impl Lost {
    fn said(&self, program: &str) -> Said {
        match self {
            Self::TooMuch(longest) => said::program_too_much(program, longest / 1024),
            Self::Gone(error) => said::program_lost(program, error),
        }
    }
}

async fn end_of(child: &mut Child, terms: &Terms<'_>, input: Option<Input>) -> Result<Ended, Lost> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err, status) =
        tokio::try_join!(text(out, terms.longest_answer), text(err, SHORT_ANSWER), async {
            child.wait().await.map_err(Lost::Gone)
        },)?;
    Ok(Ended { status, out, err, listened: input.is_none_or(|mut input| input.was_read()) })
}

/// A program's input. It is complete before the program starts. With a pipe it would be written afterwards, and if we
/// died in between, the program would take an empty input for the text the user approved and send that.
struct Input {
    /// Exists only in memory. Its read position is shared with the program.
    file: File,
    length: u64,
}

impl Input {
    fn in_memory(text: &str) -> io::Result<Self> {
        let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
        file.write_all(text.as_bytes())?;
        file.rewind()?;
        Ok(Self { file, length: text.len() as u64 })
    }

    fn handed_over(&self) -> io::Result<Stdio> {
        self.file.try_clone().map(Stdio::from)
    }

    /// Whether the program has read to the end.
    fn was_read(&mut self) -> bool {
        self.file.stream_position().is_ok_and(|place| place >= self.length)
    }
}

/// Starts a program that outlives us, with `variables` added to its environment. Returns an error if it fails within
/// the first seconds.
#[cfg(target_os = "linux")]
pub(crate) async fn launch<A: AsRef<OsStr>>(
    start: Start<'_>,
    args: &[A],
    variables: &[(&str, &str)],
) -> Result<(), Failed> {
    let (mut command, program) = (prepared(start, args), start.program);
    command.envs(variables.iter().copied());
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| failed(program, &e))?;
    match tokio::time::timeout(FIRST_STEPS, child.wait()).await {
        Ok(Ok(status)) if !status.success() => {
            Err(Failed::Refused(said::program_none_fits(name(program), status)))
        }
        Ok(Err(error)) => Err(failed(program, &error)),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// Prepares a command with only the given environment, in its own process group, so that the whole group can be
/// killed and our Ctrl-C does not reach it.
fn prepared<A: AsRef<OsStr>>(start: Start<'_>, args: &[A]) -> Command {
    let mut command = Command::new(start.program);
    command.env_clear().envs(start.environment.variables());
    command.args(args).stdin(Stdio::null()).process_group(0);
    command
}

fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

async fn text(from: Option<impl AsyncRead + Unpin>, longest: u64) -> Result<String, Lost> {
    let mut bytes = vec![];
    if let Some(from) = from {
        // After a read error, what was read so far is the output.
        drop(from.take(longest + 1).read_to_end(&mut bytes).await);
    }
    if bytes.len() as u64 > longest {
        return Err(Lost::TooMuch(longest));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn failed(program: &Path, error: &io::Error) -> Failed {
    let why = said::program_not_started(name(program), error);
    if error.kind() == io::ErrorKind::NotFound { Failed::Absent(why) } else { Failed::Refused(why) }
}

fn name(program: &Path) -> String {
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// Kills the process group when dropped, unless the program has already ended.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended by itself just now.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// A folder of scripts that act as programs in tests.
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

        /// Writes a program that runs `script`, in which `$LOG` is a file that [`Programs::log`] reads.
        pub(crate) fn write(&self, name: &str, script: &str) -> PathBuf {
            let path = self.0.path().join(name);
            let text = format!("#!/bin/sh\nLOG='{}'\n{script}\n", self.0.path().join("log").display());
            // Another process writes the file. Otherwise a fork in a parallel test could hold it open for writing
            // when we start it.
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

    /// Logs each argument on its own line.
    pub(crate) const NOTE_ARGUMENTS: &str = r#"for a in "$@"; do printf '%s\n' "$a" >> "$LOG"; done"#;
}

#[cfg(test)]
mod tests {
    use super::fake::Programs;
    use super::*;

    const NOTHING: [&str; 0] = [];
    const PATIENT: Terms<'static> =
        Terms { patience: Duration::from_secs(20), longest_answer: SHORT_ANSWER, input: None };

    async fn run<A: AsRef<OsStr>>(program: &Path, args: &[A], terms: &Terms<'_>) -> Result<String, Failed> {
        super::run(Start { program, environment: &Environment::default() }, args, terms).await
    }

    async fn launch<A: AsRef<OsStr>>(program: &Path, args: &[A]) -> Result<(), Failed> {
        super::launch(Start { program, environment: &Environment::default() }, args, &[]).await
    }

    /// The test's own environment is not empty: cargo sets its folder, its version and much more.
    #[tokio::test]
    async fn a_program_finds_only_what_it_is_given() {
        let programs = Programs::new();
        let program = programs.write("p", "env | cut -d = -f 1 | grep -v -x -e PWD -e SHLVL -e _ -e OLDPWD");
        let given = [("PATH", "/usr/bin:/bin"), ("LC_TIME", "C"), ("OPENAI_API_KEY", "sk-1")];
        let environment = Environment::of(given.map(|(name, value)| (name.into(), value.into())));
        let start = Start { program: &program, environment: &environment };
        let found = super::run(start, &NOTHING, &PATIENT).await.unwrap();
        let mut found: Vec<&str> = found.lines().collect();
        found.sort_unstable();
        assert_eq!(found, ["LC_TIME", "PATH"]);
    }

    #[tokio::test]
    async fn what_a_program_says_and_how_it_ends() {
        let programs = Programs::new();
        for (script, expected) in [
            ("echo hello", Ok("hello\n".to_owned())),
            ("cat", Ok(String::new())),
            ("pwd", Ok("/\n".to_owned())),
            (
                "echo no permission >&2; exit 3",
                Err(Failed::Refused(said::program_failed("p", "no permission"))),
            ),
            ("exit 1", Err(Failed::Refused(said::program_failed("p", said::program_silent())))),
            ("kill -9 $$", Err(Failed::Interrupted(said::program_killed("p", said::program_silent())))),
            ("exit 137", Err(Failed::Interrupted(said::program_killed("p", said::program_silent())))),
        ] {
            let ran = run(&programs.write("p", script), &NOTHING, &PATIENT).await;
            assert_eq!(ran, expected, "{script}");
        }
        let absent = run(Path::new("/nowhere/p"), &NOTHING, &PATIENT).await.unwrap_err();
        assert!(
            matches!(&absent, Failed::Absent(why) if why.to_string().contains("could not be started")),
            "{absent:?}"
        );
    }

    #[tokio::test]
    async fn an_answer_is_whole_or_none() {
        let programs = Programs::new();
        let print = "head -c \"$1\" /dev/zero | tr '\\0' x";
        let terms = Terms { longest_answer: 200_000, ..PATIENT };
        let whole = run(&programs.write("p", print), &["200000"], &terms).await;
        assert_eq!(whole.unwrap().len(), 200_000);
        let talker = programs.write("p", &format!("echo $$ >> \"$LOG\"; {print}; sleep 600"));
        let stopped = run(&talker, &["200001"], &terms).await;
        assert_eq!(stopped, Err(Failed::Interrupted(said::program_too_much("p", 195_u32))));
        assert!(gone(programs.log().trim()).await);
    }

    #[tokio::test]
    async fn what_a_program_is_told_arrives_byte_for_byte() {
        let programs = Programs::new();
        let echo = programs.write("p", "cat");
        let long = "ä😀\\t\n".repeat(50_000);
        for text in ["", "-n \\t %s $(id) \0 😀\n\n", &long] {
            let terms = Terms { input: Some(text), longest_answer: 1024 * 1024, ..PATIENT };
            assert_eq!(run(&echo, &NOTHING, &terms).await.as_deref(), Ok(text));
        }
    }

    /// With a pipe, if we were killed between starting the program and writing to it, it would read an empty input.
    #[tokio::test]
    async fn what_a_program_is_told_is_there_before_it_starts() {
        let programs = Programs::new();
        let look = programs.write("p", "[ -p /dev/stdin ] && exit 9; cat /dev/stdin > \"$LOG\"; cat");
        let terms = Terms { input: Some("all of it"), ..PATIENT };
        assert!(run(&look, &NOTHING, &terms).await.is_ok());
        assert_eq!(programs.log(), "all of it");
    }

    #[tokio::test]
    async fn a_program_that_does_not_listen_is_judged_by_its_end() {
        let programs = Programs::new();
        // More than a pipe can buffer, so that writing cannot succeed without a reader.
        let long = "x".repeat(1024 * 1024);
        let terms = Terms { input: Some(&long), ..PATIENT };
        for (script, expected) in [
            ("exit 0", Failed::Interrupted(said::program_unread("p"))),
            ("echo no >&2; exit 1", Failed::Refused(said::program_failed("p", "no"))),
        ] {
            assert_eq!(run(&programs.write("p", script), &NOTHING, &terms).await, Err(expected), "{script}");
        }
        let deaf = programs.write("p", "exec 0<&-; sleep 600");
        let terms = Terms { patience: Duration::from_millis(300), ..terms };
        assert!(matches!(run(&deaf, &NOTHING, &terms).await, Err(Failed::Interrupted(_))));
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_with_its_children() {
        let programs = Programs::new();
        let hang = programs.write("hang", "sleep 600 & echo $! >> \"$LOG\"; echo $$ >> \"$LOG\"; wait");
        let out_of_patience = async {
            noted(&programs, |log| log.lines().count() == 2).await;
            tokio::time::pause();
        };
        let terms = Terms::within(Duration::from_mins(1));
        let (ran, ()) = tokio::join!(run(&hang, &NOTHING, &terms), out_of_patience);
        tokio::time::resume();
        assert_eq!(ran, Err(Failed::Interrupted(said::program_timed_out("hang", 60))));
        let pids = programs.log();
        for pid in pids.lines() {
            assert!(gone(pid).await, "{pid} lives on");
        }
    }

    #[tokio::test]
    async fn a_program_whose_caller_went_away_is_killed() {
        let programs = Programs::new();
        let hang = programs.write("hang", "echo $$ >> \"$LOG\"; sleep 600");
        tokio::select! {
            ended = run(&hang, &NOTHING, &PATIENT) => panic!("it ended by itself: {ended:?}"),
            () = noted(&programs, |log| log.ends_with('\n')) => {}
        }
        assert!(gone(programs.log().trim()).await, "it outlived its caller");
    }

    #[tokio::test]
    async fn a_launched_program_is_left_alone_and_an_early_failure_is_told() {
        let programs = Programs::new();
        let failed = launch(&programs.write("x", "exit 3"), &NOTHING).await.unwrap_err();
        assert!(failed.sentence().to_string().contains("found no program"));
        let waits =
            "until [ -e \"$LOG.go\" ] || [ ! -d \"${LOG%/*}\" ]; do sleep 0.02; done; echo done > \"$LOG\"";
        assert_eq!(launch(&programs.write("x", waits), &NOTHING).await, Ok(()));
        std::fs::write(programs.folder().join("log.go"), "").unwrap();
        noted(&programs, |log| log == "done\n").await;
    }

    /// Waits until the log is like this.
    async fn noted(programs: &Programs, is: impl Fn(&str) -> bool) {
        assert!(happens(|| is(&programs.log())).await, "the log says: {}", programs.log());
    }

    /// Waits until the process has ended; a zombie counts as ended.
    async fn gone(pid: &str) -> bool {
        let stat = format!("/proc/{pid}/stat");
        happens(|| {
            let state = std::fs::read_to_string(&stat).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        })
        .await
    }

    /// Whether this becomes true; gives up after a long time.
    async fn happens(is: impl Fn() -> bool) -> bool {
        for _ in 0..1_000 {
            if is() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }
}
