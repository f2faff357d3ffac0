//! The store edition's twin of `phones.rs`: it has no phones.

use rusqlite::Transaction;

use super::{Act, Refused};
use crate::outbox::{Channel, Draft};

/// Only mails can be sent.
pub(super) fn permitted(_: &Transaction<'_>, draft: &Draft, act: Act) -> Result<Option<String>, Refused> {
    match (draft.channel, act) {
        (_, Act::Compose) => Err(Refused::NothingToOpen),
        (Channel::Email, _) => Ok(None),
        (Channel::Sms | Channel::Notification, _) => Err(Refused::NoPhone),
    }
}
