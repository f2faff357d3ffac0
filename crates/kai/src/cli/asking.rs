//! Asks a call and prints the answer, as text or as JSON.

use std::process::ExitCode;

#[cfg(feature = "foss")]
use kai_assistant::home::Home;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Call;
use crate::caller::Caller;
#[cfg(feature = "foss")]
use crate::demo;
use crate::failure::Failure;
use crate::terminal::out;

/// A command line at work: whom it asks, and how it shows the answer.
pub(super) struct Cli {
    pub(super) caller: Caller,
    pub(super) json: bool,
}

impl Cli {
    pub(super) fn show<T: DeserializeOwned + Serialize>(
        &self,
        call: Call,
        text: impl FnOnce(&T) -> String,
    ) -> Result<ExitCode, Failure> {
        let answer: T = self.caller.ask(call)?;
        self.print(&answer, text);
        Ok(ExitCode::SUCCESS)
    }

    /// For an answer that is one bare value: as JSON it is an object, so that more can be said in it one day.
    pub(super) fn tell<T: DeserializeOwned>(
        &self,
        call: Call,
        object: impl FnOnce(&T) -> Value,
        text: impl FnOnce(&T) -> String,
    ) -> Result<ExitCode, Failure> {
        let answer: T = self.caller.ask(call)?;
        self.print(&object(&answer), |_| text(&answer));
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn print<T: Serialize>(&self, answer: &T, text: impl FnOnce(&T) -> String) {
        if self.json { out::json(answer) } else { out::text(&text(answer)) }
    }
}

/// A demo has a home of its own inside the one that was named. Only who starts it makes one.
#[cfg(feature = "foss")]
pub(super) fn demo_in(home: Home, starts: bool) -> Result<Home, Failure> {
    if home.is_demo() {
        Ok(home)
    } else if starts {
        home.demo().map_err(|e| Failure::store(format!("The demo's home cannot be made: {e}.")))
    } else {
        home.old_demo().ok_or_else(demo::not_running)
    }
}
