//! The store edition's twin of `messages.rs`: its pages show no phones and no demo.

use axum::Router;
use kai_words::Lang;
use maud::{Markup, html};

use super::state::Web;

pub(super) fn begin(_: &Web) {}

pub(super) fn end(_: &Web) {}

pub(super) fn routes() -> Router<Web> {
    Router::new()
}

pub(super) fn is_handed_on(_: &str) -> bool {
    false
}

pub(super) fn model_name(name: &str, _: Lang) -> &str {
    name
}

pub(super) fn try_demo(_: &str, _: Lang) -> Markup {
    html! {}
}

pub(super) fn way_back(_: Lang) -> Markup {
    html! {}
}

/// A label in the language it is asked for.
pub(super) type Label = fn(Lang) -> &'static str;

pub(super) const IDEAS: &[(&str, Label)] = &[];
pub(super) const LEDGER_KINDS: &[(&str, Label)] = &[];
