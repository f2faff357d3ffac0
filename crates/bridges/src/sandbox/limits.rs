//! How much a command may use. What the kernel counts per process it refuses by itself; what only shows in sum, the
//! guard looks at ten times a second.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, nice, setrlimit};

const MB: u64 = 1024 * 1024;
/// All processes together, as the guard sees it.
pub(super) const MEMORY: u64 = 1024 * MB;
pub(super) const PROCESSES: usize = 64;
/// The scratch folder, deleted files that are still open included.
pub(super) const SCRATCH: u64 = 256 * MB;
pub(super) const FILES: u64 = 20_000;
/// Between two looks at what is used.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Address space of one process. Some programs reserve much more than they use.
const ADDRESSES: u64 = 4096 * MB;
const OPEN_FILES: u64 = 256;
/// Processes and threads beyond those that the user already has: the kernel counts them per user. Faster than any look.
const TASKS: u64 = 256;
/// Several processors may work for one process at once.
const CPU_PER_SECOND: u64 = 4;
const POLITE: i32 = 5;

/// Limits this process and all that it will start. `running` is how many tasks the user has already.
pub(super) fn apply(patience: Duration, running: u64) -> io::Result<()> {
    let cpu = patience.as_secs().saturating_mul(CPU_PER_SECOND);
    for (resource, most) in [
        (Resource::As, ADDRESSES),
        (Resource::Fsize, SCRATCH),
        (Resource::Cpu, cpu),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Nproc, running.saturating_add(TASKS)),
        (Resource::Core, 0),
        (Resource::Msgqueue, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    nice(POLITE)?;
    Ok(())
}
