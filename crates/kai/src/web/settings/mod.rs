//! The settings: pages of cards, each card a region that [`super::live`] keeps true like the chat's.
//!
//! To add a page: a variant of [`Page`] with its row in each match below, and a file that has
//! - `regions(&Look) -> Result<Vec<Region>, Failure>`: the cards as they are now, made of what [`parts`] has. What is
//!   unfolded comes from the address ([`Place::shows`], [`Place::open`]) and links change it ([`parts::link`]), so that
//!   it works without a script and stays so when the cards are made anew;
//! - `routes()`: its POSTs. A handler takes a [`form::Form`] and ends with [`form::Form::answer`]: done, or a sentence that stands
//!   in the card the form is in, with what was typed. Most need none: a switch, a slider or an editor of a setting posts
//!   to `/settings/set`, which is `kai settings set`.
//!
//! Something that takes long is started with [`form::Form::start`] and seen in a region while it runs. Something deleted goes
//! to the [`super::bin`], and the strip at the bottom takes it back.

mod agent;
mod fields;
mod form;
mod general;
mod ledger;
mod models;
mod parts;
mod passing;
mod phones;
mod tools;
mod transfer;

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use kai_assistant::settings::{THEME, Values};
use maud::{Markup, html};
use serde::Deserialize;

use form::Told;
use parts::Region;
pub(super) use passing::Passing;

use super::signin::{self, Session};
use super::{Web, icons, page};
use crate::failure::Failure;

/// The pages, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Page {
    Agent,
    Tools,
    Models,
    Phones,
    General,
    Ledger,
}

/// Where the chat leads.
pub(super) const FIRST: &str = Page::ALL[0].path();

impl Page {
    const ALL: &[Self] = &[Self::Agent, Self::Tools, Self::Models, Self::Phones, Self::General, Self::Ledger];

    /// As `/events` and forms know it.
    fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Tools => "tools",
            Self::Models => "models",
            Self::Phones => "phones",
            Self::Ledger => "ledger",
            Self::General => "general",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Agent => "/settings/agent",
            Self::Tools => "/settings/tools",
            Self::Models => "/settings/models",
            Self::Phones => "/settings/phones",
            Self::Ledger => "/ledger",
            Self::General => "/settings/general",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Agent => "Agent",
            Self::Tools => "Tools",
            Self::Models => "Models",
            Self::Phones => "Phones",
            Self::Ledger => "Ledger",
            Self::General => "General",
        }
    }

    fn icon(self) -> Markup {
        match self {
            Self::Agent => icons::heart(),
            Self::Tools => icons::build(),
            Self::Models => icons::spark(),
            Self::Phones => icons::phone(),
            Self::Ledger => icons::book(),
            Self::General => icons::gear(),
        }
    }

    async fn regions(self, look: &Look<'_>) -> Result<Vec<Region>, Failure> {
        match self {
            Self::Agent => agent::regions(look).await,
            Self::Tools => tools::regions(look).await,
            Self::Models => models::regions(look).await,
            Self::Phones => phones::regions(look).await,
            Self::Ledger => ledger::regions(look).await,
            Self::General => general::regions(look).await,
        }
    }
}

pub(super) fn routes() -> Router<Web> {
    let pages = Page::ALL.iter().fold(Router::new(), |router, &page| {
        let show = move |web: State<Web>, session: Signed, query: Asked| show(page, web, session, query);
        router.route(page.path(), get(show))
    });
    pages
        .route("/settings", get(async || Redirect::to(FIRST)))
        .merge(agent::routes())
        .merge(models::routes())
        .merge(general::routes())
        .merge(ledger::routes())
        .route("/settings/set", post(form::set))
        .route("/settings/text", post(form::set_text))
}

type Signed = Extension<Option<Session>>;
type Asked = Query<BTreeMap<String, String>>;

/// What an address asks to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    page: Page,
    query: BTreeMap<String, String>,
}

impl Place {
    pub(super) fn new(page: Page, query: BTreeMap<String, String>) -> Self {
        Self { page, query }
    }

