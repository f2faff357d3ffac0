//! Kai: a personal assistant on your own machine that never sends anything without your tap.

mod alarms;
mod announce;
mod answer;
mod around;
mod asking;
mod call;
mod caller;
mod chats;
mod cli;
mod crash;
mod daemon;
#[cfg(feature = "sms")]
mod demo;
mod doctor;
mod erase;
mod failure;
mod heartbeat;
mod home;
mod ledger;
mod logs;
mod machine;
mod memory;
mod models;
mod noted;
#[cfg(feature = "notifications")]
mod notifications;
mod places;
mod shell;
#[cfg(feature = "sms")]
mod sms;
mod socket;
mod status;
mod tasks;
mod transfer;
mod visit;
mod web;
mod wire;

#[cfg(all(test, feature = "sms"))]
#[path = "../tests/follow_an_sms.rs"]
mod follow_an_sms;

#[cfg(all(test, feature = "sms", feature = "notifications"))]
#[path = "../tests/attack/mod.rs"]
mod attack;

use std::process::ExitCode;

fn main() -> ExitCode {
    crash::install();
    // Whatever panics, the person gets a sentence (from the hook) and a proper exit code.
    std::panic::catch_unwind(cli::run).unwrap_or(ExitCode::FAILURE)
}
