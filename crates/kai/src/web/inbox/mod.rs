//! The inbox page: `/inbox` lists what the user received, `/inbox/<id>` shows one message in full.
//!
//! [`list`] and [`message`] render the two; [`super::live`] keeps both true. What is done with a message is a form that
//! posts to its path. The frame around them is the chat's, so that drafts and questions wait above here as well.

mod list;
mod message;
pub(super) mod place;
mod reply_form;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use axum::extract::rejection::FormRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Form, Router};
use kai_assistant::db::DbError;
use kai_assistant::inbox::{Fetching, Item, Key, Mark, Quote};
use kai_assistant::settings::{THEME, Values};
use kai_assistant::untrusted::Attached;
use kai_words::{Lang, said};
use maud::{Markup, html};
pub(super) use place::{INBOX, Place, finding, path};
use serde::Deserialize;

use super::notice::Notice;
use super::state::Web;
use super::turns::TurnInput;
use super::view::{self, View};
use super::{assets, dialogs, drafts, frame, icons, page, regions, reply, side};
use crate::app::App;
use crate::app::sessions::Session;
use crate::commands::inbox::{self, Dismissed};
use crate::failure::Failure;

const STYLE: &str = include_str!("../assets/inbox.css");
const SCRIPT: &str = include_str!("../assets/inbox.js");
/// The URL path of the style sheet for the inbox, which comes after the one of all pages.
static STYLE_PATH: LazyLock<String> = LazyLock::new(|| assets::named("inbox", STYLE, "css"));
/// The URL path of the script for the inbox.
static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| assets::named("inbox", SCRIPT, "js"));

type Signed = Extension<Option<Session>>;
type AddressQuery = Query<BTreeMap<String, String>>;

pub(super) fn routes() -> Router<Web> {
    let style = get(async || assets::cached(STYLE, "text/css; charset=utf-8"));
    let script = get(async || assets::cached(SCRIPT, "text/javascript; charset=utf-8"));
    Router::new()
        .route(INBOX, get(show_list))
        .route("/inbox/{id}", get(show_message))
        .route("/inbox/{id}/read", post(read))
        .route("/inbox/{id}/dismiss", post(dismiss))
        .route("/inbox/{id}/restore", post(restore))
        .route("/inbox/{id}/ask", post(ask))
        .merge(reply_form::routes())
        .route(&STYLE_PATH, style)
        .route(&SCRIPT_PATH, script)
}

async fn show_list(
    State(web): State<Web>,
    Extension(session): Signed,
    Query(query): AddressQuery,
) -> Response {
    show(&web, session, &Place::new("", query)).await
}

async fn show_message(
    State(web): State<Web>,
    Extension(session): Signed,
    Path(id): Path<String>,
    Query(query): AddressQuery,
) -> Response {
    show(&web, session, &Place::new(&id, query)).await
}

/// The part of the page that is the inbox's own.
struct Sheet {
    heading: String,
    /// Above what is kept true: what the user types there stays.
    head: Markup,
    content: Markup,
    /// More is being fetched, so a browser without a script has to look again.
    is_loading: bool,
    status: StatusCode,
}

async fn sheet(web: &Web, place: &Place, view: &View<'_>) -> Result<Sheet, Failure> {
    if place.message.is_empty() {
        list::sheet(web, place, view).await
    } else {
        message::sheet(web, place, view).await
    }
}

/// The chat's place that the frame is rendered from.
fn frame_place(place: &Place) -> view::Place {
    view::Place {
        chat: None,
        q: place.says("q").to_owned(),
        whole: place.says("whole").parse().ok(),
        edit: place.says("edit").parse().ok(),
        query: place.query().clone(),
    }
}

async fn show(web: &Web, session: Option<Session>, place: &Place) -> Response {
    let Some(session) = session else { return page::sign_in(&HeaderMap::new(), &web.app.home) };
    let around = frame_place(place);
    let stored = match view::stored(web, &around, &session, None).await {
        Ok(stored) => stored,
        Err(error) => return page::trouble(error.said()),
    };
    let csrf = session.csrf();
    let view = View::of(web, &around, &stored, &csrf);
    let sheet = match sheet(web, place, &view).await {
        Ok(sheet) => sheet,
        Err(failure) => return page::trouble(failure.message),
    };
    let title = format!("{} · Kai", sheet.heading);
    let head = html! {
        (drafts::script())
        link rel="stylesheet" href=(*STYLE_PATH);
        script src=(*SCRIPT_PATH) defer {}
        @if sheet.is_loading { noscript { meta http-equiv="refresh" content="2"; } }
    };
    let body = body(&view, place, &sheet, web.app.home.is_demo());
    (sheet.status, frame::frame(&title, view.lang, &stored.values.of(&THEME), &head, &body)).into_response()
}

fn body(view: &View<'_>, place: &Place, sheet: &Sheet, demo: bool) -> Markup {
    let lang = view.lang;
    let regions::Regions { banners, chats, inbox, .. } = regions::regions(view);
    html! {
        a class="skip" href="#main" { (lang.inbox_skip()) }
        div class="app chat received" data-inbox=(place.message) {
            (side::side(view, &chats, &inbox))
            header class="top" {
                button class="round menu" type="button" popovertarget="side" aria-label=(lang.chat_chats()) { (icons::menu()) }
                @if !place.message.is_empty() {
                    a class="round" href=(INBOX) aria-label=(lang.inbox_to_list()) title=(lang.inbox_to_list()) data-testid="inbox-back" { (icons::back()) }
                }
                h1 dir="auto" { (sheet.heading) }
                @if demo { span class="tag" { (lang.chat_demo()) span class="roomy" { ": " (lang.chat_demo_simulated()) } } }
                span class="tag offline" id="offline" role="status" {}
                (dialogs::opener(lang))
            }
            div id="banners" role="region" aria-label=(lang.chat_attention()) aria-live="polite" { (banners) }
            main id="main" tabindex="-1" {
                div class="column" {
                    (sheet.head)
                    div id="inbox" data-dismissed=(lang.inbox_dismissed_one()) data-undo=(lang.inbox_undo()) { (sheet.content) }
                }
            }
            div class="bottom" {
                (frame::script_words(lang))
                p id="toast" role="alert" {}
            }
        }
    }
}

