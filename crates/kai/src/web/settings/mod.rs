//! The settings: pages of cards. Each card is a region that [`super::live`] keeps up to date, like those of the chat.
//!
//! To add a page, add a variant of [`Page`] with its row in each match below, and a file with
//! - `regions(&PageContext) -> Result<Vec<Region>, Failure>`: renders the cards, built from [`parts`]. The URL says what is
//!   unfolded ([`Place::shows`], [`Place::open`]) and links change it ([`parts::link`]), so that it works without a
//!   script and survives when the cards are rendered again;
//! - `routes()`: its POST handlers. A handler takes a [`form::Form`] and ends with [`form::Form::answer`]: either it
//!   succeeded, or the card that the form is in shows an error and what was typed. Most pages need no handlers: the
//!   controls of a setting post to `/settings/set` or `/settings/text`, which do what `kai settings set` does.
//!
//! Start something that takes long with [`form::Form::start`], and show its progress in a region. Put deleted items
//! into the [`super::bin`]; the strip at the bottom of the page offers to restore them.

mod agent;
mod context;
pub(super) mod ephemeral;
mod fields;
mod form;
mod general;
mod guests;
mod ledger;
mod local;
mod model_form;
mod models;
mod parts;
mod phones;
mod servers;
mod split;
mod tools;
mod transfer;
mod trial;
pub(super) mod welcome;

use std::collections::BTreeMap;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
pub(super) use context::{FIRST, Page, Place};
use context::{FormError, PageContext, ProbePhone};
use kai_assistant::settings::THEME;
use maud::{Markup, html};
use parts::Region;

use super::state::Web;
use super::times::Times;
use super::{dialogs, frame, icons, messages, page, pairing};
use crate::app::App;
use crate::app::sessions::{self, Session};
use crate::failure::Failure;

/// The icon of a page.
pub(super) fn icon(page: Page) -> Markup {
    match page {
        Page::Agent => icons::heart(),
        Page::Tools => icons::build(),
        Page::Models => icons::spark(),
        Page::Phones => icons::phone(),
        Page::Mcp => icons::chat(),
        Page::Ledger => icons::book(),
        Page::General | Page::Welcome => icons::gear(),
    }
}

async fn regions_of(page: Page, ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    match page {
        Page::Agent => agent::regions(ctx).await,
        Page::Tools => tools::regions(ctx).await,
        Page::Models => models::regions(ctx).await,
        Page::Phones => phones::regions(ctx).await,
        Page::Mcp => {
            Ok([servers::regions(ctx).await?, guests::regions(ctx).await?].into_iter().flatten().collect())
        }
        Page::Ledger => ledger::regions(ctx).await,
        Page::General => general::regions(ctx).await,
        Page::Welcome => welcome::regions(ctx).await,
    }
}

pub(super) fn routes(web: &Web) -> Router<Web> {
    let pages = Page::ALL.iter().chain([&Page::Welcome]).fold(Router::new(), |router, &page| {
        let show =
            move |web: State<Web>, session: Signed, query: AddressQuery| show(page, web, session, query);
        router.route(page.path(), get(show))
    });
    pages
        .route("/settings", get(async || Redirect::to(FIRST)))
        .merge(agent::routes())
        .merge(models::routes())
        .merge(local::routes())
        .merge(general::routes())
        .merge(guests::routes())
        .merge(ledger::routes())
        .merge(phones::routes())
        .merge(servers::routes())
        .merge(welcome::routes())
        .route("/settings/set", post(form::set))
        .route("/settings/text", post(form::set_text))
        .layer(from_fn_with_state(web.clone(), show_refusals))
}

/// Renders the page again with the error of a form that was refused, for browsers without a script.
async fn show_refusals(
    State(web): State<Web>,
    Extension(session): Signed,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    match (response.extensions_mut().remove::<FormError>(), session) {
        (Some(error), Some(session)) => {
            render(&web, &session, &error.place, error.status, Some(&error)).await
        }
        _ => response,
    }
}

type Signed = Extension<Option<Session>>;
type AddressQuery = Query<BTreeMap<String, String>>;

