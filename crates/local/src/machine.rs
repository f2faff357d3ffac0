//! What this machine can bear: memory, cores, free disk, and whether its processor has what the engine needs.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// What matters of this machine for running a model. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub memory: u64,
    /// The memory that programs could take now.
    pub available: u64,
    /// Physical cores that this process may use.
    pub cores: usize,
    /// Free space where models are kept; `None` if nobody can tell.
    pub disk: Option<u64>,
    /// The processor has the vector instructions that the engine is built with.
    pub has_vectors: bool,
}

/// Looks at this machine. `folder` is where models are kept; it need not exist yet.
pub fn look(folder: &Path) -> Machine {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let Memory { total, available } = memory(&text);
    Machine { memory: total, available, cores: cores(), disk: free_disk(folder), has_vectors: has_vectors() }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Memory {
    total: u64,
    available: u64,
}

/// Reads `/proc/meminfo`. What is not there counts as nothing.
fn memory(text: &str) -> Memory {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let number = line.trim().strip_suffix("kB").unwrap_or(line).trim();
        number.parse::<u64>().ok()?.checked_mul(1024)
    };
    let total = field("MemTotal").unwrap_or_default();
    Memory { total, available: field("MemAvailable").or_else(|| field("MemFree")).unwrap_or_default() }
}

/// The physical cores, but no more than this process may use. Two threads of one core would only wait for each other.
pub fn cores() -> usize {
    let usable = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match physical(topology()) {
        0 => usable,
        physical => physical.min(usable),
    }
}

/// Package and core of every processor that the system lists.
fn topology() -> Vec<(String, String)> {
    let Ok(cpus) = fs::read_dir("/sys/devices/system/cpu") else { return vec![] };
    let read = |folder: &Path, name: &str| fs::read_to_string(folder.join("topology").join(name)).ok();
    let place = |cpu: fs::DirEntry| {
        let folder = cpu.path();
        Some((read(&folder, "physical_package_id")?, read(&folder, "core_id")?))
    };
    cpus.filter_map(Result::ok).filter_map(place).collect()
}

/// How many different cores these are.
fn physical(places: Vec<(String, String)>) -> usize {
    places.into_iter().collect::<HashSet<_>>().len()
}

/// Free space for this user where the folder is, or is to be.
pub fn free_disk(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.is_dir())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(target_arch = "x86_64")]
fn has_vectors() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("fma")
        && std::is_x86_feature_detected!("f16c")
        && std::is_x86_feature_detected!("bmi2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_vectors() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_linux_writes_it() {
        let linux = "MemTotal:       16314752 kB\nMemFree:         1000 kB\nMemAvailable:    9000000 kB\n";
        for (text, total, available) in [
            (linux, 16_314_752 * 1024, 9_000_000 * 1024),
            ("MemTotal: 10 kB\nMemFree: 4 kB\n", 10 * 1024, 4 * 1024),
            ("MemTotalX: 10 kB\n", 0, 0),
            ("MemTotal: -3 kB\nMemAvailable: lots\n", 0, 0),
            ("MemTotal: 18446744073709551615 kB", 0, 0),
            ("", 0, 0),
        ] {
            assert_eq!(memory(text), Memory { total, available }, "{text}");
        }
    }

    #[test]
    fn two_threads_of_one_core_are_one_core() {
        let at = |package: &str, core: &str| (package.to_owned(), core.to_owned());
        assert_eq!(physical(vec![at("0\n", "0\n"), at("0\n", "1\n"), at("0\n", "0\n"), at("1\n", "0\n")]), 3);
        assert_eq!(physical(vec![]), 0);
    }

    #[test]
    fn this_machine_has_something() {
        let here = look(&tempfile::tempdir().unwrap().path().join("not").join("there").join("yet"));
        assert!(here.cores > 0 && here.disk.is_some(), "{here:?}");
    }
}
