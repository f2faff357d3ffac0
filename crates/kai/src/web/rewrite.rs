//! Editing the user's last message, in its place, and going on with an answer that was stopped.

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
use super::turns::TurnInput;
use super::{icons, reply};
use crate::commands::chats::GoOn;

/// The form that replaces the words of a message, folded until the user wants it. It works without a script.
pub(super) struct Rewriting<'a> {
    pub(super) id: ConversationId,
    pub(super) csrf: &'a str,
    /// Names the message.
    pub(super) mark: &'a str,
    /// What the user wrote, without what they attached.
    pub(super) words: &'a str,
}

impl Rewriting<'_> {
    pub(super) fn form(&self, lang: Lang) -> Markup {
        html! {
            details class="rewriting" id=(format!("rewrite-{}", self.mark)) data-testid="rewrite" {
                summary class="button small" data-testid="rewrite-open" { (icons::pen()) (lang.talk_edit()) }
                form class="rewrite" method="post" action=(format!("/c/{}/rewrite", self.id.0)) data-live data-edits {
                    input type="hidden" name="csrf" value=(self.csrf);
                    input type="hidden" name="seen" value=(self.mark);
                    label class="seen-not" for="rewrite-text" { (lang.talk_edit_label()) }
                    textarea id="rewrite-text" name="text" required dir="auto" autocomplete="off" data-testid="rewrite-text" { (self.words) }
                    p class="quiet" { (lang.talk_edit_about()) }
                    div class="choices" {
                        button type="submit" class="primary" data-testid="rewrite-send" { (lang.talk_edit_send()) }
                        button type="reset" class="js-only" data-cancels data-testid="rewrite-cancel" { (lang.talk_edit_cancel()) }
                    }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct RewriteForm {
    seen: String,
    text: String,
}

/// Replaces the last message and answers it.
pub(super) async fn rewrite(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<RewriteForm>, FormRejection>,
) -> Response {
    let Ok(Form(RewriteForm { seen, text })) = form else { return reply::misfilled(&headers) };
    let words = text.replace("\r\n", "\n");
    go_on(&web, &headers, id, GoOn::Rewritten { seen, words }).await
}

/// Answers the last message of the conversation again.
pub(super) async fn again(State(web): State<Web>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
    go_on(&web, &headers, id, GoOn::Again).await
}

/// Answers the last message again without its pictures.
pub(super) async fn without_pictures(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
) -> Response {
    go_on(&web, &headers, id, GoOn::WithoutPictures).await
}

/// Goes on with an answer that was stopped.
pub(super) async fn continued(State(web): State<Web>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
    go_on(&web, &headers, id, GoOn::Continued).await
}

async fn go_on(web: &Web, headers: &HeaderMap, id: i64, how: GoOn) -> Response {
    let input = TurnInput::GoOn(ConversationId(id), how);
    match web.turns.start(&web.app, input, web.stop.clone()).await {
        Ok(id) => reply::done(headers, &format!("/c/{}", id.0)),
        Err(trouble) => reply::not_done(headers, trouble),
    }
}
