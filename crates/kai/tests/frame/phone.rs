//! A phone without a phone: Termux, as far as Kai sees it, is a folder of programs first on `PATH`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::kit::{Daemon, Home, kai};

/// A home and a folder of programs that note how they were called.
pub(crate) struct Phone {
    pub(crate) home: Home,
    pub(crate) programs: Home,
}

/// One line per call, the arguments between bars.
pub(crate) const NOTE: &str =
    r#"line=$(basename "$0"); for a in "$@"; do line="$line|$a"; done; echo "$line" >> "$LOG""#;

impl Phone {
    pub(crate) fn new(programs: &[&str]) -> Self {
        let phone = Self { home: Home::new(), programs: Home::new() };
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
        command
    }

    pub(crate) fn start(&self) -> Daemon {
        Daemon::start(self.command().args(["serve", "--port", "0"]))
    }
}
