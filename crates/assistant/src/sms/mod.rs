//! SMS: the walk of a message through this folder.
//!
//! A bridge answers through a [`port`], watched by the [`inbox`] → [`poll`], when it is [`due`] (pure), takes what is
//! newer than the [`mark`] (pure) → [`store`] queues it and moves the mark in one transaction → the model looks at it
//! with [`tools`], and with them drafts an answer, which waits in the [`outbox`](crate::outbox) for the person's tap.
//! Nothing here can send.

pub mod due;
pub mod inbox;
pub mod mark;
pub mod poll;
pub mod port;
pub mod search;
pub mod store;
pub mod tools;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::db::Migration;
use crate::untrusted::Untrusted;

pub use inbox::Inbox;
pub use poll::Poller;
pub use tools::{CheckDrafts, CheckSms, ReadSms, ReplySms, SearchSms, SendSms};

pub(crate) const MIGRATION: Migration =
    Migration { name: "sms/1", sql: include_str!("../../migrations/sms.sql") };

/// The number of a message: on one phone its row in Android's table. Rows are re-used, so alone it is no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SmsId(pub i64);

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sms {
    pub id: SmsId,
    /// The sender as the phone gives it: a number, or a name that the sender chose. May be empty.
    pub address: Untrusted,
    /// When it was received; bridges may know it to the second only.
    pub date: Timestamp,
    pub body: Untrusted,
    /// Has the person seen it on the phone?
    pub read: bool,
}

/// Did a person write it, as far as the sender tells? Services write under names that they chose, or from short numbers.
pub fn is_personal(sender: &str) -> bool {
    let digits = sender.chars().filter(char::is_ascii_digit).count();
    let number = sender.chars().all(|c| c.is_ascii_digit() || "+-./() \u{a0}".contains(c));
    number && (digits > SHORT || (digits > 0 && sender.trim_start().starts_with('+')))
}

/// Digits of the longest number that only services have.
const SHORT: usize = 6;

/// The identity of a message as the ledger names it.
pub(crate) fn identity_name(id: i64, date: i64, from: &str) -> String {
    format!("sms {id} {date} {from}")
}

#[cfg(test)]
mod tests {
    use super::is_personal;

    #[test]
    fn people_have_numbers_and_services_have_names_or_short_ones() {
        for (sender, expected) in [
            ("+15550100", true),
            ("0171 5550100", true),
            ("+49 (171) 555-01.00", true),
            ("DHL", false),
            ("AD-HDFCBK", false),
            ("72000", false),
            ("110", false),
            ("info@example.org", false),
            ("", false),
            ("+", false),
        ] {
            assert_eq!(is_personal(sender), expected, "{sender:?}");
        }
    }
}
