//! How much a command may use. The kernel enforces limits per process; the guard checks totals ten times a second.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

const MB: u64 = 1024 * 1024;
/// Memory of all processes together, checked by the guard.
pub(super) const MEMORY: u64 = 1024 * MB;
pub(super) const PROCESSES: usize = 64;
/// Size of the scratch folder, including deleted files that are still open.
pub(super) const SCRATCH: u64 = 256 * MB;
pub(super) const FILES: u64 = 20_000;
/// Time between two checks of what is used.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Address space of one process. It is generous because some programs reserve much more than they use.
const ADDRESSES: u64 = 4096 * MB;
const OPEN_FILES: u64 = 256;
/// Processes and threads in addition to those the user already has, because the kernel counts them per user. The
/// kernel enforces this at once, faster than any check by the guard.
const TASKS: u64 = 256;
/// CPU seconds allowed per second of running time, because one process may use several CPUs at once.
const CPU_PER_SECOND: u64 = 4;
const POLITE: i32 = 5;

/// Limits this process and everything it starts. `running` is how many tasks the user already has.
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
        setrlimit(resource, within(most, getrlimit(resource)))?;
    }
    nice(POLITE)?;
    Ok(())
}

/// Our limit, or the present hard one if that is lower already: a service or a container may have set it, and no
/// ordinary process may raise it again.
fn within(most: u64, present: Rlimit) -> Rlimit {
    let most = Some(present.maximum.map_or(most, |hard| most.min(hard)));
    Rlimit { current: most, maximum: most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_limit_is_never_raised() {
        for (name, soft, hard, expected) in [
            ("no limit yet", None, None, 256),
            ("a higher one", Some(1024), Some(4096), 256),
            ("the same", Some(256), Some(256), 256),
            ("a lower one", Some(64), Some(128), 128),
            ("only a soft one", Some(64), None, 256),
            ("nothing at all", Some(0), Some(0), 0),
        ] {
            let limit = within(256, Rlimit { current: soft, maximum: hard });
            assert_eq!((limit.current, limit.maximum), (Some(expected), Some(expected)), "{name}");
        }
    }
}
