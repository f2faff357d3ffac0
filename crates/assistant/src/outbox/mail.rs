//! What a draft of a mail has besides its recipients and its text, and the mail that is made of it.

use serde::{Deserialize, Serialize};

/// The headers of a draft of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Envelope {
    /// The address of the account that it leaves by.
    pub from: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<String>,
    #[serde(default)]
    pub subject: String,
    /// The answered mail, quoted, which is sent below the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Its Message-ID, without angle brackets. It stays the same however often it is sent, so that a server that got it
    /// twice can tell.
    pub message_id: String,
    /// The Message-ID of the answered mail, without angle brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// The Message-IDs of the conversation so far, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
}

/// A mail as it is sent. Addresses are bare, such as `alice@example.org`; no field contains a line break or NUL except
/// the text, whose lines end with `\n`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    pub to: Vec<String>,
    pub envelope: Envelope,
    pub text: String,
    /// When the user tapped Send, in epoch milliseconds.
    pub date: i64,
}
