//! Handles panics: the user sees one sentence, and the details for developers go to a file.

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kai_assistant::clock::{Clock, SystemClock};

use crate::terminal::out;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder for crash reports. Until the home is known, they go to the system's temporary folder.
pub(crate) fn write_to(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

pub(crate) fn install() {
    std::panic::set_hook(Box::new(|panic| {
        let folder = FOLDER.get().cloned().unwrap_or_else(std::env::temp_dir);
        out::complain(&match write(&folder, &report(panic)) {
            Ok(file) => format!(
                "Kai ran into a bug and stopped working on this. The details are in {}; please report them.",
                file.display()
            ),
            Err(_) => "Kai ran into a bug and stopped working on this.".to_owned(),
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

/// The location and the backtrace. The panic message is left out: it may quote the data that caused it, such as
/// somebody's message.
fn report(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    format!(
        "Kai {} at {place}, thread {}\n\n{}\n",
        env!("KAI_VERSION"),
        thread.name().unwrap_or("?"),
        Backtrace::force_capture()
    )
}

/// Disables core dumps, which would contain the store's key and recently read messages, and stops other processes of
/// the same user from reading our memory. Best effort: an unusual kernel is no reason not to start.
pub(crate) fn leave_no_dump() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Only the soft limit changes: a browser that we open may want its own core dumps.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
