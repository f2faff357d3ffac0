//! Does a message hold what is looked for? Pure.

use super::number::digits;

/// What to look for, prepared once.
#[derive(Debug)]
pub struct Wanted {
    text: String,
    /// The digits, if it looks like a phone number.
    number: Option<String>,
}

impl Wanted {
    /// `None` for a blank query.
    pub fn new(query: &str) -> Option<Self> {
        let query = query.trim();
        let like_a_number = query.chars().all(|c| c.is_ascii_digit() || "+-./() \u{a0}".contains(c));
        let number = digits(query);
        let number = (like_a_number && number.len() >= 3).then_some(number);
        (!query.is_empty()).then(|| Self { text: folded(query), number })
    }

    /// Upper and lower case are the same, in every script; a number is found however it is spaced.
    pub fn is_in(&self, text: &str) -> bool {
        folded(text).contains(&self.text)
            || self.number.as_ref().is_some_and(|number| squeezed(text).contains(number.as_str()))
    }
}

/// Through upper case to lower case, so that `ß` and `SS` are the same too.
fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

/// The text with what people write between digits taken out.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !"-./() \u{a0}".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
