//! MCP servers: honest ones, and one of our own that lies, over pipes and over HTTP.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test may fail loudly")]

mod hostile;
mod liar;
mod oauth;
mod over_http;
mod programs;
mod web;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kai_assistant::mcp::port::{
    Connected, Connector, KeepTokens, Launch, LinkError, Outcome, Secret, Transport,
};
use kai_assistant::untrusted::Untrusted;
use kai_bridges::Environment;
use kai_bridges::mcp::{Leash, McpConnector};
use serde_json::{Map, Value};

/// How this test plays a part in a process of its own: a test that only other tests start.
fn part(name: &str) -> [&str; 5] {
    [name, "--exact", "--ignored", "--nocapture", "--quiet"]
}

#[test]
#[ignore = "other tests start it, as the leash of a program"]
fn play_leash() {
    kai_bridges::mcp::hold_leash();
    std::process::exit(0);
}

fn connector() -> McpConnector {
    let leash = Leash::of(std::env::current_exe().unwrap(), part("play_leash"));
    McpConnector::new(environment(), leash)
}

fn environment() -> Environment {
    Environment::of([("PATH".into(), "/usr/bin:/bin".into()), ("KAI_SECRET".into(), "hidden".into())])
}

/// A server that is this same test, lying in the given way.
fn lying(way: &str) -> Launch {
    let exe = std::env::current_exe().unwrap();
    let args = part("liar::play_liar").map(str::to_owned).to_vec();
    launch(Transport::Stdio { command: exe.to_str().unwrap().to_owned(), args }, &[(liar::WAY, way)])
}

fn launch(transport: Transport, secrets: &[(&str, &str)]) -> Launch {
    Launch {
        name: "test".to_owned(),
        transport,
        secrets: secrets.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect(),
        tokens: None,
        keep_tokens: Arc::new(|_| panic!("no tokens are expected")),
    }
}

async fn connected(launch: Launch) -> Connected {
    connector().connect(launch).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn refused(launch: Launch) -> LinkError {
    connector().connect(launch).await.err().expect("it connected")
}

/// Remembers the tokens that are stored.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Secret>>>);

impl Kept {
    fn keep(&self) -> KeepTokens {
        let kept = self.clone();
        Arc::new(move |tokens| kept.0.lock().unwrap().push(tokens))
    }

    fn last(&self) -> Option<Secret> {
        self.0.lock().unwrap().last().cloned()
    }

    fn times(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn no_arguments() -> Map<String, Value> {
    Map::new()
}

async fn call(connected: &Connected, tool: &str) -> Result<Outcome, LinkError> {
    connected.link.call(tool, no_arguments(), &|_| {}).await
}

async fn text(connected: &Connected, tool: &str) -> String {
    call(connected, tool).await.unwrap_or_else(|error| panic!("{error}")).text.as_written().to_owned()
}

fn names(connected: &Connected) -> Vec<&str> {
    connected.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// Waits until this is so.
async fn happens(what: &str, is: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not happen: {what}");
}

/// Whether a process runs. One that nobody has reaped yet does not.
fn runs(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

fn untrusted(text: &str) -> Untrusted {
    Untrusted::new(text)
}
