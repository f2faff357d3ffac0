//! What a person sees of a bug in Kai: one sentence. What a developer needs goes into a file.

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kai_assistant::clock::{Clock, SystemClock};

use crate::cli::out;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Reports go here once the home is known; before that, to the system's scratch folder.
pub(crate) fn write_to(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

pub(crate) fn install() {
    std::panic::set_hook(Box::new(|panic| {
        let folder = FOLDER.get().cloned().unwrap_or_else(std::env::temp_dir);
        out::complain(&match write(&folder, &report(panic)) {
            Ok(file) => format!(
                "Kai hit a bug of its own and gave up on this. What happened is in {}; please report it.",
                file.display()
            ),
            Err(_) => "Kai hit a bug of its own and gave up on this.".to_owned(),
        });
    }));
}

fn write(folder: &Path, report: &str) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::create_dir_all(folder)?;
    let file = folder.join(format!("crash-{}.txt", SystemClock.now().strftime("%Y%m%dT%H%M%S%3fZ")));
    let mut open = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&file)?;
    std::io::Write::write_all(&mut open, report.as_bytes())?;
    Ok(file)
}

fn report(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let said = panic.payload_as_str().map(without_quotes).unwrap_or_default();
    let thread = std::thread::current();
    format!(
        "Kai {} at {place}, thread {}\n{said}\n\n{}\n",
        env!("CARGO_PKG_VERSION"),
        thread.name().unwrap_or("?"),
        Backtrace::force_capture()
    )
}

/// A panic's text may quote what it stumbled over, and that may be somebody's message.
fn without_quotes(text: &str) -> String {
    let mut kept = String::new();
    let mut inside: Option<char> = None;
    for c in text.chars() {
        match inside {
            Some(quote) if c == quote => inside = None,
            Some(_) => {}
            None if matches!(c, '`' | '"') => {
                inside = Some(c);
                kept.push('…');
            }
            None => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_does_not_quote_messages() {
        let said =
            "byte index 1 is not a char boundary; it is inside 'ä' (bytes 0..2) of `äh, my PIN is 1234`";
        assert!(!without_quotes(said).contains("1234"));
        assert!(without_quotes(said).starts_with("byte index 1 is not a char boundary"));
        assert_eq!(without_quotes("called `unwrap` on \"no end"), "called … on …");
    }
}
