//! How small a request is made after a model refused it as too long. Pure.

/// How often one request is made smaller and tried again.
const TRIES: u32 = 3;
/// Below this there is no use in trying.
const LEAST: usize = 512;

/// The window that requests of a turn are fitted to, as far as refusals showed it.
#[derive(Debug, Default)]
pub(super) struct Fitting {
    /// Smaller than what the model was taken to have.
    shown: Option<usize>,
    /// Estimated tokens of the request that left last.
    sent: Option<usize>,
    /// Of the one that was last refused as too long.
    too_long: Option<usize>,
    refusals: u32,
}

impl Fitting {
    /// Before each request of a turn. What was shown stays: it is the same model.
    pub(super) fn begin(&mut self) {
        (self.sent, self.too_long, self.refusals) = (None, None, 0);
    }

    /// The window to fit to, for a model that is taken to have this much.
    pub(super) fn window(&self, model: usize) -> usize {
        self.shown.map_or(model, |shown| shown.min(model))
    }

    /// A request of this many tokens is about to leave. False if it is no smaller than what was just refused.
    pub(super) fn sends(&mut self, tokens: usize) -> bool {
        self.sent = Some(tokens);
        self.too_long.is_none_or(|too_long| tokens < too_long)
    }

    /// The model refused it as too long; `limit` is what it said it takes. Returns whether a smaller one is worth a try.
    pub(super) fn refused(&mut self, limit: Option<usize>, model: usize) -> bool {
        self.refusals += 1;
        self.too_long = self.sent;
        let used = self.window(model);
        // Two thirds, of which three quarters are for the request: half of what was refused.
        let less = self.sent.map_or(0, |sent| used.min(sent) * 2 / 3);
        let next = limit.filter(|limit| *limit < used).unwrap_or(less);
        if self.refusals > TRIES || next < LEAST {
            return false;
        }
        self.shown = Some(next);
        true
    }

    /// What refusals showed.
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
