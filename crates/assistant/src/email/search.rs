//! Matches mails against a search query, without telling a model what is hidden from it. Pure.
//!
//! A server searches the whole mail, with its one-time codes. If every mail that it finds were told, a model could guess
//! a hidden code digit by digit: a hit would say that the guess is right. So, while codes are hidden, a found mail is
//! told only if every word with a digit is visible in what the model is shown of it (sender, subject and the beginning
//! of the text, without codes); and if something is hidden there, every other word has to be visible too.

use crate::tool::Eyes;
use crate::untrusted::{Untrusted, folded};

/// The most characters of a query.
const LONGEST: usize = 200;

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    text: String,
    words: Vec<String>,
}

impl Wanted {
    /// `None` for a blank query.
    pub(super) fn new(query: &str) -> Option<Self> {
        let text = Untrusted::new(query).line(LONGEST);
        let words = folded(&text).split(' ').map(str::to_owned).collect();
        (!text.is_empty()).then_some(Self { text, words })
    }

    /// The query, on one line.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Its words, folded.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether it has words that could be codes, or parts of codes.
    pub(super) fn has_numbers(&self) -> bool {
        self.words.iter().any(|word| has_digit(word))
    }

    /// Whether every word occurs in one of these texts.
    pub(super) fn is_in(&self, shown: &[&Untrusted]) -> bool {
        self.are_in(shown, |_| true)
    }

    /// Whether a mail that a server found may be told to a reader with these eyes. `shown` is what the reader sees of it,
    /// and `whole` the same with everything.
    pub(super) fn may_be_told(&self, eyes: Eyes, shown: &[&Untrusted], whole: &[&Untrusted]) -> bool {
        match eyes {
            Eyes::All => true,
            Eyes::NoCodes if shown == whole => self.are_in(shown, has_digit),
            Eyes::NoCodes => self.is_in(shown),
        }
    }

    fn are_in(&self, shown: &[&Untrusted], which: impl Fn(&str) -> bool) -> bool {
        let shown: Vec<String> = shown.iter().map(|text| folded(text.as_written())).collect();
        let is_shown = |word: &String| shown.iter().any(|text| text.contains(word.as_str()));
        self.words.iter().filter(|word| which(word)).all(is_shown)
    }
}

fn has_digit(word: &str) -> bool {
    word.chars().any(char::is_numeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_told_only_if_it_does_not_tell_what_is_hidden() {
        let plain = [Untrusted::new("Alice"), Untrusted::new("Invoice 2024-118")];
        let coded = [Untrusted::new("Bank"), Untrusted::new("Your code is 482913 today")];
        let hidden = [Untrusted::new("Bank"), Untrusted::new("Your code is [code] today")];
        for (name, query, (shown, whole), told) in [
            ("a word far below", "dinner", (&plain, &plain), true),
            ("a number that is shown", "2024-118", (&plain, &plain), true),
            ("a part of it", "118", (&plain, &plain), true),
            ("a number that is not shown", "4829", (&plain, &plain), false),
            ("a digit", "7", (&plain, &plain), false),
            ("other digits", "٤٨٢", (&plain, &plain), false),
            ("a code", "482913", (&hidden, &coded), false),
            ("a part of a code, with a word", "bank 48", (&hidden, &coded), false),
            ("letters that may be in the code", "xk", (&hidden, &coded), false),
            ("words that are shown", "BANK today", (&hidden, &coded), true),
        ] {
            let wanted = Wanted::new(query).unwrap();
            let (shown, whole): (Vec<_>, Vec<_>) = (shown.iter().collect(), whole.iter().collect());
            assert_eq!(wanted.may_be_told(Eyes::NoCodes, &shown, &whole), told, "{name}");
            assert!(wanted.may_be_told(Eyes::All, &whole, &whole), "{name}");
        }
        assert_eq!(Wanted::new(" \r\n"), None);
        assert_eq!(Wanted::new("a\r\nb\0 c").unwrap().text(), "a b c");
    }
}
