//! A phone without a phone: Termux, as far as Kai sees it, is a folder of programs first on `PATH`.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{Daemon, Done, Home, kai};

/// A home and a folder of programs that note how they were called.
pub(crate) struct Phone {
    pub(crate) home: Home,
    pub(crate) programs: Home,
}

/// One line per call, the arguments between bars.
pub(crate) const NOTE: &str =
    r#"line=$(basename "$0"); for a in "$@"; do line="$line|$a"; done; echo "$line" >> "$LOG""#;

/// Lists the whole inbox, as an old script does that knows no selection; Kai selects itself.
const LIST: &str = r#"case "$*" in *--help*) echo 'usage: termux-sms-list [-t type]'; exit 1;; *'-t sent'*) cat "$DIR/sent.json";; *) cat "$DIR/inbox.json";; esac"#;
/// Notes the number and, byte for byte, the text.
const SEND: &str = r#"text=$(cat; echo x); printf '%s|%s\n' "$2" "${text%x}" >> "$DIR/left""#;

impl Phone {
    pub(crate) fn new(programs: &[&str]) -> Self {
        let phone = Self { home: Home::new(), programs: Home::new() };
        for name in programs {
            phone.program(name, NOTE);
        }
        phone
    }

    /// One with SMS, and nothing in its inbox.
    pub(crate) fn with_sms() -> Self {
        let phone = Self::new(&[]);
        phone.program("termux-sms-list", LIST);
        phone.program("termux-sms-send", SEND);
        phone.file("sent.json", "[]");
        phone.inbox(&[]);
        phone
    }

    /// What lies in the inbox: id, sender, text; received in that order, a second apart.
    pub(crate) fn inbox(&self, messages: &[(i64, &str, &str)]) {
        let row = |(n, (id, from, text)): (usize, &(i64, &str, &str))| {
            json!({"_id": id, "type": "inbox", "read": false, "address": from, "number": from, "threadid": 1,
                   "received": format!("2026-03-09 12:{:02}:{:02}", n / 60, n % 60), "body": text})
        };
        let rows: Vec<Value> = messages.iter().enumerate().map(row).collect();
        self.file("inbox.json", &Value::from(rows).to_string());
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.programs.path().join(name), text).unwrap();
    }

    /// What `termux-sms-send` was given: `number|text` and a line end each.
    pub(crate) fn left(&self) -> String {
        std::fs::read_to_string(self.programs.path().join("left")).unwrap_or_default()
    }

    /// Written by another process, so that no fork of a neighbouring test holds it open when it is started.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let folder = self.programs.path();
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(folder.join(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let (dir, log) = (folder.display(), folder.join("log").display().to_string());
        let text = format!("#!/bin/sh\nDIR='{dir}'\nLOG='{log}'\n{script}\n");
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }

    pub(crate) fn command(&self) -> Command {
        let mut path = vec![self.programs.path().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = kai(self.home.path());
        command
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("TERMUX_VERSION", "0.118.1")
            .env("LANG", "en_GB.UTF-8")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.command().args(args).output().unwrap().into()
    }

    /// A command on a terminal where `typed` is typed. What it prints comes with the terminal's line ends.
    pub(crate) fn on_terminal(&self, args: &[&str], typed: &str) -> Done {
        let kai = self.command();
        let mut command = Command::new("script");
        command.env_clear();
        for (name, value) in kai.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let line = [&[crate::kit::KAI], args].concat().join(" ");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }

    pub(crate) fn start(&self) -> Daemon {
        Daemon::start(self.command().args(["serve", "--port", "0"]))
    }
}
