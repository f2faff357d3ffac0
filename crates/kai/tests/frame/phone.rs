//! A phone without a phone: Termux, as far as Kai sees it, is a folder of programs first on `PATH`.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::kit::{Daemon, Done, Home, kai, wait_for};

/// A home and a folder of programs that note how they were called.
pub(crate) struct Phone {
    pub(crate) home: Home,
    pub(crate) programs: Home,
    /// The certificates that its Kai trusts, if not the system's.
    pub(crate) trusts: Option<PathBuf>,
}

/// One line per call, the arguments between bars.
pub(crate) const NOTE: &str =
    r#"line=$(basename "$0"); for a in "$@"; do line="$line|$a"; done; echo "$line" >> "$LOG""#;

impl Phone {
    pub(crate) fn new(programs: &[&str]) -> Self {
        let phone = Self { home: Home::new(), programs: Home::new(), trusts: None };
        for name in programs {
            phone.program(name, NOTE);
        }
        phone
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
        if let Some(file) = &self.trusts {
            command.env("SSL_CERT_FILE", file);
        }
        command
    }

    pub(crate) fn start(&self) -> Daemon {
        Daemon::start(self.command().args(["serve", "--port", "0"]))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.command().args(args).output().unwrap().into()
    }

    /// Calls a tool by hand; it must work.
    pub(crate) fn call(&self, tool: &str, arguments: &serde_json::Value) {
        let done = self.run(&["tools", "call", tool, &arguments.to_string()]);
        assert_eq!(done.code, 0, "{tool} {arguments}: {done:?}");
    }

    /// What its programs noted.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.programs.path().join("log")).unwrap_or_default()
    }

    /// Waits until something was noted.
    pub(crate) fn wait_for(&self, word: &str) -> String {
        wait_for(word, || self.log().contains(word));
        self.log()
    }
}
