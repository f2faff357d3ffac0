//! Where a call is answered: by the running daemon if there is one, else right here.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::net::UnixStream;

use kai_assistant::home::Home;
use serde::de::DeserializeOwned;

use crate::answer::answer;
use crate::call::{Call, Event, Hello, VERSION};
use crate::failure::Failure;
use crate::home::Keys;
use crate::{socket, wire};

/// A home to ask, and how to open it if nobody answers for it.
pub(crate) struct Caller {
    pub(crate) home: Home,
    pub(crate) keys: Keys,
}

impl Caller {
    pub(crate) fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        let value = match socket::connect(&self.home) {
            Some(stream) => over(stream, call)?,
            None => self.here(call)?,
        };
        serde_json::from_value(value).map_err(|_| other_version())
    }

    fn here(&self, call: Call) -> Result<serde_json::Value, Failure> {
        let app = wire::open(self.home.clone(), self.keys)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Failure::failed(format!("Kai could not start: {e}.")))?;
        runtime.block_on(answer(&app, call))
    }
}

fn over(stream: UnixStream, call: Call) -> Result<serde_json::Value, Failure> {
    // The call may have been carried out before the line broke, so it is not tried again by itself.
    let broken =
        |_| Failure::failed("The daemon stopped before it answered. Check with `kai status` and try again.");
    let hello = Hello { v: VERSION, tty: std::io::stdin().is_terminal(), call };
    let mut line = serde_json::to_vec(&hello).map_err(|e| Failure::failed(e.to_string()))?;
    line.push(b'\n');
    (&stream).write_all(&line).map_err(broken)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(broken)?;
    if answer.is_empty() {
        return Err(broken(std::io::ErrorKind::UnexpectedEof.into()));
    }
    match serde_json::from_str(&answer) {
        Ok(Event::Done { result }) => Ok(result),
        Ok(Event::Error { code, message }) => Err(Failure { code, message }),
        Err(_) => Err(other_version()),
    }
}

fn other_version() -> Failure {
    Failure::failed("The running daemon is of another version. Restart it, then try again.")
}
