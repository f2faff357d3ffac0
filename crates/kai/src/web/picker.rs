//! The choice of the model that answers in a chat, beside the field for messages.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use kai_assistant::agent::conversation::ConversationId;
use kai_words::Lang;
use maud::{Markup, html};
use serde::Deserialize;

use super::state::Web;
use super::view::View;
use super::{messages, reasons, reply};
use crate::commands::chats;
use crate::commands::models::Choice;

/// The id of the form that stores the choice for a chat.
const FORM: &str = "picker-form";

/// The models to choose from. Where there is only one, it is named; without any there is nothing to choose.
pub(super) fn choice(view: &View<'_>) -> Markup {
    let (lang, models, chosen) = (view.lang, &view.stored.models, view.stored.model.as_deref());
    let is_chosen = |model: &Choice| chosen == Some(model.name.as_str());
    let gone = chosen.filter(|_| !models.iter().any(is_chosen));
    if let ([only], None) = (models.as_slice(), gone) {
        return html! { span class="quiet" data-testid="model-only" { bdi { (label(only, lang)) } } };
    }
    // A new chat has no place for the choice yet: its first message brings it along.
    let form = view.place.chat.map(|_| FORM);
    html! {
        @if !models.is_empty() || gone.is_some() {
            select id="model-picker" name="model" form=[form] data-testid="model-picker" data-stays[form.is_none()]
                aria-label=(lang.picker_label()) title=(lang.picker_label()) {
                option value="" selected[chosen.is_none()] { (automatic(models, lang)) }
                @if let Some(gone) = gone { option value=(gone) selected { (lang.picker_gone(messages::model_name(gone, lang))) } }
                @for model in models { option value=(model.name) selected[is_chosen(model)] { (label(model, lang)) } }
            }
            @if form.is_some() { button type="submit" class="small no-js" form=(FORM) { (lang.picker_use()) } }
        }
    }
}

/// The form of the choice. It stands outside of the form for messages, because forms do not nest.
pub(super) fn form(view: &View<'_>) -> Markup {
    html! {
        @if let Some(id) = view.place.chat {
            form id=(FORM) method="post" action=(format!("/c/{}/model", id.0)) data-live {
                input type="hidden" name="csrf" value=(view.csrf);
            }
        }
    }
}

fn automatic(models: &[Choice], lang: Lang) -> String {
    models.first().map_or_else(
        || lang.picker_automatic().to_owned(),
        |first| lang.picker_automatic_first(label(first, lang)),
    )
}

fn label(model: &Choice, lang: Lang) -> String {
    let name = messages::model_name(&model.name, lang);
    if model.local { lang.picker_local(name) } else { name.to_owned() }
}

#[derive(Deserialize)]
pub(super) struct ModelForm {
    model: String,
}

/// Chooses the model that answers in this chat.
pub(super) async fn choose(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<ModelForm>, FormRejection>,
) -> Response {
    let Ok(Form(ModelForm { model })) = form else { return reply::misfilled(&headers) };
    match chats::choose_model(&web.app, ConversationId(id), named(model)).await {
        Ok(()) => reply::done(&headers, &format!("/c/{id}")),
        Err(error) => reply::not_done(&headers, reasons::turn(&error)),
    }
}

/// The model that a form names; none for the usual order.
pub(super) fn named(model: String) -> Option<String> {
    Some(model).filter(|name| !name.is_empty())
}
