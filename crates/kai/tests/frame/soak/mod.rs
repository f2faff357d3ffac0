//! What Kai stands when it is treated badly for long. Not part of every test run: `scripts/soak` runs it and prints the
//! figures.

#![expect(clippy::print_stdout, reason = "the figures are what it is run for")]

#[cfg(feature = "foss")]
mod books;
mod faults;
#[cfg(feature = "foss")]
mod kills;
mod load;
#[cfg(feature = "foss")]
mod pocket;
#[cfg(feature = "foss")]
mod post;
#[cfg(feature = "foss")]
mod relay;

use std::time::{Duration, Instant};

use crate::kit::Daemon;

#[cfg(feature = "foss")]
/// Small and repeatable: a soak that found something is run again with its seed.
struct Dice(u64);

#[cfg(feature = "foss")]
impl Dice {
    fn new(salt: u64) -> Self {
        let seed = std::env::var("KAI_SOAK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) | 1);
        println!("KAI_SOAK_SEED={seed}");
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A number from the environment, or what is usual.
fn asked_for(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Kilobytes of a process, by the name of the line.
fn kilobytes(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let found = status.lines().find_map(|l| l.strip_prefix(line)?.trim().strip_suffix(" kB"));
    found.unwrap().trim().parse().unwrap()
}

fn resident(daemon: &Daemon) -> u64 {
    kilobytes(daemon.pid(), "VmRSS:")
}

fn open_files(daemon: &Daemon) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count()
}

/// Waits until the number stops falling, as things are given back a moment later.
fn settled(mut number: impl FnMut() -> u64) -> u64 {
    let (began, mut lowest) = (Instant::now(), u64::MAX);
    while began.elapsed() < Duration::from_secs(5) {
        lowest = lowest.min(number());
        std::thread::sleep(Duration::from_millis(200));
    }
    lowest
}
