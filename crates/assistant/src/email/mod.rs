//! Email: reads the mail of the user's accounts, and lets the model draft mails.
//!
//! The path of a mail: a bridge implements the [`port`] → when an account is [`due`] (pure), or when its server says that
//! something arrived ([`push`]), [`poll`] fetches what came after the mark → [`sync`] queues it ([`queue`]) or, if a
//! program sent it, counts it, keeps its header ([`kept`]) and moves the mark, in one transaction. The text of a mail
//! stays on the server and is fetched when somebody reads it ([`mailboxes`]).
//!
//! The user adds accounts ([`store`]): [`presets`] (pure) knows the servers of large services, [`adding`] tries them.
//! They read mails on the inbox page ([`EmailSource`]).
//!
//! The model reads mails with [`tools`], sees no one-time codes in them (`seen`, pure) and may draft mails and answers
//! ([`reply`], pure), which wait in the [`outbox`](crate::outbox) until the user taps Send. Nothing in this folder can
//! send by itself: [`Post`] passes on what the outbox's door approved, and [`copies`] puts a copy into the Sent folder.

pub mod account;
pub mod adding;
mod answer;
pub mod copies;
pub mod due;
mod index;
pub mod kept;
mod listed;
pub mod mailboxes;
pub mod poll;
pub mod port;
mod post;
pub mod presets;
pub mod push;
pub mod queue;
pub mod reply;
mod search;
mod seen;
mod shelf;
pub mod store;
pub mod sync;
pub mod tools;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::db::Migration;
use crate::source::SourceId;

pub use copies::Copies;
pub use listed::EmailSource;
pub use mailboxes::Mailboxes;
pub use poll::Poller;
pub use post::Post;
pub use push::Push;
pub(crate) use seen::seen as redacted;
pub use tools::{CheckEmail, ComposeEmail, ReadEmail, ReplyEmail, SearchEmail, SetupEmail};

pub(crate) const MIGRATION: Migration =
    Migration { name: "email/1", sql: include_str!("../../migrations/email.sql") };
pub(crate) use index::MIGRATION as WORDS;
pub(crate) const TERMS: Migration =
    Migration { name: "email/terms", sql: include_str!("../../migrations/email-terms.sql") };

/// The number of the first account. Accounts are sources of messages like phones, whose numbers stay below.
pub const FIRST_ACCOUNT: i64 = 1_000_000;

/// Names a mail among those of all accounts, such as `1.1700000000.42`: account, validity of its numbers, number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmailId {
    pub account: SourceId,
    /// The UIDVALIDITY of the mailbox. When it changes, the server has numbered its mails anew.
    pub validity: u32,
    pub uid: u32,
}

impl EmailId {
    /// The name under which the ledger records the mail.
    pub fn identity(self) -> String {
        format!("email {self}")
    }
}

/// A mail's id is a text for models too.
impl JsonSchema for EmailId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EmailId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// The text is not the id of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoEmailId;

impl fmt::Display for EmailId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.account.0 - FIRST_ACCOUNT, self.validity, self.uid)
    }
}

impl FromStr for EmailId {
    type Err = NoEmailId;

    fn from_str(text: &str) -> Result<Self, NoEmailId> {
        let parts: Option<Vec<u32>> = text.trim().split('.').map(|part| part.parse().ok()).collect();
        let Some([account, validity, uid]) = parts.as_deref().map(<[u32; 3]>::try_from).and_then(Result::ok)
        else {
            return Err(NoEmailId);
        };
        let account = SourceId(FIRST_ACCOUNT + i64::from(account));
        Ok(Self { account, validity, uid })
    }
}

impl Serialize for EmailId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EmailId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|NoEmailId| serde::de::Error::custom("this is not the id of a mail"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_it_was_written_from() {
        let id = EmailId { account: SourceId(FIRST_ACCOUNT + 3), validity: 1_700_000_000, uid: 42 };
        assert_eq!(id.to_string(), "3.1700000000.42");
        assert_eq!("3.1700000000.42".parse(), Ok(id));
        for text in ["", "1", "1.2", "1.2.3.4", "-1.2.3", "a.b.c", "1.2.99999999999"] {
            assert_eq!(text.parse::<EmailId>(), Err(NoEmailId), "{text}");
        }
    }
}
