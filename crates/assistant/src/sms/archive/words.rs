//! Splits messages and queries into the words that the archive's index holds. Pure.
//!
//! The index splits at blanks only, so what is a word is decided here, in the same way for messages and for queries.
//! Nothing that a person or a model types reaches the index's own query language: a word has no ASCII character but
//! letters and digits.

use std::collections::BTreeSet;

use crate::legible::is_invisible;
use crate::sms::search::Wanted;
use crate::untrusted::folded;

/// The most characters of a word that count.
const LONGEST: usize = 64;

/// From how many digits on a number may begin with a country code, and how many digits such a code has at most.
const WITH_COUNTRY: usize = 9;
const COUNTRY: usize = 3;
/// More digits than any phone number has: a list of figures.
const MOST_DIGITS: usize = 20;

/// The columns of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// The texts with their codes hidden. A model searches only these, or it could guess a code by searching for it.
    Redacted,
    Whole,
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Redacted => "redacted",
            Self::Whole => "whole",
        }
    }
}

/// The words under which a message is found, with blanks between them.
pub(super) fn indexed(address: &str, body: &str) -> String {
    let mut words = words(&folded(address));
    words.extend(numbers(address));
    words.extend(self::words(&folded(body)));
    words.extend(numbers(body));
    words.join(" ")
}

/// The index's query for messages that hold every word, or a word that begins with it. `None` if there is no word.
pub(super) fn query(wanted: &Wanted, column: Column) -> Option<String> {
    let phrase = |part: &str| {
        let words = words(part);
        (!words.is_empty()).then(|| format!("\"{}\" *", words.join(" ")))
    };
    let phrases: Vec<String> = wanted.text().split_whitespace().filter_map(phrase).collect();
    let name = column.name();
    let all = (!phrases.is_empty()).then(|| format!("{name} : ({})", phrases.join(" AND ")));
    let number = wanted.number().map(|digits| format!("{name} : (\"{digits}\" *)"));
    match (all, number) {
        (Some(all), Some(number)) => Some(format!("({all}) OR ({number})")),
        (all, number) => all.or(number),
    }
}

/// The words of a folded text. Where words are written without blanks between them, every character is one.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word) = (vec![], String::new());
    for c in text.chars() {
        let part = Part::of(c);
        if part == Part::OfWord {
            word.push(c);
            continue;
        }
        words.extend(finished(&mut word));
        if part == Part::Alone {
            words.push(c.to_string());
        }
    }
    words.extend(finished(&mut word));
    words
}

fn finished(word: &mut String) -> Option<String> {
    let word = std::mem::take(word);
    (!word.is_empty()).then(|| word.chars().take(LONGEST).collect())
}

/// What a character is to the words of a text.
#[derive(PartialEq, Eq)]
enum Part {
    OfWord,
    /// A word of its own: an ideograph, a sign of another script without blanks, a picture.
    Alone,
    Between,
}

impl Part {
    fn of(c: char) -> Self {
        let without_blanks = matches!(
            c,
            '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
                | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
        );
        if without_blanks || (is_picture(c) && !is_invisible(c)) {
            Self::Alone
        } else if c.is_alphanumeric() {
            Self::OfWord
        } else {
            Self::Between
        }
    }
}

fn is_picture(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// The numbers in a text without the blanks and hyphens that people write between digits, with and without what may be
/// a country code.
fn numbers(text: &str) -> BTreeSet<String> {
    let of_number = |c: char| c.is_ascii_digit() || "+-./() \u{a0}".contains(c);
    let runs = text.split(|c: char| !of_number(c));
    let squeezed = runs.map(|run| run.chars().filter(char::is_ascii_digit).collect::<String>());
    let plausible = squeezed.filter(|digits| (3..=MOST_DIGITS).contains(&digits.len()));
    plausible.flat_map(|digits| spellings(&digits)).collect()
}

fn spellings(digits: &str) -> Vec<String> {
    let codes = if digits.len() >= WITH_COUNTRY { COUNTRY } else { 0 };
    let without_zeros = |from: usize| digits[from..].trim_start_matches('0').to_owned();
    (0..=codes).map(without_zeros).filter(|number| !number.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_what_a_person_takes_for_words() {
        for (text, expected) in [
            ("Großer ÄRGER, heute!", "grosser ärger heute"),
            ("don't", "don t"),
            ("a_b 100%", "a b 100"),
            ("«Привет» — мир…", "привет мир"),
            ("東京へ行く", "東 京 へ 行 く"),
            ("ok😀😀 👍\u{200b}", "ok 😀 😀 👍"),
            ("\"x\" OR y* NEAR(z) - :", "x or y near z"),
            ("\0 \u{202e}", ""),
        ] {
            assert_eq!(words(&folded(text)).join(" "), expected, "{text:?}");
        }
        assert_eq!(words(&"x".repeat(100)), ["x".repeat(64)]);
    }

    #[test]
    fn numbers_are_found_however_they_are_spaced() {
        for (text, number) in [
            ("+491715550100", "491715550100"),
            ("+49 (0) 171 555-0100", "1715550100"),
            ("call 555 01 00 now", "5550100"),
            ("00491715550100", "491715550100"),
            ("(0171) 5550100", "1715550100"),
        ] {
            assert!(numbers(text).contains(number), "{number} in {text}: {:?}", numbers(text));
        }
        assert!(numbers("1 2").is_empty() && numbers("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").is_empty());
    }

    #[test]
    fn a_query_names_its_column_everywhere() {
        let query = |text| query(&Wanted::new(text).unwrap(), Column::Redacted);
        assert_eq!(query("Tea at").unwrap(), "redacted : (\"tea\" * AND \"at\" *)");
        assert_eq!(query("whole:123").unwrap(), "redacted : (\"whole 123\" *)");
        assert_eq!(
            query("555 01").unwrap(),
            "(redacted : (\"555\" * AND \"01\" *)) OR (redacted : (\"55501\" *))"
        );
        assert_eq!(query("%"), None);
    }

    proptest! {
        /// Whatever is typed, each word is made of characters that mean nothing in the index's query language.
        #[test]
        fn no_query_says_anything_but_words(text in "\\PC{0,40}|[\"*:(){}^+\\-a-c ORNEAT]{0,30}") {
            for word in words(&folded(&text)) {
                let plain = word.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric());
                prop_assert!(plain && !word.is_empty(), "{word:?}");
            }
        }
    }
}
