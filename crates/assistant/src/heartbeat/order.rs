//! Which models a heartbeat asks together, and which after them. Pure.

use std::ops::Range;

use kai_llm::Scale;

/// What decides it about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Able {
    /// It runs on this machine.
    pub(super) local: bool,
    pub(super) scale: Scale,
}

/// The models to ask once all before `from` have failed: large ones in a row, of which one answers, or a small one
/// alone, because it is asked in a way of its own. After a model on this machine, only such are asked.
pub(super) fn group(models: &[Able], from: usize) -> Option<Range<usize>> {
    let stays = models.iter().take(from).any(|model| model.local);
    let (start, first) = models.iter().enumerate().skip(from).find(|(_, model)| !stays || model.local)?;
    let alike = match first.scale {
        Scale::Small => 1,
        Scale::Full => models.iter().skip(start).take_while(|model| model.scale == Scale::Full).count(),
    };
    Some(start..start + alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Able = Able { local: false, scale: Scale::Full };
    const HERE: Able = Able { local: true, scale: Scale::Full };
    const SMALL: Able = Able { local: true, scale: Scale::Small };

    /// The first and the last of each.
    fn groups(models: &[Able]) -> Vec<(usize, usize)> {
        let next = |before: &Range<usize>| group(models, before.end);
        std::iter::successors(group(models, 0), next).map(|group| (group.start, group.end - 1)).collect()
    }

    #[test]
    fn large_models_are_asked_together_and_a_small_one_alone() {
        for (models, expected) in [
            (&[][..], &[][..]),
            (&[FAR], &[(0, 0)]),
            (&[FAR, FAR, HERE], &[(0, 2)]),
            (&[FAR, SMALL], &[(0, 0), (1, 1)]),
            (&[HERE, SMALL, SMALL], &[(0, 0), (1, 1), (2, 2)]),
            (&[SMALL, HERE], &[(0, 0), (1, 1)]),
        ] {
            assert_eq!(groups(models), expected, "{models:?}");
        }
    }

    #[test]
    fn nothing_leaves_the_machine_after_a_model_on_it() {
        for (models, expected) in [
            (&[SMALL, FAR][..], &[(0, 0)][..]),
            (&[SMALL, FAR, SMALL], &[(0, 0), (2, 2)]),
            (&[FAR, SMALL, FAR], &[(0, 0), (1, 1)]),
            (&[FAR, HERE, SMALL, FAR, HERE], &[(0, 1), (2, 2), (4, 4)]),
        ] {
            assert_eq!(groups(models), expected, "{models:?}");
        }
    }
}
