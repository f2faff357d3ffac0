//! The store edition's twin of `messages.rs`: it has no phone and no notifications.

use std::sync::Arc;

use kai_assistant::clock::Clock;
use kai_assistant::db::Db;

use crate::machine;

/// Nothing: this edition reads no messages.
pub(crate) struct Messages;

impl Messages {
    pub(crate) fn new(_: machine::Messages, _: &Db, _: &Arc<dyn Clock>) -> Self {
        Self
    }
}
