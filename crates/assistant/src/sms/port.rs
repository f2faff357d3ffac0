//! The port to the phone: the trait that a bridge implements to let Kai read SMS.

use std::pin::Pin;

use jiff::Timestamp;
use kai_words::{Said, said};

use super::{Sms, SmsId};
use crate::access::Access;
use crate::phones::port::Contact;

/// The future that a reader's methods return.
pub type Reading<'a, T> = Pin<Box<dyn Future<Output = Result<T, ReadError>> + Send + 'a>>;

/// Why reading from the phone failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.said())]
pub enum ReadError {
    /// The platform does not allow it, or no longer does. The text says what the user can do.
    NotPermitted(Said),
    /// Any other failure, as a sentence.
    Failed(Said),
}

impl ReadError {
    /// The error in a few words, without what the user can do.
    pub fn said(&self) -> Said {
        match self {
            Self::NotPermitted(_) => said::access_not_granted(),
            Self::Failed(why) => why.clone(),
        }
    }
}

/// Where a query for messages starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Messages with this id or a higher one, lowest id first.
    Id(SmsId),
    /// Messages with this date or a later one, oldest first; those with the same date, lowest id first.
    Date(Timestamp),
}

/// A phone whose inbox Kai can read. It returns received messages only, never sent ones or drafts.
pub trait SmsReader: Send + Sync {
    /// Whether Kai may read SMS. If the platform can prompt the user for the permission, this makes it prompt.
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>>;
    /// The message with the highest id.
    fn last(&self) -> Reading<'_, Option<Sms>>;
    /// At most `limit` messages, starting at `from`.
    fn from(&self, from: From, limit: usize) -> Reading<'_, Vec<Sms>>;
    /// At most `limit` messages, newest first, after skipping `skip`.
    fn newest(&self, skip: usize, limit: usize) -> Reading<'_, Vec<Sms>>;
    /// All contacts that have a name and a number. They have a permission of their own.
    fn contacts(&self) -> Reading<'_, Vec<Contact>>;
}
