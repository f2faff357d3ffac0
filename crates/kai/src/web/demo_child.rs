//! The demo that the page starts: beside this Kai, in a home and a process of its own. It ends when this Kai does.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use kai_assistant::home::Home;
use kai_assistant::lock::lock;

use crate::caller_env;

/// The demo that was started from here, if one was.
#[derive(Clone, Default)]
pub(super) struct DemoChild {
    /// Held until the demo runs: two clicks lead to one demo.
    starting: Arc<Mutex<()>>,
    process: Arc<Mutex<Process>>,
}

#[derive(Default)]
struct Process {
    child: Option<Child>,
    /// This Kai ends, and starts nothing any more.
    over: bool,
}

impl Process {
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Starts another one and returns what it prints.
    fn start(&mut self, home: &Home) -> Option<ChildStdout> {
        self.end();
        if self.over {
            return None;
        }
        let child = kai(home.dir.clone()).args(["serve", "--demo", "--port", "0"]).spawn().ok()?;
        self.child.insert(child).stdout.take()
    }
}

impl DemoChild {
    /// For good; also one that is being started.
    pub(super) fn end(&self) {
        let mut process = lock(&self.process);
        process.over = true;
        process.end();
    }

    /// A link into the demo; blocks until it runs.
    pub(super) fn link(&self, home: &Home) -> Option<String> {
        let _alone = lock(&self.starting);
        if let Some(link) = fresh_link(home) {
            return Some(link);
        }
        let printed = lock(&self.process).start(home)?;
        let mut line = String::new();
        BufReader::new(printed).read_line(&mut line).ok()?;
        line.trim().strip_prefix("Open ").map(str::to_owned)
    }
}

/// Into one that runs already.
fn fresh_link(home: &Home) -> Option<String> {
    let demo = home.demo().ok().filter(|demo| demo.socket().exists())?;
    let said = kai(demo.dir).args(["link", "--json"]).output().ok()?;
    let link: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
    link["url"].as_str().filter(|_| link["daemon_running"] == true).map(str::to_owned)
}

/// This very program, also when a newer one lies in its place by now.
const OURSELVES: &str = "/proc/self/exe";

fn kai(home: PathBuf) -> Command {
    let mut command = Command::new(OURSELVES);
    command
        .arg0("kai")
        .env_clear()
        .envs(caller_env::for_programs().variables())
        .arg("--home")
        .arg(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}
