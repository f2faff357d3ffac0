//! Where the phone begins: what a bridge that can read SMS is asked.

use std::pin::Pin;

use jiff::Timestamp;

use super::{Sms, SmsId};
use crate::access::Access;

/// What a reader answers with.
pub type Reading<'a, T> = Pin<Box<dyn Future<Output = Result<T, ReadError>> + Send + 'a>>;

/// Why the phone did not tell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The platform does not allow it (any more); the rest is what the person can do.
    #[error("Permission not granted")]
    NotPermitted(String),
    /// Anything else, as a sentence.
    #[error("{0}")]
    Failed(String),
}

/// From where on messages are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Those with this id or a higher one, lowest id first.
    Id(SmsId),
    /// Those of this moment or later, oldest first; of the same moment, lowest id first.
    Date(Timestamp),
}

/// A phone whose inbox we can read. Only received messages: what was sent or is a draft never comes out of here.
pub trait SmsReader: Send + Sync {
    /// May we read? Where the platform can ask the person, this makes it ask.
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>>;
    /// The message with the highest id.
    fn last(&self) -> Reading<'_, Option<Sms>>;
    /// At most `limit` messages.
    fn from(&self, from: From, limit: usize) -> Reading<'_, Vec<Sms>>;
    /// Newest first: `limit` messages after skipping `skip`.
    fn newest(&self, skip: usize, limit: usize) -> Reading<'_, Vec<Sms>>;
}
