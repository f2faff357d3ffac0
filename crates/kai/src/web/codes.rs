//! One-time codes in a chat: shows them to the assistant after a click, or hides them again.

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
use super::{reasons, reply};
use crate::commands::codes as kept;

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/c/{id}/codes", post(click))
}

/// The part of the chat's menu that shows one-time codes to the assistant, after saying what that means, or hides them
/// again.
pub(super) fn menu(view: &View<'_>, id: ConversationId, chat: &Whole) -> Markup {
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
            Codes::Shown => (click("hide", "item", lang.codes_hide())),
            Codes::Hidden | Codes::HiddenAgain => {
                details class="asks" id="codes-ask" {
                    summary class="item" data-testid="codes-ask" { (lang.codes_ask()) }
                    p { (lang.codes_about()) }
                    (click("show", "primary", lang.codes_show()))
                }
            }
        }
    }
}

/// Says that the assistant sees one-time codes in this chat.
pub(super) fn shown(chat: &Whole, lang: Lang) -> Markup {
    html! { @if chat.codes == Codes::Shown { p data-testid="codes-shown" { (lang.codes_shown()) } } }
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
async fn click(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<CodesForm>, FormRejection>,
) -> Response {
    let Ok(Form(CodesForm { codes })) = form else { return reply::misfilled(&headers) };
    match kept::show(&web.app, Which::Id(ConversationId(id)), codes == CodesClick::Show).await {
        Ok(_) => reply::done(&headers, &format!("/c/{id}")),
        Err(error) => reply::not_done(&headers, reasons::turn(&error)),
    }
}
