//! The rules for guests: what counts as a name, how many are kept, and whether a token fits. Pure.

use crate::legible::is_invisible;
use crate::untrusted::Untrusted;

/// The most characters of a claimed name.
pub const LONGEST_NAME: usize = 60;
/// The most guests that wait for the user's answer. The oldest ones go when there are more.
pub const MOST_ASKED: usize = 50;
/// The most drafts of one guest that wait for the user's tap.
pub const MOST_WAITING: usize = 5;
/// How many of the things that a guest did are kept.
pub const MOST_DEEDS: usize = 200;

/// The name under which a guest is known: what it claims, without what cannot be seen, on one short line. So a name can
/// be typed as it is shown. `None` if nothing is left of it.
pub fn known_as(claimed: &str) -> Option<String> {
    // A name may be megabytes long.
    let beginning: String = claimed.chars().take(LONGEST_NAME * 20).collect();
    let seen: String = beginning.chars().filter(|c| c.is_whitespace() || !is_invisible(*c)).collect();
    let name = Untrusted::new(seen).line(LONGEST_NAME);
    (!name.is_empty()).then_some(name)
}

/// Whether two hashes are the same. Takes the same time for every pair, so that time tells nothing about a token.
pub fn same_hash(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == other.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line_that_can_be_typed() {
        for (claimed, expected) in [
            ("claude-ai", Some("claude-ai")),
            ("  Zed \n editor ", Some("Zed editor")),
            ("a\u{202e}b\u{200b}c\u{7}", Some("abc")),
            ("\u{ad}x\u{e0041}", Some("x")),
            ("Ümläut 👍", Some("Ümläut 👍")),
            ("", None),
            (" \n\u{200b}", None),
        ] {
            assert_eq!(known_as(claimed).as_deref(), expected, "{claimed:?}");
        }
        let long = known_as(&"ab ".repeat(1_000_000)).unwrap();
        assert!(long.chars().count() <= LONGEST_NAME && long.starts_with("ab ab"), "{long}");
    }

    #[test]
    fn only_equal_hashes_are_the_same() {
        for (one, other, expected) in [
            (&[1, 2, 3][..], &[1, 2, 3][..], true),
            (&[1, 2, 3], &[1, 2, 4], false),
            (&[1, 2, 3], &[1, 2], false),
            (&[1, 2], &[1, 2, 3], false),
            (&[], &[0], false),
        ] {
            assert_eq!(same_hash(one, other), expected, "{one:?} {other:?}");
        }
    }
}
