//! The commands that only the foss edition has.

use std::process::ExitCode;

use kai_assistant::settings;

use super::args::messages::MessagesCommand;
use super::asking::Cli;
use super::{notifications, phones, sms};
use crate::call::Call;
use crate::call::notifications::{NotificationsCall, NotificationsStatus};
use crate::call::sms::{SmsCall, SmsStatus};
use crate::failure::Failure;
use crate::terminal::out;

pub(super) fn run(ask: &Cli, command: MessagesCommand) -> Result<ExitCode, Failure> {
    match command {
        MessagesCommand::Sms(command) => ask.sms(command),
        MessagesCommand::Demo(command) => ask.demo(command),
        MessagesCommand::Notifications(command) => notifications::run(ask, command),
        MessagesCommand::Phones(command) => phones::run(ask, command),
    }
}

/// The tools that draft, besides those of both editions.
pub(super) const DRAFTING: &[&str] = &["send_sms", "reply_sms", "reply_notification"];

/// After a feature was turned off, tells the user what is still stored and how to erase it.
pub(super) fn say_what_is_kept(ask: &Cli, key: &str) -> Result<(), Failure> {
    if key == settings::SMS_ENABLED.key {
        let status: SmsStatus = ask.caller.ask(Call::from(SmsCall::Known))?;
        if !status.enabled && status.keeps() {
            let kept = sms::kept_sms(&status);
            out::note(&format!("Kai still keeps {kept}. To erase it: kai sms forget"));
        }
    }
    if key == settings::NOTIFICATIONS_ENABLED.key {
        let status: NotificationsStatus = ask.caller.ask(Call::from(NotificationsCall::Known))?;
        if !status.enabled && status.keeps() {
            out::note(&format!("Kai still keeps {}. To erase it: kai notifications forget", status.kept()));
        }
    }
    Ok(())
}
