//! The store edition's twin of `messages.rs`: nothing can be read or sent.

use kai_words::Lang;
use maud::{Markup, html};

use super::Ability;
use crate::app::App;
use crate::web::settings::context::PageContext;

#[expect(clippy::unused_async, reason = "the foss edition asks the platform")]
pub(super) async fn ask(_: &App, _: &PageContext<'_>) {}

pub(super) fn bridges(_: &App) -> Vec<&str> {
    vec![]
}

pub(super) fn abilities(_: &App, _: &PageContext<'_>) -> Vec<Ability> {
    vec![]
}

pub(super) fn last_step(_: Lang) -> Markup {
    html! {}
}

pub(super) fn on_desktop(lang: Lang) -> &'static str {
    lang.phones_desktop_how()
}

/// Says why so little can be done.
pub(super) fn remark(lang: Lang) -> Markup {
    html! { p class="quiet" { (lang.phones_store_edition()) } }
}
