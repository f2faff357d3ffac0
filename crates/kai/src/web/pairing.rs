//! The banner for a phone that asks to be paired. It is on every page, and an answer sends the key that was shown, so
//! that it can only accept that very request.

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::{Form, Router};
use kai_words::{Lang, said};
use maud::{Markup, html};
use serde::Deserialize;

use super::reply;
use super::rich::rich;
use super::state::Web;
use crate::app::App;
use crate::commands::phones;
use crate::phones::state::{AskedBy, Pairing};

/// The requests that a page shows.
pub(super) type Pairings = Vec<Pairing>;

/// The requests of phones that wait for an answer. What the user began is shown where they began it.
pub(super) fn waiting(app: &App) -> Pairings {
    let all = phones::state(app).pairings.into_iter();
    all.filter(|pairing| pairing.asked_by == AskedBy::Them).collect()
}

pub(super) fn banner(pairings: &[Pairing], csrf: &str, lang: Lang) -> Markup {
    html! { @for pairing in pairings { (card(pairing, csrf, lang)) } }
}

fn card(pairing: &Pairing, csrf: &str, lang: Lang) -> Markup {
    let key = phones::grouped(&pairing.key);
    let value = |value: &str| {
        if value == key {
            html! { code data-testid="pairing-key" { (value) } }
        } else {
            html! { bdi { (value) } }
        }
    };
    html! {
        article class="card ask" id=(format!("pairing-{}", pairing.key)) data-testid="pairing-banner"
            aria-label=(lang.pairing_banner_label()) {
            p class="words" { (rich(&said::pairing_banner(&pairing.name, &key), lang, value)) }
            form class="choices" method="post" action="/pairing" data-live {
                input type="hidden" name="csrf" value=(csrf);
                input type="hidden" name="device" value=(pairing.device);
                input type="hidden" name="key" value=(pairing.key);
                button class="primary" type="submit" name="answer" value="pair" data-testid="pairing-pair" {
                    (lang.pairing_banner_pair())
                }
                button type="submit" name="answer" value="refuse" data-testid="pairing-refuse" {
                    (lang.pairing_banner_refuse())
                }
            }
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/pairing", post(answer))
}

#[derive(Deserialize)]
struct AnswerForm {
    device: String,
    key: String,
    answer: Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Pair,
    Refuse,
}

/// The user compared the keys. After pairing, the page of phones asks what the phone may be used for.
async fn answer(
    State(web): State<Web>,
    headers: HeaderMap,
    form: Result<Form<AnswerForm>, FormRejection>,
) -> Response {
    let Ok(Form(AnswerForm { device, key, answer })) = form else { return reply::misfilled(&headers) };
    let done = match answer {
        Answer::Pair => phones::accept(&web.app, &device, &key).await,
        Answer::Refuse => phones::refuse(&web.app, &device).await,
    };
    match (done, answer) {
        (Ok(()), Answer::Pair) => reply::done(&headers, "/settings/phones"),
        (Ok(()), Answer::Refuse) => reply::done_here(&headers),
        (Err(failure), _) => reply::not_done(&headers, failure.message),
    }
}

/// Tells open pages whenever something changes in the network of phones, until the daemon stops.
pub(super) async fn follow(web: Web) {
    let mut state = web.app.messages.network.watch();
    loop {
        tokio::select! {
            () = web.stop.cancelled() => return,
            changed = state.changed() => if changed.is_err() { return },
        }
        web.turns.move_on();
    }
}
