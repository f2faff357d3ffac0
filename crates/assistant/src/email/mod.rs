//! Email: reads the mail of the user's accounts, and lets the model draft mails.
//!
//! A bridge implements the [`port`]. Nothing in this folder can send a mail: the door of the
//! [`outbox`](crate::outbox) does, after the user's tap.

pub mod account;
pub mod port;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::source::SourceId;

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
