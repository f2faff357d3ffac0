//! Splits texts and queries into the words that a search index holds. Pure.
//!
//! An index splits at blanks only, so what is a word is decided here, in the same way for texts and for queries. Nothing
//! that a person or a model types reaches the index's own query language: a word has no ASCII character but letters and
//! digits.

use crate::legible::is_invisible;

/// The most characters of a word that count.
const LONGEST: usize = 64;

/// The words of a folded text. Where words are written without blanks between them, every character is one.
pub(crate) fn words(text: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::untrusted::folded;

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
