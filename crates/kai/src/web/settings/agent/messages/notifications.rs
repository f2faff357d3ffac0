//! The card for notifications of other apps: its switches, whether the platform gives access, and the ignored apps.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::access::AccessState;
use kai_assistant::settings::{
    NOTIFICATIONS_DISMISS_ENABLED, NOTIFICATIONS_ENABLED, NOTIFICATIONS_REPLY_ENABLED,
};
use kai_words::{Said, said};
use maud::{Markup, html};

use crate::call::Call;
use crate::call::notifications::{ListenerState, NotificationsCall, NotificationsStatus, SourceStatus};
use crate::commands::notifications::{self, AppWish};
use crate::failure::Failure;
use crate::web::settings::agent::code_redaction;
use crate::web::settings::context::{PageContext, ProbePhone};
use crate::web::settings::form::Form;
use crate::web::settings::parts::{Button, Region, Switch, button, form, switch, switch_to};
use crate::web::state::Web;

const CARD: &str = "notifications";

/// The card; `None` where notifications cannot be read.
pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Option<Region>, Failure> {
    let app = &ctx.web.app;
    let status = match ctx.probe {
        ProbePhone::Phone => notifications::status(app).await?,
        ProbePhone::No => notifications::known(app).await?,
    };
    if !status.supported {
        return Ok(None);
    }
    let apps = if ctx.place.shows("apps") { Some(apps(ctx).await?) } else { None };
    let dismiss = Switch {
        setting: &NOTIFICATIONS_DISMISS_ENABLED,
        label: ctx.lang.notifications_dismiss(),
        help: ctx.lang.notifications_dismiss_help(),
        testid: "notifications-dismiss-toggle",
    };
    let reply = Switch {
        setting: &NOTIFICATIONS_REPLY_ENABLED,
        label: ctx.lang.notifications_reply(),
        help: ctx.lang.notifications_reply_help(),
        testid: "notifications-reply-toggle",
    };
    let content = html! {
        div class="part" { (reading(ctx, &status)) @if status.enabled { (phones(ctx, &status)) } }
        @if status.state == ListenerState::Off && status.keeps() {
            (super::erasing(ctx, CARD, &kept(&status), "/settings/agent/notifications/forget"))
        }
        div class="part" {
            @if status.enabled || status.queued > 0 { (queue(ctx, &status)) (gaps(ctx, &status)) }
            div class="choices" {
                a class="button" href=(format!("{}#{CARD}", ctx.place.turned("apps"))) data-show
                    data-testid="notifications-manage" aria-expanded=(apps.is_some()) { (ctx.lang.notifications_manage()) }
            }
            @if let Some(apps) = apps { (apps) }
        }
        div class="part" {
            (switch(ctx, CARD, &dismiss)) (switch(ctx, CARD, &reply))
            @if ctx.web.app.mail.is_none() { (code_redaction(ctx, CARD)) }
        }
    };
    Ok(Some(Region::card(CARD, ctx.lang.notifications_label(), content).testid("notifications-card")))
}

fn reading(ctx: &PageContext<'_>, status: &NotificationsStatus) -> Markup {
    let read = Switch {
        setting: &NOTIFICATIONS_ENABLED,
        label: ctx.lang.notifications_read(),
        help: ctx.lang.notifications_read_help(),
        testid: "notifications-toggle",
    };
    let waiting = status.state == ListenerState::Waiting;
    let is_own = status.has_own() || !status.phones().any(|(_, phone)| phone.enabled);
    let locked_out = status.has_own()
        && status.enabled
        && status.access != AccessState::Granted
        && status.state != ListenerState::Listening;
    html! {
        (switch_to(ctx, CARD, "/settings/agent/notifications/turn", status.enabled, &read))
        // A paired phone is spoken of beside its name.
        @if status.enabled && is_own {
            p data-testid="notifications-status" class=[(status.state != ListenerState::Listening).then_some("trouble-text")] {
                @if status.state == ListenerState::Listening { (ctx.lang.notifications_active()) }
                @else { (ctx.lang.notifications_inactive()) }
            }
        }
        @if waiting { p data-testid="notifications-status" { (ctx.lang.notifications_waiting()) } }
        @if let Some(hint) = &status.hint { p class="quiet" data-testid="notifications-hint" { (hint.to(ctx.lang)) } }
        @if status.enabled && is_own && let Some(error) = &status.last_error { p class="trouble-text" { (error.to(ctx.lang)) } }
        @if waiting || locked_out {
            div class="choices" {
                (button(ctx, CARD, "/settings/agent/notifications/access", &Button {
                    label: ctx.lang.notifications_access(), testid: "notifications-access", class: "primary", fields: &[],
                }))
                (button(ctx, CARD, "/settings/agent/notifications/refresh", &Button {
                    label: ctx.lang.notifications_check(), testid: "notifications-refresh", class: "", fields: &[],
                }))
            }
        }
    }
}

/// How each paired phone stands whose notifications are read.
fn phones(ctx: &PageContext<'_>, status: &NotificationsStatus) -> Markup {
    let stands = |phone: &SourceStatus| match (phone.state, &phone.last_error) {
        (ListenerState::Listening, _) => ctx.lang.notifications_active().to_owned(),
        (_, Some(error)) => error.to(ctx.lang),
        (_, None) => ctx.lang.notifications_inactive().to_owned(),
    };
    html! {
        @for (name, phone) in status.phones().filter(|(_, phone)| phone.enabled) {
            p data-testid="notifications-phone" class=[(phone.state != ListenerState::Listening).then_some("quiet")] {
                bdi { (name) } ": " (stands(phone))
            }
        }
    }
}

