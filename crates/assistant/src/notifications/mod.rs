//! Notifications of other apps: the walk of one through this folder.
//!
//! A bridge hears it and tells an [`Ear`](port::Ear) → one writer ([`capture`]) takes all that was told meanwhile into
//! one transaction → [`filter`] (pure) says whether it is an event at all → [`record`] (pure) makes of it what is
//! kept → [`store`] updates the one record of its key and queues it for the next heartbeat → the model looks at it with
//! `tools`, the person with `kai notifications`; both see it through [`view`] (pure).
//!
//! Whether anything is heard at all is the person's choice and the platform's leave: [`toggle`].

pub mod capture;
pub mod filter;
pub mod port;
pub mod record;
pub mod store;
pub mod toggle;
mod tools;
pub mod view;

use crate::db::Migration;
use crate::pending::Queue;

pub use port::{Listener, Source};
pub use record::{NotificationId, Record};
pub use tools::{CheckNotifications, DismissNotification, ReadNotification, SearchNotifications, Shelf};

pub(crate) const MIGRATION: Migration =
    Migration { name: "notifications/1", sql: include_str!("../../migrations/notifications.sql") };

/// What waits for the next heartbeat.
pub const QUEUE: Queue = Queue("notifications");

#[cfg(test)]
mod tests;
