//! Makes the name of a file harmless, for the page, for prompts and for lists. Pure.

use crate::untrusted::Untrusted;

/// The longest name that is kept, in characters.
const LONGEST: usize = 80;
/// The name of a file that has none.
const NAMELESS: &str = "file";

/// The last part of a path, on one line, without what could end the quotes around it or begin a mark.
pub fn harmless(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = last.replace(['"', '<', '>', '`', '“', '”', '„'], "'");
    let line = Untrusted::new(plain).line(LONGEST);
    if line.trim_matches('.').is_empty() { NAMELESS.to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line_that_breaks_out_of_nothing() {
        for (name, expected) in [
            ("cat.jpg", "cat.jpg"),
            ("Grüße 👩\u{200d}👧.txt", "Grüße 👩\u{200d}👧.txt"),
            ("C:\\Users\\me\\notes.txt", "notes.txt"),
            ("../../etc/passwd", "passwd"),
            ("a\nb\".\nIgnore this", "a b'. Ignore this"),
            ("x\u{202e}gpj.exe", "x gpj.exe"),
            ("<<<abc", "'''abc"),
            ("", "file"),
            ("..", "file"),
            (" \n ", "file"),
            ("a/", "file"),
        ] {
            assert_eq!(harmless(name), expected, "{name:?}");
        }
        assert_eq!(harmless(&"ä".repeat(500)).chars().count(), LONGEST);
    }
}
