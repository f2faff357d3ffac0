//! The card for email: the accounts, how each is doing, and adding one.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::legible::visible;
use kai_assistant::settings::{EMAIL_BULK_ENABLED, EMAIL_ENABLED, EMAIL_POLL_INTERVAL};
use kai_words::said;
use maud::{Markup, html};

use super::ago::ago;
use crate::call::email::{AccountRow, AddAccount};
use crate::commands::email;
use crate::failure::Failure;
use crate::web::settings::context::PageContext;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{
    Button, Region, Slider, Switch, button, form, icon_button, link, slider, switch,
};
use crate::web::state::Web;
use crate::web::{icons, reply};

const CARD: &str = "email";

/// The card; `None` in a Kai without mail. The demo's account is simulated, and no other can be added there.
pub(super) async fn card(ctx: &PageContext<'_>) -> Result<Option<Region>, Failure> {
    let app = &ctx.web.app;
    if app.mail.is_none() {
        return Ok(None);
    }
    let rows = email::list(app).await?;
    let polling = email::polling(app).await?;
    let is_on = ctx.values.on(&EMAIL_ENABLED);
    let content = html! {
        div class="part" {
            (switch(ctx, CARD, &Switch {
                setting: &EMAIL_ENABLED, label: ctx.lang.accounts_enabled(), help: ctx.lang.accounts_enabled_help(), testid: "email-toggle",
            }))
            @if !rows.is_empty() {
                ul class="models" { @for row in &rows { (account(ctx, row)) } }
            }
            @if is_on && !rows.is_empty() { (reading(ctx, &rows, polling)) }
        }
        @if app.home.is_demo() {
            div class="part" { p data-testid="email-demo" { (ctx.lang.accounts_demo()) } }
        } @else if is_on {
            div class="part" { (adding(ctx, rows.is_empty())) }
        }
        div class="part" { (super::code_redaction(ctx, CARD)) }
    };
    Ok(Some(Region::card(CARD, ctx.lang.accounts_label(), content).testid("email-card")))
}

/// An account: how it is doing, and what can be done with it.
fn account(ctx: &PageContext<'_>, row: &AccountRow) -> Markup {
    let lang = ctx.lang;
    let part = format!("remove-{}", row.address);
    let here = ctx.place.turned(&part);
    let fields = [("account", row.address.as_str())];
    let act = |action: &str, label: &str, testid: &str, class: &str| {
        button(ctx, CARD, action, &Button { label, testid, class, fields: &fields })
    };
    html! {
        li class="model" data-testid="email-account" data-account=(row.address) {
            div class="model-head" {
                strong { bdi { (visible(&row.address)) } }
                @match (&row.last_error, row.last_sync) {
                    (Some(_), _) => span class="state" data-testid="email-state" data-status="bad" { (lang.accounts_broken()) },
                    (None, Some(_)) => span class="state" data-testid="email-state" data-status="on" { (lang.accounts_works()) },
                    (None, None) => span class="state" data-testid="email-state" data-status="waits" { (lang.accounts_unread()) },
                }
            }
            @if let Some(error) = &row.last_error { p class="trouble-text" data-testid="email-error" { (error.to(ctx.lang)) } }
            p class="quiet" { span class="brief" { (visible(&row.imap)) " · " (visible(&row.smtp)) } }
            @if row.counted > 0 { p class="quiet" data-testid="email-counted" { (lang.accounts_counted(row.counted)) } }
            @if row.dropped > 0 { p class="quiet" { (lang.sms_dropped(row.dropped)) } }
            @if ctx.place.shows(&part) {
                p class="quiet" { (lang.accounts_remove_help()) }
                div class="choices" {
                    (act("/settings/agent/email/remove", lang.accounts_remove(), "email-remove", "danger"))
                    (link(&here, CARD, "email-keep", lang.agent_keep()))
                }
            } @else {
                div class="choices" {
                    (act("/settings/agent/email/test", lang.accounts_test(), "email-test", ""))
                    (link(&here, CARD, "email-remove-ask", lang.accounts_remove_ask()))
                }
            }
        }
    }
}

