//! The error type of commands: a message for the user and an exit code for scripts.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::Path;

use kai_assistant::agent::TurnError;
use kai_assistant::attachments::Refused;
use kai_assistant::db::{DbError, OpenError};
use kai_assistant::home::KeyError;
use kai_words::Said;

/// For somebody who has no model, where nobody has looked what this computer can run: the command that tells.
#[cfg(feature = "local")]
const ON_THIS_COMPUTER: Option<&str> = Some("kai models get (on this computer: private, no account)");
#[cfg(not(feature = "local"))]
const ON_THIS_COMPUTER: Option<&str> = None;

/// A model at a service, or on a server.
const ELSEWHERE: &str =
    "kai models add openai (with an API key; all services and servers: kai models add --help)";

/// The store edition has no demo.
#[cfg(feature = "foss")]
const DEMO: Option<&str> = Some("kai serve --demo (only a look: everything in it is simulated)");
#[cfg(not(feature = "foss"))]
const DEMO: Option<&str> = None;

/// The commands for somebody who has no model yet, in the order of the welcome: a model on this computer, if it can run
/// one; an API key; the demo. What Kai finds here, it uses by itself, so nobody without a model has to be told of that.
pub(crate) fn set_up_a_model(on_this_computer: Option<&str>) -> String {
    let ways: Vec<&str> = on_this_computer.into_iter().chain([ELSEWHERE]).chain(DEMO).collect();
    ways.join(", or ")
}

/// A message that says what went wrong and what to do, with the exit code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", self.in_a_terminal())]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: Said,
    /// The command that helps. Only the command line shows it: the page has buttons.
    command: Option<Cow<'static, str>>,
}

impl Failure {
    /// The command failed: exit code 1.
    pub(crate) fn failed(message: impl Into<Said>) -> Self {
        Self { code: 1, message: message.into(), command: None }
    }

    /// The command was used wrongly: exit code 2.
    pub(crate) fn usage(message: impl Into<Said>) -> Self {
        Self { code: 2, message: message.into(), command: None }
    }

    /// The home or its store cannot be used: exit code 3.
    pub(crate) fn store(message: impl Into<Said>) -> Self {
        Self { code: 3, message: message.into(), command: None }
    }

    /// A failure that the daemon reported.
    pub(crate) fn told(code: u8, message: String) -> Self {
        Self { code, message: message.into(), command: None }
    }

    /// Names the command that helps.
    pub(crate) fn try_instead(self, command: impl Into<Cow<'static, str>>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    fn in_a_terminal(&self) -> String {
        self.command.as_ref().map(|command| format!(" Try: {command}")).unwrap_or_default()
    }
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::failed(error.said())
    }
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        let failure = Self::failed(error.said());
        match error {
            TurnError::NoModel => failure.try_instead(set_up_a_model(ON_THIS_COMPUTER)),
            TurnError::Unknown(_) => failure.try_instead("kai chats list"),
            TurnError::CannotSee { label } => failure.try_instead(format!("kai models pictures {label} yes")),
            TurnError::Busy(_)
            | TurnError::TakenOver(_)
            | TurnError::NothingSaid(_)
            | TurnError::Changed(_)
            | TurnError::File(_)
            | TurnError::Model { .. }
            | TurnError::Empty { .. }
            | TurnError::Store(_) => failure,
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::failed(refused.said())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::store(error.to_string())
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::store(error.said())
    }
}

/// Says why a file that the user named could not be read.
pub(crate) fn unread(path: &Path, why: &io::Error) -> String {
    match why.kind() {
        ErrorKind::NotFound => format!("There is no file {}.", path.display()),
        _ => format!("{} could not be read: {why}.", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_line_names_a_command() {
        let failure = Failure::failed("There is no such task.").try_instead("kai tasks list");
        assert_eq!(failure.to_string(), "There is no such task. Try: kai tasks list");
        assert_eq!(failure.message.to_string(), "There is no such task.");
    }

    #[test]
    fn somebody_without_a_model_is_told_every_way_to_one_in_order() {
        let own = "kai models get small (1.1 GB)";
        for (own, told) in [
            (Some(own), set_up_a_model(Some(own))),
            (None, set_up_a_model(None)),
            (ON_THIS_COMPUTER, Failure::from(TurnError::NoModel).in_a_terminal().replacen(" Try: ", "", 1)),
        ] {
            let ways: Vec<&str> = own.into_iter().chain([ELSEWHERE]).chain(DEMO).collect();
            assert_eq!(told.split(", or ").collect::<Vec<_>>(), ways);
        }
        assert!(ELSEWHERE.starts_with("kai models add openai (with an API key"));
        let has_demo = cfg!(feature = "foss");
        assert_eq!(DEMO.is_some_and(|demo| demo.starts_with("kai serve --demo")), has_demo);
    }
}
