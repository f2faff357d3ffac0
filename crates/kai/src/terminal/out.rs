//! The one place that prints, so that a closed pipe is no panic and no control character reaches a terminal.

use std::io::{self, IsTerminal, Write};

pub(crate) use kai_assistant::legible::visible;
use kai_assistant::legible::{escape_json, is_invisible};
use serde::Serialize;

#[cfg(test)]
use super::stage;

/// Prints text that is ours or has been made [`visible`].
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
        // Whoever read us has seen enough; that is no failure. A full disk is.
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

/// Does a person read what is printed? Never what a test prints.
pub(crate) fn has_person() -> bool {
    !cfg!(test) && io::stdout().is_terminal()
}

/// A sentence on stderr.
pub(crate) fn complain(sentence: &str) {
    aside(&format!("kai: {}\n", visible(sentence)));
}

/// JSON whose text cannot steer a terminal: what is invisible is escaped, which changes nothing of its meaning.
pub(crate) fn escaped(json: &str) -> String {
    escape_json(json, is_invisible)
}

/// Text for a pipe or a file: as it is, but for control characters that only a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// A value for a person to see, or, through a pipe, exactly as it is.
pub(crate) fn value(value: &str) -> String {
    format!("{}\n", if has_person() { visible(value) } else { value.to_owned() })
}

/// Something beside the answer, on stderr: what is going on, never the result.
pub(crate) fn note(text: &str) {
    let lines: Vec<String> = text.lines().map(visible).collect();
    aside(&format!("{}\n", lines.join("\n")));
}

/// Replaces the current line on stderr, which must be a terminal, and stays on it.
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
        assert_eq!(plain("a\u{1b}[2J\tb\n\u{9b}c"), "a[2J\tb\nc");
    }
}
