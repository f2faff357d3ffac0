//! The archived SMS of paired phones in an export. They are not imported: they belong to a phone that is paired with one
//! machine.

use rusqlite::Transaction;
use serde::Serialize;

use super::share::pretty;
use crate::db::DbError;
use crate::phones;
use crate::phones::port::Folder;
use crate::settings;
use crate::sms::archive;
use crate::tool::Eyes;
use crate::untrusted::Untrusted;

/// What is exported only if it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnRequest {
    SmsArchive,
}

impl OnRequest {
    pub(super) const ALL: &[Self] = &[Self::SmsArchive];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SmsArchive => "sms_archive",
        }
    }

    /// The items after this one, each as JSON with its place.
    pub(super) fn next(
        self,
        tx: &Transaction<'_>,
        after: Option<i64>,
    ) -> Result<Vec<(i64, String)>, DbError> {
        match self {
            Self::SmsArchive => messages(tx, after),
        }
    }
}

/// An archived message as it is exported.
#[derive(Debug, Serialize)]
struct Message {
    phone: Option<String>,
    /// Epoch milliseconds.
    date: i64,
    folder: &'static str,
    /// Who sent it, or to whom it was sent.
    address: Untrusted,
    body: Untrusted,
}

/// How many messages are read at once.
const AT_ONCE: usize = 500;

/// Archived messages, oldest first. One-time codes are hidden as they are from a model: the file is not encrypted.
fn messages(tx: &Transaction<'_>, after: Option<i64>) -> Result<Vec<(i64, String)>, DbError> {
    let (eyes, phones) = (Eyes::of_model(&settings::load(tx)?), phones::store::all(tx)?);
    let message = |stored: archive::Stored| Message {
        phone: phones.iter().find(|phone| phone.source == stored.source).map(|phone| phone.name.clone()),
        date: stored.date.as_millisecond(),
        folder: match stored.folder {
            Folder::Inbox => "inbox",
            Folder::Sent => "sent",
        },
        body: eyes.see(&stored.body),
        address: stored.address,
    };
    let stored = archive::after(tx, after, AT_ONCE)?.into_iter();
    stored.map(|(row, stored)| Ok((row, pretty(&message(stored))?))).collect()
}
