//! The store edition's twin of `messages.rs`: nothing can be asked about messages.

use serde::{Deserialize, Serialize};

/// No call: this edition reads no messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MessagesCall {}

impl MessagesCall {
    pub(crate) const NAMES: &[&str] = &[];
}

/// Adds nothing to `kai status --json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsPart {}

/// Adds nothing either.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NotificationsPart {}

/// Nor does this.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PhonesPart {}
