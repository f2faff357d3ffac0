//! The search over everything: chats, received messages, and parts of the settings. `/search?q=…` is a page; the
//! script asks the same address for the results alone, to show them in the dialog that Ctrl-K opens.

#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
mod settings;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use kai_assistant::agent::listing::{self, Listed, Shelf};
use kai_assistant::agent::search::{self, Found};
use kai_assistant::inbox::{Fetched, Item, Wanted};
use kai_assistant::settings::{THEME, Values};
use kai_words::Lang;
use maud::{Markup, html};
use serde::Deserialize;

use super::dialogs::SEARCH;
use super::settings::Page;
use super::state::Web;
use super::times::Times;
use super::{frame, icons, inbox, page, reply, snippet, view};
use crate::app::App;
use crate::app::sessions::Session;
use crate::commands::inbox as commands;
use crate::failure::Failure;

/// How many chats, and how many messages, are shown.
const MOST: usize = 6;

pub(super) fn routes() -> Router<Web> {
    Router::new().route(SEARCH, get(search))
}

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
}

async fn search(
    State(web): State<Web>,
    Extension(session): Extension<Option<Session>>,
    headers: HeaderMap,
    Query(SearchQuery { q }): Query<SearchQuery>,
) -> Response {
    if session.is_none() {
        return page::sign_in(&headers, &web.app.home);
    }
    match found(&web, &q).await {
        Ok((results, _)) if reply::by_script(&headers) => results.options().into_response(),
        Ok((results, values)) => {
            let title = format!("{} · Kai", results.lang.finder_open());
            let body = whole(&results);
            let head =
                html! { @if results.is_loading { noscript { meta http-equiv="refresh" content="2"; } } };
            frame::frame(&title, results.lang, &values.of(&THEME), &head, &body).into_response()
        }
        Err(failure) => page::trouble(failure.message),
    }
}

/// One thing that was found, and where it is.
struct Entry {
    href: String,
    icon: Markup,
    title: Markup,
    /// What else is said about it.
    about: Markup,
}

/// Everything that was found, in groups with a heading.
struct Results {
    lang: Lang,
    text: String,
    groups: Vec<(&'static str, Vec<Entry>)>,
    /// Messages are still being fetched from the phone.
    is_loading: bool,
}

async fn found(web: &Web, text: &str) -> Result<(Results, Values), Failure> {
    let text = text.trim().to_owned();
    let values = web.app.values().await?;
    let lang = App::lang(&values, &web.app.env);
    let times = Times { lang, zone: web.app.clock.zone(), now: web.app.clock.now() };
    let mut results = Results { lang, text: text.clone(), groups: vec![], is_loading: false };
    if text.is_empty() {
        let recent = web.app.db.read(|tx| listing::shelf(tx, Shelf::Chats, MOST)).await?;
        let recent = recent.rows.into_iter().map(|chat| Found { chat, hit: None });
        results.add(lang.finder_chats(), recent.map(|found| chat(&found, "", &times)).collect());
        results.add(lang.finder_go(), places(web, lang));
        return Ok((results, values));
    }
    let words = text.clone();
    let chats: Listed<Found> = web.app.db.read(move |tx| search::search(tx, &words, MOST)).await?;
    results.add(lang.finder_chats(), chats.rows.iter().map(|found| chat(found, &text, &times)).collect());
    let (received, is_loading) = received(web, &text, &times).await?;
    results.add(lang.finder_messages(), received);
    results.is_loading = is_loading;
    let mut more = messages::cards(&web.app).await?;
    more.extend(web.app.mail.as_ref().map(|_| settings::EMAIL));
    results.add(lang.finder_settings(), cards(&text, lang, &more));
    Ok((results, values))
}

fn chat(found: &Found, text: &str, times: &Times) -> Entry {
    let Found { chat, hit } = found;
    let title = view::title(chat.name.as_deref(), chat.kind, &chat.title, times.lang);
    let href = match hit {
        Some(hit) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("q", text).append_pair("hit", &hit.entry.to_string());
            format!("/c/{}?{}#hit", chat.id.0, query.finish())
        }
        None => format!("/c/{}", chat.id.0),
    };
    let about = html! {
        @match hit {
            Some(hit) => span dir="auto" { (snippet::text(&hit.snippet)) },
            None => (times.text(chat.updated_at)),
        }
    };
    Entry { href, icon: icons::chat(), title: html! { span dir="auto" { (title) } }, about }
}

