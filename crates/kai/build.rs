//! Has the linker write the program's relocations in their short form, where the loader of this system reads it. That is
//! a megabyte less of file, and of memory at rest.

use std::env;
use std::process::Command;

/// The first glibc that reads it, of 2022.
const READS_IT: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Built for another machine, nobody can ask that one.
    let is_for_here = env::var("HOST") == env::var("TARGET");
    if is_for_here && glibc().is_some_and(|version| version >= READS_IT) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// `None` where the C library is another.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
