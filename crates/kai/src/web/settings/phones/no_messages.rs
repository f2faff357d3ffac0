//! The store edition's twin of `messages.rs`: nothing can be read or sent.

use axum::Router;
use kai_words::Lang;
use maud::{Markup, html};

use super::Ability;
use crate::app::App;
use crate::failure::Failure;
use crate::web::settings::context::PageContext;
use crate::web::settings::parts::Region;
use crate::web::state::Web;

#[expect(clippy::unused_async, reason = "the foss edition reads the store")]
pub(super) async fn paired(_: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    Ok(vec![])
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
}

pub(super) fn moves(_: &App) -> bool {
    false
}

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
