//! Makes a call and prints the answer as text or JSON.

use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Call;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::terminal::out;

/// A running command: the caller that answers its calls, and the output format.
pub(super) struct Cli {
    pub(super) caller: Caller,
    pub(super) json: bool,
}

impl Cli {
    /// Makes a call and prints the answer.
    pub(super) fn show<T: DeserializeOwned + Serialize>(
        &self,
        call: Call,
        text: impl FnOnce(&T) -> String,
    ) -> Result<ExitCode, Failure> {
        let answer: T = self.caller.ask(call)?;
        self.print(&answer, text);
        Ok(ExitCode::SUCCESS)
    }

    /// Like [`Self::show`] for an answer that is one bare value. Its JSON is an object, so that fields can be added
    /// later.
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
