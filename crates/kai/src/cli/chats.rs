//! `kai chats delete` and its undo on the terminal.

use std::process::ExitCode;

use kai_assistant::agent::conversation::ConversationId;
use serde_json::json;

use super::asking::Cli;
use super::yes;
use crate::call::Call;
use crate::call::chats::ChatRow;
use crate::failure::Failure;
use crate::terminal::input;
use crate::terminal::out::visible;

/// Deletes a chat after asking.
pub(super) fn delete(ask: &Cli, id: ConversationId, sure: bool) -> Result<ExitCode, Failure> {
    let rows: Vec<ChatRow> = ask.caller.ask(Call::ChatsList)?;
    // One that does not exist is refused by the call itself.
    if let Some(row) = rows.iter().find(|row| row.conversation.id == id && !sure) {
        if !input::has_person() {
            return Err(Failure::usage(format!(
                "Kai has to ask you before it deletes a chat. Run this on a terminal, or add --yes: \
                 kai chats delete {} --yes",
                id.0
            )));
        }
        let called = visible(row.conversation.called());
        if !yes::plain(&format!("Delete chat {} ({called})?", id.0)) {
            return Err(Failure::failed("Nothing was deleted."));
        }
    }
    ask.tell(
        Call::ChatsDelete { id },
        |id: &ConversationId| json!({"id": id, "deleted": true}),
        |id| format!("Deleted chat {}. To take this back within a minute: kai chats undo\n", id.0),
    )
}

/// Takes back the last deletion.
pub(super) fn undo(ask: &Cli) -> Result<ExitCode, Failure> {
    ask.tell(
        Call::ChatsUndo,
        |id: &ConversationId| json!({"id": id, "restored": true}),
        |id| format!("The chat is back, as chat {0}. To see it: kai chats show {0}\n", id.0),
    )
}
