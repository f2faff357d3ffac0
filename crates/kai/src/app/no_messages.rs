//! The store edition's twin of `messages.rs`: it has no phone and no notifications.

use std::sync::Arc;

use kai_assistant::clock::Clock;
use kai_assistant::db::Db;
use kai_assistant::inbox::MessageSource;
use kai_assistant::outbox::door::{Door, FindAnswerable};

use crate::machine;

/// Nothing: this edition reads mail only.
pub(crate) struct Messages;

impl Messages {
    pub(crate) fn new(_: machine::Messages, _: &Db, _: &Arc<dyn Clock>, _: &Door) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the foss edition has a demo")]
    pub(crate) fn own_name(&self) -> Option<&'static str> {
        None
    }

    #[expect(clippy::unused_self, reason = "the foss edition has some")]
    pub(crate) fn sources(&self, _: &Arc<dyn Clock>, _: &Door) -> Vec<Box<dyn MessageSource>> {
        vec![]
    }
}

pub(crate) const ANSWERABLE: FindAnswerable = |_, _, _| Ok(None);
