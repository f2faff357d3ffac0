//! The store edition's twin of `reply_form.rs`: nothing can be answered.

use axum::Router;
use kai_assistant::inbox::Message;
use kai_words::Lang;
use maud::{Markup, html};

use super::place::Place;
use crate::failure::Failure;
use crate::web::state::Web;
use crate::web::view::View;

pub(super) fn routes() -> Router<Web> {
    Router::new()
}

#[expect(clippy::unused_async, reason = "the foss edition reads the store")]
pub(super) async fn form(_: &Web, _: &Place, _: &Message, _: &View<'_>) -> Result<Markup, Failure> {
    Ok(html! {})
}

pub(super) fn by_kai(_: Lang) -> Markup {
    html! {}
}
