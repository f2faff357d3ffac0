//! Asks before data is deleted for good.

use super::yes;
use crate::failure::Failure;
use crate::terminal::input;

/// Asks before data is deleted for good; fails without a terminal. `command` is the command that was typed.
pub(super) fn confirmed(what: &str, command: &str) -> Result<(), Failure> {
    if !input::has_person() {
        return Err(Failure::failed(format!(
            "Nothing was erased, because {command} has to ask you first. Run it on a terminal."
        )));
    }
    if yes::plain(&format!("Erase {what}? This cannot be undone.")) {
        Ok(())
    } else {
        Err(Failure::failed("Nothing was erased."))
    }
}

/// Asks whether something goes as well, where Enter alone means yes. `None` if nobody answered: then nothing may be done.
pub(super) fn unless_no(question: &str) -> Option<bool> {
    let typed = yes::answer(&format!("{question} [Y/n] "))?;
    // Without a line end, nobody pressed Enter.
    typed.ends_with('\n').then(|| !matches!(typed.trim(), "n" | "N" | "no"))
}
