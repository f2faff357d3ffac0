//! One heap for all threads of the daemon. glibc gives threads heaps of their own, and each keeps what it once needed:
//! five megabytes after a question.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// glibc reads it before a program begins, so it takes a new start.
const HEAPS: &str = "MALLOC_ARENA_MAX";
/// Says that this is the new start: glibc takes its own variable away from a program with special rights.
const STARTED_ANEW: &str = "KAI_STARTED_ANEW";
/// The program that is running, whatever lies at its path by now.
const OURSELVES: &str = "/proc/self/exe";

/// Starts Kai anew in this process with a single heap, unless it has been told how many to use.
pub(crate) fn share_one() -> Result<(), Failure> {
    let is_told = [HEAPS, STARTED_ANEW].iter().any(|name| env::var_os(name).is_some());
    let Some(kai) = ourselves().filter(|_| cfg!(target_env = "gnu") && !is_told) else { return Ok(()) };
    let mut words = env::args_os();
    let name = words.next().unwrap_or_else(|| "kai".into());
    let why = Command::new(kai).arg0(name).args(words).env(HEAPS, "1").env(STARTED_ANEW, "1").exec();
    // Going on is no choice: on the way here, Rust has taken back that a closed connection must not end us.
    Err(Failure::failed(format!(
        "Kai could not start itself anew to save memory: {why}. Start it without that: {HEAPS}=1 kai serve"
    )))
}

/// The program to start. Its path is better than [`OURSELVES`], after which the process would be called "exe", but an
/// upgrade takes the path away. `None` if the system's loader was started with Kai as an argument: there is no telling
/// how to do that again.
fn ourselves() -> Option<PathBuf> {
    let kai = env::current_exe().ok()?;
    if is_loader(&kai) {
        return None;
    }
    Some(if kai.exists() { kai } else { OURSELVES.into() })
}

fn is_loader(program: &Path) -> bool {
    let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
    ["ld-", "ld."].iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_is_told_by_its_name() {
        for (program, expected) in [
            ("/lib64/ld-linux-x86-64.so.2", true),
            ("/usr/lib/x86_64-linux-gnu/ld-2.31.so", true),
            ("/lib/ld.so", true),
            ("/usr/bin/kai", false),
            ("/usr/bin/kai (deleted)", false),
            ("/", false),
        ] {
            assert_eq!(is_loader(Path::new(program)), expected, "{program}");
        }
    }
}
