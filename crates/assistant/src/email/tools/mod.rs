//! The tools with which a model reads mails and drafts them. Nothing here can send.

mod drafting;
mod reading;
mod searching;
mod setup;

use kai_words::said;

use crate::email::EmailId;
use crate::email::mailboxes::NotRead;
use crate::email::port::{Trouble, Why};
use crate::tool::ToolError;

pub use drafting::{ComposeEmail, ReplyEmail};
pub use reading::{CheckEmail, Listed, ReadEmail};
pub use searching::SearchEmail;
pub use setup::SetupEmail;

impl From<NotRead> for ToolError {
    fn from(error: NotRead) -> Self {
        Self(match error {
            NotRead::Unknown(id) => unknown(id),
            NotRead::Gone(id) => format!(
                "The mail with the id {id} is no longer in the inbox, or the server has numbered its mails anew. Look \
                 for it with search_email."
            ),
            NotRead::Server(address, trouble) => away(&address, &trouble),
            NotRead::Store(sentence) => sentence,
        })
    }
}

fn unknown(id: EmailId) -> String {
    format!("There is no mail with the id {id}. See check_email or search_email.")
}

/// The trouble in words of ours. Those of the server are a stranger's, and an error has no place for them.
fn away(address: &str, trouble: &Trouble) -> String {
    match trouble.why {
        Why::WrongPassword(_) | Why::AppPassword(_) | Why::ImapOff(_) | Why::TokenCommand(_) => format!(
            "The mail server of {address} does not let Kai sign in. The user can check the account in Settings, under \
             Email."
        ),
        Why::NameNotFound
        | Why::NotReached(_)
        | Why::Silent
        | Why::NoTls
        | Why::Certificate(_)
        | Why::PlainElsewhere
        | Why::NoPush
        | Why::Refused(_)
        | Why::Nonsense
        | Why::Broken => {
            format!(
                "The mail server of {address} cannot be reached right now, so the mail cannot be read. Try again later."
            )
        }
    }
}

/// The error of a tool for which there is no account.
fn no_account() -> ToolError {
    said::lacks_email().into()
}
