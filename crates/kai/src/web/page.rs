//! The HTML frame around every page, and the pages that show only a message.

use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kai_assistant::home::Home;
use maud::{DOCTYPE, Markup, html};

use super::assets::{FAVICON, SCRIPT, STYLE};
use crate::app::facts;

/// Renders a whole HTML page. `theme` is the value of the setting: `system`, `light` or `dark`.
pub(super) fn frame(title: &str, theme: &str, head: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href=(*FAVICON);
                link rel="stylesheet" href=(*STYLE);
                script src=(*SCRIPT) defer {}
                (head)
            }
            body { (body) }
        }
    }
}

/// A time, given in epoch milliseconds, as people read it.
pub(super) fn moment(at: i64, zone: &TimeZone) -> Markup {
    let at = Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(zone.clone());
    html! { time datetime=(kai_assistant::moment::stamp(&at)) { (at.strftime("%b %-d, %H:%M")) } }
}

/// Kai's logo: a speech bubble with a dot to tap.
pub(super) fn mark() -> Markup {
    html! {
        svg class="mark" viewBox="0 0 48 48" aria-hidden="true" {
            path class="bubble" d="M10 6h28a8 8 0 0 1 8 8v14a8 8 0 0 1-8 8H24l-10 8v-8h-4a8 8 0 0 1-8-8V14a8 8 0 0 1 8-8z" {}
            circle class="dot" cx="24" cy="21" r="6" {}
        }
    }
}

fn notice(status: StatusCode, title: &str, head: &Markup, text: &Markup) -> Response {
    let body = html! {
        main class="notice" { (mark()) h1 { (title) } (text) }
    };
    (status, frame(title, "system", head, &body)).into_response()
}

/// The page for browsers without a session: how to get a sign-in link.
pub(super) fn sign_in(headers: &HeaderMap, home: &Home) -> Response {
    let asked = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    // Our cookie is SameSite=Strict, so following a link from another site arrives without it. The refresh comes from
    // our own page and sends it.
    let arrived =
        asked("sec-fetch-site") == Some("cross-site") && asked("sec-fetch-mode") == Some("navigate");
    let head = html! { @if arrived { meta http-equiv="refresh" content="0"; } };
    notice(
        StatusCode::UNAUTHORIZED,
        "Sign in to Kai",
        &head,
        &html! { p { "On the machine where Kai runs, type " code { (facts::link_command(home)) } " and open the link it prints." } },
    )
}

/// The page for a sign-in link that was used or has expired.
pub(super) fn used_link(home: &Home) -> Response {
    notice(
        StatusCode::FORBIDDEN,
        "This link does not work any more",
        &html! {},
        &html! {
            p { "A sign-in link works once and then expires. Type " code { (facts::link_command(home)) } " for a fresh one." }
        },
    )
}

/// The page for a link that only the user who runs Kai may use, opened by someone else.
pub(super) fn strangers_link(home: &Home) -> Response {
    notice(
        StatusCode::FORBIDDEN,
        "This link works only for the user who runs Kai",
        &html! {},
        &html! {
            p {
                "Kai couldn’t confirm that your browser runs as that user. On the machine where Kai runs, type "
                code { (facts::link_command(home)) } " and open the link it prints."
            }
        },
    )
}

/// The page for an internal error.
pub(super) fn trouble(sentence: &str) -> Response {
    tracing::warn!(sentence, "a page could not be shown");
    notice(StatusCode::INTERNAL_SERVER_ERROR, "That did not work", &html! {}, &html! { p { (sentence) } })
}

/// The page for a request that made no sense and changed nothing.
pub(super) fn refused(sentence: &str) -> Response {
    notice(StatusCode::BAD_REQUEST, "That was not changed", &html! {}, &html! { p { (sentence) } })
}

/// A message with a link to `back`.
pub(super) fn notice_back(status: StatusCode, title: &str, sentence: &str, back: &str) -> Response {
    let text = html! { p { (sentence) } p { a href=(back) { "Back" } } };
    notice(status, title, &html! {}, &text)
}

/// Shows a new sign-in link, once, to the user who created it.
pub(super) fn fresh_link(link: &str) -> Response {
    let text = html! {
        p { "It signs one browser in, once, within an hour. Open it there; on this one you are signed in already." }
        p { code data-testid="fresh-link" { (link) } }
        p { a href="/settings/general" { "Back" } }
    };
    notice(StatusCode::OK, "A fresh sign-in link", &html! {}, &text)
}

/// The last page, shown when the user erases everything.
pub(super) fn erased(home: &str) -> Response {
    let text = html! { p { "Kai ends now and deletes everything it kept in " code { (home) } ". This page leads nowhere any more." } };
    notice(StatusCode::OK, "Everything is erased", &html! {}, &text)
}

/// The page for a conversation that does not exist.
pub(super) fn no_chat() -> Response {
    let text = html! { p { "It may have been deleted. " a href="/" { "To the current chat" } } };
    notice(StatusCode::NOT_FOUND, "There is no such conversation", &html! {}, &text)
}

pub(super) async fn not_found(uri: Uri) -> Response {
    let text =
        html! { p { "There is nothing at " code { (uri.path()) } ". " a href="/" { "To the start" } } };
    notice(StatusCode::NOT_FOUND, "Not found", &html! {}, &text)
}

pub(super) async fn wrong_method(method: Method) -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, format!("{method} does nothing here.\n")).into_response()
}
