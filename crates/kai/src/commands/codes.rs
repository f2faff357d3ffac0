//! Shows one-time codes to the model in a conversation, or hides them again.

use kai_assistant::agent::TurnError;
use kai_assistant::agent::conversation::{self, Codes, Which};
use kai_assistant::ledger::{self, Record};
use kai_assistant::settings::{self, CODE_REDACTION_ENABLED};
use rusqlite::Transaction;

use crate::app::App;
use crate::call::chats::CodesAnswer;

/// Shows one-time codes to the model in a conversation, or hides them again. Returns what applies now.
pub(crate) async fn show(app: &App, chat: Which, show: bool) -> Result<CodesAnswer, TurnError> {
    let now = app.clock.now();
    let is = |id, shown, says: &str| CodesAnswer { id, shown, says: says.to_owned() };
    let change = move |tx: &Transaction<'_>| {
        let meant = match chat {
            Which::Newest => conversation::newest(tx)?,
            Which::Id(id) => Some(id),
            Which::New | Which::Question => None,
        };
        if !settings::load(tx)?.on(&CODE_REDACTION_ENABLED) {
            return Ok(is(meant, true, NOTHING_HIDDEN));
        }
        let Some(id) = meant else { return Ok(is(None, false, NOT_BEGUN)) };
        let (codes, said) = match (show, conversation::codes(tx, id)?) {
            (true, _) => (Codes::Shown, CODES_SHOWN),
            (false, Codes::Hidden) => (Codes::Hidden, CODES_HIDDEN),
            (false, _) => (Codes::HiddenAgain, CODES_HIDDEN),
        };
        if !conversation::set_codes(tx, id, codes)? {
            return Err(TurnError::Unknown(id));
        }
        ledger::append(tx, &Record::Codes { conversation: id.0, shown: show }, now)?;
        Ok(is(Some(id), show, said))
    };
    app.db.write(change).await
}

const NOT_BEGUN: &str = "This chat is still empty. Send a message first, then show the codes.";

const NOTHING_HIDDEN: &str =
    "One-time codes are visible in every chat, because the setting code_redaction_enabled is false.";

const CODES_SHOWN: &str = "Kai can now see one-time codes in the messages it reads in this chat. They are sent to the \
                           model that answers.";

const CODES_HIDDEN: &str =
    "One-time codes are hidden in this chat, including those that Kai has already seen.";
