//! The card for SMS: reading and drafting, two features that do not depend on each other.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::access::AccessState;
use kai_assistant::settings::{SMS_ENABLED, SMS_POLL_INTERVAL, SMS_SEND_ENABLED};
use kai_words::said;
use maud::{Markup, html};

use crate::call::sms::SmsStatus;
use crate::commands::sms;
use crate::failure::Failure;
use crate::web::icons;
use crate::web::settings::form::Form;
use crate::web::settings::look::{Look, ProbePhone};
use crate::web::settings::parts::{
    Button, Region, Slider, Switch, button, form, icon_button, slider, switch, things,
};
use crate::web::state::Web;

const CARD: &str = "sms";

/// The card; `None` where no phone is connected.
pub(super) async fn card(look: &Look<'_>) -> Result<Option<Region>, Failure> {
    let app = &look.web.app;
    let status = match look.probe {
        ProbePhone::Phone => sms::status(app).await?,
        ProbePhone::No => sms::known(app).await?,
    };
    if !status.supported {
        return Ok(None);
    }
    let last = app.messages.notifications.is_none();
    let polling = sms::polling(app).await?;
    let content = html! {
        div class="part" { (reading(look, &status, polling)) }
        @if !status.enabled && status.keeps() {
            (super::erasing(look, CARD, &status.kept(), "/settings/agent/sms/forget"))
        }
        div class="part" { (sending(look, &status)) }
        @if last { div class="part" { (super::code_redaction(look, CARD)) } }
    };
    Ok(Some(Region::card(CARD, "SMS", content).testid("sms-card")))
}

fn reading(look: &Look<'_>, status: &SmsStatus, polling: bool) -> Markup {
    let read = Switch {
        setting: &SMS_ENABLED,
        label: "Read incoming SMS",
        help: "Kai looks at the messages that arrive from now on. Turning it on asks the phone for access.",
        testid: "sms-read-toggle",
    };
    let interval = Slider {
        setting: &SMS_POLL_INTERVAL,
        label: "Poll interval",
        stops: &["Never", "5m", "15m", "30m", "60m"],
        testid: "sms-interval",
    };
    html! {
        (switch(look, CARD, &read))
        @if status.enabled && status.access == AccessState::Denied { (grant(look, "/settings/agent/sms/grant", "sms-grant")) }
        @if status.enabled { (slider(look, CARD, &interval)) (polled(look, status, polling)) }
    }
}

fn grant(look: &Look<'_>, action: &str, testid: &str) -> Markup {
    button(look, CARD, action, &Button { label: "Grant permission", testid, class: "primary", fields: &[] })
}

/// How many messages are queued, how the last poll went, and a button to poll now.
fn polled(look: &Look<'_>, status: &SmsStatus, polling: bool) -> Markup {
    let refresh = form(
        look,
        CARD,
        "/settings/agent/sms/poll",
        if polling { "turning" } else { "" },
        &icon_button("sms-refresh", "Refresh now", &icons::again()),
    );
    let dropped = things(status.dropped as usize, "older message was dropped", "older messages were dropped");
    html! {
        div class="between keep" {
            div class="facts" {
                p data-testid="sms-queued" { (status.queued) " queued for the next heartbeat" }
                @if status.dropped > 0 { p class="quiet" data-testid="sms-dropped" { (dropped) } }
                p class="quiet" data-testid="sms-status" {
                    @if polling { "Polling …" } @else { (status.last_poll) }
                }
            }
            (refresh)
        }
        @if let Some(error) = &status.last_error { p class="trouble-text" data-testid="sms-error" { (error) } }
    }
}

fn sending(look: &Look<'_>, status: &SmsStatus) -> Markup {
    let send = Switch {
        setting: &SMS_SEND_ENABLED,
        label: "Send SMS on your behalf",
        help: "Kai only drafts. Each message waits for your tap, and nothing is sent without it.",
        testid: "sms-send-toggle",
    };
    let denied = sms::sending_denied(&look.web.app).filter(|_| status.send_enabled);
    html! {
        (switch(look, CARD, &send))
        @if let Some(what_to_do) = denied {
            p class="trouble-text" { (what_to_do) }
            (grant(look, "/settings/agent/sms/send-grant", "sms-send-grant"))
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/agent/sms/poll", post(poll))
        .route("/settings/agent/sms/forget", post(forget))
        .route("/settings/agent/sms/grant", post(grant_reading))
        .route("/settings/agent/sms/send-grant", post(grant_sending))
}

async fn poll(form: Form) -> Response {
    let app = Arc::clone(&form.web.app);
    let started = form.start(async move { sms::poll(&app).await.map(drop) }).await;
    form.answer(started)
}

async fn forget(form: Form) -> Response {
    let forgotten = sms::forget(form.app()).await;
    form.answer_saying(forgotten, said::settings_erased())
}

/// Asks the phone for permission to read. Runs in the background, because the user may take a while to answer.
async fn grant_reading(form: Form) -> Response {
    let web = form.web.clone();
    let asking = async move {
        let granted = sms::grant(&web.app).await;
        web.turns.move_on();
        granted
    };
    let asked = form.start(asking).await;
    form.answer(asked)
}

/// Forgets that the phone denied sending. A platform only asks for this permission when something is sent, so the next
/// tap on Send asks again.
async fn grant_sending(form: Form) -> Response {
    sms::forget_denial(form.app());
    form.answer_saying(Ok(()), said::sms_asks_on_send())
}