    /// What the address says under this name.
    fn says(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Parts of cards that are unfolded.
    fn shown(&self) -> BTreeSet<&str> {
        self.says("show").split(',').filter(|part| !part.is_empty()).collect()
    }

    fn shows(&self, part: &str) -> bool {
        self.shown().contains(part)
    }

    /// The one thing of this kind that is opened.
    fn open(&self, kind: &str) -> Option<&str> {
        self.says("open").strip_prefix(kind)?.strip_prefix(':')
    }

    /// The address that shows a part, or that no longer does.
    fn turned(&self, part: &str) -> String {
        let mut shown = self.shown();
        if !shown.remove(part) {
            shown.insert(part);
        }
        self.with("show", &shown.into_iter().collect::<Vec<_>>().join(","))
    }

    /// The address with something else opened, or nothing.
    fn opening(&self, kind: &str, which: Option<&str>) -> String {
        let what = which.map(|which| format!("{kind}:{which}")).unwrap_or_default();
        self.with("open", &what)
    }

    /// The address with another value under this name.
    fn with(&self, name: &str, value: &str) -> String {
        let mut query = self.query.clone();
        query.insert(name.to_owned(), value.to_owned());
        Self::new(self.page, query).address()
    }

    fn address(&self) -> String {
        let pairs = self.query.iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        format!("{}{mark}{}", self.page.path(), pairs.join("&"))
    }
}

/// As the name or value of a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:".contains(&byte);
    let part = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

/// Does looking at a page ask the phone, which may take seconds? The first sight of a page does not wait for that; the
/// one who keeps it true does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    No,
    Phone,
}

/// A look at a page: who looks, from where, and what they were just told.
struct Look<'a> {
    web: &'a Web,
    place: &'a Place,
    csrf: &'a str,
    values: Values,
    asking: Asking,
    told: Option<&'a Told>,
}

/// What a page shows now, for somebody who is signed in.
async fn look<'a>(
    web: &'a Web,
    session: &Session,
    csrf: &'a str,
    place: &'a Place,
    asking: Asking,
    told: Option<&'a Told>,
) -> Result<Option<(Look<'a>, Vec<Region>)>, Failure> {
    let (cookie, now) = (session.token(), web.app.clock.now());
    let (values, living) = web.app.db.read(move |tx| signin::recognise(tx, Some(cookie), now)).await?;
    if living.is_none() {
        return Ok(None);
    }
    let look = Look { web, place, csrf, values, asking, told };
    let mut regions = place.page.regions(&look).await?;
    regions.push(Region::bare("undo", parts::undo(&look)));
    Ok(Some((look, regions)))
}

/// The regions under the ids of their elements; `None` once the session has ended.
pub(super) async fn named(
    web: &Web,
    session: &Session,
    place: &Place,
) -> Result<Option<Vec<(&'static str, String)>>, Failure> {
    let csrf = session.csrf();
    let looked = look(web, session, &csrf, place, Asking::Phone, None).await?;
    let named = |regions: Vec<Region>| {
        regions.into_iter().map(|region| (region.id, region.content.into_string())).collect()
    };
    Ok(looked.map(|(_, regions)| named(regions)))
}

async fn show(
    page: Page,
    State(web): State<Web>,
    Extension(session): Signed,
    Query(query): Asked,
) -> Response {
    let Some(session) = session else { return page::sign_in(&HeaderMap::new(), &web.app.home) };
    render(&web, &session, &Place::new(page, query), StatusCode::OK, None).await
}

async fn render(
    web: &Web,
    session: &Session,
    place: &Place,
    status: StatusCode,
    told: Option<&Told>,
) -> Response {
    let csrf = session.csrf();
    match look(web, session, &csrf, place, Asking::No, told).await {
        Ok(Some((look, regions))) => {
            let title = format!("{} · Settings · Kai", place.page.title());
            let theme = look.values.of(&THEME);
            (status, page::frame(&title, &theme, &html! {}, &body(&look, regions))).into_response()
        }
        Ok(None) => page::sign_in(&HeaderMap::new(), &web.app.home),
        Err(failure) => page::trouble(&failure.message),
    }
}

fn body(look: &Look<'_>, mut regions: Vec<Region>) -> Markup {
    let page = look.place.page;
    let undo = regions.pop().map(|undo| undo.content);
    html! {
        a class="skip" href="#main" { "To the settings" }
        div class="app sheet" data-page=(page.name()) {
            (side(look))
            main id="main" tabindex="-1" {
                div class="column" {
                    header class="sheet-head" {
                        h1 { (page.title()) }
                        @if look.web.app.home.is_demo() { span class="tag" { "Demo" span class="roomy" { ": all is simulated" } } }
                        span class="tag offline" id="offline" role="status" {}
                    }
                    p id="toast" role="alert" {}
                    @for region in regions { (region.whole(look)) }
                }
            }
            div id="undo" role="status" { @if let Some(undo) = undo { (undo) } }
        }
    }
}

fn side(look: &Look<'_>) -> Markup {
    html! {
        nav class="pages" aria-label="Settings" {
            a class="button to-chat" href="/" { (icons::back()) "Chat" }
            ul {
                @for page in Page::ALL {
                    @let here = (*page == look.place.page).then_some("page");
                    li { a href=(page.path()) aria-current=[here] { (page.icon()) (page.title()) } }
                }
            }
        }
    }
}
