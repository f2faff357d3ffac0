//! A typed yes. Only what is typed after the question counts: who typed ahead has not seen what is asked.

use std::io::{self, IsTerminal, Write};

use rustix::termios::{QueueSelector, tcflush};

/// Asks on the terminal; everything but a plain yes is a no.
pub(super) fn given(question: &str) -> bool {
    // Who does not see the question cannot say yes to it.
    if !io::stderr().is_terminal() || tcflush(io::stdin(), QueueSelector::IFlush).is_err() {
        return false;
    }
    drop(write!(io::stderr(), "{question} [y/N] "));
    let mut typed = String::new();
    drop(io::stdin().read_line(&mut typed));
    matches!(typed.trim(), "y" | "Y" | "yes")
}
