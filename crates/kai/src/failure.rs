//! The error type of commands: a message for the user and an exit code for scripts.

use kai_assistant::agent::TurnError;
use kai_assistant::db::{DbError, OpenError};
use kai_assistant::home::KeyError;
use kai_words::Said;
use serde::{Deserialize, Serialize};

/// A message that says what went wrong and what to do, with the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) code: u8,
    #[serde(with = "english")]
    pub(crate) message: Said,
}

impl Failure {
    /// The command failed: exit code 1.
    pub(crate) fn failed(message: impl Into<Said>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// The command was used wrongly: exit code 2.
    pub(crate) fn usage(message: impl Into<Said>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// The home or its store cannot be used: exit code 3.
    pub(crate) fn store(message: impl Into<Said>) -> Self {
        Self { code: 3, message: message.into() }
    }
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::store(error.to_string())
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::store(error.to_string())
    }
}

/// Commands speak English, so that is what goes over the socket.
mod english {
    use kai_words::Said;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(message: &Said, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(message)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Said, D::Error> {
        String::deserialize(from).map(Said::from)
    }
}
