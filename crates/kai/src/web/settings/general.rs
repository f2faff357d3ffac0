//! The General page: theme and language, signing in, export and import, facts about this Kai, and erasing everything.

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::post;
use kai_assistant::home::KeyKind;
use kai_assistant::settings::{ALLOWED_HOSTS, LANGUAGE, THEME};
use maud::{Markup, html};

use super::fields::{Choice, Field, choice, choice_on_page, field};
use super::form::Form;
use super::look::Look;
use super::parts::{Region, fact, plain};
use super::transfer;
use crate::app::App;
use crate::call::Call;
use crate::commands::status;
use crate::failure::Failure;
use crate::web::page;
use crate::web::settings::sessions;
use crate::web::state::Web;
use crate::{erase, machine};

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/general/link", post(make_link))
        .route("/settings/general/revoke", post(revoke))
        .route("/settings/general/erase", post(erase_all))
        .merge(transfer::routes())
}

pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let app = &look.web.app;
    let now = app.clock.now();
    let living = app.db.read(move |tx| sessions::living(tx, now)).await?;
    Ok(vec![
        Region::card("look", "Look and language", looks(look)),
        Region::card("signin", "Signing in", signing_in(look, living)),
        Region::card("export", "Export", transfer::export_form(look)),
        Region::card("import", "Import", transfer::import_form(look)).testid("import-card"),
        Region::card("about", "About this Kai", about(app)),
        Region::card("erase", "Erase everything", erasing(look)).testid("erase-card"),
    ])
}

fn looks(look: &Look<'_>) -> Markup {
    let themes = [("system", "System"), ("light", "Light"), ("dark", "Dark")];
    let languages = [("system", "System"), ("en", "English"), ("de", "Deutsch")];
    html! {
        // Reloads the page instead of using the script, because the theme applies to the page around the cards.
        (choice_on_page(look, "look", &Choice { setting: &THEME, label: "Theme", options: &themes, testid: "theme" }))
        (choice(look, "look", &Choice {
            setting: &LANGUAGE, label: "Language of names", options: &languages, testid: "language",
        }))
    }
}

fn signing_in(look: &Look<'_>, (sessions, links): (i64, i64)) -> Markup {
    let browsers = match sessions {
        1 => "Only this browser is signed in.".to_owned(),
        n => format!("{n} browsers are signed in."),
    };
    let waiting = match links {
        0 => String::new(),
        1 => " 1 link waits to be used.".to_owned(),
        n => format!(" {n} links wait to be used."),
    };
    html! {
        p data-testid="sessions" { (browsers) (waiting) }
        div class="choices" {
            // The response is a page of its own: a link is a secret, and must not be on a page that other browsers see.
            (plain(look, "signin", "/settings/general/link", "", &html! {
                button type="submit" data-testid="make-link" { "Make a sign-in link" }
            }))
            (plain(look, "signin", "/sign-out", "", &html! { button type="submit" data-testid="sign-out" { "Sign out here" } }))
            (plain(look, "signin", "/settings/general/revoke", "", &html! {
                button type="submit" data-testid="revoke-all" { "Sign out everywhere" }
            }))
        }
        (field(look, "signin", &Field {
            setting: &ALLOWED_HOSTS, label: "Other names of this page", testid: "allowed-hosts",
        }))
    }
}

fn about(app: &App) -> Markup {
    let key = match app.key_place {
        KeyKind::Keyring => "in the desktop keyring",
        KeyKind::Passphrase => "locked with a passphrase",
        KeyKind::File if app.home.key_too_open().is_some() => {
            "in a file that other users of this machine can open"
        }
        KeyKind::File => "in a file that only you can read",
    };
    let daemon = status::daemon(app);
    let permissions = app.manifest.permissions.join(", ");
    html! {
        p class="promise" { "Kai runs on this machine. Nothing leaves for another person without your tap." }
        dl class="facts" {
            (fact("Version", env!("CARGO_PKG_VERSION")))
            (fact("Edition", app.manifest.edition))
            (fact("Home", &app.home.dir.display().to_string()))
            (fact("Store", "encrypted"))
            (fact("Its key", key))
            (fact("Page", daemon.address.as_deref().unwrap_or("–")))
            (fact("Running since", daemon.since_local.as_deref().unwrap_or("–")))
            // Only Android has permissions.
            @if machine::in_termux() && !permissions.is_empty() { (fact("Permissions it may ask for", &permissions)) }
        }
    }
}

fn erasing(look: &Look<'_>) -> Markup {
    let home = look.web.app.home.dir.display().to_string();
    html! {
        p {
            "Deletes everything Kai keeps in " code { (home) } ": conversations, memories, settings, keys, the ledger. "
            "Kai then ends. There is no way back."
        }
        (plain(look, "erase", "/settings/general/erase", "", &html! {
            div class="field" {
                label for="erase-words" { "To go on, type: " (erase::WORDS) }
                div class="line" {
                    input type="text" id="erase-words" data-testid="erase-words" name="words" autocomplete="off" spellcheck="false";
                    button type="submit" class="danger" data-testid="erase" { "Erase" }
                }
            }
        }))
    }
}

async fn make_link(headers: HeaderMap, form: Form) -> Response {
    let link = match sessions::fresh_link(form.app()).await {
        Ok(link) => link.url,
        Err(failure) => return form.refuse(failure),
    };
    // Use the host by which the user reaches this page; the guard has checked it.
    let here = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let path = link.split_once("/login").map(|(_, rest)| format!("/login{rest}"));
    let link = here.zip(path).map_or(link, |(here, path)| format!("{here}{path}"));
    page::fresh_link(&link)
}

async fn revoke(form: Form) -> Response {
    let done = form.call(Call::RevokeLinks).await;
    form.answer(done)
}

/// Shuts the daemon down, which then deletes everything in its home.
async fn erase_all(form: Form) -> Response {
    if form.field("words").trim() != erase::WORDS {
        let sentence = format!("Nothing was erased. For that, type exactly: {}", erase::WORDS);
        return form.refuse(Failure::usage(sentence));
    }
    form.app().erase.cancel();
    page::erased(&form.app().home.dir.display().to_string())
}
