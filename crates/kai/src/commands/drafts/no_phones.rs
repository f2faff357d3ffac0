//! The store edition's twin of `phones.rs`: drafts leave by mail accounts only.

#![expect(clippy::unnecessary_wraps, clippy::unused_async, reason = "the foss edition reads the store")]

use jiff::tz::TimeZone;
use kai_assistant::db::DbError;
use kai_assistant::outbox::Draft;
use kai_assistant::untrusted::Untrusted;
use rusqlite::Transaction;

use crate::app::App;
use crate::call::drafts::{DraftPhone, OnPhone};

/// There are none.
pub(super) struct Phones;

impl Phones {
    pub(super) fn own(_: &App) -> Option<()> {
        None
    }

    pub(super) fn stored(_: &Transaction<'_>, _: Option<()>) -> Result<Self, DbError> {
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "the foss edition knows phones")]
    pub(super) fn named(&self, _: &Draft) -> Option<DraftPhone> {
        None
    }

    #[expect(clippy::unused_self, reason = "the foss edition knows phones")]
    pub(super) fn on_phone(&self, _: &Draft, _: &TimeZone) -> OnPhone {
        OnPhone::default()
    }
}

pub(crate) fn name_of(_: &Transaction<'_>, _: &Draft) -> Result<Option<Untrusted>, DbError> {
    Ok(None)
}

pub(super) async fn wrote_before(_: &App, _: &str) -> Result<bool, DbError> {
    Ok(false)
}

pub(crate) fn sending_denied(_: &App) -> bool {
    false
}
