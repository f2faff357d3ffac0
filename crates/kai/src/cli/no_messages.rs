//! The store edition's twin of `messages.rs`: it has no such commands.

use std::process::ExitCode;

use super::args::messages::MessagesCommand;
use super::asking::Cli;
use crate::failure::Failure;

pub(super) fn run(_: &Cli, command: MessagesCommand) -> Result<ExitCode, Failure> {
    match command {}
}

#[expect(clippy::unnecessary_wraps, reason = "the foss edition asks")]
pub(super) fn say_what_is_kept(_: &Cli, _: &str) -> Result<(), Failure> {
    Ok(())
}

/// The tools that draft, besides those of both editions.
pub(super) const DRAFTING: &[&str] = &[];