/// An inbox page as it is now.
pub(super) struct Sight {
    /// Its regions as HTML, with the ids of their elements.
    pub(super) regions: Vec<(&'static str, String)>,
    /// How long it can be shown like this although nothing changes.
    pub(super) stale_in: Option<Duration>,
}

/// Renders an inbox page; `None` once the session has ended.
pub(super) async fn sight(web: &Web, session: &Session, place: &Place) -> Result<Option<Sight>, Failure> {
    let around = frame_place(place);
    let stored = view::stored(web, &around, session, None).await?;
    if stored.signed_out {
        return Ok(None);
    }
    let csrf = session.csrf();
    let view = View::of(web, &around, &stored, &csrf);
    let content = sheet(web, place, &view).await?.content.into_string();
    let regions::Regions { banners, chats, inbox, .. } = regions::regions(&view);
    let all = [("banners", banners), ("chats", chats), ("inbox-link", inbox)];
    let all = all.into_iter().map(|(id, region)| (id, region.into_string()));
    let regions = all.chain([("inbox", content)]).collect();
    Ok(Some(Sight { regions, stale_in: drafts::stale_in(&stored.drafts, web.app.clock.now()) }))
}

/// Fetches what a page needs beside it. Open pages are shown anew when it is there.
pub(super) fn begin(web: &Web, fetching: Vec<Fetching>) {
    for fetching in fetching {
        let web = web.clone();
        tokio::spawn(async move {
            fetching.await;
            web.turns.move_on();
        });
    }
}

/// Names the sender of a message: a contact's name beside the number, or the app.
pub(super) fn sender(item: &Item) -> String {
    let from = item.from.line(SENDER);
    match &item.name {
        Some(name) => format!("{} · {from}", name.line(SENDER)),
        None => from,
    }
}

/// The most characters of a sender that are shown.
const SENDER: usize = 80;

/// The page for a message that is not there.
fn gone() -> Response {
    Notice::new(StatusCode::NOT_FOUND, said::inbox_gone_title())
        .text(said::inbox_gone())
        .link(INBOX, said::inbox_to_list())
        .into_response()
}

/// The user opened a message.
async fn read(State(web): State<Web>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    marked(&web, &id, &headers, Mark::Opened).await
}

async fn restore(State(web): State<Web>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    marked(&web, &id, &headers, Mark::Back).await
}

async fn marked(web: &Web, id: &str, headers: &HeaderMap, mark: Mark) -> Response {
    let Ok(key) = id.parse::<Key>() else { return gone() };
    match inbox::mark(&web.app, key, mark).await {
        Ok(true) => reply::done_here(headers),
        Ok(false) => reply::not_done(headers, said::inbox_gone()),
        Err(error) => reply::not_done(headers, error.said()),
    }
}

async fn dismiss(State(web): State<Web>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let Ok(key) = id.parse::<Key>() else { return gone() };
    match inbox::dismiss(&web.app, key).await {
        Ok(Dismissed::OnScreen(why)) if reply::by_script(&headers) => {
            reply::done_saying(said::inbox_dismissed_here(why))
        }
        Ok(Dismissed::Done | Dismissed::OnScreen(_)) => reply::done(&headers, INBOX),
        Ok(Dismissed::Unknown) => reply::not_done(&headers, said::inbox_gone()),
        Err(error) => reply::not_done(&headers, error.said()),
    }
}

#[derive(Deserialize)]
struct AskForm {
    #[serde(default)]
    question: String,
    #[serde(default)]
    what: AskFor,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum AskFor {
    #[default]
    Answer,
    Draft,
}

/// What the user says to Kai about the message.
fn words(form: &AskForm, lang: Lang) -> String {
    let question = form.question.replace("\r\n", "\n").trim().to_owned();
    match (form.what, question.is_empty()) {
        (AskFor::Answer, true) => lang.inbox_ask_default().to_owned(),
        (AskFor::Answer, false) => question,
        (AskFor::Draft, true) => lang.inbox_ask_draft().to_owned(),
        (AskFor::Draft, false) => format!("{} {question}", lang.inbox_ask_draft()),
    }
}

/// Opens a chat whose first message quotes this one as somebody else's text.
async fn ask(
    State(web): State<Web>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form: Result<Form<AskForm>, FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else { return reply::misfilled(&headers) };
    let Ok(key) = id.parse::<Key>() else { return gone() };
    let (quote, values) = match asked(&web, key).await {
        Ok(read) => read,
        Err(error) => return reply::not_done(&headers, error.said()),
    };
    let Some(quote) = quote else { return reply::not_done(&headers, said::inbox_gone()) };
    let words = words(&form, App::lang(&values, &web.app.env));
    let saying = TurnInput::About(Attached::about(&words, &quote.json), vec![quote.identity]);
    match web.turns.start(&web.app, saying, web.stop.clone()).await {
        Ok(id) => reply::done(&headers, &format!("/c/{}", id.0)),
        Err(trouble) => reply::not_done(&headers, trouble),
    }
}

async fn asked(web: &Web, key: Key) -> Result<(Option<Quote>, Values), DbError> {
    Ok((inbox::quote(&web.app, key).await?, web.app.values().await?))
}
