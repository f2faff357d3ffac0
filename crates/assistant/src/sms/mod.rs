//! SMS: reads the messages of the phone that Kai runs on and of paired phones, and lets the model draft replies.
//!
//! The path of a message of a paired phone: [`gather`] takes what the phone tells and asks what [`fill`] (pure) says →
//! the [`archive`] keeps it and queues it if it is news, in one transaction. [`names`] holds the phone's contacts;
//! those of the phone that Kai runs on are read by [`contacts`].
//!
//! The path of a message of the phone that Kai runs on: a bridge implements the [`port`], and the [`inbox`] wraps it and tracks the read permission →
//! when a poll is [`due`] (pure), [`poll`] fetches the messages newer than the [`mark`] (pure) → [`store`] queues them
//! and moves the mark in one transaction.
//!
//! The user reads them on the inbox page ([`SmsSource`]): from the archive, and from the phone that Kai runs on as far as
//! the [`Shelf`] has read it.
//!
//! The model reads the messages of all phones ([`received`]) with [`tools`] and may draft a reply, which waits in the
//! [`outbox`](crate::outbox) until the user taps Send. Nothing in this folder can send a message.

pub mod archive;
pub mod contacts;
pub mod due;
pub mod fill;
pub mod gather;
mod handled;
pub mod inbox;
mod listed;
pub mod mark;
pub mod names;
pub mod poll;
pub mod port;
pub mod queue;
pub mod received;
pub mod search;
mod shelf;
pub mod store;
pub mod tools;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::db::Migration;
use crate::untrusted::Untrusted;

pub use archive::{PhoneState, forget_phone, phone_state};
pub use contacts::ContactBook;
pub use gather::{Gather, NewsHook};
pub use inbox::Inbox;
pub use listed::SmsSource;
pub use poll::Poller;
pub use received::Received;
pub use shelf::Shelf;
pub use tools::{CheckSms, DraftingPhones, ReadSms, ReplySms, SearchSms, SendSms};

pub(crate) const MIGRATION: Migration =
    Migration { name: "sms/1", sql: include_str!("../../migrations/sms.sql") };

/// The number of a message: on the phone that Kai runs on its row in Android's table, which is re-used, so alone it is no
/// identity; in the archive a number of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SmsId(pub i64);

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sms {
    pub id: SmsId,
    /// The sender as the phone reports it: a number, or a name that the sender chose. May be empty.
    pub address: Untrusted,
    /// When the message was received. Some bridges only know it to the second.
    pub date: Timestamp,
    pub body: Untrusted,
    /// Whether the user has read it on the phone.
    pub read: bool,
}

/// Guesses from the sender whether a person wrote the message. Services use names or short numbers instead.
pub fn is_personal(sender: &str) -> bool {
    let digits = sender.chars().filter(char::is_ascii_digit).count();
    search::is_like_a_number(sender)
        && (digits > SHORT || (digits > 0 && sender.trim_start().starts_with('+')))
}

/// Numbers with at most this many digits and no leading `+` count as short numbers, which belong to services.
const SHORT: usize = 6;

/// The name under which the ledger records a message.
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
