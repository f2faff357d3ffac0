//! The list of the inbox: search and filters, and the messages of a page, put together by conversation or app.

use axum::http::StatusCode;
use kai_assistant::inbox::{Fetched, Item, PAGE, Show, groups};
use kai_words::{Lang, said};
use maud::{Markup, html};

use super::place::{self, INBOX, Place};
use super::{Sheet, begin, sender};
use crate::commands::inbox::{self, Listing};
use crate::failure::Failure;
use crate::web::rich::rich;
use crate::web::state::Web;
use crate::web::view::View;
use crate::web::{icons, settings};

/// How many messages of a conversation or app are shown before the others are folded.
const SHOWN: usize = 3;

pub(super) async fn sheet(web: &Web, place: &Place, view: &View<'_>) -> Result<Sheet, Failure> {
    let shown = inbox::list(&web.app, place.wanted(web.app.clock.now()), PAGE).await?;
    begin(web, shown.fetching);
    let listing = shown.what;
    Ok(Sheet {
        heading: view.lang.inbox_title().to_owned(),
        head: search(web, place, &listing, view.lang),
        content: content(place, &listing, view),
        is_loading: listing.fetched == Fetched::Loading,
        status: StatusCode::OK,
    })
}

/// The search form. It is submitted with GET and changes nothing, so it needs no CSRF token.
fn search(web: &Web, place: &Place, listing: &Listing, lang: Lang) -> Markup {
    let phones = listing.phones.iter().filter(|_| listing.phones.len() > 1);
    let from = place.says("from");
    html! {
        form class="finder" method="get" action=(INBOX) role="search" aria-label=(lang.inbox_search()) {
            div class="search" {
                label class="seen-not" for="find" { (lang.inbox_search()) }
                input type="search" id="find" name="find" data-testid="inbox-search" value=(place.says("find"))
                    placeholder=(lang.inbox_search()) autocomplete="off" dir="auto" title=(lang.inbox_keys());
                button class="round" type="submit" data-testid="inbox-find" aria-label=(lang.inbox_search()) { (icons::search()) }
            }
            label class="seen-not" for="inbox-from" { (lang.inbox_from()) }
            select id="inbox-from" name="from" data-testid="inbox-from" data-submits {
                option value="" selected[from.is_empty()] { (lang.inbox_from_all()) }
                @for (kind, title) in web.app.inbox.kinds() { option value=(kind) selected[from == kind] { (title.to(lang)) } }
                @for (phone, name) in phones {
                    @let value = place::of_phone(*phone);
                    option value=(value) selected[from == value] { (name.as_deref().unwrap_or(lang.inbox_from_here())) }
                }
            }
            label class="seen-not" for="inbox-show" { (lang.inbox_filter()) }
            select id="inbox-show" name="show" data-testid="inbox-show" data-submits {
                @for show in Show::ALL {
                    option value=(if show == Show::All { "" } else { show.as_str() }) selected[Show::named(place.says("show")) == show] { (show_name(show, lang)) }
                }
            }
            noscript { button type="submit" { (lang.inbox_filter()) } }
        }
    }
}

fn show_name(show: Show, lang: Lang) -> &'static str {
    match show {
        Show::All => lang.inbox_show_all(),
        Show::Unread => lang.inbox_show_unread(),
        Show::Waiting => lang.inbox_show_waiting(),
        Show::Away => lang.inbox_show_dismissed(),
    }
}

fn content(place: &Place, listing: &Listing, view: &View<'_>) -> Markup {
    let lang = view.lang;
    html! {
        @match &listing.fetched {
            Fetched::All => {}
            Fetched::Loading => p class="quiet loading" role="status" data-testid="inbox-loading" { span class="pulse" {} " " (lang.inbox_loading()) },
            Fetched::Failed(why) => p class="trouble" data-testid="inbox-failed" { (rich(&said::inbox_failed(why.clone()), lang, |value| html! { bdi { (value) } })) },
        }
        div class="groups" data-testid="inbox-list" role="region" aria-label=(lang.inbox_list()) {
            @for group in groups(&listing.page.items) { (conversation(&group, view)) }
            @if listing.page.items.is_empty() && listing.fetched != Fetched::Loading { (empty(place, lang)) }
        }
        nav class="choices" aria-label=(lang.inbox_title()) {
            @if !place.says("before").is_empty() {
                a class="button" href=(place.from(None)) data-testid="inbox-newest" { (lang.inbox_newest()) }
            }
            @if let Some(next) = listing.page.next() {
                a class="button" href=(place.from(Some(&next))) data-testid="inbox-older" { (lang.inbox_older()) }
            }
        }
    }
}

