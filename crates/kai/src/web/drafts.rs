//! The review banner: every draft whole, with the buttons that fit its state. A tap carries the hash of what was shown.

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use kai_assistant::outbox::DraftId;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Web, page};
use crate::failure::Failure;
use crate::sms::{self, Button, DraftRow, TapCall};

pub(super) fn banner(drafts: &[DraftRow], csrf: &str) -> Markup {
    html! {
        @if !drafts.is_empty() {
            section class="drafts" aria-label="Messages that wait for you" {
                @for draft in drafts { (card(draft, csrf)) }
            }
        }
    }
}

fn card(draft: &DraftRow, csrf: &str) -> Markup {
    let id = draft.id.0;
    html! {
        article class="card draft" data-testid="draft-card" data-draft=(id) data-status=(draft.status)
            aria-label=(format!("Draft to {}", draft.to)) {
            header class="draft-head" {
                strong class="draft-to" data-testid="draft-to" { (draft.to) }
                span class="quiet" { (state(draft)) }
            }
            @for remark in &draft.remarks { p class="remark" { (remark) } }
            p class="draft-body" data-testid="draft-body" { (draft.body_shown) }
            p class="quiet" {
                (sms_count(draft.segments)) " · from " (origin(draft)) " · " time { (draft.created_local) }
                @if let Some(answered) = draft.in_reply_to { " · answers SMS " (answered) }
            }
            (buttons(draft, csrf))
        }
    }
}

fn sms_count(segments: usize) -> String {
    if segments == 1 { "1 SMS".to_owned() } else { format!("{segments} SMS") }
}

fn origin(draft: &DraftRow) -> &str {
    match draft.origin.as_str() {
        "heartbeat" => "a heartbeat",
        "task" => "a task",
        _ => "a chat",
    }
}

fn state(draft: &DraftRow) -> String {
    let why = draft.reason.as_deref().unwrap_or_default();
    match draft.status.as_str() {
        "PENDING" => "waits for your tap".to_owned(),
        "SENDING" => "is being sent …".to_owned(),
        "SENT" => format!("was taken by the phone. {why}"),
        "FAILED" => format!("was not sent: {why}"),
        _ => format!("may have been sent: {why}"),
    }
}

fn buttons(draft: &DraftRow, csrf: &str) -> Markup {
    let (tap, away) = match draft.status.as_str() {
        "PENDING" => (Some(("send", "Send", "draft-send")), Some(("Discard", "draft-discard"))),
        "FAILED" => (Some(("retry", "Retry", "draft-retry")), Some(("Discard", "draft-discard"))),
        "UNKNOWN" => (Some(("send_again", "Send again", "draft-retry")), Some(("Dismiss", "draft-discard"))),
        "SENT" => (None, Some(("Dismiss", "draft-discard"))),
        _ => (None, None),
    };
    let id = draft.id.0;
    html! {
        div class="choices" {
            @if let Some((button, label, testid)) = tap {
                form method="post" action=(format!("/drafts/{id}/tap")) {
                    input type="hidden" name="csrf" value=(csrf);
                    input type="hidden" name="shown" value=(draft.digest);
                    input type="hidden" name="attempts" value=(draft.attempts);
                    button class="primary" type="submit" name="button" value=(button) data-testid=(testid) { (label) }
                }
            }
            @if let Some((label, testid)) = away {
                form method="post" action=(format!("/drafts/{id}/discard")) {
                    input type="hidden" name="csrf" value=(csrf);
                    button type="submit" data-testid=(testid) { (label) }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct TapForm {
    button: Button,
    shown: String,
    attempts: u32,
}

pub(super) async fn tap(
    State(web): State<Web>,
    Path(id): Path<i64>,
    form: Result<Form<TapForm>, FormRejection>,
) -> Response {
    let Ok(Form(TapForm { button, shown, attempts })) = form else {
        return page::refused("The form was not filled in as this page does it.");
    };
    let call = TapCall { id: DraftId(id), button, shown, attempts };
    back(sms::tap(&web.app, call).await)
}

pub(super) async fn discard(State(web): State<Web>, Path(id): Path<i64>) -> Response {
    back(sms::discard(&web.app, DraftId(id)).await)
}

fn back(done: Result<DraftRow, Failure>) -> Response {
    match done {
        Ok(_) => Redirect::to("/").into_response(),
        Err(failure) => page::notice_back(StatusCode::CONFLICT, "Nothing was done", &failure.message),
    }
}
