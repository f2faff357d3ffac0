//! The store edition's twin of `reply_form.rs`: nothing can be answered.

use axum::Router;
use kai_assistant::inbox::Message;
use maud::{Markup, html};

use super::place::Place;
use crate::failure::Failure;
use crate::web::state::Web;
use crate::web::view::View;

pub(super) fn routes() -> Router<Web> {
    Router::new()
}

/// The ways to reply to a message: none.
pub(super) struct Reply {
    pub(super) own: Markup,
    pub(super) by_kai: Markup,
}

#[expect(clippy::unused_async, reason = "the foss edition reads the store")]
pub(super) async fn reply(_: &Web, _: &Place, _: &Message, _: &View<'_>) -> Result<Reply, Failure> {
    Ok(Reply { own: html! {}, by_kai: html! {} })
}
