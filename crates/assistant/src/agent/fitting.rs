//! Decides how much to shrink a request after a model refused it as too long. Pure.

/// How often one request is shrunk and tried again.
const TRIES: u32 = 3;
/// The smallest window worth trying, in tokens.
const LEAST: usize = 512;

/// The window that a turn's requests are fitted to, as learned from refusals.
#[derive(Debug, Default)]
pub(super) struct Fitting {
    /// The learned window; smaller than the one assumed for the model.
    shown: Option<usize>,
    /// Estimated tokens of the last request sent.
    sent: Option<usize>,
    /// Estimated tokens of the last request refused as too long.
    too_long: Option<usize>,
    refusals: u32,
}

impl Fitting {
    /// Resets the counters before each request of a turn. The learned window is kept, because the model is the same.
    pub(super) fn begin(&mut self) {
        (self.sent, self.too_long, self.refusals) = (None, None, 0);
    }

    /// The window to fit to, where `model` is the window assumed for the model.
    pub(super) fn window(&self, model: usize) -> usize {
        self.shown.map_or(model, |shown| shown.min(model))
    }

    /// Notes that a request of this many tokens is about to be sent. Returns false if it is no smaller than the one
    /// just refused.
    pub(super) fn sends(&mut self, tokens: usize) -> bool {
        self.sent = Some(tokens);
        self.too_long.is_none_or(|too_long| tokens < too_long)
    }

    /// Notes that the model refused the request as too long; `limit` is the limit that the model named. Returns whether
    /// a smaller request is worth trying.
    pub(super) fn refused(&mut self, limit: Option<usize>, model: usize) -> bool {
        self.refusals += 1;
        self.too_long = self.sent;
        let used = self.window(model);
        // A request gets three quarters of the window, so two thirds of the old window halve the request.
        let less = self.sent.map_or(0, |sent| used.min(sent) * 2 / 3);
        let next = limit.filter(|limit| *limit < used).unwrap_or(less);
        if self.refusals > TRIES || next < LEAST {
            return false;
        }
        self.shown = Some(next);
        true
    }

    /// The window learned from refusals.
    pub(super) fn shown(&self) -> Option<usize> {
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_limit_is_taken_and_otherwise_less_is_tried_a_few_times() {
        for (name, limits, windows) in [
            ("a limit is named", &[Some(4_096)][..], &[4_096][..]),
            ("none is", &[None, None, None, None], &[4_000, 2_000, 1_000]),
            ("one that is too large to be true", &[Some(9_000), None], &[4_000, 2_000]),
            ("one, and then it is refused again", &[Some(4_096), Some(4_096)], &[4_096, 2_048]),
        ] {
            let mut fitting = Fitting::default();
            fitting.begin();
            let mut tried = vec![];
            for limit in limits {
                let sent = fitting.window(8_192) * 3 / 4;
                let sent = if tried.is_empty() { 6_000 } else { sent };
                assert!(fitting.sends(sent), "{name}");
                if !fitting.refused(*limit, 8_192) {
                    break;
                }
                tried.push(fitting.window(8_192));
            }
            assert_eq!(tried, windows, "{name}");
        }
    }

    #[test]
    fn what_cannot_get_smaller_is_not_sent_again() {
        let mut fitting = Fitting::default();
        assert!(fitting.sends(6_000) && fitting.refused(None, 8_192));
        assert!(!fitting.sends(6_000));
        fitting.begin();
        assert!(fitting.sends(6_000), "the next request of the turn is another");
        assert!(fitting.window(8_192) < 8_192, "and what was shown stays true");
        let mut broken = Fitting::default();
        assert!(
            broken.sends(6_000) && broken.sends(6_000),
            "a server that failed otherwise is asked the same again"
        );
        let mut unsent = Fitting::default();
        assert!(!unsent.refused(None, 8_192), "nothing was sent, so nothing was learned");
    }
}
