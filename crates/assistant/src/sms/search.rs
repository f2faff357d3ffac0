//! Matches messages against a search query. Pure.

use crate::outbox::number::{digits, same};
use crate::untrusted::folded;

/// A search query, prepared once for many messages.
#[derive(Debug, Clone)]
pub struct Wanted {
    text: String,
    /// The digits of the query, if it looks like a phone number.
    number: Option<String>,
    /// The numbers of contacts whose names match.
    senders: Vec<String>,
}

/// Whether a text has nothing but what phone numbers are written with.
pub(super) fn is_like_a_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || "+-./() \u{a0}".contains(c))
}

impl Wanted {
    /// `None` for a blank query.
    pub fn new(query: &str) -> Option<Self> {
        let query = query.trim();
        let number = digits(query);
        let number = (is_like_a_number(query) && number.len() >= 3).then_some(number);
        (!query.is_empty()).then(|| Self { text: folded(query), number, senders: vec![] })
    }

    /// Also finds what these numbers sent.
    #[must_use]
    pub fn or_from(self, senders: Vec<String>) -> Self {
        Self { senders, ..self }
    }

    /// Whether the message is from a contact whose name matches.
    pub fn is_from(&self, address: &str) -> bool {
        self.senders.iter().any(|sender| same(sender, address))
    }

    /// The query, folded.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The digits of the query, if it looks like a phone number.
    pub(super) fn number(&self) -> Option<&str> {
        self.number.as_deref()
    }

    pub(super) fn senders(&self) -> &[String] {
        &self.senders
    }

    /// Whether the query may match the text once its codes are redacted. A cheap test before the redaction: `false` is
    /// certain, `true` is not.
    pub fn may_be_seen_in(&self, text: &str) -> bool {
        kai_codes::may_match_placeholder(&self.text) || self.is_in(text)
    }

    /// Whether the text matches. Ignores case in every script, and finds a number however it is spaced.
    pub fn is_in(&self, text: &str) -> bool {
        folded(text).contains(&self.text)
            || self.number.as_ref().is_some_and(|number| squeezed(text).contains(number.as_str()))
    }
}

/// The text without the separators that people write between digits.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !"-./() \u{a0}".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// `may_be_seen_in` rules out nothing that `is_in` would find in the redacted text.
        #[test]
        fn what_is_seen_was_thought_possible(
            text in "(Your code is [0-9]{4,6}|ΟΔΟΣ|Tea|code|[a-eß\\[\\]]{1,4}|[0-9]{2,5})( ?(code|OTP: [0-9]{6}|[0-9]{3}|ςΣ|\\[|\\])){0,4}",
            from in 0..40_usize,
            length in 1..12_usize,
        ) {
            let shown = kai_codes::redact(&text);
            let query: String = shown.chars().skip(from).take(length).collect();
            let Some(wanted) = Wanted::new(&query) else { return Ok(()) };
            prop_assert!(wanted.is_in(&shown));
            prop_assert!(wanted.may_be_seen_in(&text), "{query:?} in {shown:?}, which is {text:?}");
        }
    }

    #[test]
    fn found_as_a_person_would_find_it() {
        for (query, text, expected) in [
            ("ärger", "Großer ÄRGER heute", true),
            ("STRASSE", "in der Straße", true),
            ("ПРИВЕТ", "привет", true),
            ("100%", "100% sure", true),
            ("100%", "1000 sure", false),
            ("a_b", "a_b", true),
            ("a_b", "axb", false),
            ("+49 171 5550100", "+491715550100", true),
            ("0171 5550100", "+491715550100", true),
            ("01715550100", "call +49 171 555-0100", true),
            ("5550100", "call 555 01 00 now", true),
            ("12", "1 2", false),
            ("tea at 5", "Tea at 5?", true),
            ("coffee", "tea", false),
        ] {
            assert_eq!(Wanted::new(query).unwrap().is_in(text), expected, "{query:?} in {text:?}");
        }
        assert!(Wanted::new("  \n").is_none());
    }
}
