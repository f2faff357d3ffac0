//! The form in which the user writes a reply to a message. It becomes a draft; nothing is sent.

use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::{Form, Router};
use kai_assistant::inbox::{Key, Message};
use kai_words::Lang;
use maud::{Markup, html};
use serde::Deserialize;

use super::place::{self, Place};
use crate::commands::replies;
use crate::failure::Failure;
use crate::web::rich::rich;
use crate::web::state::Web;
use crate::web::view::View;
use crate::web::{drafts, reply as answer};

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/inbox/{id}/reply", post(draft))
}

/// The ways to reply to a message.
pub(super) struct Reply {
    /// The form in which the user writes, or why there can be no reply.
    pub(super) own: Markup,
    /// The button that lets Kai draft the reply, in a chat.
    pub(super) by_kai: Markup,
}

pub(super) async fn reply(
    web: &Web,
    place: &Place,
    message: &Message,
    view: &View<'_>,
) -> Result<Reply, Failure> {
    let (key, lang) = (&message.item.key, view.lang);
    let drafted = place.says("draft").parse().is_ok_and(|id| drafts::has_waiting(&view.stored.drafts, id));
    let impossible = replies::impossible(&web.app, key.clone()).await?;
    let by_kai = if impossible.is_none() {
        by_kai(lang)
    } else {
        html! {}
    };
    let own = html! {
        section class="card" aria-labelledby="inbox-reply-title" {
            h2 id="inbox-reply-title" { (lang.inbox_reply()) }
            @if drafted { p role="status" data-testid="inbox-drafted" { (lang.inbox_draft_saved()) } }
            @match impossible {
                Some(why) => p class="quiet" data-testid="inbox-no-reply" { (rich(&why, lang, |value| html! { bdi { (value) } })) },
                None => form class="fields" method="post" action=(format!("{}/reply", place::path(key))) data-live {
                    input type="hidden" name="csrf" value=(view.csrf);
                    input type="hidden" name="date" value=(message.item.date);
                    label for="inbox-body" { (lang.inbox_reply_label()) }
                    textarea id="inbox-body" name="body" data-testid="inbox-body" rows="3" required dir="auto" autocomplete="off" {}
                    p class="quiet" { (lang.inbox_reply_help()) }
                    p class="told" role="alert" {}
                    div class="choices" { button type="submit" data-testid="inbox-reply" { (lang.inbox_reply_button()) } }
                },
            }
        }
    };
    Ok(Reply { own, by_kai })
}

fn by_kai(lang: Lang) -> Markup {
    html! {
        button type="submit" name="what" value="draft" data-testid="inbox-ask-draft" { (lang.inbox_ask_draft_button()) }
    }
}

#[derive(Deserialize)]
struct ReplyForm {
    body: String,
    date: i64,
}

async fn draft(
    State(web): State<Web>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<ReplyForm>, FormRejection>,
) -> Response {
    let Ok(Form(ReplyForm { body, date })) = form else { return answer::misfilled(&headers) };
    let Ok(key) = id.parse::<Key>() else { return super::gone() };
    let path = place::path(&key);
    match replies::draft(&web.app, key, date, &body).await {
        Ok(draft) => answer::done(&headers, &format!("{path}?draft={0}#draft-{0}", draft.0)),
        Err(error) => answer::not_done(&headers, error.said()),
    }
}
