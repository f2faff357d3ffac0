//! SMS: the walk of a message through this folder.
//!
//! A bridge answers through a [`port`] → `poll` takes what is newer than the mark (`mark`, pure) → `store` queues
//! it and moves the mark in one transaction → the model looks at it with `tools`, and with them drafts an answer,
//! which waits in the [`outbox`](crate::outbox) for the person's tap. Nothing here can send.

pub mod port;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::untrusted::Untrusted;

/// The number of a message: on one phone its row in Android's table. Rows are re-used, so alone it is no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