/// What is still stored of notifications.
fn kept(status: &NotificationsStatus) -> Said {
    match status.kept.max(status.queued) {
        0 => said::notifications_kept_note(),
        n => said::notifications_kept(n),
    }
}

fn queue(ctx: &PageContext<'_>, status: &NotificationsStatus) -> Markup {
    html! {
        div class="between keep" {
            div class="facts" {
                p data-testid="notifications-queued" { (ctx.lang.agent_queued(status.queued)) }
                @if status.dropped > 0 { p class="quiet" { (ctx.lang.notifications_dropped(status.dropped)) } }
            }
            @if status.queued > 0 {
                (button(ctx, CARD, "/settings/agent/notifications/clear", &Button {
                    label: ctx.lang.notifications_clear(), testid: "notifications-clear", class: "", fields: &[],
                }))
            }
        }
    }
}

/// Periods without notifications, newest last.
fn gaps(ctx: &PageContext<'_>, status: &NotificationsStatus) -> Markup {
    html! {
        @if !status.gaps.is_empty() {
            details class="did" data-testid="notifications-gaps" {
                summary { (ctx.lang.notifications_gaps(status.gaps.len())) }
                ul {
                    @for gap in &status.gaps {
                        @let until = gap.gap.ended.map_or(ctx.lang.notifications_gap_now().to_owned(), |at| ctx.times.text(at));
                        li { (ctx.lang.notifications_gap(ctx.times.text(gap.gap.began), until, &gap.gap.why)) }
                    }
                }
            }
        }
    }
}

/// The list of apps with a switch for each. We show our own, as neither a Linux desktop nor Termux has an app picker.
async fn apps(ctx: &PageContext<'_>) -> Result<Markup, Failure> {
    let apps = notifications::apps(&ctx.web.app).await?;
    let add = html! {
        div class="between" {
            label for="app-ignored" { (ctx.lang.notifications_add_app()) }
        }
        div class="line" {
            input type="text" id="app-ignored" name="package" placeholder=(ctx.lang.notifications_app_example())
                autocomplete="off" required data-testid="app-ignored";
            input type="hidden" name="ignored" value="true";
            button type="submit" data-testid="app-ignore" { (ctx.lang.notifications_add_app_button()) }
        }
    };
    Ok(html! {
        p class="quiet" { (ctx.lang.notifications_apps_help()) }
        @if apps.is_empty() { p class="quiet" { (ctx.lang.notifications_no_apps()) } }
        ul class="items" { @for app in &apps { li { (app_switch(ctx, app)) } } }
        (form(ctx, CARD, "/settings/agent/notifications/app", "editor", &add))
    })
}

fn app_switch(ctx: &PageContext<'_>, app: &notifications::AppRow) -> Markup {
    let content = html! {
        input type="hidden" name="package" value=(app.package);
        input type="hidden" name="ignored" value=(!app.ignored);
        button class="switch" type="submit" role="switch" aria-checked=(!app.ignored) data-testid="app-toggle"
            data-app=(app.package) {
            span { bdi { (app.label) } @if app.label != app.package { span class="quiet" { " " (app.package) } } }
            span class="track" {}
        }
    };
    form(ctx, CARD, "/settings/agent/notifications/app", "", &content)
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/agent/notifications/turn", post(turn))
        .route("/settings/agent/notifications/access", post(access))
        .route("/settings/agent/notifications/refresh", post(refresh))
        .route("/settings/agent/notifications/clear", post(clear))
        .route("/settings/agent/notifications/forget", post(forget))
        .route("/settings/agent/notifications/app", post(ignore))
}

/// Switches reading notifications on or off. Waiting for access is not a failure: the card says what it waits for.
async fn turn(form: Form) -> Response {
    let turned = notifications::turn(form.app(), form.field("value") == "true").await;
    form.answer(turned)
}

/// Asks the platform for access, which makes it show the user where to grant it.
async fn access(form: Form) -> Response {
    let asked = notifications::ask(form.app()).await;
    form.answer(asked)
}

async fn refresh(form: Form) -> Response {
    let web = form.web.clone();
    let looking = async move {
        let looked = notifications::refresh(&web.app).await;
        web.turns.move_on();
        looked
    };
    let started = form.start(looking).await;
    form.answer(started)
}

async fn clear(form: Form) -> Response {
    let cleared = form.call(Call::from(NotificationsCall::Clear)).await;
    form.answer(cleared)
}

async fn forget(form: Form) -> Response {
    let forgotten = notifications::forget(form.app()).await;
    form.answer_saying(forgotten, said::settings_erased())
}

async fn ignore(form: Form) -> Response {
    let done = set_ignored(&form).await;
    form.answer(done)
}

async fn set_ignored(form: &Form) -> Result<(), Failure> {
    let package = form.field("package").trim().to_owned();
    let wish = if form.field("ignored") == "true" { AppWish::Ignored } else { AppWish::Heard };
    notifications::switch_app(form.app(), package, wish).await
}
