//! The store edition's twin of `messages.rs`: it knows no phone and no notifications.

use super::Programs;

/// Nothing: this edition reads no messages.
#[derive(Clone, Default)]
pub(crate) struct Messages;

impl Messages {
    pub(super) fn found(_: &mut Programs) -> Self {
        Self
    }
}
