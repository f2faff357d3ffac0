//! The worker as a program of its own, for tests. In Kai it is `kai __model`, which also gives up its rights.

use std::process::ExitCode;

fn main() -> ExitCode {
    kai_local::work(|_| Ok(()))
}
