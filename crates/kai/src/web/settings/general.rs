//! The General page: theme and language, signing in, export and import, facts about this Kai, and erasing everything.

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::post;
use kai_assistant::home::KeyKind;
use kai_assistant::settings::{ALLOWED_HOSTS, LANGUAGE, OPEN_BROWSER, THEME};
use kai_words::{Lang, said};
use maud::{Markup, html};

use super::context::{Page, PageContext};
use super::fields::{Choice, Field, choice_on_page, field};
use super::form::Form;
use super::parts::{Region, Switch, fact, plain, switch};
use super::transfer;
use crate::app::App;
use crate::call::Call;
use crate::commands::status;
use crate::failure::Failure;
use crate::machine;
use crate::web::page;
use crate::web::rich::rich;
use crate::web::settings::sessions;
use crate::web::state::Web;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/general/link", post(make_link))
        .route("/settings/general/revoke", post(revoke))
        .route("/settings/general/erase", post(erase_all))
        .merge(transfer::routes())
}

pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let app = &ctx.web.app;
    let now = app.clock.now();
    let living = app.db.read(move |tx| sessions::living(tx, now)).await?;
    let lang = ctx.lang;
    Ok(vec![
        Region::card("look", lang.general_look(), looks(ctx)),
        Region::card("signin", lang.general_signin(), signing_in(ctx, living)),
        Region::card("export", lang.transfer_export(), transfer::export_form(ctx)),
        Region::card("import", lang.transfer_import(), transfer::import_form(ctx)).testid("import-card"),
        Region::card("about", lang.general_about(), about(ctx)),
        Region::card("erase", lang.general_erase(), erasing(ctx)).testid("erase-card"),
    ])
}

fn looks(ctx: &PageContext<'_>) -> Markup {
    let lang = ctx.lang;
    let themes =
        [("system", lang.general_system()), ("light", lang.general_light()), ("dark", lang.general_dark())];
    let names: Vec<(&str, String)> = Lang::all().map(|other| (other.code(), named(other, lang))).collect();
    let languages: Vec<(&str, &str)> = [("system", lang.general_system())]
        .into_iter()
        .chain(names.iter().map(|(code, name)| (*code, name.as_str())))
        .collect();
    let theme = Choice { setting: &THEME, label: lang.general_theme(), options: &themes, testid: "theme" };
    let language = Choice {
        setting: &LANGUAGE,
        label: lang.general_language(),
        options: &languages,
        testid: "language",
    };
    html! {
        // These reload the page instead of using the script, because they apply to the page around the cards.
        (choice_on_page(ctx, "look", &theme))
        (choice_on_page(ctx, "look", &language))
    }
}

/// What a language calls itself, and how many of its texts are missing.
fn named(language: Lang, lang: Lang) -> String {
    match language.missing().len() {
        0 => language.name().to_owned(),
        n => lang.general_language_partly(language.name(), n),
    }
}

fn signing_in(ctx: &PageContext<'_>, (sessions, links): (i64, i64)) -> Markup {
    let lang = ctx.lang;
    html! {
        p data-testid="sessions" {
            (lang.general_browsers(sessions))
            @if links > 0 { " " (lang.general_links(links)) }
        }
        div class="choices" {
            // The response is a page of its own: a link is a secret, and must not be on a page that other browsers see.
            (plain(ctx, "signin", "/settings/general/link", "", &html! {
                button type="submit" data-testid="make-link" { (lang.general_make_link()) }
            }))
            (plain(ctx, "signin", "/sign-out", "", &html! { button type="submit" data-testid="sign-out" { (lang.general_sign_out()) } }))
            (plain(ctx, "signin", "/settings/general/revoke", "", &html! {
                button type="submit" data-testid="revoke-all" { (lang.general_revoke()) }
            }))
        }
        (switch(ctx, "signin", &Switch {
            setting: &OPEN_BROWSER, label: lang.general_open_browser(), help: lang.general_open_browser_help(),
            testid: "open-browser-toggle",
        }))
        (field(ctx, "signin", &Field {
            setting: &ALLOWED_HOSTS, label: lang.general_hosts(), help: lang.general_hosts_help(), testid: "allowed-hosts",
        }))
    }
}

fn about(ctx: &PageContext<'_>) -> Markup {
    let (app, lang) = (&ctx.web.app, ctx.lang);
    let key = match app.key_place {
        KeyKind::Keyring => lang.general_key_keyring(),
        KeyKind::Passphrase => lang.general_key_passphrase(),
        KeyKind::File if app.home.key_too_open().is_some() => lang.general_key_open(),
        KeyKind::File => lang.general_key_file(),
    };
    let daemon = status::daemon(app);
    let permissions = app.manifest.permissions.join(", ");
    html! {
        p class="promise" { (lang.general_promise()) }
        @if !app.home.is_demo() { p { a href=(Page::Welcome.path()) data-testid="welcome-again" { (lang.welcome_again()) } } }
        dl class="facts" {
            (fact(lang.general_version(), env!("CARGO_PKG_VERSION")))
            (fact(lang.general_edition(), app.manifest.edition))
            (fact(lang.general_home(), &app.home.dir.display().to_string()))
            (fact(lang.general_store(), lang.general_store_encrypted()))
            (fact(lang.general_key(), key))
            (fact(lang.general_address(), daemon.address.as_deref().unwrap_or("–")))
            div class="fact" {
                dt { (lang.general_since()) }
                dd { @match daemon.since { Some(since) => (ctx.times.moment(since)), None => "–" } }
            }
            // Only Android has permissions.
            @if machine::in_termux() && !permissions.is_empty() { (fact(lang.general_permissions(), &permissions)) }
        }
    }
}

fn erasing(ctx: &PageContext<'_>) -> Markup {
    let (home, lang) = (ctx.web.app.home.dir.display(), ctx.lang);
    html! {
        p { (rich(&said::general_erase_what(home), lang, |home| html! { code { (home) } })) }
        (plain(ctx, "erase", "/settings/general/erase", "", &html! {
            div class="field" {
                label for="erase-words" { (lang.general_erase_how(lang.general_erase_words())) }
                div class="line" {
                    input type="text" id="erase-words" data-testid="erase-words" name="words" autocomplete="off" spellcheck="false";
                    button type="submit" class="danger" data-testid="erase" { (lang.general_erase_button()) }
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

/// Are these the words that confirm, in any of the languages? The page may have been loaded in another one.
fn confirms(typed: &str) -> bool {
    Lang::all().any(|lang| lang.general_erase_words() == typed)
}

/// Shuts the daemon down, which then deletes everything in its home.
async fn erase_all(form: Form) -> Response {
    if !confirms(form.field("words").trim()) {
        let lang = App::lang(&form.app().values().await.unwrap_or_default(), &form.app().env);
        return form.refuse(Failure::usage(said::general_not_erased(lang.general_erase_words())));
    }
    form.app().erase.cancel();
    page::erased(&form.app().home.dir.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_erase_are_the_commands_or_those_of_any_language() {
        assert!(confirms(crate::erase::WORDS));
        assert!(Lang::all().all(|lang| confirms(lang.general_erase_words())));
        for typed in ["", "erase", "Erase everything", "erase everything now"] {
            assert!(!confirms(typed), "{typed}");
        }
    }
}
