//! One-time codes on the terminal, and what is said about drafts in a chat there.

use std::process::ExitCode;

use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::outbox::DraftState;

use super::args::drafts::{CodesCommand, ShowOrHide};
use super::asking::Cli;
use super::messages;
use crate::call::Call;
use crate::call::chats::CodesAnswer;
use crate::call::drafts::DraftRow;
use crate::failure::Failure;

pub(super) fn run(ask: &Cli, command: &CodesCommand) -> Result<ExitCode, Failure> {
    let CodesCommand::Codes { id, what } = command;
    let call = codes_call(Which::Id(ConversationId(*id)), *what == ShowOrHide::Show);
    ask.show(call, |now: &CodesAnswer| format!("{}\n", now.says))
}

fn codes_call(chat: Which, show: bool) -> Call {
    Call::ChatsCodes { chat, show }
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

/// The tools of both editions that draft.
const DRAFTING: &[&str] = &["compose_email", "reply_email"];

/// Whether a tool drafts messages.
pub(super) fn drafts(tool: &str) -> bool {
    DRAFTING.iter().chain(messages::DRAFTING).any(|drafting| *drafting == tool)
}

/// What to say after Kai has drafted something, by the drafts that are there now.
pub(super) fn next_step(rows: &[DraftRow]) -> String {
    match rows.iter().filter(|row| row.status == DraftState::Pending).map(|row| row.id.0).max() {
        Some(id) => format!(
            "[✎ Draft {id} is waiting for you. To see it: kai drafts show {id}. To send it: kai drafts send {id}]"
        ),
        None => "[✎ Kai drafted a message. To see it: kai drafts list]".to_owned(),
    }
}
