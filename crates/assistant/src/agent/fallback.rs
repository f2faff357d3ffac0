//! Decides which model to ask next after one fails. Pure.

use std::time::Duration;

use kai_llm::ModelError;
use kai_llm::retry::{self, Next};

/// What to do after a model failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Again(Duration),
    /// Ask the model at this index of the list.
    Other(usize),
    Stop,
}

/// What decides whether a model may be asked in place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Able {
    /// It runs on this machine.
    pub(super) local: bool,
    /// It can see the pictures in the request, if there are any.
    pub(super) sees: bool,
}

/// Decides what to do after `error`. `failures` counts how often the model at `asked` failed in this request.
pub(super) fn after(error: &ModelError, failures: u32, asked: usize, models: &[Able]) -> Move {
    match retry::after(error, failures) {
        Next::Wait(pause) => Move::Again(pause),
        Next::NextModel => next(asked, models).map_or(Move::Stop, Move::Other),
        Next::GiveUp => Move::Stop,
    }
}

/// The next model to ask after `asked`. A request that was meant for a local model never moves on to a remote one, and
/// one with pictures never to a model that cannot see them.
fn next(asked: usize, models: &[Able]) -> Option<usize> {
    let stays = models.get(asked).is_none_or(|model| model.local);
    (asked + 1..models.len()).find(|other| models[*other].sees && (!stays || models[*other].local))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Able = Able { local: false, sees: true };
    const HERE: Able = Able { local: true, sees: true };
    const BLIND: Able = Able { local: false, sees: false };

    #[test]
    fn the_next_model_is_asked_but_never_a_stranger_for_a_local_one() {
        for (asked, models, expected) in [
            (0, &[FAR, FAR][..], Some(1)),
            (0, &[FAR, HERE], Some(1)),
            (0, &[HERE, FAR], None),
            (0, &[HERE, FAR, HERE], Some(2)),
            (1, &[FAR, FAR], None),
            (0, &[FAR], None),
            (0, &[FAR, BLIND], None),
            (0, &[FAR, BLIND, FAR], Some(2)),
        ] {
            assert_eq!(next(asked, models), expected, "{asked} of {models:?}");
        }
    }

    #[test]
    fn a_wrong_key_moves_on_at_once_and_a_broken_server_after_two_tries() {
        let broken = ModelError::ServerError { status: 500, said: String::new() };
        let (two, one) = (&[FAR, FAR][..], &[FAR][..]);
        assert_eq!(after(&ModelError::BadKey, 1, 0, two), Move::Other(1));
        assert_eq!(after(&ModelError::BadKey, 1, 0, one), Move::Stop);
        assert_eq!(
            after(&ModelError::BadKey, 1, 0, &[HERE, FAR]),
            Move::Stop,
            "it was meant for this machine"
        );
        assert_eq!(after(&ModelError::Blocked { why: String::new() }, 1, 0, two), Move::Stop);
        assert_eq!(after(&broken, 1, 0, two), Move::Again(Duration::from_secs(1)));
        assert_eq!(after(&broken, 2, 0, two), Move::Again(Duration::from_secs(2)));
        assert_eq!(after(&broken, 3, 0, two), Move::Other(1));
        assert_eq!(after(&broken, 3, 0, one), Move::Stop);
        let patient = ModelError::RateLimited { wait: Some(Duration::from_mins(5)) };
        assert_eq!(after(&patient, 1, 0, two), Move::Other(1));
    }
}
