//! How well one-time codes are found: every `tests/codes/*.tsv` is a set of messages with the codes in them. Measures
//! how many codes are redacted exactly, and in how many messages something else is.

#![expect(clippy::print_stdout, reason = "the figures are for people")]

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::find;
use super::fuzz::places;

/// Of a hundred codes at most one may stay, and of a hundred messages at most one may lose something else.
const FEWEST_FOUND: usize = 99;
const MOST_FALSE: usize = 1;

#[derive(Default)]
struct Score {
    messages: usize,
    codes: usize,
    missed: usize,
    wrong: usize,
    failures: Vec<String>,
}

impl Score {
    fn add(&mut self, line: &str) {
        let mut fields = line.split('\t').skip(1);
        let text = fields.next().unwrap().replace("\\n", "\n");
        let codes: Vec<&str> =
            fields.next().unwrap_or_default().split(" | ").filter(|c| !c.is_empty()).collect();
        let found = find(&text);
        assert!(
            codes.iter().all(|code| !places(&text, code).is_empty()),
            "the message has no such code: {line}"
        );
        let expected: Vec<Range<usize>> = codes.iter().flat_map(|code| places(&text, code)).collect();
        let missed: Vec<&&str> = codes
            .iter()
            .filter(|code| !places(&text, code).iter().all(|place| found.contains(place)))
            .collect();
        let wrong: Vec<&str> = found
            .iter()
            .filter(|range| !expected.contains(range))
            .map(|range| &text[range.clone()])
            .collect();
        self.messages += 1;
        self.codes += codes.len();
        self.missed += missed.len();
        self.wrong += usize::from(!wrong.is_empty());
        if !missed.is_empty() || !wrong.is_empty() {
            self.failures.push(format!("missed {missed:?}, wrong {wrong:?}: {line}"));
        }
    }
}

#[test]
fn codes_are_found_and_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codes");
    let mut sets: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    sets.retain(|path| path.extension().is_some_and(|extension| extension == "tsv"));
    sets.sort();
    assert!(!sets.is_empty());
    for set in sets {
        let mut score = Score::default();
        let text = fs::read_to_string(&set).unwrap();
        text.lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .for_each(|line| score.add(line));
        let Score { messages, codes, missed, wrong, failures } = score;
        let name = set.file_name().unwrap().display();
        println!(
            "{name}: {} of {codes} codes found; {wrong} of {messages} messages lost more",
            codes - missed
        );
        let failures = failures.join("\n");
        assert!((codes - missed) * 100 >= codes * FEWEST_FOUND, "{name}: codes stay\n{failures}");
        assert!(wrong * 100 <= messages * MOST_FALSE, "{name}: too much is redacted\n{failures}");
    }
}
