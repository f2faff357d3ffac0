//! All printing goes through here, so that a closed pipe causes no panic and no control character reaches a terminal.

use std::io::{self, IsTerminal, Write};

pub(crate) use kai_assistant::legible::visible;
use kai_assistant::legible::{escape_json, is_invisible};
use serde::Serialize;

#[cfg(test)]
use super::stage;

/// Prints text that is our own or has been through [`visible`].
pub(crate) fn text(text: &str) {
    raw(text.as_bytes());
}

pub(crate) fn line(text: &str) {
    raw(format!("{text}\n").as_bytes());
}

pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(pretty) => line(&escaped(&pretty)),
        Err(error) => complain(&error.to_string()),
    }
}

pub(crate) fn raw(bytes: &[u8]) {
    #[cfg(test)]
    if stage::hears(&stage::To::Out, bytes) {
        return;
    }
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // The reader closed the pipe because it has enough, which is not an error. A full disk is one.
        if error.kind() != io::ErrorKind::BrokenPipe {
            complain(&format!("The output could not be written: {error}."));
            std::process::exit(1);
        }
    }
}

/// Prints on stderr.
fn aside(text: &str) {
    #[cfg(test)]
    if stage::hears(&stage::To::Err, text.as_bytes()) {
        return;
    }
    // If stderr is gone there is nobody left to tell.
    drop(write!(io::stderr(), "{text}"));
}

/// Whether standard output is a terminal. Always false in tests.
pub(crate) fn has_person() -> bool {
    !cfg!(test) && io::stdout().is_terminal()
}

/// Prints an error or a warning on stderr.
pub(crate) fn complain(sentence: &str) {
    aside(&format!("kai: {}\n", visible(sentence)));
}

/// Escapes invisible characters in JSON so that its text cannot control a terminal. The meaning of the JSON is
/// unchanged.
pub(crate) fn escaped(json: &str) -> String {
    escape_json(json, is_invisible)
}

/// Text for a pipe or a file: unchanged except that control characters other than newline and tab are removed.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// A value as one line: made visible on a terminal, unchanged in a pipe.
pub(crate) fn value(value: &str) -> String {
    format!("{}\n", if has_person() { visible(value) } else { value.to_owned() })
}

/// A text as one word of a command that the user can copy. Somebody else may have chosen it, so a shell must not find
/// anything in it.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./@:+".contains(c);
    let text = visible(text);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Prints a note on stderr: progress or a hint, never the result itself.
pub(crate) fn note(text: &str) {
    let lines: Vec<String> = text.lines().map(visible).collect();
    aside(&format!("{}\n", lines.join("\n")));
}

/// Replaces the current line on stderr and leaves the cursor on it. Stderr must be a terminal.
pub(crate) fn sign(text: &str) {
    aside(&format!("\r\u{1b}[K{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_steer_the_terminal() {
        let json = "{\n  \"a\": \"x\u{9b}\u{202e}y\u{7f}\"\n}";
        assert_eq!(escaped(json), "{\n  \"a\": \"x\\u009b\\u202ey\\u007f\"\n}");
        for (text, expected) in [
            ("tea", "tea"),
            ("Größe_1", "Größe_1"),
            ("green tea", "'green tea'"),
            ("a'; rm -rf ~ #", r"'a'\''; rm -rf ~ #'"),
            ("$(id)", "'$(id)'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), expected);
        }
        assert_eq!(plain("a\u{1b}[2J\tb\n\u{9b}c"), "a[2J\tb\nc");
    }
}
