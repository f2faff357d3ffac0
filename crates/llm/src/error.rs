//! Why a model gave no reply. Each variant tells the caller what to do next.

use std::time::Duration;

use crate::detail::{Detail, Hint};
use crate::engine::EngineTrouble;

/// An error as one sentence for the user: what happened, why, and what to do next. It never contains a key.
///
/// `said` is the server's own message, shortened to one line and with the key removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error(
        "The model's service refused the key (it is missing, wrong or no longer valid): set a new key for this model."
    )]
    BadKey,
    #[error(
        "The model's service does not allow this with your key ({said}): check what the key and your account may use."
    )]
    Forbidden { said: String },
    #[error(
        "The account at the model's service has no credit left ({said}): top it up, or choose another model."
    )]
    NoCredit { said: String },
    #[error(
        "The server has no model named \"{model}\" ({said}): check the spelling, or choose one that the server lists (with Ollama, pull it first)."
    )]
    NoSuchModel { model: String, said: String },
    #[error("The model's server refused the request ({said}): change the request, or choose another model.")]
    BadRequest { said: String },
    #[error(
        "The model does not accept pictures ({said}): send the message without them, or choose a model that can see."
    )]
    NoPictures { said: String },
    #[error(
        "This chat is too long for the model: start a new one, send less text at once, or choose a model with a larger context window."
    )]
    /// `limit` is the server's maximum number of tokens, if it states one.
    TooLong { limit: Option<usize> },
    #[error("The model's service declined to answer this ({why}): rephrase it, or choose another model.")]
    Blocked { why: String },
    #[error("Too many requests{}: wait a moment, or choose another model.", pause(*.wait))]
    RateLimited { wait: Option<Duration> },
    #[error("The model's service is overloaded: try again in a minute, or choose another model.")]
    Overloaded,
    #[error(
        "The model's server failed{} ({said}): try again, and check its log if it is your own server.",
        with_status(*.status)
    )]
    /// `status` is 200 if the error was reported inside an answer that started successfully.
    ServerError { status: u16, said: String },
    #[error(
        "The connection to {at} failed ({cause}): check the base URL, your connection, and that the server is running."
    )]
    Network { at: String, cause: Detail },
    #[error("{at} gave no answer within {} s: check whether the server is stuck or busy, then try again.", .after.as_secs())]
    TimedOut { at: String, after: Duration },
    #[error("{at} does not speak the expected API ({what}): {hint}")]
    NotAnApi { at: String, what: Detail, hint: Hint },
    #[error(
        "The model's server gave an unreadable answer ({what}): try again, and check the server if this keeps happening."
    )]
    Garbled { what: Detail },
    #[error(
        "The answer is larger than the limit of {limit} bytes, so Kai stopped reading: check that the base URL leads to a model's server."
    )]
    TooLarge { limit: usize },
    #[error(
        "The certificate of {at} cannot be trusted ({cause}): correct the address, or add the certificate's issuer to this system's trusted certificates."
    )]
    Certificate { at: String, cause: Detail },
    #[error("This model is not set up correctly ({what}): {hint}")]
    BadSetup { what: Detail, hint: Hint },
    /// A model that runs inside Kai, which has no server that could be asked again.
    #[error("The model on this computer did not answer: {0}.")]
    Engine(EngineTrouble),
}

fn pause(wait: Option<Duration>) -> String {
    wait.map(|w| format!(" (the service asks for a pause of {} s)", w.as_secs().max(1))).unwrap_or_default()
}

fn with_status(status: u16) -> String {
    if status == 200 { String::new() } else { format!(" with status {status}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_one_sentence_that_ends_with_advice() {
        let (at, said) = ("host:80".to_owned(), "no".to_owned());
        for error in [
            ModelError::BadKey,
            ModelError::Forbidden { said: said.clone() },
            ModelError::RateLimited { wait: Some(Duration::from_secs(7)) },
            ModelError::RateLimited { wait: None },
            ModelError::ServerError { status: 500, said },
            ModelError::TimedOut { at, after: Duration::from_secs(3) },
            ModelError::Garbled { what: Detail::JsonBreaksOff },
            ModelError::Engine(EngineTrouble::Killed),
        ] {
            let sentence = error.to_string();
            assert!(
                sentence.ends_with('.') && sentence.contains(':') && !sentence.contains('\n'),
                "{sentence}"
            );
            assert_eq!(sentence.matches(". ").count(), 0, "{sentence}");
        }
    }
}
