//! What the page says when Kai could not answer, in words that fit the page: commands name other commands instead.

use kai_assistant::agent::{NextRequest, TurnError};
use kai_assistant::models::Unusable;
use kai_llm::ModelError;
use kai_words::{Said, said};

use super::remedy::{Remedy, Trouble};
use crate::call::models::TestFailure;
use crate::commands::chats::Unanswered;
use crate::commands::models::Unready;

/// Why a message was not answered.
pub(super) fn unanswered(why: &Unanswered) -> Trouble {
    match why {
        Unanswered::Empty => said::turn_no_text().into(),
        Unanswered::Unready(Unready::NoModel) => no_model(),
        Unanswered::Unready(Unready::Unusable { model, why }) => {
            Trouble::new(unusable(model, why), Remedy::models())
        }
        Unanswered::Unready(Unready::Misconfigured { model, error }) => failed_model(model, error),
        Unanswered::Unready(Unready::Store(error)) => error.to_string().into(),
        Unanswered::Turn(error) => turn(error),
    }
}

/// Why a turn, or something else that was done with a chat, failed.
pub(super) fn turn(error: &TurnError) -> Trouble {
    match error {
        TurnError::NoModel => no_model(),
        TurnError::Unknown(_) => Trouble::new(said::turn_no_chat(), Remedy::new_chat()),
        TurnError::Busy(_) => said::turn_busy().into(),
        TurnError::TakenOver(_) => said::turn_taken_over().into(),
        TurnError::NothingSaid(_) => said::turn_nothing_said().into(),
        TurnError::Empty { label, .. } => Trouble::new(said::turn_empty(label), Remedy::models()),
        TurnError::Model { label, error, .. } => failed_model(label, error),
        // The store's errors are sentences from below.
        TurnError::Store(error) => error.to_string().into(),
    }
}

fn no_model() -> Trouble {
    Trouble::new(said::turn_no_model(), Remedy::models())
}

/// Why Kai cannot ask this model at all.
pub(super) fn unusable(model: &str, why: &Unusable) -> Said {
    match why {
        Unusable::NoKey { .. } => said::turn_no_key(model),
        Unusable::UnknownPreset(_) => said::turn_unknown_preset(model),
    }
}

/// Why a model's answer takes longer than usual, and what Kai does about it.
pub(super) fn again(model: &str, why: &ModelError, next: &NextRequest) -> [Said; 2] {
    let next = match next {
        NextRequest::Attempt { nth, of } => said::turn_again_attempt(model, *nth, *of),
        NextRequest::Shorter => said::turn_again_shorter(model),
        NextRequest::Other(other) => said::turn_again_other(other),
    };
    [model_error(model, why), next]
}

/// Why a model failed its test.
pub(super) fn test_failed(model: &str, failure: &TestFailure) -> Said {
    match failure {
        TestFailure::Unusable(why) => unusable(model, why),
        TestFailure::Model(error) => model_error(model, error),
        TestFailure::Late(after) => said::model_timed_out(model, after.as_secs()),
    }
}

fn failed_model(model: &str, error: &ModelError) -> Trouble {
    let remedy = match error {
        ModelError::TooLong { .. } => Some(Remedy::new_chat()),
        // Only the server's owner, or another try, can help.
        ModelError::ServerError { .. } | ModelError::TimedOut { .. } | ModelError::Garbled { .. } => None,
        _ => Some(Remedy::models()),
    };
    Trouble { why: model_error(model, error), remedy }
}

/// Why the model gave no answer.
fn model_error(model: &str, error: &ModelError) -> Said {
    match error {
        ModelError::BadKey => said::model_bad_key(model),
        ModelError::Forbidden { said } => said::model_forbidden(model, said),
        ModelError::NoCredit { said } => said::model_no_credit(model, said),
        ModelError::NoSuchModel { model: name, said } => said::model_no_such_model(model, name, said),
        ModelError::BadRequest { said } => said::model_bad_request(model, said),
        ModelError::TooLong { .. } => said::model_too_long(model),
        ModelError::Blocked { why } => said::model_blocked(model, why),
        ModelError::RateLimited { wait: Some(wait) } => {
            said::model_rate_limited_for(model, wait.as_secs().max(1))
        }
        ModelError::RateLimited { wait: None } => said::model_rate_limited(model),
        ModelError::Overloaded => said::model_overloaded(model),
        ModelError::ServerError { said, .. } => said::model_server_error(model, said),
        ModelError::Network { at, cause } => said::model_network(model, at, cause),
        ModelError::TimedOut { after, .. } => said::model_timed_out(model, after.as_secs()),
        ModelError::NotAnApi { at, what, .. } => said::model_not_an_api(at, model, what),
        ModelError::Garbled { what } => said::model_garbled(model, what),
        ModelError::TooLarge { limit } => said::model_too_large(model, *limit),
        ModelError::Certificate { at, cause } => said::model_certificate(at, model, cause),
        ModelError::BadSetup { what, .. } => said::model_bad_setup(model, what),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kai_words::Lang;

    use super::*;

    #[test]
    fn an_error_is_said_in_both_languages_and_leads_to_the_page_that_helps() {
        let text = || "x".to_owned();
        for (error, href) in [
            (ModelError::BadKey, Some("/settings/models")),
            (ModelError::Network { at: text(), cause: text() }, Some("/settings/models")),
            (ModelError::NoSuchModel { model: text(), said: text() }, Some("/settings/models")),
            (ModelError::TooLong { limit: None }, Some("/new")),
            (ModelError::RateLimited { wait: Some(Duration::from_secs(7)) }, Some("/settings/models")),
            (ModelError::ServerError { status: 500, said: text() }, None),
            (ModelError::TimedOut { at: text(), after: Duration::from_secs(1) }, None),
        ] {
            let trouble = failed_model("mine", &error);
            assert_eq!(trouble.remedy.as_ref().map(|remedy| remedy.href), href, "{error}");
            let (english, german) = (trouble.why.to(Lang::ENGLISH), trouble.why.to(Lang::of("de")));
            assert!(english.contains("mine") && german.contains("mine") && english != german, "{german}");
        }
        let wait = ModelError::RateLimited { wait: Some(Duration::from_secs(1)) };
        let said = failed_model("mine", &wait).why.to(Lang::of("de"));
        assert!(said.contains("Warten Sie 1 Sekunde oder"), "{said}");
    }
}
