//! What the page says when Kai could not answer, with a link to the page that helps.

use kai_assistant::agent::TurnError;
use kai_assistant::models::trouble::{self, Fault};
use kai_llm::ModelError;
use kai_words::said;

use super::remedy::{Remedy, Trouble};
use crate::commands::chats::Unanswered;
use crate::commands::models::Unready;

/// Why a message was not answered.
pub(super) fn unanswered(why: &Unanswered) -> Trouble {
    match why {
        Unanswered::Empty => said::turn_no_text().into(),
        Unanswered::File(refused) => refused.said().into(),
        Unanswered::Unready(unready) => Trouble { why: unready.said(), remedy: before(unready) },
        Unanswered::Turn(error) => turn(error),
    }
}

/// Why a turn, or something else that was done with a chat, failed.
pub(super) fn turn(error: &TurnError) -> Trouble {
    let remedy = match error {
        TurnError::NoModel | TurnError::Empty { .. } | TurnError::CannotSee { .. } => Some(Remedy::models()),
        TurnError::Unknown(_) => Some(Remedy::new_chat()),
        TurnError::Model { label, error, .. } => during(label, error),
        TurnError::Busy(_)
        | TurnError::TakenOver(_)
        | TurnError::NothingSaid(_)
        | TurnError::Changed(_)
        | TurnError::File(_)
        | TurnError::Store(_) => None,
    };
    Trouble { why: error.said(), remedy }
}

/// The page that helps if no model can be asked.
fn before(unready: &Unready) -> Option<Remedy> {
    match unready {
        Unready::NoModel { .. } => Some(Remedy::models()),
        Unready::Unusable { model, .. } => Some(Remedy::model(model, Fault::Key)),
        Unready::Misconfigured { model, error } => during(model, error),
        // Another model is chosen beside the message field.
        Unready::Chosen { .. } | Unready::Store(_) => None,
    }
}

/// The page that helps if a model failed, and there the field that is at fault.
fn during(model: &str, error: &ModelError) -> Option<Remedy> {
    if let Some(fault) = trouble::fault(error) {
        return Some(Remedy::model(model, fault));
    }
    match error {
        ModelError::TooLong { .. } => Some(Remedy::new_chat()),
        // Only the server's owner, or another try, can help.
        ModelError::ServerError { .. } | ModelError::TimedOut { .. } | ModelError::Garbled { .. } => None,
        ModelError::BadKey
        | ModelError::Forbidden { .. }
        | ModelError::NoCredit { .. }
        | ModelError::NoSuchModel { .. }
        | ModelError::BadRequest { .. }
        | ModelError::NoPictures { .. }
        | ModelError::Blocked { .. }
        | ModelError::RateLimited { .. }
        | ModelError::Overloaded
        | ModelError::Network { .. }
        | ModelError::NotAnApi { .. }
        | ModelError::TooLarge { .. }
        | ModelError::Certificate { .. }
        | ModelError::BadSetup { .. }
        | ModelError::Engine(_) => Some(Remedy::models()),
    }
}

#[cfg(test)]
mod tests {
    use kai_assistant::agent::conversation::ConversationId;
    use kai_llm::{Detail, Hint, Usage};
    use kai_words::Lang;

    use super::*;

    fn failed(error: ModelError) -> Unanswered {
        TurnError::Model { label: "mine".to_owned(), error, usage: Usage::default() }.into()
    }

    #[test]
    fn an_error_leads_to_the_page_that_helps_and_names_no_command() {
        let text = || "x".to_owned();
        let wrong = ModelError::BadSetup { what: Detail::KeyEmpty, hint: Hint::CopyKey };
        for (why, href) in [
            (Unready::NoModel { here: None }.into(), Some("/settings/models")),
            (
                Unready::Unusable { model: text(), why: said::unready_no_key("mine"), helps: text() }.into(),
                Some("/settings/models?open=model%3Ax#models-key"),
            ),
            (
                Unready::Misconfigured { model: "a & b".to_owned(), error: wrong }.into(),
                Some("/settings/models?open=model%3Aa+%26+b#models-key"),
            ),
            (failed(ModelError::BadKey), Some("/settings/models?open=model%3Amine#models-key")),
            (
                failed(ModelError::NoSuchModel { model: text(), said: text() }),
                Some("/settings/models?open=model%3Amine#models-model"),
            ),
            (
                failed(ModelError::Network { at: text(), cause: Detail::Cut }),
                Some("/settings/models?open=model%3Amine#models-base_url"),
            ),
            (failed(ModelError::Overloaded), Some("/settings/models")),
            (failed(ModelError::TooLong { limit: None }), Some("/new")),
            (failed(ModelError::ServerError { status: 500, said: text() }), None),
            (TurnError::Unknown(ConversationId(7)).into(), Some("/new")),
            (TurnError::Busy(ConversationId(7)).into(), None),
            (Unanswered::Empty, None),
        ] {
            let trouble = unanswered(&why);
            assert_eq!(trouble.remedy.as_ref().map(|remedy| remedy.href.as_ref()), href, "{why}");
            for lang in [Lang::ENGLISH, Lang::of("de")] {
                let sentence = trouble.why.to(lang);
                assert!(!sentence.contains("kai "), "{sentence}");
            }
        }
    }
}
