//! The card that searches for phones and pairs one: the phones in reach, a field for an address, and the key that both
//! devices must show.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use jiff::SignedDuration;
use kai_words::said;
use maud::{Markup, html};

use super::paired::troubles;
use crate::commands::phones;
use crate::failure::Failure;
use crate::phones::state::{AskedBy, Nearby, NetworkState, Outcome, Pairing};
use crate::web::settings::context::PageContext;
use crate::web::settings::form::Form;
use crate::web::settings::parts::{Button, Region, button, form, naming, spinner};
use crate::web::state::Web;

const CARD: &str = "pair";
/// How long the card says how a pairing ended.
const TOLD: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn card(ctx: &PageContext<'_>) -> Region {
    let state = phones::state(&ctx.web.app);
    let ours = state.pairings.iter().find(|pairing| pairing.asked_by == AskedBy::Us);
    let content = html! {
        @match ours {
            Some(pairing) => (comparing(ctx, pairing)),
            None => (searching(ctx, &state)),
        }
        (troubles(&phones::troubles::of_network(&state, ctx.times.now), ctx.lang))
    };
    Region::card(CARD, ctx.lang.pairing_label(), content).testid("pair-card")
}

/// The card in the demo, whose phones are all there.
pub(super) fn not_in_demo(ctx: &PageContext<'_>) -> Region {
    let content = html! { p { (ctx.lang.demo_pairing()) } };
    Region::card(CARD, ctx.lang.pairing_label(), content).testid("pair-card")
}

/// Asks whether the phone shows the key, large enough to be compared at arm's length.
fn comparing(ctx: &PageContext<'_>, pairing: &Pairing) -> Markup {
    let answers = html! {
        input type="hidden" name="device" value=(pairing.device);
        input type="hidden" name="key" value=(pairing.key);
        button class="primary" type="submit" name="answer" value="yes" data-testid="pair-yes" { (ctx.lang.pairing_yes()) }
        button type="submit" name="answer" value="no" data-testid="pair-no" { (ctx.lang.pairing_no()) }
    };
    html! {
        p { (naming(ctx, &said::pairing_compare(&pairing.name))) }
        pre class="key" data-testid="pair-key" aria-label=(ctx.lang.pairing_key()) { (phones::grouped(&pairing.key)) }
        p class="quiet" { (ctx.lang.pairing_compare_help()) }
        @if pairing.confirmed {
            (spinner(ctx.lang.pairing_accept_there()))
        } @else {
            (form(ctx, CARD, "/settings/phones/answer", "choices", &answers))
        }
    }
}

fn searching(ctx: &PageContext<'_>, state: &NetworkState) -> Markup {
    let lang = ctx.lang;
    let port = state.listening.map(|listening| match state.search {
        Some(_) => lang.pairing_port_search(listening.port),
        None => lang.pairing_port_open(listening.port),
    });
    html! {
        (outcome(ctx, state))
        p { (lang.pairing_about()) }
        @if state.search.is_some() {
            div class="between" {
                (spinner(lang.pairing_searching()))
                (switch(ctx, lang.pairing_stop(), "pair-stop", "", "no"))
            }
            (nearby(ctx, &state.nearby))
            (address(ctx))
        } @else {
            (switch(ctx, lang.pairing_search(), "pair-search", "primary", "yes"))
        }
        @if let Some(port) = port { p class="quiet" data-testid="pair-port" { (port) } }
    }
}

/// How the last pairing ended, for a while.
fn outcome(ctx: &PageContext<'_>, state: &NetworkState) -> Markup {
    let recent = state.last_pairing.as_ref().filter(|last| ctx.times.now.duration_since(last.at) < TOLD);
    html! {
        @if let Some(last) = recent {
            p class=(if matches!(last.outcome, Outcome::Paired(_)) { "" } else { "trouble-text" }) role="status" data-testid="pair-outcome" {
                (naming(ctx, &phones::ended(last.outcome, &last.name)))
            }
        }
    }
}

/// The button that begins or ends a search.
fn switch(ctx: &PageContext<'_>, label: &str, testid: &str, class: &str, on: &str) -> Markup {
    button(ctx, CARD, "/settings/phones/search", &Button { label, testid, class, fields: &[("on", on)] })
}

fn nearby(ctx: &PageContext<'_>, phones: &[Nearby]) -> Markup {
    html! {
        @if phones.is_empty() { p class="quiet" data-testid="pair-none" { (ctx.lang.pairing_none()) } }
        ul class="items" aria-label=(ctx.lang.pairing_nearby()) {
            @for phone in phones {
                li id=(format!("nearby-{}", phone.device)) data-testid="pair-nearby" {
                    (form(ctx, CARD, "/settings/phones/pair", "between", &html! {
                        span { bdi { (phone.name) } " " span class="quiet" { (phone.address) } }
                        input type="hidden" name="device" value=(phone.device);
                        button type="submit" data-testid="pair-this" aria-label=(ctx.lang.pairing_pair_name(&phone.name)) {
                            (ctx.lang.pairing_pair())
                        }
                    }))
                }
            }
        }
    }
}

/// For a phone that the search does not find.
fn address(ctx: &PageContext<'_>) -> Markup {
    let typed = ctx.error.and_then(|error| error.typed(CARD, "address")).unwrap_or_default();
    let content = html! {
        label for="pair-address" { (ctx.lang.pairing_address()) }
        div class="line" {
            input type="text" id="pair-address" name="address" value=(typed) required autocomplete="off" spellcheck="false"
                inputmode="url" aria-describedby="pair-address-help" data-testid="pair-address";
            button type="submit" data-testid="pair-connect" { (ctx.lang.pairing_connect()) }
        }
        p class="quiet" id="pair-address-help" { (ctx.lang.pairing_address_help()) }
    };
    form(ctx, CARD, "/settings/phones/connect", "field", &content)
}

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/phones/search", post(search))
        .route("/settings/phones/connect", post(connect))
        .route("/settings/phones/pair", post(pair))
        .route("/settings/phones/answer", post(answer))
}

async fn search(form: Form) -> Response {
    let done = phones::search(form.app(), form.field("on") == "yes").await;
    form.answer(done)
}

async fn connect(form: Form) -> Response {
    let done = phones::connect(form.app(), form.field("address")).await;
    form.answer(done)
}

async fn pair(form: Form) -> Response {
    let done = phones::pair(form.app(), form.field("device")).await;
    form.answer(done)
}

/// The user compared the keys.
async fn answer(form: Form) -> Response {
    let done = compared(&form).await;
    form.answer(done)
}

async fn compared(form: &Form) -> Result<(), Failure> {
    let device = form.field("device");
    match form.field("answer") {
        "yes" => phones::accept(form.app(), device, form.field("key")).await,
        _ => phones::refuse(form.app(), device).await,
    }
}