/// Renders the regions of a page; `None` if the session has ended.
async fn regions_for<'a>(
    web: &'a Web,
    session: &Session,
    csrf: &'a str,
    place: &'a Place,
    probe: ProbePhone,
    error: Option<&'a FormError>,
) -> Result<Option<(PageContext<'a>, Vec<Region>)>, Failure> {
    let (cookie, now) = (session.token(), web.app.clock.now());
    let (values, living) = web.app.db.read(move |tx| sessions::recognise(tx, Some(cookie), now)).await?;
    if living.is_none() {
        return Ok(None);
    }
    let lang = App::lang(&values, &web.app.env);
    let times = Times { lang, zone: web.app.clock.zone(), now };
    let ctx = PageContext { web, place, csrf, values, lang, times, probe, error };
    let mut regions = vec![Region::bare("banners", pairing::banner(&pairing::waiting(&web.app), csrf, lang))];
    regions.extend(regions_of(place.page, &ctx).await?);
    regions.push(Region::bare("undo", parts::undo(&ctx)));
    Ok(Some((ctx, regions)))
}

/// The regions as HTML, with the ids of their elements; `None` once the session has ended.
pub(super) async fn named(
    web: &Web,
    session: &Session,
    place: &Place,
) -> Result<Option<Vec<(&'static str, String)>>, Failure> {
    let csrf = session.csrf();
    let looked = regions_for(web, session, &csrf, place, ProbePhone::Phone, None).await?;
    let named = |regions: Vec<Region>| {
        regions.into_iter().map(|region| (region.id, region.content.into_string())).collect()
    };
    Ok(looked.map(|(_, regions)| named(regions)))
}

async fn show(
    page: Page,
    State(web): State<Web>,
    Extension(session): Signed,
    Query(query): AddressQuery,
) -> Response {
    let Some(session) = session else { return page::sign_in(&HeaderMap::new(), &web.app.home) };
    render(&web, &session, &Place::new(page, query), StatusCode::OK, None).await
}

async fn render(
    web: &Web,
    session: &Session,
    place: &Place,
    status: StatusCode,
    error: Option<&FormError>,
) -> Response {
    let csrf = session.csrf();
    match regions_for(web, session, &csrf, place, ProbePhone::No, error).await {
        Ok(Some((ctx, regions))) => {
            let title = ctx.lang.settings_title(place.page.title(ctx.lang));
            let theme = ctx.values.of(&THEME);
            let head = phones::head(&ctx);
            (status, frame::frame(&title, ctx.lang, &theme, &head, &body(&ctx, regions))).into_response()
        }
        Ok(None) => page::sign_in(&HeaderMap::new(), &web.app.home),
        Err(failure) => page::trouble(failure.message),
    }
}

fn body(ctx: &PageContext<'_>, mut regions: Vec<Region>) -> Markup {
    let page = ctx.place.page;
    let undo = regions.pop().map(|undo| undo.content);
    let mut regions = regions.into_iter();
    let banners = regions.next().map(|banners| banners.content);
    html! {
        a class="skip" href="#main" { (ctx.lang.settings_skip()) }
        div class="app sheet" data-page=(page.name()) {
            @if page == Page::Welcome { (welcome::steps(ctx)) } @else { (side(ctx)) }
            main id="main" tabindex="-1" {
                div class="column" {
                    header class="sheet-head" {
                        h1 { (page.title(ctx.lang)) }
                        @if ctx.web.app.home.is_demo() {
                            span class="tag" { (ctx.lang.settings_demo()) span class="roomy" { ": " (ctx.lang.settings_demo_what()) } }
                            (messages::way_back(ctx.lang))
                        }
                        span class="tag offline" id="offline" role="status" {}
                        (dialogs::opener(ctx.lang))
                    }
                    p id="toast" role="alert" {}
                    div id="banners" role="region" aria-label=(ctx.lang.chat_attention()) aria-live="polite" {
                        @if let Some(banners) = banners { (banners) }
                    }
                    @for region in regions { (region.whole(ctx)) }
                }
            }
            (frame::script_words(ctx.lang))
            div id="undo" role="status" { @if let Some(undo) = undo { (undo) } }
        }
    }
}

fn side(ctx: &PageContext<'_>) -> Markup {
    html! {
        nav class="pages" aria-label=(ctx.lang.settings_label()) {
            a class="button to-chat" href="/" { (icons::back()) (ctx.lang.settings_chat()) }
            ul {
                @for page in Page::ALL {
                    @let here = (*page == ctx.place.page).then_some("page");
                    li { a href=(page.path()) aria-current=[here] { (icon(*page)) (page.title(ctx.lang)) } }
                }
            }
        }
    }
}
