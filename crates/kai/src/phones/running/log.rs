//! What others on the network do is worth one line a minute in the log, whatever it is. Pure.

use jiff::{SignedDuration, Timestamp};

/// The shortest time between two lines.
const BETWEEN: SignedDuration = SignedDuration::from_mins(1);

/// Remembers when the last line was written, and what happened since.
#[derive(Debug, Default)]
pub(super) struct LogPace {
    last: Option<Timestamp>,
    untold: u32,
}

impl LogPace {
    /// Something happened so many times. Returns how much a line now stands for, or `None` if it is too soon for one.
    pub(super) fn line(&mut self, times: u32, now: Timestamp) -> Option<u32> {
        self.untold = self.untold.saturating_add(times);
        let soon = |last: Timestamp| now.duration_since(last).abs() < BETWEEN;
        if self.last.is_some_and(soon) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_a_minute_and_it_counts_the_others() {
        let at = |second: i64| Timestamp::from_second(1_000 + second).unwrap();
        let mut pace = LogPace::default();
        for (second, times, expected) in [
            (0, 2, Some(2)),
            (1, 1, None),
            (59, 3, None),
            (60, 1, Some(5)),
            (61, 1, None),
            (-500, 1, Some(2)),
        ] {
            assert_eq!(pace.line(times, at(second)), expected, "after {second} s");
        }
    }
}
