//! General settings: what is on, where it lies, how it looks.

use kai_assistant::settings::THEME;
use maud::{Markup, html};

use super::Look;
use super::form::hidden;
use super::parts::{Region, fact};
use crate::failure::Failure;
use crate::status::{self, Status};

pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let app = &look.web.app;
    let status = status::of(app, &app.around).await?;
    let mut regions = vec![
        Region::card("look", "Look", theme(look)),
        Region::card("running", "Running", running(&status)),
        Region::card("model", "Model", model(&status)),
        Region::card("home", "Home", home(&status)),
    ];
    #[cfg(feature = "sms")]
    regions.push(Region::card("phone", "Phone", phone(&status)));
    regions.push(Region::card("tools", "Tools", tools(&status)));
    regions.push(Region::bare("session", session(look)));
    Ok(regions)
}

fn session(look: &Look<'_>) -> Markup {
    html! {
        form method="post" action="/sign-out" {
            input type="hidden" name="csrf" value=(look.csrf);
            button class="plain" type="submit" { "Sign out" }
        }
    }
}

fn running(status: &Status) -> Markup {
    let daemon = &status.daemon;
    html! {
        dl {
            (fact("Page", daemon.address.as_deref().unwrap_or("–")))
            (fact("Since", daemon.since_local.as_deref().unwrap_or("–")))
            (fact("Version", &format!("{} · {} edition", status.version, status.edition)))
        }
    }
}

fn model(status: &Status) -> Markup {
    match &status.model {
        Some(row) if row.ready => html! {
            dl { (fact("Asked first", &row.name)) (fact("Model", &row.model)) (fact("At", &row.base_url)) }
        },
        Some(row) => {
            html! { p { (row.name) " cannot be used. " (row.why_not.as_deref().unwrap_or_default()) } }
        }
        None => html! { p { "None is set up. " code { "kai models add --help" } " shows how." } },
    }
}

fn home(status: &Status) -> Markup {
    let key = match status.key.as_str() {
        "keyring" => "in the desktop keyring",
        "passphrase" => "locked with a passphrase",
        _ => "in a file only you can read",
    };
    html! { dl { (fact("Folder", &status.home)) (fact("Store", "encrypted")) (fact("Key", key)) } }
}

#[cfg(feature = "sms")]
fn phone(status: &Status) -> Markup {
    match &status.sms.bridge {
        Some(bridge) => html! { dl { (fact("Through", bridge)) } },
        None => {
            html! { p { "None is connected. On the phone, Kai runs in Termux; " code { "kai doctor" } " says more." } }
        }
    }
}

fn tools(status: &Status) -> Markup {
    let offered = format!("{} of {}", status.tools.offered, status.tools.all);
    html! { dl { (fact("Offered to the model", &offered)) } }
}

/// Not by the script: the look belongs to the page around the cards.
fn theme(look: &Look<'_>) -> Markup {
    let theme = look.values.of(&THEME);
    html! {
        form method="post" action="/settings/set" class="choices" {
            (hidden(look.csrf, look.place.page, "look"))
            input type="hidden" name="key" value=(THEME.key);
            @for (value, label) in [("system", "System"), ("light", "Light"), ("dark", "Dark")] {
                button type="submit" name="value" value=(value) aria-pressed=(theme == value) { (label) }
            }
        }
    }
}
