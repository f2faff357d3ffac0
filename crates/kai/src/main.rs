//! Kai: a personal assistant on your own machine that never sends anything without your tap.

mod answer;
mod app;
mod asking;
mod call;
mod caller;
mod caller_env;
mod cli;
mod commands;
mod crash;
mod daemon;
#[cfg(feature = "foss")]
mod demo;
mod erase;
mod failure;
mod guests;
mod home;
mod logs;
mod machine;
#[cfg(feature = "foss")]
mod phones;
mod places;
mod socket;
mod terminal;
mod web;
mod wire;

#[cfg(test)]
#[path = "../tests/follow_a_mail.rs"]
mod follow_a_mail;
#[cfg(all(test, feature = "foss"))]
#[path = "../tests/follow_an_sms.rs"]
mod follow_an_sms;

#[cfg(all(test, feature = "foss"))]
#[path = "../tests/attack/mod.rs"]
mod attack;

#[cfg(test)]
#[path = "../tests/inside/mod.rs"]
mod inside;

use std::process::ExitCode;

fn main() -> ExitCode {
    crash::install();
    // The panic hook prints a sentence for the user; here a panic only becomes a failing exit code.
    std::panic::catch_unwind(cli::run).unwrap_or(ExitCode::FAILURE)
}
