//! Decides what to do after an error: wait and retry, use the next model, or give up. Pure.

use std::time::Duration;

use crate::ModelError;

/// What to do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait this long, then ask the same model again.
    Wait(Duration),
    /// Ask the next configured model. If there is none, show the error.
    NextModel,
    /// Show the error. Neither another try nor another model would help.
    GiveUp,
}

/// Longest pause that we wait when a service asks for one. Beyond that, asking another model is quicker.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How often one model is asked before the next one is tried.
pub const TRIES: u32 = 3;

/// Decides what to do next. `failures` is how many attempts with this model failed in a row, including this one.
pub fn after(error: &ModelError, failures: u32) -> Next {
    match error {
        // The request itself is at fault, or what it asks for: another model would get it behind the user's back.
        ModelError::BadRequest { .. }
        | ModelError::NoPictures { .. }
        | ModelError::Blocked { .. }
        | ModelError::TooLarge { .. } => Next::GiveUp,
        // This model is set up wrongly, and no second try mends that. The user is told, and another model answers.
        ModelError::BadKey
        | ModelError::Forbidden { .. }
        | ModelError::NoSuchModel { .. }
        | ModelError::NotAnApi { .. }
        | ModelError::Certificate { .. }
        | ModelError::BadSetup { .. }
        // Another model may have credit, or a larger window, or run elsewhere on this machine.
        | ModelError::NoCredit { .. }
        | ModelError::TooLong { .. }
        | ModelError::Engine(_) => Next::NextModel,
        ModelError::RateLimited { wait: Some(wait) } if *wait > LONGEST_WAIT => Next::NextModel,
        ModelError::RateLimited { wait: Some(wait) } => twice(failures, *wait, *wait),
        ModelError::RateLimited { wait: None }
        | ModelError::Overloaded
        | ModelError::ServerError { .. }
        | ModelError::Network { .. }
        | ModelError::TimedOut { .. }
        | ModelError::Garbled { .. } => twice(failures, Duration::from_secs(1), Duration::from_secs(2)),
    }
}

/// Waits after the first and the second failure, then moves on to the next model.
fn twice(failures: u32, first: Duration, second: Duration) -> Next {
    match failures {
        0 | 1 => Next::Wait(first),
        2 => Next::Wait(second),
        _ => Next::NextModel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detail::{Detail, Hint};

    #[test]
    fn each_error_has_its_next_move() {
        let s = |secs| Next::Wait(Duration::from_secs(secs));
        let limited = |secs| ModelError::RateLimited { wait: Some(Duration::from_secs(secs)) };
        let text = String::new;
        for (error, moves) in [
            (ModelError::BadKey, [Next::NextModel; 3]),
            (ModelError::Forbidden { said: text() }, [Next::NextModel; 3]),
            (ModelError::BadRequest { said: text() }, [Next::GiveUp; 3]),
            (ModelError::NoPictures { said: text() }, [Next::GiveUp; 3]),
            (ModelError::Blocked { why: text() }, [Next::GiveUp; 3]),
            (ModelError::NoSuchModel { model: text(), said: text() }, [Next::NextModel; 3]),
            (ModelError::BadSetup { what: Detail::KeyEmpty, hint: Hint::CopyKey }, [Next::NextModel; 3]),
            (ModelError::TooLong { limit: None }, [Next::NextModel; 3]),
            (ModelError::NoCredit { said: text() }, [Next::NextModel; 3]),
            (limited(60), [s(60), s(60), Next::NextModel]),
            (limited(61), [Next::NextModel; 3]),
            (ModelError::RateLimited { wait: None }, [s(1), s(2), Next::NextModel]),
            (ModelError::Overloaded, [s(1), s(2), Next::NextModel]),
            (ModelError::ServerError { status: 500, said: text() }, [s(1), s(2), Next::NextModel]),
            (ModelError::Network { at: text(), cause: Detail::Cut }, [s(1), s(2), Next::NextModel]),
            (ModelError::TimedOut { at: text(), after: Duration::ZERO }, [s(1), s(2), Next::NextModel]),
            (ModelError::Garbled { what: Detail::BreaksOff }, [s(1), s(2), Next::NextModel]),
        ] {
            assert_eq!([1, 2, 3].map(|failures| after(&error, failures)), moves, "{error:?}");
        }
    }
}