/// Received messages that have the words, and whether more of them may come.
async fn received(web: &Web, text: &str, times: &Times) -> Result<(Vec<Entry>, bool), Failure> {
    if web.app.inbox.is_empty() {
        return Ok((vec![], false));
    }
    let wanted = Wanted { words: text.to_owned(), ..Wanted::all(web.app.clock.now()) };
    let shown = commands::list(&web.app, wanted, MOST).await?;
    inbox::begin(web, shown.fetching);
    let page = &shown.what.page;
    let mut entries: Vec<Entry> = page.items.iter().map(|item| message(item, times)).collect();
    if page.more {
        let title = html! { (times.lang.finder_all_messages()) };
        entries.push(Entry { href: inbox::finding(text), icon: icons::inbox(), title, about: html! {} });
    }
    Ok((entries, shown.what.fetched == Fetched::Loading))
}

fn message(item: &Item, times: &Times) -> Entry {
    Entry {
        href: inbox::path(&item.key),
        icon: icons::inbox(),
        title: html! { span dir="auto" { (inbox::sender(item)) } },
        about: html! { span dir="auto" { (item.preview.as_written()) } " · " (times.text(item.date)) },
    }
}

fn cards(text: &str, lang: Lang, more: &[settings::Card]) -> Vec<Entry> {
    let entry = |(page, id, title, _): settings::Card| Entry {
        href: format!("{}#{id}", page.path()),
        icon: super::settings::icon(page),
        title: html! { (title(lang)) },
        about: html! { (page.title(lang)) },
    };
    settings::found(text, lang, more).into_iter().map(entry).collect()
}

/// Where else one can go, for a search that asks for nothing yet.
fn places(web: &Web, lang: Lang) -> Vec<Entry> {
    let entry = |href: &str, icon, title: &str| Entry {
        href: href.to_owned(),
        icon,
        title: html! { (title) },
        about: html! {},
    };
    let inbox = (!web.app.inbox.is_empty()).then(|| entry(inbox::INBOX, icons::inbox(), lang.inbox_title()));
    let pages =
        Page::ALL.iter().map(|page| entry(page.path(), super::settings::icon(*page), page.title(lang)));
    [entry("/new", icons::plus(), lang.chat_new())].into_iter().chain(inbox).chain(pages).collect()
}

impl Results {
    fn add(&mut self, heading: &'static str, entries: Vec<Entry>) {
        if !entries.is_empty() {
            self.groups.push((heading, entries));
        }
    }

    /// What is said about the results besides them.
    fn remarks(&self) -> Markup {
        html! {
            @if self.is_loading { p class="quiet none" role="status" data-loading { span class="pulse" {} " " (self.lang.finder_loading()) } }
            @else if self.groups.is_empty() { p class="quiet none" role="status" data-testid="found-nothing" { (self.lang.finder_none(&self.text)) } }
        }
    }

    /// The results for the dialog, where the keys choose one.
    fn options(&self) -> Markup {
        let mut number = 0;
        let mut next = || {
            number += 1;
            format!("found-{number}")
        };
        html! {
            @for (heading, entries) in &self.groups {
                div role="group" aria-label=(heading) {
                    p class="found-heading" aria-hidden="true" { (heading) }
                    @for entry in entries {
                        a role="option" id=(next()) tabindex="-1" aria-selected="false" href=(entry.href) data-testid="found" { (entry.content()) }
                    }
                }
            }
            (self.remarks())
        }
    }
}

impl Entry {
    fn content(&self) -> Markup {
        html! { (self.icon) span class="found" { strong { (self.title) } span class="quiet" { (self.about) } } }
    }
}

/// The page of the search.
fn whole(results: &Results) -> Markup {
    let lang = results.lang;
    html! {
        header class="top" {
            a class="round" href="/" aria-label=(lang.settings_chat()) title=(lang.settings_chat()) { (icons::back()) }
            h1 { (lang.finder_open()) }
        }
        main id="main" class="column finding" {
            form class="search" method="get" action=(SEARCH) role="search" {
                input type="search" name="q" value=(results.text) data-testid="search-input" placeholder=(lang.finder_placeholder())
                    aria-label=(lang.finder_placeholder()) autocomplete="off" autofocus dir="auto";
                button class="round" type="submit" aria-label=(lang.chat_search()) { (icons::search()) }
            }
            @for (heading, entries) in &results.groups {
                section aria-label=(heading) {
                    h2 { (heading) }
                    ul { @for entry in entries { li { a href=(entry.href) data-testid="found" { (entry.content()) } } } }
                }
            }
            (results.remarks())
        }
    }
}
