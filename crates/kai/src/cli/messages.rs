//! The commands that only the foss edition has.

use std::process::ExitCode;

use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::settings;

use super::args::messages::{CodesCommand, MessagesCommand, ShowOrHide};
use super::asking::Cli;
use super::{drafts, notifications, phones};
use crate::call::Call;
use crate::call::messages::{CodesAnswer, MessagesCall};
use crate::call::notifications::{NotificationsCall, NotificationsStatus};
use crate::call::sms::{SmsCall, SmsStatus};
use crate::failure::Failure;
use crate::terminal::out;

pub(super) fn run(ask: &Cli, command: MessagesCommand) -> Result<ExitCode, Failure> {
    match command {
        MessagesCommand::Sms(command) => ask.sms(command),
        MessagesCommand::Drafts(command) => ask.drafts(&command),
        MessagesCommand::Demo(command) => ask.demo(command),
        MessagesCommand::Notifications(command) => notifications::run(ask, command),
        MessagesCommand::Phones(command) => phones::run(ask, command),
    }
}

pub(super) fn codes(ask: &Cli, command: &CodesCommand) -> Result<ExitCode, Failure> {
    let CodesCommand::Codes { id, what } = command;
    let call = codes_call(Which::Id(ConversationId(*id)), *what == ShowOrHide::Show);
    ask.show(call, |now: &CodesAnswer| format!("{}\n", now.says))
}

fn codes_call(chat: Which, show: bool) -> Call {
    Call::Messages(MessagesCall::ChatsCodes { chat, show })
}

/// After a feature was turned off, tells the user what is still stored and how to erase it.
pub(super) fn say_what_is_kept(ask: &Cli, key: &str) -> Result<(), Failure> {
    if key == settings::SMS_ENABLED.key {
        let status: SmsStatus = ask.caller.ask(Call::from(SmsCall::Known))?;
        if !status.enabled && status.keeps() {
            let kept = drafts::kept_sms(&status);
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

/// What `/help` in `kai chat` says about codes.
pub(super) const HELP: &str = "
  /codes      let Kai see one-time codes in this chat
  /codes hide hide them again";

/// The call that a slash command in `kai chat` makes; `None` if it is none of this edition's own.
pub(super) fn slash(typed: &str, chat: Which) -> Option<Call> {
    match typed {
        "/codes" | "/codes show" => Some(codes_call(chat, true)),
        "/codes hide" => Some(codes_call(chat, false)),
        _ => None,
    }
}

/// What to say after a tool has run.
pub(super) fn next_step(tool: &str) -> Option<&'static str> {
    matches!(tool, "send_sms" | "reply_sms" | "reply_notification").then_some(
        "[✎ A draft is waiting for you. To see it: kai drafts list. To send it: kai drafts send ID]",
    )
}
