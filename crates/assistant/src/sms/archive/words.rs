//! The words and numbers under which the archive's index has a message, and its query for a search. Pure.

use std::collections::BTreeSet;

use crate::indexed::words;
use crate::sms::search::Wanted;
use crate::untrusted::folded;

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
    let mut all = words(&folded(address));
    all.extend(numbers(address));
    all.extend(words(&folded(body)));
    all.extend(numbers(body));
    all.join(" ")
}

/// The index's query for messages that hold every word, or a word that begins with it. `None` if there is no word, or
/// one that no message holds. `look_up` gives the query for words one after the other.
pub(super) fn query<E>(
    wanted: &Wanted,
    column: Column,
    look_up: impl Fn(&[String]) -> Result<Option<String>, E>,
) -> Result<Option<String>, E> {
    let name = column.name();
    let parts = wanted.text().split_whitespace().map(words).filter(|words| !words.is_empty());
    let phrases = parts.map(|words| look_up(&words)).collect::<Result<Option<Vec<_>>, _>>()?;
    let all = phrases.filter(|phrases| !phrases.is_empty());
    let all = all.map(|phrases| format!("{name} : ({})", phrases.join(" AND ")));
    // A single word of digits is looked for already.
    let digits = wanted.number().filter(|digits| *digits != wanted.text());
    let number = digits.map_or(Ok(None), |digits| look_up(&[digits.to_owned()]))?;
    let number = number.map(|number| format!("{name} : ({number})"));
    Ok(match (all, number) {
        (Some(all), Some(number)) => Some(format!("({all}) OR ({number})")),
        (all, number) => all.or(number),
    })
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
    use super::*;

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
        let look_up = |words: &[String]| {
            let query = format!("\"{}\" *", words.join(" "));
            Ok::<_, ()>((words != ["heron"]).then_some(query))
        };
        let query = |text| query(&Wanted::new(text).unwrap(), Column::Redacted, look_up).unwrap();
        assert_eq!(query("Tea at").unwrap(), "redacted : (\"tea\" * AND \"at\" *)");
        assert_eq!(query("whole:123").unwrap(), "redacted : (\"whole 123\" *)");
        assert_eq!(
            query("555 01").unwrap(),
            "(redacted : (\"555\" * AND \"01\" *)) OR (redacted : (\"55501\" *))"
        );
        assert_eq!(query("5550100").unwrap(), "redacted : (\"5550100\" *)", "once");
        assert_eq!((query("%"), query("tea heron")), (None, None));
    }
}
