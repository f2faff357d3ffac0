//! Notifications of other apps: captures them, stores them for a day and shows them to the model and the user.
//!
//! The path of a notification: a bridge receives it and reports it to an [`Ear`](port::Ear) → a single writer
//! ([`capture`]) puts everything reported in the meantime into one transaction → [`filter`] (pure) drops what is not an
//! event → [`record`] (pure) turns it into a bounded record → [`store`] updates the record with its key and queues it
//! for the next heartbeat → the model reads it with `tools`, the user with `kai notifications` and in the inbox
//! ([`NotificationSource`]); both see it through [`view`] (pure). A reply to one waits as a draft in the outbox until the user taps Send.
//!
//! Kai listens only if the user enabled it and the platform allows it: see [`toggle`].
//!
//! Notifications come from several *sources* at once: this machine, and each paired phone. Everything is kept per source
//! (records and their limits, state, gaps, drops), and each source has a capture of its own, so that none waits for
//! another. [`sources`] lists them while Kai runs.

pub mod capture;
pub mod filter;
mod listed;
pub mod port;
pub mod record;
pub mod repeats;
#[cfg(feature = "sms")]
pub mod replying;
pub mod sources;
pub mod store;
pub mod toggle;
mod tools;
pub mod view;

use crate::db::Migration;
use crate::pending::Queue;

pub use listed::NotificationSource;
pub use port::{Listener, Source};
pub use record::{NotificationId, Record};
#[cfg(feature = "sms")]
pub use replying::ReplyNotification;
pub use sources::Sources;
pub use tools::{
    CheckNotifications, DismissNotification, NotificationTools, ReadNotification, SearchNotifications,
};

pub(crate) const MIGRATION: Migration =
    Migration { name: "notifications/1", sql: include_str!("../../migrations/notifications.sql") };
pub(crate) const SOURCES: Migration = Migration {
    name: "notifications/sources",
    sql: include_str!("../../migrations/notifications-sources.sql"),
};

pub(crate) const INBOX: Migration =
    Migration { name: "notifications/inbox", sql: include_str!("../../migrations/notifications-inbox.sql") };

/// The queue of notifications for the next heartbeat.
pub const QUEUE: Queue = Queue("notifications");

#[cfg(test)]
mod tests;
