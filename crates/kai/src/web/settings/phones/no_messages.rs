//! The store edition's twin of `messages.rs`: nothing can be read or sent.

use maud::{Markup, html};

use super::Ability;
use crate::app::App;
use crate::web::settings::look::Look;

#[expect(clippy::unused_async, reason = "the foss edition asks the platform")]
pub(super) async fn ask(_: &App, _: &Look<'_>) {}

pub(super) fn bridges(_: &App) -> Vec<&str> {
    vec![]
}

pub(super) fn abilities(_: &App, _: &Look<'_>) -> Vec<Ability> {
    vec![]
}

pub(super) fn last_step() -> Markup {
    html! {}
}

pub(super) const ON_DESKTOP: &str = ".";

/// Says why so little can be done.
pub(super) fn remark() -> Markup {
    html! { p class="quiet" { "This is the store edition: it reads no messages and no notifications, wherever it runs." } }
}
