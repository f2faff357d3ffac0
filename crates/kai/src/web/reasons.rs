//! What the page says when Kai could not answer, in words that fit the page: commands name other commands instead.

use kai_assistant::agent::TurnError;
use kai_words::{Said, said};

use crate::commands::chats::Unanswered;
use crate::commands::models::Unready;

/// Why a message was not answered.
pub(super) fn unanswered(why: &Unanswered) -> Said {
    match why {
        Unanswered::Empty => said::turn_no_text(),
        Unanswered::Unready(Unready::NoModel) => said::turn_no_model(),
        Unanswered::Unready(Unready::Unusable { model, why }) => said::turn_unusable(model, why),
        Unanswered::Unready(Unready::Store(error)) => error.said(),
        Unanswered::Turn(error) => turn(error),
    }
}

/// Why a turn, or something else that was done with a chat, failed.
pub(super) fn turn(error: &TurnError) -> Said {
    match error {
        TurnError::NoModel => said::turn_no_model(),
        TurnError::Unknown(_) => said::turn_no_chat(),
        TurnError::Busy(_) => said::turn_busy(),
        TurnError::TakenOver(_) => said::turn_taken_over(),
        TurnError::NothingSaid(_) => said::turn_nothing_said(),
        TurnError::Empty { label, .. } => said::turn_empty(label),
        // A model's error and the store's are sentences from below.
        TurnError::Model { .. } | TurnError::Store(_) => error.said(),
    }
}
