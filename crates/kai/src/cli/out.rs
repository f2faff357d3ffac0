//! The one place that prints, so that a closed pipe is no panic and no control character reaches a terminal.

use std::io::{self, Write};

use serde::Serialize;

/// Prints text that is ours or has been made [`visible`].
pub(crate) fn text(text: &str) {
    raw(text.as_bytes());
}

pub(crate) fn line(text: &str) {
    raw(format!("{text}\n").as_bytes());
}

pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(pretty) => line(&pretty),
        Err(error) => complain(&error.to_string()),
    }
}

pub(crate) fn raw(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // Whoever read us has seen enough; that is no failure. A full disk is.
        if error.kind() != io::ErrorKind::BrokenPipe {
            complain(&format!("The output could not be written: {error}."));
            std::process::exit(1);
        }
    }
}

/// A sentence on stderr.
pub(crate) fn complain(sentence: &str) {
    // If stderr is gone there is nobody left to tell.
    drop(writeln!(io::stderr(), "kai: {}", visible(sentence)));
}

/// Something beside the answer, on stderr: what is going on, never the result.
pub(crate) fn note(text: &str) {
    let lines: Vec<String> = text.lines().map(visible).collect();
    drop(writeln!(io::stderr(), "{}", lines.join("\n")));
}

/// The text with control and direction-changing characters spelled out; line breaks become blanks.
pub(crate) fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if c.is_control() || invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
        shown
    })
}

/// Zero-width and bidirectional characters, with which text can be made to look like other text.
fn invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{061c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_steer_the_terminal() {
        assert_eq!(visible("a\u{1b}[31mb\nc\u{202e}d"), "a\\u{1b}[31mb c\\u{202e}d");
        assert_eq!(visible("grün 😀 \u{9b}"), "grün 😀 \\u{9b}");
    }
}
