//! The store edition's twin of `messages.rs`: it has no such commands.

use std::process::ExitCode;

use kai_assistant::agent::conversation::Which;

use super::args::messages::{CodesCommand, MessagesCommand};
use super::asking::Cli;
use crate::call::Call;
use crate::failure::Failure;

pub(super) fn run(_: &Cli, command: MessagesCommand) -> Result<ExitCode, Failure> {
    match command {}
}

pub(super) fn codes(_: &Cli, command: &CodesCommand) -> Result<ExitCode, Failure> {
    match *command {}
}

#[expect(clippy::unnecessary_wraps, reason = "the foss edition asks")]
pub(super) fn say_what_is_kept(_: &Cli, _: &str) -> Result<(), Failure> {
    Ok(())
}

pub(super) const HELP: &str = "";

pub(super) fn slash(_: &str, _: Which) -> Option<Call> {
    None
}

pub(super) fn next_step(_: &str) -> Option<&'static str> {
    None
}
