//! Calls about mail accounts, and the rows they return.

use kai_assistant::email::EmailId;
use kai_words::Said;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmailCall {
    /// The accounts.
    List,
    Add(AddAccount),
    /// Signs in to both servers of an account.
    Test {
        account: String,
    },
    Remove {
        account: String,
    },
    /// Looks for new mail now, in one account or in all.
    Poll {
        account: Option<String>,
    },
    Read {
        id: EmailId,
    },
    Search {
        text: String,
    },
}

/// An account to add, as the user typed it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct AddAccount {
    pub(crate) address: String,
    /// `HOST` or `HOST:PORT`.
    pub(crate) imap: Option<String>,
    pub(crate) smtp: Option<String>,
    /// The name to sign in with, if it is not the address.
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) token_command: Option<String>,
}

/// Shows no password, wherever it is printed.
impl std::fmt::Debug for AddAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddAccount").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A row of `kai email list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountRow {
    pub(crate) address: String,
    pub(crate) user: String,
    /// `HOST:PORT`, with how it is encrypted.
    pub(crate) imap: String,
    pub(crate) smtp: String,
    /// Signs in with a command that prints a token, and not with a password.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) token_command: bool,
    /// How many mails wait for the next heartbeat.
    pub(crate) queued: u32,
    /// How many mails the full queue dropped.
    pub(crate) dropped: u32,
    /// How many newsletters and automatic mails were only counted.
    pub(crate) counted: u32,
    /// Epoch milliseconds.
    pub(crate) last_sync: Option<i64>,
    pub(crate) last_attempt: Option<i64>,
    pub(crate) last_error: Option<Said>,
}

/// What a test of an account showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountTest {
    pub(crate) account: AccountRow,
    pub(crate) works: bool,
    pub(crate) why: Option<Said>,
}

/// What `kai email poll` did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EmailPolled {
    pub(crate) accounts: Vec<AccountPolled>,
    pub(crate) queued: u32,
}

/// What a look into one account brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountPolled {
    pub(crate) address: String,
    pub(crate) fresh: usize,
    /// There is more, which the next look brings.
    pub(crate) more: bool,
    /// This was the first look: what is there counts as seen.
    pub(crate) seeded: bool,
    pub(crate) error: Option<Said>,
}

/// A row of `kai email search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EmailRow {
    pub(crate) id: EmailId,
    pub(crate) account: String,
    pub(crate) from: String,
    pub(crate) subject: String,
    /// Epoch milliseconds.
    pub(crate) date: i64,
    pub(crate) date_local: String,
    pub(crate) preview: String,
}

/// What a search found, and which accounts could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EmailFound {
    pub(crate) emails: Vec<EmailRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) without: Vec<Said>,
}

/// A mail in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EmailWhole {
    pub(crate) id: EmailId,
    pub(crate) account: String,
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cc: Vec<String>,
    pub(crate) subject: String,
    /// Epoch milliseconds.
    pub(crate) date: i64,
    pub(crate) date_local: String,
    pub(crate) text: String,
    /// Only the beginning of the text is here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_beginning: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<AttachmentRow>,
}

/// A file in a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttachmentRow {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) size: u64,
}
