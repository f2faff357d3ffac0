//! Counts the tokens of a run while it runs, so that a run that is cut off has a cost too.

use crate::lock::lock;
use std::sync::{Mutex, MutexGuard};

use kai_llm::{ModelError, Reply, Usage, tokens};

/// Counts the tokens of one run: what the server reports or, where it reports nothing, an estimate.
#[derive(Debug, Default)]
pub struct Meter(Mutex<State>);

/// What a run has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    pub tokens: u64,
    /// At least a part of `tokens` is an estimate.
    pub estimated: bool,
}

#[derive(Debug, Default)]
struct State {
    spent: Spent,
    /// Estimated tokens of the request that is under way: `left` were sent, `heard` have been received.
    left: u64,
    heard: u64,
}

impl Meter {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Notes that a request of about this many tokens is sent.
    pub(super) fn leaves(&self, tokens: usize) {
        let mut state = self.state();
        (state.left, state.heard) = (whole(tokens), 0);
    }

    /// Notes that a piece of the answer arrived.
    pub(super) fn hears(&self, text: &str) {
        self.state().heard += whole(tokens(text));
    }

    /// Notes that the answer is complete.
    pub(super) fn answered(&self, reply: &Reply) {
        let mut state = self.state();
        let Usage { input, output } = reply.usage;
        let calls =
            reply.calls.iter().map(|call| tokens(&call.name) + tokens(&call.arguments)).sum::<usize>();
        let said = whole(tokens(&reply.text) + calls);
        let (input, output) =
            (Some(input).filter(|tokens| *tokens > 0), Some(output).filter(|tokens| *tokens > 0));
        state.spent.estimated |= input.is_none() || (output.is_none() && said > 0);
        let cost = input.unwrap_or(state.left).saturating_add(output.unwrap_or(said));
        state.spent.tokens = state.spent.tokens.saturating_add(cost);
        (state.left, state.heard) = (0, 0);
    }

    /// Notes that the request failed. It still costs if the server worked on an answer, but not if the server refused
    /// it or was never reached.
    pub(super) fn failed(&self, error: &ModelError) {
        let mut state = self.state();
        let worked = match error {
            ModelError::TimedOut { .. } | ModelError::Garbled { .. } | ModelError::TooLarge { .. } => true,
            _ => state.heard > 0,
        };
        if worked {
            state.spent = state.total();
        }
        (state.left, state.heard) = (0, 0);
    }

    /// The cost so far, including the request that is under way.
    pub fn spent(&self) -> Spent {
        self.state().total()
    }
}

impl State {
    fn total(&self) -> Spent {
        let open = self.left.saturating_add(self.heard);
        Spent { tokens: self.spent.tokens.saturating_add(open), estimated: self.spent.estimated || open > 0 }
    }
}

fn whole(tokens: usize) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reply(input: u64, output: u64) -> Reply {
        Reply { text: "hello world".to_owned(), usage: Usage { input, output }, ..Reply::default() }
    }

    #[test]
    fn what_the_server_says_counts_and_otherwise_an_estimate_does() {
        let late = ModelError::TimedOut { at: String::new(), after: Duration::ZERO };
        let spent = |tokens, estimated| Spent { tokens, estimated };
        for (name, outcome, expected) in [
            ("told", Some(Ok(reply(70, 3))), spent(73, false)),
            ("untold", Some(Ok(reply(0, 0))), spent(104, true)),
            ("half told", Some(Ok(reply(70, 0))), spent(74, true)),
            ("too late", Some(Err(late)), spent(101, true)),
            ("refused", Some(Err(ModelError::BadKey)), spent(0, false)),
            ("cut off from outside", None, spent(101, true)),
        ] {
            let meter = Meter::default();
            meter.leaves(100);
            let refused = matches!(outcome, Some(Err(ModelError::BadKey)));
            if !refused {
                meter.hears("hel");
            }
            match outcome {
                Some(Ok(reply)) => meter.answered(&reply),
                Some(Err(error)) => meter.failed(&error),
                None => {}
            }
            assert_eq!(meter.spent(), expected, "{name}");
        }
    }
}
