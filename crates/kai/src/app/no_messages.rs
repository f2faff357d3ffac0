//! The store edition's twin of `messages.rs`: it has no phone and no notifications.

use std::sync::Arc;

use kai_assistant::clock::Clock;
use kai_assistant::db::Db;
use kai_assistant::inbox;

use crate::machine;

/// Nothing: this edition reads no messages, so its inbox has no source.
pub(crate) struct Messages {
    pub(crate) inbox: inbox::Sources,
}

impl Messages {
    pub(crate) fn new(_: machine::Messages, _: &Db, _: &Arc<dyn Clock>) -> Self {
        Self { inbox: inbox::Sources::default() }
    }
}
