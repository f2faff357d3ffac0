//! The store edition's twin of `drafts.rs`: there are no drafts.

use kai_assistant::db::DbError;
use maud::{Markup, html};

use super::times::Times;
use crate::app::App;

/// Nothing: this edition drafts no messages.
pub(super) struct Drafts;

#[expect(clippy::unused_async, reason = "the foss edition reads the store")]
pub(super) async fn stored(_: &App) -> Result<Drafts, DbError> {
    Ok(Drafts)
}

pub(super) fn script() -> Markup {
    html! {}
}

pub(super) fn banner(_: &Drafts, _: &str, _: &Times, _: Option<i64>) -> Markup {
    html! {}
}
