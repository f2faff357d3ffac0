//! Text that a stranger wrote. It is a type, so that it cannot slip into a prompt by itself.
//!
//! It reaches a model in two ways only: as one bounded line ([`Untrusted::line`]) inside a marked block of a prompt,
//! or as a string in a tool's serialised result that says `"untrusted": true`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What somebody else wrote: an SMS, a notification, a mail.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Untrusted(String);

impl Untrusted {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Exactly what was written: to compare it, to search in it, to show it to the person.
    pub fn as_written(&self) -> &str {
        &self.0
    }

    /// At most `longest` characters on one line: what could end a line or steer a reader becomes a blank, and blanks
    /// that follow each other become one.
    pub fn line(&self, longest: usize) -> String {
        one_line(&self.0, longest)
    }

    pub fn is_blank(&self) -> bool {
        self.line(1).is_empty()
    }

    /// The same stranger's text, changed by us (cut, redacted).
    #[must_use]
    pub fn map(&self, change: impl FnOnce(&str) -> String) -> Self {
        Self(change(&self.0))
    }
}

/// Its length only: what people write to each other does not belong into logs.
impl fmt::Debug for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Untrusted({} characters)", self.0.chars().count())
    }
}

fn one_line(text: &str, longest: usize) -> String {
    let folded = text.chars().map(|c| if breaks(c) { ' ' } else { c });
    let mut line = String::new();
    let mut blank = false;
    let mut length = 0;
    for c in folded {
        if c == ' ' {
            blank = true;
            continue;
        }
        let with_blank = usize::from(blank && length > 0);
        if length + with_blank + 1 > longest {
            break;
        }
        if with_blank == 1 {
            line.push(' ');
        }
        line.push(c);
        length += with_blank + 1;
        blank = false;
    }
    line
}

/// Does it end a line or a page, or is it no character at all? Unicode knows more line ends than `\n`.
fn breaks(c: char) -> bool {
    c.is_control() || c.is_whitespace() || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_within_bounds_and_never_half_a_character() {
        for (text, longest, expected) in [
            ("hello", 200, "hello"),
            ("  a\n\n## New SMS\r\n- b\t c ", 200, "a ## New SMS - b c"),
            ("a\u{2028}b\u{2029}c\u{85}d\u{0}e\u{b}f", 200, "a b c d e f"),
            ("äöü😀x", 4, "äöü😀"),
            ("ab cd", 3, "ab"),
            ("ab cd", 4, "ab c"),
            ("", 10, ""),
            (" \n ", 10, ""),
            ("abc", 0, ""),
        ] {
            assert_eq!(Untrusted::new(text).line(longest), expected, "{text:?} in {longest}");
        }
    }

    #[test]
    fn it_is_not_written_into_logs() {
        assert_eq!(format!("{:?}", Untrusted::new("secret")), "Untrusted(6 characters)");
    }
}
