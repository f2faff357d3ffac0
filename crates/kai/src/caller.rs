//! Where a call is answered: by the running daemon if there is one, else right here.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::pin::Pin;

use kai_assistant::agent::{self, Face};
use kai_assistant::home::Home;
use kai_assistant::words::Words;
use kai_llm::ToolCall;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::answer::{answer, values};
use crate::call::{Call, Event, Hello, VERSION, Word};
use crate::failure::Failure;
use crate::home::Keys;
use crate::wire::{App, Role};
use crate::{socket, wire};

/// A home to ask, and how to open it if nobody answers for it.
pub(crate) struct Caller {
    pub(crate) home: Home,
    pub(crate) keys: Keys,
}

/// Whoever sits at this end and watches a turn: is told, and may be asked.
pub(crate) trait Watcher: Send + Sync {
    fn sees(&self, event: &Event);
    /// Asks the person; blocks.
    fn allows(&self, tool: &str, arguments: &str) -> bool;
}

impl Caller {
    pub(crate) fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        let value = if let Some(stream) = socket::connect(&self.home) {
            over(stream, call)?
        } else {
            let app = wire::open(self.home.clone(), self.keys, Role::Command)?;
            runtime()?.block_on(answer(&app, call, &Nobody))?
        };
        serde_json::from_value(value).map_err(|_| other_version())
    }

    /// Somebody to talk to for longer: the daemon, or the opened store.
    pub(crate) fn line(&self) -> Result<Line, Failure> {
        let app = match socket::connect(&self.home) {
            Some(_) => None,
            None => Some(wire::open(self.home.clone(), self.keys, Role::Command)?),
        };
        Ok(Line { app, home: self.home.clone(), runtime: runtime()? })
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::failed(format!("Kai could not start: {e}.")))
}

/// Turns, one after the other, each of which Ctrl-C cancels.
pub(crate) struct Line {
    app: Option<App>,
    home: Home,
    runtime: tokio::runtime::Runtime,
}

impl Line {
    pub(crate) fn turn<T: DeserializeOwned>(&self, call: Call, watcher: &dyn Watcher) -> Result<T, Failure> {
        let value = self.runtime.block_on(async {
            match &self.app {
                Some(app) => here(app, call, watcher).await,
                None => there(&self.home, call, watcher).await,
            }
        })?;
        serde_json::from_value(value).map_err(|_| other_version())
    }
}

async fn here(app: &App, call: Call, watcher: &dyn Watcher) -> Result<serde_json::Value, Failure> {
    let face = Here { watcher, language: app.words(&values(app).await?) };
    tokio::select! {
        answered = answer(app, call, &face) => answered,
        _ = tokio::signal::ctrl_c() => Err(Failure::failed("Cancelled.")),
    }
}

async fn there(home: &Home, call: Call, watcher: &dyn Watcher) -> Result<serde_json::Value, Failure> {
    let stream = socket::connect(home).ok_or_else(|| broken(&std::io::ErrorKind::NotConnected.into()))?;
    stream.set_nonblocking(true).map_err(|e| broken(&e))?;
    let stream = tokio::net::UnixStream::from_std(stream).map_err(|e| broken(&e))?;
    let (from, mut to) = stream.into_split();
    let mut lines = tokio::io::BufReader::new(from).lines();
    to.write_all(&hello(call)?).await.map_err(|e| broken(&e))?;
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line.map_err(|e| broken(&e))?,
            // The daemon hears the hang-up and stops the turn.
            _ = tokio::signal::ctrl_c() => return Err(Failure::failed("Cancelled.")),
        };
        let line = line.ok_or_else(|| broken(&std::io::ErrorKind::UnexpectedEof.into()))?;
        match serde_json::from_str(&line).map_err(|_| other_version())? {
            Event::Done { result } => return Ok(result),
            Event::Error { code, message } => return Err(Failure { code, message }),
            Event::Confirm { tool, arguments } => {
                let word = Word::Allow { yes: watcher.allows(&tool, &arguments) };
                to.write_all(&json_line(&word)?).await.map_err(|e| broken(&e))?;
            }
            event => watcher.sees(&event),
        }
    }
}

/// A watcher in our own process.
struct Here<'a> {
    watcher: &'a dyn Watcher,
    language: &'static Words,
}

impl Face for Here<'_> {
    fn shows(&self, event: agent::Event) {
        self.watcher.sees(&socket::told(event, self.language));
    }

    fn allows<'a>(&'a self, call: &'a ToolCall) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async { self.watcher.allows(&call.name, &call.arguments) })
    }
}

/// For calls that are no turns: nothing is shown, and nobody says yes.
pub(crate) struct Nobody;

impl Face for Nobody {
    fn shows(&self, _: agent::Event) {}

    fn allows<'a>(&'a self, _: &'a ToolCall) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async { false })
    }
}

fn hello(call: Call) -> Result<Vec<u8>, Failure> {
    json_line(&Hello { v: VERSION, tty: std::io::stdin().is_terminal(), call })
}

fn json_line(value: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(value).map_err(|e| Failure::failed(e.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

fn over(stream: UnixStream, call: Call) -> Result<serde_json::Value, Failure> {
    (&stream).write_all(&hello(call)?).map_err(|e| broken(&e))?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(|e| broken(&e))?;
    if answer.is_empty() {
        return Err(broken(&std::io::ErrorKind::UnexpectedEof.into()));
    }
    match serde_json::from_str(&answer) {
        Ok(Event::Done { result }) => Ok(result),
        Ok(Event::Error { code, message }) => Err(Failure { code, message }),
        Ok(_) | Err(_) => Err(other_version()),
    }
}

/// The call may have been carried out before the line broke, so it is not tried again by itself.
fn broken(_: &std::io::Error) -> Failure {
    Failure::failed("The daemon stopped before it answered. Check with `kai status` and try again.")
}

fn other_version() -> Failure {
    Failure::failed("The running daemon is of another version. Restart it, then try again.")
}
