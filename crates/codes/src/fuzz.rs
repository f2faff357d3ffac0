//! Checks properties that hold for any message: a code that was found does not occur in the redacted text, and
//! redacting again finds nothing more.

use std::ops::Range;

use crate::{find, redact};

/// Fuzz target: checks any bytes as a message.
pub fn message(bytes: &[u8]) {
    check(&String::from_utf8_lossy(bytes));
}

fn check(text: &str) {
    let (found, shown) = (find(text), redact(text));
    assert!(found.iter().all(|range| range.start < range.end));
    assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start));
    let codes = found.iter().map(|range| &text[range.clone()]);
    for code in codes.filter(|code| code.contains(char::is_numeric)) {
        assert!(places(&shown, code).is_empty(), "{code} is still in: {shown}");
    }
    assert_eq!(redact(&shown), shown);
}

/// Every place where the code occurs and is not part of a longer number.
pub(crate) fn places(text: &str, code: &str) -> Vec<Range<usize>> {
    let is_free = |at: &usize| {
        let before = text[..*at].chars().next_back().is_some_and(|c| c.is_ascii_digit());
        let after = text[at + code.len()..].chars().next().is_some_and(|c| c.is_ascii_digit());
        !before && !after
    };
    text.match_indices(code).map(|(at, _)| at).filter(is_free).map(|at| at..at + code.len()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    /// All messages of all test sets.
    fn messages() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
        let sets = fs::read_dir(folder).unwrap().map(|set| fs::read_to_string(set.unwrap().path()).unwrap());
        let text = |line: &str| line.split('\t').nth(1).map(|text| text.replace("\\n", "\n"));
        sets.flat_map(|set| set.lines().filter_map(text).collect::<Vec<_>>()).collect()
    }

    proptest! {
        #[test]
        fn no_code_that_was_found_is_shown(text in kai_mutate::text(messages())) {
            check(&text);
        }
    }
}
