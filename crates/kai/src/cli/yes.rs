//! Asks for a typed yes. Only input typed after the question counts: someone who typed ahead has not seen the question.

use std::io::{self, IsTerminal, Write};

use rustix::termios::{QueueSelector, tcflush};

/// Asks on the terminal. Anything but a plain yes is a no; `d` shows `details` and asks again.
pub(super) fn given(question: &str, details: &str) -> bool {
    while let Some(typed) = typed(question) {
        if typed.trim() != "d" {
            return is_yes(&typed);
        }
        drop(writeln!(io::stderr(), "{details}"));
    }
    false
}

/// The same as [`given`] without details.
pub(super) fn plain(question: &str) -> bool {
    typed(question).is_some_and(|typed| is_yes(&typed))
}

pub(super) fn is_yes(typed: &str) -> bool {
    matches!(typed.trim(), "y" | "Y" | "yes")
}

/// Asks a question that is a no unless somebody types yes.
fn typed(question: &str) -> Option<String> {
    answer(&format!("{question} [y/N] "))
}

/// Prints the question and reads the answer. `None` if the question would not be visible.
pub(super) fn answer(question: &str) -> Option<String> {
    // Someone who cannot see the question cannot say yes to it.
    if !io::stderr().is_terminal() || tcflush(io::stdin(), QueueSelector::IFlush).is_err() {
        return None;
    }
    drop(write!(io::stderr(), "{question}"));
    let mut typed = String::new();
    drop(io::stdin().read_line(&mut typed));
    Some(typed)
}