/// What a list without messages says.
fn empty(place: &Place, lang: Lang) -> Markup {
    let says = match Show::named(place.says("show")) {
        _ if !place.says("find").is_empty() => lang.inbox_empty_found(),
        Show::All => lang.inbox_empty(),
        Show::Unread => lang.inbox_empty_unread(),
        Show::Waiting => lang.inbox_empty_waiting(),
        Show::Away => lang.inbox_empty_dismissed(),
    };
    html! {
        div class="nothing" data-testid="inbox-empty" {
            p { (says) }
            @if !place.is_filtered() {
                p class="quiet" { (lang.inbox_empty_how()) }
                a class="button" href=(settings::FIRST) { (lang.inbox_empty_settings()) }
            } @else {
                a class="button" href=(INBOX) data-testid="inbox-everything" { (lang.inbox_empty_all()) }
            }
        }
    }
}

/// The messages of one conversation or app. All but the first few are folded.
fn conversation(group: &[&Item], view: &View<'_>) -> Markup {
    let Some(first) = group.first() else { return html! {} };
    let (shown, folded) = group.split_at(group.len().min(SHOWN));
    let unread = group.iter().filter(|item| item.unread).count();
    // The oldest message stays the same when newer ones come.
    let id = group.last().map(|last| format!("group-{}", last.key)).unwrap_or_default();
    html! {
        section class="card group" id=(id) data-testid="inbox-group" {
            h2 {
                span dir="auto" { (sender(first)) }
                @if let Some(phone) = &first.phone_name { span class="tag" { (icons::phone()) (phone) } }
                @if unread > 0 { span class="tag good" { (view.lang.inbox_unread_count(unread)) } }
            }
            ul { @for item in shown { (row(item, view)) } }
            @if !folded.is_empty() {
                details id=(format!("{id}-more")) data-testid="inbox-more" {
                    summary { (view.lang.inbox_more(folded.len())) }
                    ul { @for item in folded { (row(item, view)) } }
                }
            }
        }
    }
}

fn row(item: &Item, view: &View<'_>) -> Markup {
    let (lang, path) = (view.lang, place::path(&item.key));
    html! {
        li id=(format!("item-{}", item.key)) data-testid="inbox-item" data-key=(item.key) data-kind=(item.key.kind)
            class=[item.unread.then_some("unread")] {
            a href=(path) {
                span class="first" {
                    @if item.unread { span class="dot" data-testid="inbox-unread" { span class="seen-not" { (lang.inbox_unread()) " " } } }
                    @if let Some(title) = &item.title { strong dir="auto" { (title.line(120)) } }
                    (view.times.moment(item.date))
                }
                span class="preview" dir="auto" { (item.preview.as_written()) }
                (marks(item, lang))
            }
            @if !item.away {
                form method="post" action=(format!("{path}/dismiss")) data-live {
                    input type="hidden" name="csrf" value=(view.csrf);
                    button class="round" type="submit" data-testid="inbox-dismiss" title=(lang.inbox_dismiss_help())
                        aria-label=(lang.inbox_dismiss_one(sender(item))) { (icons::close()) }
                }
            }
        }
    }
}

/// What is special about a message.
pub(super) fn marks(item: &Item, lang: Lang) -> Markup {
    html! {
        @if item.waiting || item.away {
            span class="marks" {
                @if item.waiting { span class="tag" data-testid="inbox-waiting" { (icons::heart()) (lang.inbox_waiting()) } }
                @if item.away { span class="tag" data-testid="inbox-dismissed" { (lang.inbox_dismissed()) } }
            }
        }
    }
}
