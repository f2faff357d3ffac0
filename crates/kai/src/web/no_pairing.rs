//! The store edition's twin of `pairing.rs`: no phone asks to be paired.

use kai_words::Lang;
use maud::{Markup, html};

use crate::app::App;

/// Nothing: this edition pairs no phones.
pub(super) struct Pairings;

pub(super) fn waiting(_: &App) -> Pairings {
    Pairings
}

pub(super) fn banner(_: &Pairings, _: &str, _: Lang) -> Markup {
    html! {}
}