/// How often Kai looks for new mail, what waits, and a button to look now.
fn reading(ctx: &PageContext<'_>, rows: &[AccountRow], polling: bool) -> Markup {
    let minutes = [5_u32, 15, 30, 60].map(|minutes| ctx.lang.heartbeat_minutes_short(minutes));
    let stops: Vec<String> = [ctx.lang.sms_never().to_owned()].into_iter().chain(minutes).collect();
    let interval = Slider {
        setting: &EMAIL_POLL_INTERVAL,
        label: ctx.lang.accounts_interval(),
        stops: &stops,
        testid: "email-interval",
    };
    let bulk = Switch {
        setting: &EMAIL_BULK_ENABLED,
        label: ctx.lang.accounts_bulk(),
        help: ctx.lang.accounts_bulk_help(),
        testid: "email-bulk-toggle",
    };
    let (queued, last) =
        (rows.iter().map(|row| row.queued).sum::<u32>(), rows.iter().filter_map(|row| row.last_sync).max());
    let since = |at: i64| ago(ctx.times.now.as_millisecond().saturating_sub(at) / 60_000, ctx.lang);
    let refresh = icon_button("email-refresh", ctx.lang.sms_refresh(), &icons::again());
    html! {
        (slider(ctx, CARD, &interval))
        div class="between keep" {
            div class="facts" {
                p data-testid="email-queued" { (ctx.lang.agent_queued(queued)) }
                p class="quiet" data-testid="email-status" {
                    @if polling { (ctx.lang.sms_polling()) }
                    @else if let Some(at) = last { (ctx.lang.sms_poll_worked(since(at))) }
                    @else { (ctx.lang.sms_not_polled()) }
                }
            }
            (form(ctx, CARD, "/settings/agent/email/poll", if polling { "turning" } else { "" }, &refresh))
        }
        (switch(ctx, CARD, &bulk))
    }
}

/// The form for an account. The servers are known or guessed; who knows better can say it.
fn adding(ctx: &PageContext<'_>, first: bool) -> Markup {
    let lang = ctx.lang;
    let typed = |name: &str| ctx.error.and_then(|told| told.typed(CARD, name)).unwrap_or_default().to_owned();
    let field = |name: &str, label: &str, kind: &str, hint: &str| {
        let id = format!("email-{name}");
        html! {
            label for=(id) { (label) }
            input id=(id) name=(name) type=(kind) value=(if kind == "password" { String::new() } else { typed(name) })
                placeholder=(hint) autocomplete="off" autocapitalize="none" spellcheck="false" data-testid=(id) dir="ltr";
        }
    };
    let content = html! {
        (field("address", lang.accounts_address(), "text", "you@example.org"))
        (field("password", lang.accounts_password(), "password", ""))
        p class="quiet" { (lang.accounts_password_help()) }
        details id="email-servers" {
            summary { (lang.accounts_servers()) }
            div class="fields" {
                p class="quiet" { (lang.accounts_servers_help()) }
                (field("imap", lang.accounts_imap(), "text", "imap.example.org:993"))
                (field("smtp", lang.accounts_smtp(), "text", "smtp.example.org:465"))
                (field("user", lang.accounts_user(), "text", ""))
                (field("token_command", lang.accounts_token_command(), "text", ""))
            }
        }
        div class="choices" {
            button type="submit" class="primary" data-testid="email-add" { (lang.accounts_add_button()) }
        }
        p class="told" role="status" data-keep {}
    };
    html! {
        @if first {
            p class="quiet" { (lang.accounts_none()) }
            (form(ctx, CARD, "/settings/agent/email/add", "fields", &content))
        } @else {
            details id="email-adding" { summary data-testid="email-another" { (lang.accounts_another()) } (form(ctx, CARD, "/settings/agent/email/add", "fields", &content)) }
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/agent/email/add", post(add))
        .route("/settings/agent/email/test", post(test))
        .route("/settings/agent/email/remove", post(remove))
        .route("/settings/agent/email/poll", post(poll))
}

/// Adds an account. The page is loaded again, so that the password does not stay in its field.
async fn add(headers: HeaderMap, form: Form) -> Response {
    let given = |name: &str| Some(form.field(name).trim().to_owned()).filter(|typed| !typed.is_empty());
    let token_command = given("token_command");
    // A password may begin or end with a blank.
    let password = Some(form.field("password").to_owned()).filter(|_| token_command.is_none());
    let new = AddAccount {
        address: form.field("address").trim().to_owned(),
        imap: given("imap"),
        smtp: given("smtp"),
        user: given("user"),
        password,
        token_command,
    };
    match email::add(form.app(), new).await {
        Ok(_) => {
            form.web.turns.move_on();
            reply::done(&headers, "/settings/agent#email")
        }
        Err(failure) => form.refuse(failure),
    }
}

async fn test(form: Form) -> Response {
    match email::test(form.app(), form.field("account")).await {
        Ok(test) if test.works => form.answer_saying(Ok(()), said::accounts_tested()),
        Ok(test) => form.refuse(Failure::failed(test.why.unwrap_or_default())),
        Err(failure) => form.refuse(failure),
    }
}

async fn remove(form: Form) -> Response {
    let removed = email::remove(form.app(), form.field("account")).await;
    form.answer_saying(removed, said::settings_erased())
}

async fn poll(form: Form) -> Response {
    let web = form.web.clone();
    let app = Arc::clone(&form.web.app);
    let looking = async move {
        let looked = email::poll(&app, None).await.map(drop);
        web.turns.move_on();
        looked
    };
    let started = form.start(looking).await;
    form.answer(started)
}
