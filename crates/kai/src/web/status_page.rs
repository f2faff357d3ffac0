//! General settings: what is on, where it lies, how it looks.

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use kai_assistant::db::DbError;
use kai_assistant::settings::{self, THEME, Values};
use maud::{Markup, html};
use serde::Deserialize;

use super::signin::Session;
use super::{Web, icons, page};
use crate::status::{self, Status};

pub(super) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Option<Session>>,
    Extension(values): Extension<Values>,
) -> Response {
    let csrf = session.map(|s| s.csrf()).unwrap_or_default();
    match status::of(&web.app, &web.app.around).await {
        Ok(status) => render(&status, &values.of(&THEME), &csrf).into_response(),
        Err(error) => page::trouble(&error.to_string()),
    }
}

fn render(status: &Status, theme: &str, csrf: &str) -> Markup {
    let body = html! {
        header class="settings" {
            a class="round" href="/" aria-label="Back to the chat" title="Back to the chat" { (icons::back()) }
            h1 { "Settings" }
            span class="quiet" { (status.version) " · " (status.edition) " edition" }
            form method="post" action="/sign-out" {
                input type="hidden" name="csrf" value=(csrf);
                button class="plain" type="submit" { "Sign out" }
            }
        }
        main class="settings" {
            @if status.demo { p class="demo" { "This is a demo: the phone is simulated, and the model plays a script." } }
            p class="promise" { "Kai runs on this machine. Nothing leaves for another person without your tap." }
            div class="cards" {
                (running(status))
                (model(status))
                (home(status))
                (phone(status))
                (memory(status))
                (tools(status))
                (look(theme, csrf))
            }
        }
    };
    page::frame("Settings · Kai", theme, &html! {}, &body)
}

fn card(title: &str, content: &Markup) -> Markup {
    html! { section class="card" aria-label=(title) { h2 { (title) } (content) } }
}

fn fact(name: &str, value: &str) -> Markup {
    html! { div class="fact" { dt { (name) } dd { (value) } } }
}

fn running(status: &Status) -> Markup {
    let daemon = &status.daemon;
    card(
        "Running",
        &html! {
            dl {
                (fact("Page", daemon.address.as_deref().unwrap_or("–")))
                (fact("Since", daemon.since_local.as_deref().unwrap_or("–")))
            }
        },
    )
}

fn model(status: &Status) -> Markup {
    card(
        "Model",
        &match &status.model {
            Some(row) if row.ready => html! {
                dl { (fact("Asked first", &row.name)) (fact("Model", &row.model)) (fact("At", &row.base_url)) }
            },
            Some(row) => {
                html! { p { (row.name) " cannot be used. " (row.why_not.as_deref().unwrap_or_default()) } }
            }
            None => html! { p { "None is set up. " code { "kai models add --help" } " shows how." } },
        },
    )
}

fn home(status: &Status) -> Markup {
    let key = match status.key.as_str() {
        "keyring" => "in the desktop keyring",
        "passphrase" => "locked with a passphrase",
        _ => "in a file only you can read",
    };
    card(
        "Home",
        &html! { dl { (fact("Folder", &status.home)) (fact("Store", "encrypted")) (fact("Key", key)) } },
    )
}

#[cfg(feature = "sms")]
fn phone(status: &Status) -> Markup {
    let sms = &status.sms;
    let switch = |on: bool| if on { "on" } else { "off" };
    card(
        "Phone",
        &match &sms.bridge {
            Some(bridge) => html! {
                dl {
                    (fact("Through", bridge))
                    (fact("Read incoming SMS", switch(sms.enabled)))
                    (fact("Send SMS on your behalf", switch(sms.send_enabled)))
                    @if sms.enabled {
                        (fact("Queued", &sms.queued.to_string()))
                        @if sms.dropped > 0 { (fact("Dropped", &sms.dropped.to_string())) }
                        (fact("Inbox", &sms.says))
                    }
                }
            },
            None => {
                html! { p { "None is connected. On the phone, Kai runs in Termux; " code { "kai doctor" } " says more." } }
            }
        },
    )
}

#[cfg(not(feature = "sms"))]
fn phone(_: &Status) -> Markup {
    html! {}
}

fn memory(status: &Status) -> Markup {
    let count = match status.memory.count {
        0 => "nothing yet".to_owned(),
        1 => "1 thing".to_owned(),
        n => format!("{n} things"),
    };
    let switch = if status.memory.enabled { "on" } else { "off" };
    card("Memory", &html! { dl { (fact("Switch", switch)) (fact("Remembered", &count)) } })
}

fn tools(status: &Status) -> Markup {
    let offered = format!("{} of {}", status.tools.offered, status.tools.all);
    card("Tools", &html! { dl { (fact("Offered to the model", &offered)) } })
}

fn look(theme: &str, csrf: &str) -> Markup {
    card(
        "Look",
        &html! {
            form method="post" action="/settings/theme" class="choices" {
                input type="hidden" name="csrf" value=(csrf);
                @for (value, label) in [("system", "System"), ("light", "Light"), ("dark", "Dark")] {
                    button type="submit" name="theme" value=(value) aria-pressed=(theme == value) { (label) }
                }
            }
        },
    )
}

#[derive(Deserialize)]
pub(super) struct ThemeForm {
    theme: String,
}

pub(super) async fn set_theme(
    State(web): State<Web>,
    form: Result<Form<ThemeForm>, FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else {
        return page::refused("The form was not filled in as this page does it.");
    };
    let value = match THEME.accept(&form.theme) {
        Ok(value) => value,
        Err(refused) => return page::refused(&refused.to_string()),
    };
    let stored: Result<(), DbError> =
        web.app.db.write(move |tx| settings::store(tx, &THEME.key, &value)).await;
    match stored {
        Ok(()) => Redirect::to("/settings/general").into_response(),
        Err(error) => page::trouble(&error.to_string()),
    }
}
