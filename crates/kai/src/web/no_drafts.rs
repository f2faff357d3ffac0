//! The store edition's twin of `drafts.rs`: there are no drafts.

use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::db::DbError;
use maud::{Markup, html};

use super::times::Times;
use crate::app::App;

/// Nothing: this edition drafts no messages.
pub(super) struct Drafts;

pub(super) fn stale_in(_: &Drafts, _: Timestamp) -> Option<Duration> {
    None
}

/// What the address of a page asks to see; here it is never looked at.
pub(super) struct Asked;

impl Asked {
    pub(super) fn new(_: Option<i64>, _: Option<i64>) -> Self {
        Self
    }
}

#[expect(clippy::unused_async, reason = "the foss edition reads the store")]
pub(super) async fn stored(_: &App) -> Result<Drafts, DbError> {
    Ok(Drafts)
}

pub(super) fn script() -> Markup {
    html! {}
}

pub(super) fn banner(_: &Drafts, _: &str, _: &Times, _: &Asked) -> Markup {
    html! {}
}
