//! The parts of the page that only the foss edition has: drafts, pairing requests, one-time codes and the demo.

use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::{Form, Router};
use kai_assistant::agent::conversation::{Codes, ConversationId, Which, Whole};
use kai_assistant::settings::CODE_REDACTION_ENABLED;
use kai_words::Lang;
use maud::{Markup, html};
use serde::Deserialize;

use super::state::Web;
use super::view::View;
use super::{demo, drafts, pairing, reasons, reply};
use crate::commands::codes as kept_codes;

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
    drafts::routes()
        .merge(pairing::routes())
        .route("/demo", post(demo::start))
        .route("/c/{id}/codes", post(click_codes))
}

/// A model's name as the page shows it: the demo's own has one in every language.
pub(super) fn model_name(name: &str, lang: Lang) -> &str {
    if name == Lang::ENGLISH.demo_model() { lang.demo_model() } else { name }
}

/// Offers the demo to someone who has no model yet.
pub(super) fn try_demo(csrf: &str, lang: Lang) -> Markup {
    html! {
        p class="quiet" { (lang.messages_demo_about()) }
        form method="post" action="/demo" data-live {
            input type="hidden" name="csrf" value=(csrf);
            button class="primary" type="submit" data-testid="try-demo" { (lang.messages_try_demo()) }
        }
    }
}

/// The part of the chat's menu that shows one-time codes to the assistant, after saying what that means, or hides them
/// again.
pub(super) fn codes(view: &View<'_>, id: ConversationId, chat: &Whole) -> Markup {
    let lang = view.lang;
    if !view.stored.values.on(&CODE_REDACTION_ENABLED) {
        return html! {};
    }
    let click = |value: &str, class: &str, label: &str| {
        html! {
            form method="post" action=(format!("/c/{}/codes", id.0)) data-live {
                input type="hidden" name="csrf" value=(view.csrf);
                button type="submit" class=(class) name="codes" value=(value) data-testid="codes" { (label) }
            }
        }
    };
    html! {
        @match chat.codes {
            Codes::Shown => (click("hide", "item", lang.messages_codes_hide())),
            Codes::Hidden | Codes::HiddenAgain => {
                details class="asks" id="codes-ask" {
                    summary class="item" data-testid="codes-ask" { (lang.messages_codes_ask()) }
                    p { (lang.messages_codes_about()) }
                    (click("show", "primary", lang.messages_codes_show()))
                }
            }
        }
    }
}

/// Says that the assistant sees one-time codes in this chat.
pub(super) fn codes_shown(chat: &Whole, lang: Lang) -> Markup {
    html! { @if chat.codes == Codes::Shown { p data-testid="codes-shown" { (lang.messages_codes_shown()) } } }
}

#[derive(Deserialize)]
struct CodesForm {
    codes: CodesClick,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum CodesClick {
    Show,
    Hide,
}

/// Shows one-time codes to the assistant in this conversation, or hides them again.
async fn click_codes(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<CodesForm>, FormRejection>,
) -> Response {
    let Ok(Form(CodesForm { codes })) = form else { return reply::misfilled(&headers) };
    match kept_codes::show(&web.app, Which::Id(ConversationId(id)), codes == CodesClick::Show).await {
        Ok(_) => reply::done(&headers, &format!("/c/{id}")),
        Err(error) => reply::not_done(&headers, reasons::turn(&error)),
    }
}

/// A label in the language it is asked for.
pub(super) type Label = fn(Lang) -> &'static str;

/// Suggestions for a first message, each with the tool that it needs.
pub(super) const IDEAS: &[(&str, Label)] =
    &[("check_sms", Lang::chat_idea_sms), ("check_notifications", Lang::chat_idea_notifications)];

/// The kinds of ledger records that only this edition writes, with their labels.
pub(super) const LEDGER_KINDS: &[(&str, Label)] = &[
    ("codes", Lang::ledger_kind_codes),
    ("draft", Lang::ledger_kind_draft),
    ("tap", Lang::ledger_kind_tap),
    ("sent", Lang::ledger_kind_sent),
    ("edited", Lang::ledger_kind_edited),
    ("discarded", Lang::ledger_kind_discarded),
    ("undiscarded", Lang::ledger_kind_undiscarded),
    ("phone", Lang::ledger_kind_phone),
];
/// The ledger can be asked which requests held a message.
pub(super) const WHO_SAW: Option<Label> = Some(Lang::ledger_who_saw);
pub(super) const LEDGER_FILTERS: Label = Lang::ledger_filter_or_ask;
