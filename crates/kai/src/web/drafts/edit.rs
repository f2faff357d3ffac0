//! The form in which the user edits a draft in its place. While it is open, the draft cannot be sent from that page.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use kai_assistant::outbox::{Channel, DraftId};
use kai_words::Lang;
use maud::{Markup, html};
use serde::Deserialize;

use crate::call::drafts::{DraftRow, EditCall};
use crate::commands::drafts;
use crate::web::drafts::mail;
use crate::web::reply;
use crate::web::state::Web;

/// The link that opens the form.
pub(super) fn link(draft: &DraftRow, label: &str, lang: Lang) -> Markup {
    let id = draft.id.0;
    html! {
        a class="button" href=(format!("?edit={id}#draft-{id}")) data-show data-beside data-testid="draft-edit" aria-label=(label) {
            (lang.drafts_edit())
        }
    }
}

/// The form. It stays as it was opened (`data-keep`), with the digest of what it was opened on: if the draft is changed
/// elsewhere meanwhile, saving is refused and nothing that was typed is lost.
pub(super) fn form(draft: &DraftRow, csrf: &str, lang: Lang) -> Markup {
    let id = draft.id.0;
    html! {
        form class="draft-edit" id=(format!("draft-{id}-edit")) method="post" action=(format!("/drafts/{id}/edit"))
            data-live data-keep data-closes data-testid="draft-edit-form" {
            input type="hidden" name="csrf" value=(csrf);
            input type="hidden" name="seen" value=(draft.digest);
            @if let Some(mail) = &draft.mail { (mail::fields(draft, mail, lang)) }
            @if draft.channel == Channel::Sms {
                label for=(format!("draft-{id}-to")) { (lang.drafts_edit_to()) }
                input id=(format!("draft-{id}-to")) name="to" type="tel" value=(draft.to) required autocomplete="off"
                    data-testid="draft-edit-to" dir="ltr";
            }
            label for=(format!("draft-{id}-text")) { (lang.drafts_edit_body()) }
            textarea id=(format!("draft-{id}-text")) name="body" rows="4" required autofocus autocomplete="off"
                data-testid="draft-edit-body" dir="auto" { "\n" (draft.body) }
            @if let Some(mail) = &draft.mail { (mail::without_quote(draft, mail, lang)) }
            p class="told" role="alert" {}
            div class="choices" {
                button class="primary" type="submit" data-testid="draft-save" { (lang.drafts_save()) }
                a class="button" href="?" data-show data-beside data-testid="draft-edit-cancel" { (lang.drafts_cancel()) }
            }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct EditForm {
    seen: String,
    to: Option<String>,
    body: String,
    cc: Option<String>,
    bcc: Option<String>,
    subject: Option<String>,
    #[serde(default)]
    without_quote: bool,
}

pub(super) async fn save(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<EditForm>, FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else { return reply::misfilled(&headers) };
    let EditForm { seen, to, body, cc, bcc, subject, without_quote } = form;
    let call = EditCall { id: DraftId(id), seen, to, body: Some(body), cc, bcc, subject, without_quote };
    match drafts::edited(&web.app, call).await {
        Ok(_) => saved(&headers, id),
        Err(why) => reply::not_done(&headers, why.said()),
    }
}

/// The page goes on without the form, at the draft.
fn saved(headers: &HeaderMap, id: i64) -> Response {
    if reply::by_script(headers) {
        return reply::done_here(headers);
    }
    let page = reply::from(headers);
    let path = page.split('?').next().unwrap_or_default();
    reply::done(headers, &format!("{path}#draft-{id}"))
}
