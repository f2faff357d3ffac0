//! The demo that the page starts: a second Kai with its own home and its own process, which ends when this one does.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use kai_assistant::home::Home;
use kai_assistant::lock::lock;

use crate::caller_env;

/// The demo process that this Kai started, if any.
#[derive(Clone, Default)]
pub(super) struct DemoChild {
    /// Locked until the demo is running, so that two clicks start only one.
    starting: Arc<Mutex<()>>,
    process: Arc<Mutex<Process>>,
    /// Where the demo's page is, once it is known to run.
    address: Arc<Mutex<Option<SocketAddr>>>,
}

#[derive(Default)]
struct Process {
    child: Option<Child>,
    /// This Kai is shutting down and starts no more demos.
    over: bool,
}

impl Process {
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Errors are ignored: the process may have exited already.
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Ends the running demo, starts a new one and returns its standard output.
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
    /// Ends the demo for good, including one that is just starting; no other can be started.
    pub(super) fn end(&self) {
        let mut process = lock(&self.process);
        process.over = true;
        process.end();
    }

    /// Returns the token of a sign-in link to the demo, starting it if necessary. Blocks until the demo is running.
    pub(super) fn sign_in(&self, home: &Home) -> Option<String> {
        let link = self.link(home)?;
        let (address, token) = link.strip_prefix("http://")?.split_once("/login?token=")?;
        // A demo that somebody serves on a network is not this page's to hand on.
        let address: SocketAddr =
            address.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback())?;
        *lock(&self.address) = Some(address);
        Some(token.to_owned())
    }

    /// Where the demo's page is, if it was started.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        *lock(&self.address)
    }

    /// Returns a sign-in link to the demo, starting it if necessary.
    fn link(&self, home: &Home) -> Option<String> {
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

/// Asks a demo that is already running for a sign-in link.
fn fresh_link(home: &Home) -> Option<String> {
    let demo = home.demo().ok().filter(|demo| demo.socket().exists())?;
    let said = kai(demo.dir).args(["link", "--json"]).output().ok()?;
    let link: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
    link["url"].as_str().filter(|_| link["daemon_running"] == true).map(str::to_owned)
}

/// The program that is running now, even if its file has been replaced by a newer version.
const OURSELVES: &str = "/proc/self/exe";

/// A `kai` command for this home, with only the environment that started programs may see.
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
