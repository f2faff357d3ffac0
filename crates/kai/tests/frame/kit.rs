//! A home in a scratch folder, the binary on it, and a daemon that is always put away.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) const KAI: &str = env!("CARGO_BIN_EXE_kai");

/// The binary in an environment that holds nothing of the developer's own.
pub(crate) fn kai(home: &Path) -> Command {
    program(Path::new(KAI), home)
}

pub(crate) fn program(path: &Path, home: &Path) -> Command {
    let mut command = Command::new(path);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("KAI_HOME", home).env("TZ", "Europe/Berlin");
    command
}

/// What a command printed and how it ended.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Done {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The last line on stderr is the sentence; something was shown before it.
    pub(crate) fn refused_last(&self, code: i32, word: &str) {
        let last = self.err.lines().last().unwrap_or_default();
        assert!(
            self.code == code && last.starts_with("kai: ") && last.contains(word),
            "{word:?} in {self:?}"
        );
    }

    /// One sentence on stderr, nothing else, and the code.
    pub(crate) fn refused(&self, code: i32, word: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("kai: ") && self.err.contains(word), "{word:?} in {self:?}");
        for ugly in ["panicked", "RUST_BACKTRACE", "Error(", "os error 2"] {
            assert!(!self.err.contains(ugly), "{self:?}");
        }
    }
}

/// In the log of a daemon that had to wait for somebody when it was to stop.
pub(crate) const CUT_OFF: &str = "was still under way and was cut off";

pub(crate) fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    // Long, since the machine may be busy; nobody waits longer than it takes.
    for _ in 0..600 {
        if there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} did not happen");
}

pub(crate) struct Home(pub(crate) TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        let private = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
        Self(tempfile::Builder::new().permissions(private).tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        kai(self.path()).args(args).stdin(Stdio::null()).output().unwrap().into()
    }

    pub(crate) fn start(&self) -> Daemon {
        Daemon::start(kai(self.path()).args(["serve", "--port", "0"]))
    }

    /// A tool call by hand: two records in the ledger.
    pub(crate) fn remember(&self, key: &str) {
        let call = format!(r#"{{"key": "{key}", "content": "b"}}"#);
        let stored = self.run(&["tools", "call", "memory_store", &call]);
        assert_eq!(stored.code, 0, "{stored:?}");
    }

    /// What Kai says about its ledger.
    pub(crate) fn verify(&self) -> serde_json::Value {
        self.run(&["ledger", "verify", "--json"]).json()
    }

    /// The last record in the note of the ledger's end.
    pub(crate) fn noted(&self) -> i64 {
        let text = std::fs::read_to_string(self.path().join("kai.head")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["seq"].as_i64().unwrap()
    }

    /// A command on a terminal of its own; its input is what is typed there.
    pub(crate) fn terminal(&self, arguments: &str) -> Child {
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{KAI} {arguments}"), "/dev/null"]).env_clear();
        script
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("KAI_HOME", self.path())
            .env("SHELL", "/bin/sh");
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command on a terminal of its own and types a line at it each time it asks.
    pub(crate) fn type_at(&self, arguments: &str, typed: &str) -> Done {
        let mut child = self.terminal(arguments);
        let (mut keyboard, mut screen) = (child.stdin.take(), child.stdout.take().unwrap());
        let (mut seen, mut piece, mut lines) = (vec![], [0; 4096], typed.lines());
        while let Ok(length @ 1..) = screen.read(&mut piece) {
            seen.extend_from_slice(&piece[..length]);
            if !QUESTIONS.iter().any(|end| seen.ends_with(end.as_bytes())) {
                continue;
            }
            match lines.next() {
                Some(line) => {
                    if is_secret(&seen) {
                        wait_for("the echo to be off", || !echoes(child.id()));
                    }
                    writeln!(keyboard.as_ref().unwrap(), "{line}").unwrap();
                }
                None => drop(keyboard.take()),
            }
        }
        let done: Done = child.wait_with_output().unwrap().into();
        Done { out: String::from_utf8_lossy(&seen).into_owned(), ..done }
    }
}

/// How everything ends that asks for a line.
const QUESTIONS: [&str; 3] = ["[y/N] ", "[Y/n] ", ": "];

/// Keys and passphrases are asked for with the echo off; a yes, or the words that erase, are not.
fn is_secret(seen: &[u8]) -> bool {
    !["[y/N] ", "[Y/n] ", "to confirm: "].iter().any(|end| seen.ends_with(end.as_bytes()))
}

/// Does the terminal of the command that this `script` runs show what is typed?
fn echoes(script: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{script}/task/{script}/children")).unwrap();
    let command = children.split_whitespace().next().unwrap();
    let terminal = std::fs::File::open(format!("/proc/{command}/fd/0")).unwrap();
    let modes = rustix::termios::tcgetattr(terminal).unwrap().local_modes;
    modes.contains(rustix::termios::LocalModes::ECHO)
}

/// A running daemon, killed when the test is over.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) link: String,
    /// Host and port.
    pub(crate) address: String,
}

impl Daemon {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        let Some(link) = first.trim().strip_prefix("Open ").map(str::to_owned) else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("the daemon did not start: {first:?} {said:?} {:?}", child.wait());
        };
        let address = link.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Self { child, link, address }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal and waits, but not for ever; returns the exit code and what stood in the log.
    pub(crate) fn stop(self, signal: &str) -> (Option<i32>, String) {
        self.ask_to_stop(signal);
        self.ended()
    }

    pub(crate) fn ask_to_stop(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap();
        assert!(sent.success(), "{signal} could not be sent");
    }

    /// Waits until the log says this.
    pub(crate) fn until_logs(&mut self, words: &str) {
        let log = self.child.stderr.as_mut().unwrap();
        let mut said = vec![];
        // Byte by byte, so that the rest of the log is there for whoever reads it next.
        while !String::from_utf8_lossy(&said).contains(words) {
            let mut byte = [0];
            let more = log.read(&mut byte).unwrap() == 1;
            assert!(more, "it ended without {words:?}: {}", String::from_utf8_lossy(&said));
            if byte == *b"\n" { said.clear() } else { said.push(byte[0]) }
        }
    }

    /// Somebody asked it to stop.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let asked = Instant::now();
        let code = self.child.wait().unwrap().code();
        let took = asked.elapsed();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(took < Duration::from_secs(20), "it took {took:?}: {log}");
        (code, log)
    }

    pub(crate) fn token(&self) -> String {
        self.link.split_once("token=").unwrap().1.to_owned()
    }

    /// Signs in and returns the cookie.
    pub(crate) fn sign_in(&self) -> String {
        let answer = self.get(&format!("/login?token={}", self.token()), "");
        assert_eq!(answer.status, 303, "{}", answer.text);
        answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    pub(crate) fn get(&self, path: &str, cookie: &str) -> Answer {
        self.send("GET", path, &[("Cookie", cookie)], "")
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut head = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned()];
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push(format!("Host: {}", self.address));
        }
        head.extend(headers.iter().filter(|(_, value)| !value.is_empty()).map(|(n, v)| format!("{n}: {v}")));
        if !body.is_empty() {
            head.push("Content-Type: application/x-www-form-urlencoded".to_owned());
            head.push(format!("Content-Length: {}", body.len()));
        }
        self.send_raw(&format!("{}\r\n\r\n{body}", head.join("\r\n")))
    }

    pub(crate) fn send_raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        Answer { status, text }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An HTTP answer, as it came.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next().unwrap();
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    /// The hidden field of the page's forms.
    pub(crate) fn csrf(&self) -> String {
        let (_, rest) = self.text.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}
