//! A home in this process: an app over a store in memory, and the command line on it.

use std::fs::Permissions;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use jiff::Timestamp;
use kai_assistant::clock::{Clock, ManualClock};
use kai_stand_ins::Provider;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Role, Running};
use crate::caller::Caller;
use crate::cli;
use crate::home::Keys;
use crate::machine::Machine;
use crate::socket;
use crate::terminal::stage;

/// What a command printed and how it ended.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(super) struct Done {
    pub(super) code: u8,
    pub(super) out: String,
    pub(super) err: String,
}

impl Done {
    /// Runs a command with something piped into it.
    fn of(caller: Caller, words: &[&str], input: &str) -> Self {
        let (code, heard) = stage::during(input, || cli::run_with(caller, words));
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code, out: text(heard.out), err: text(heard.err) }
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The last line on stderr is the sentence; something was shown before it.
    pub(super) fn refused_last(&self, code: u8, word: &str) {
        let last = self.err.lines().last().unwrap_or_default();
        assert!(
            self.code == code && last.starts_with("kai: ") && last.contains(word),
            "{word:?} in {self:?}"
        );
    }

    /// One sentence on stderr, nothing else, and the code.
    pub(super) fn refused(&self, code: u8, word: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("kai: ") && self.err.contains(word), "{word:?} in {self:?}");
        for ugly in ["Error(", "os error 2"] {
            assert!(!self.err.contains(ugly), "{self:?}");
        }
    }
}

/// Noon of a Friday, where the clock is.
pub(super) fn noon() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_second(1_800_014_400).unwrap()))
}

/// A home whose store is a file, which every command opens anew.
pub(super) struct Disk(TempDir);

impl Disk {
    /// A new one, with nothing in it.
    pub(super) fn new() -> Self {
        let private = Permissions::from_mode(0o700);
        Self(tempfile::Builder::new().permissions(private).tempdir().unwrap())
    }

    /// One that remembers something.
    pub(super) fn prepared() -> Self {
        let home = Self::new();
        let stored = home.run(&["tools", "call", "memory_store", r#"{"key": "a", "content": "b"}"#]);
        assert_eq!(stored.code, 0, "{stored:?}");
        home
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn run(&self, words: &[&str]) -> Done {
        let home = kai_assistant::home::Home::at(self.0.path()).unwrap();
        Done::of(Caller::new(home, Keys::default()), words, "")
    }
}

/// A folder of programs that stand in for those of a machine.
pub(super) struct Programs(TempDir);

impl Programs {
    pub(super) fn new(programs: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, script) in programs {
            folder.write(name, script);
        }
        folder
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Written by another process, so that no fork of a neighbouring test holds it open when it is started.
    pub(super) fn write(&self, name: &str, script: &str) {
        let folder = self.path();
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(folder.join(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let text = format!("#!/bin/sh\nDIR='{}'\n{script}\n", folder.display());
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }

    /// A file that they wrote.
    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}

pub(super) struct Home {
    pub(super) app: Arc<App>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) serving: Option<Serving>,
    folder: TempDir,
}

/// Ends when it is dropped.
pub(super) struct Serving {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Home {
    /// Of a machine that can do nothing for us, and without a daemon.
    pub(super) fn new() -> Self {
        Self::on(Machine::default(), Role::Command)
    }

    pub(super) fn on(machine: Machine, role: Role) -> Self {
        let clock = noon();
        let (app, folder) = App::on(clock.clone(), machine, role);
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        Self { app: Arc::new(app), clock, serving: None, folder }
    }

    /// Of the same machine, with a daemon that answers for it.
    pub(super) fn served() -> Self {
        Self::served_on(Machine::default())
    }

    pub(super) fn served_on(machine: Machine) -> Self {
        let mut home = Self::on(machine, Role::Daemon);
        let bound = SocketAddr::from((Ipv4Addr::LOCALHOST, 8710));
        let running = Running { pid: 1, address: format!("http://{bound}"), bound, since: home.clock.now() };
        Arc::get_mut(&mut home.app).unwrap().daemon = Some(running);
        home.serving = Some(home.serve());
        home
    }

    /// Answers commands over the socket from now on, as a daemon does.
    pub(super) fn serve(&self) -> Serving {
        let (app, stop, (listens, listening)) =
            (Arc::clone(&self.app), CancellationToken::new(), mpsc::channel());
        let until = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = socket::listen(&app.home).unwrap();
                listens.send(()).unwrap();
                #[cfg(feature = "foss")]
                tokio::spawn(crate::commands::notifications::listen_on(Arc::clone(&app), until.clone()));
                socket::serve(app, listener, until, TaskTracker::new()).await;
            });
        });
        listening.recv().unwrap();
        Serving { stop, thread: Some(thread) }
    }

    /// A demo, with what has just come in there.
    #[cfg(feature = "foss")]
    pub(super) fn demo() -> Self {
        let clock = noon();
        let phone = Arc::new(kai_bridges::simulated::Phone::with_inbox(clock.clone()));
        let (app, folder) = App::with_phone(clock.clone(), phone);
        let home = Self { app: Arc::new(app), clock, serving: None, folder };
        home.wait(async |app| crate::demo::prepare(app).await.unwrap());
        home
    }

    /// One whose only model is this server.
    pub(super) fn with_model(provider: &Provider) -> Self {
        let home = Self::new();
        home.add_model("mine", provider);
        home
    }

    pub(super) fn add_model(&self, name: &str, provider: &Provider) {
        let address = ["--base-url", &provider.base_url, "--model", "m"];
        let added =
            self.run(&[&["models", "add", "openai-compatible", "--name", name], &address[..]].concat());
        assert_eq!(added.code, 0, "{added:?}");
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn run(&self, words: &[&str]) -> Done {
        self.piped(words, "")
    }

    /// A command with something piped into it.
    pub(super) fn piped(&self, words: &[&str], input: &str) -> Done {
        Done::of(Caller::of(Arc::clone(&self.app)), words, input)
    }

    /// What the daemon would do by itself.
    pub(super) fn wait<T>(&self, work: impl AsyncFnOnce(&Arc<App>) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work(&self.app))
    }

    /// A file beside the store.
    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let file = self.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// A setting as another home had it.
    pub(super) fn take_in(&self, key: &str, value: &str) {
        let export = serde_json::json!({"kai_export": 1, "sections": {"settings": {key: value}}});
        let file = self.file("setting.json", &export.to_string());
        assert_eq!(self.run(&["import", &file, "--yes"]).code, 0);
    }
}
