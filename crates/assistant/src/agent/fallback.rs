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

/// Decides what to do after `error`. `failures` counts how often the model at `asked` failed in this request; `local`
/// says for each model of the list whether it runs on this machine.
pub(super) fn after(error: &ModelError, failures: u32, asked: usize, local: &[bool]) -> Move {
    match retry::after(error, failures) {
        Next::Wait(pause) => Move::Again(pause),
        Next::NextModel => next(asked, local).map_or(Move::Stop, Move::Other),
        Next::GiveUp => Move::Stop,
    }
}

/// The next model to ask after `asked`. A request that was meant for a local model never moves on to a remote one.
fn next(asked: usize, local: &[bool]) -> Option<usize> {
    let stays = local.get(asked).copied().unwrap_or(true);
    (asked + 1..local.len()).find(|other| !stays || local[*other])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_model_is_asked_but_never_a_stranger_for_a_local_one() {
        for (asked, local, expected) in [
            (0, &[false, false][..], Some(1)),
            (0, &[false, true], Some(1)),
            (0, &[true, false], None),
            (0, &[true, false, true], Some(2)),
            (1, &[false, false], None),
            (0, &[false], None),
        ] {
            assert_eq!(next(asked, local), expected, "{asked} of {local:?}");
        }
    }

    #[test]
    fn a_wrong_key_stops_at_once_and_a_broken_server_after_two_tries() {
        let broken = ModelError::ServerError { status: 500, said: String::new() };
        let (two, one) = (&[false, false][..], &[false][..]);
        assert_eq!(after(&ModelError::BadKey, 1, 0, two), Move::Stop);
        assert_eq!(after(&broken, 1, 0, two), Move::Again(Duration::from_secs(1)));
        assert_eq!(after(&broken, 2, 0, two), Move::Again(Duration::from_secs(2)));
        assert_eq!(after(&broken, 3, 0, two), Move::Other(1));
        assert_eq!(after(&broken, 3, 0, one), Move::Stop);
        let patient = ModelError::RateLimited { wait: Some(Duration::from_mins(5)) };
        assert_eq!(after(&patient, 1, 0, two), Move::Other(1));
    }
}
