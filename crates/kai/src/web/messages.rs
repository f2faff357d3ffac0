//! The parts of the page that only the foss edition has: pairing requests and the demo.

use std::sync::Arc;

use axum::Router;
use kai_words::Lang;
use maud::{Markup, html};

use super::state::Web;
use super::{demo, pairing};

/// Follows the network of phones, and starts the demo's opening scene, if this is the demo.
pub(super) fn begin(web: &Web) {
    tokio::spawn(pairing::follow(web.clone()));
    tokio::spawn(crate::demo::story(Arc::clone(&web.app), web.app.pages.subscribe()));
}

/// Ends the demo that the page started.
pub(super) fn end(web: &Web) {
    web.demo.end();
}

pub(super) fn routes() -> Router<Web> {
    pairing::routes().merge(demo::routes())
}

/// Whether this path is handed on to the demo, whose own guard wants a CSRF token of its own.
pub(super) fn is_handed_on(path: &str) -> bool {
    demo::is_handed_on(path)
}

/// A model's name as the page shows it: the demo's own have one in every language.
pub(super) fn model_name(name: &str, lang: Lang) -> &str {
    match name {
        name if name == Lang::ENGLISH.demo_model() => lang.demo_model(),
        name if name == Lang::ENGLISH.demo_local_model() => lang.demo_local_model(),
        name => name,
    }
}

/// Offers the demo to someone who has no model yet.
pub(super) fn try_demo(csrf: &str, lang: Lang) -> Markup {
    html! {
        p class="quiet" { (lang.messages_demo_about()) }
        form method="post" action="/demo" data-live {
            input type="hidden" name="csrf" value=(csrf);
            button type="submit" data-testid="try-demo" { (lang.messages_try_demo()) }
        }
    }
}

/// The link out of the demo, which is seen where another Kai serves it.
pub(super) fn way_back(lang: Lang) -> Markup {
    html! { a class="button way-back" href="/back" data-testid="leave-demo" { (lang.demo_leave()) } }
}

/// A label in the language it is asked for.
pub(super) type Label = fn(Lang) -> &'static str;

/// Suggestions for a first message, each with the tool that it needs.
pub(super) const IDEAS: &[(&str, Label)] =
    &[("check_sms", Lang::chat_idea_sms), ("check_notifications", Lang::chat_idea_notifications)];

/// The kinds of ledger records that only this edition writes, with their labels.
pub(super) const LEDGER_KINDS: &[(&str, Label)] = &[("phone", Lang::ledger_kind_phone)];
