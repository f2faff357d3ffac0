//! The card for SMS: reading and drafting, two features that do not depend on each other.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::access::AccessState;
use kai_assistant::settings::{CONTACT_NAMES_ENABLED, SMS_ENABLED, SMS_POLL_INTERVAL, SMS_SEND_ENABLED};
use kai_words::{Said, said};
use maud::{Markup, html};

use crate::call::sms::{SmsSource, SmsStatus};
use crate::commands::{contacts, notifications, sms};
use crate::failure::Failure;
use crate::web::icons;
use crate::web::settings::agent::ago::ago;
use crate::web::settings::agent::code_redaction;
use crate::web::settings::context::{PageContext, ProbePhone};
use crate::web::settings::form::Form;
use crate::web::settings::parts::{
    Button, Region, Slider, Switch, button, form, icon_button, slider, switch,
};
use crate::web::state::Web;

const CARD: &str = "sms";

/// The card; `None` where Kai runs on no phone and none is paired.
pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Option<Region>, Failure> {
    let app = &ctx.web.app;
    let status = match ctx.probe {
        ProbePhone::Phone => sms::status(app).await?,
        ProbePhone::No => sms::known(app).await?,
    };
    if !status.supported {
        return Ok(None);
    }
    let last = app.mail.is_none() && !notifications::is_supported(app).await?;
    let polling = sms::polling(app).await?;
    let unnamed = contacts::trouble(app).await?;
    let content = html! {
        div class="part" { (reading(ctx, &status, polling)) @if status.enabled { (phones(ctx, &status)) } }
        @if !status.enabled && status.keeps() {
            (super::erasing(ctx, CARD, &kept(&status), "/settings/agent/sms/forget"))
        }
        div class="part" { (sending(ctx, &status)) }
        div class="part" { (contact_names(ctx, unnamed)) }
        @if last { div class="part" { (code_redaction(ctx, CARD)) } }
    };
    Ok(Some(Region::card(CARD, ctx.lang.sms_label(), content).testid("sms-card")))
}

/// How each paired phone stands whose messages are read.
fn phones(ctx: &PageContext<'_>, status: &SmsStatus) -> Markup {
    let copied = |phone: &SmsSource| match phone.progress {
        None => String::new(),
        Some(1000..) => format!(" · {}", ctx.lang.paired_archive_done(phone.messages)),
        Some(_) => format!(" · {}", ctx.lang.paired_archive_filling(phone.messages)),
    };
    html! {
        @for (name, phone) in status.phones().filter(|(_, phone)| phone.enabled) {
            p class=[(!phone.connected).then_some("quiet")] data-testid="sms-phone" {
                bdi { (name) } ": "
                (if phone.connected { ctx.lang.paired_connected() } else { ctx.lang.paired_away() })
                (copied(phone))
            }
            @if let Some(error) = &phone.last_error { p class="trouble-text" { (error.to(ctx.lang)) } }
        }
    }
}

/// What is still stored of the phones' messages.
fn kept(status: &SmsStatus) -> Said {
    match (status.copied(), status.queued) {
        (0, 0) => said::sms_kept(),
        (0, queued) => said::sms_kept_queued(queued),
        (copied, _) => said::sms_kept_copied(copied),
    }
}

fn reading(ctx: &PageContext<'_>, status: &SmsStatus, polling: bool) -> Markup {
    let read = Switch {
        setting: &SMS_ENABLED,
        label: ctx.lang.sms_read(),
        help: ctx.lang.sms_read_help(),
        testid: "sms-read-toggle",
    };
    let minutes = [5_u32, 15, 30, 60].map(|minutes| ctx.lang.heartbeat_minutes_short(minutes));
    let stops: Vec<String> = [ctx.lang.sms_never().to_owned()].into_iter().chain(minutes).collect();
    let interval = Slider {
        setting: &SMS_POLL_INTERVAL,
        label: ctx.lang.sms_poll_interval(),
        stops: &stops,
        testid: "sms-interval",
    };
    html! {
        (switch(ctx, CARD, &read))
        @if status.enabled && status.access == AccessState::Denied { (grant(ctx, "/settings/agent/sms/grant", "sms-grant")) }
        @if status.enabled { (slider(ctx, CARD, &interval)) (polled(ctx, status, polling)) }
    }
}

fn grant(ctx: &PageContext<'_>, action: &str, testid: &str) -> Markup {
    let label = ctx.lang.sms_grant();
    button(ctx, CARD, action, &Button { label, testid, class: "primary", fields: &[] })
}

/// How many messages are queued, how the last poll went, and a button to poll now.
fn polled(ctx: &PageContext<'_>, status: &SmsStatus, polling: bool) -> Markup {
    let refresh = form(
        ctx,
        CARD,
        "/settings/agent/sms/poll",
        if polling { "turning" } else { "" },
        &icon_button("sms-refresh", ctx.lang.sms_refresh(), &icons::again()),
    );
    html! {
        div class="between keep" {
            div class="facts" {
                p data-testid="sms-queued" { (ctx.lang.agent_queued(status.queued)) }
                @if status.dropped > 0 { p class="quiet" data-testid="sms-dropped" { (ctx.lang.sms_dropped(status.dropped)) } }
                p class="quiet" data-testid="sms-status" {
                    @if polling { (ctx.lang.sms_polling()) } @else { (last_poll(ctx, status)) }
                }
            }
            (refresh)
        }
        // An error of a paired phone is said beside its name.
        @if status.has_own() && let Some(error) = &status.last_error {
            p class="trouble-text" data-testid="sms-error" { (error.to(ctx.lang)) }
        }
    }
}

/// How the last poll went, and when that was.
fn last_poll(ctx: &PageContext<'_>, status: &SmsStatus) -> String {
    let ago = |at: i64| ago(ctx.times.now.as_millisecond().saturating_sub(at) / 60_000, ctx.lang);
    match (&status.last_error, status.last_attempt, status.last_sync) {
        (Some(_), Some(attempt), _) => ctx.lang.sms_poll_failed(ago(attempt)),
        (_, _, Some(synced)) => ctx.lang.sms_poll_worked(ago(synced)),
        _ => ctx.lang.sms_not_polled().to_owned(),
    }
}

fn sending(ctx: &PageContext<'_>, status: &SmsStatus) -> Markup {
    let send = Switch {
        setting: &SMS_SEND_ENABLED,
        label: ctx.lang.sms_send(),
        help: ctx.lang.sms_send_help(),
        testid: "sms-send-toggle",
    };
    let denied = sms::sending_denied(&ctx.web.app).filter(|_| status.send_enabled);
    html! {
        (switch(ctx, CARD, &send))
        @if let Some(what_to_do) = denied {
            p class="trouble-text" { (what_to_do.to(ctx.lang)) }
            (grant(ctx, "/settings/agent/sms/send-grant", "sms-send-grant"))
        }
    }
}

/// The switch for contact names. `trouble` says why the phone's contacts could not be read.
fn contact_names(ctx: &PageContext<'_>, trouble: Option<Said>) -> Markup {
    let names = Switch {
        setting: &CONTACT_NAMES_ENABLED,
        label: ctx.lang.sms_names(),
        help: ctx.lang.sms_names_help(),
        testid: "contact-names-toggle",
    };
    html! {
        (switch(ctx, CARD, &names))
        @if let Some(why) = trouble {
            p class="trouble-text" data-testid="contact-names-error" { (said::sms_names_failed(why).to(ctx.lang)) }
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
