//! One message in full, with everything that can be done with it.

use axum::http::StatusCode;
use kai_assistant::inbox::{Fetched, Key, Line, Message};
use kai_assistant::legible::folded_in;
use kai_words::{Lang, said};
use maud::{Markup, html};

use super::place::{self, Place};
use super::reply_form::{self, Reply};
use super::{SENDER, Sheet, begin, list, sender};
use crate::commands::inbox;
use crate::failure::Failure;
use crate::web::rich::rich;
use crate::web::state::Web;
use crate::web::view::View;

pub(super) async fn sheet(web: &Web, place: &Place, view: &View<'_>) -> Result<Sheet, Failure> {
    let Some(key) = place.key() else { return Ok(unknown(view.lang)) };
    let shown = inbox::message(&web.app, key.clone()).await?;
    let is_begun = !shown.fetching.is_empty();
    begin(web, shown.fetching);
    let (message, fetched) = shown.what;
    let is_loading = is_begun || fetched == Fetched::Loading;
    match message {
        Some(message) => {
            let reply = reply_form::reply(web, place, &message, view).await?;
            Ok(Sheet {
                heading: sender(&message.item),
                head: html! {},
                content: content(&message, &fetched, &reply, view),
                is_loading: is_loading && message.is_beginning,
                status: StatusCode::OK,
            })
        }
        None if is_loading => Ok(loading(view.lang)),
        None => Ok(unknown(view.lang)),
    }
}

fn loading(lang: Lang) -> Sheet {
    Sheet {
        heading: lang.inbox_title().to_owned(),
        head: html! {},
        content: html! { p class="quiet loading" role="status" data-testid="inbox-loading" { span class="pulse" {} " " (lang.inbox_loading_one()) } },
        is_loading: true,
        status: StatusCode::OK,
    }
}

fn unknown(lang: Lang) -> Sheet {
    Sheet {
        heading: lang.inbox_gone_title().to_owned(),
        head: html! {},
        content: html! {
            div class="nothing" data-testid="inbox-gone" {
                p { (lang.inbox_gone()) }
                a class="button" href=(place::INBOX) { (lang.inbox_to_list()) }
            }
        },
        is_loading: false,
        status: StatusCode::NOT_FOUND,
    }
}

fn content(message: &Message, fetched: &Fetched, reply: &Reply, view: &View<'_>) -> Markup {
    let (item, lang) = (&message.item, view.lang);
    html! {
        article class="card message" data-testid="inbox-message" data-key=(item.key) {
            p class="quiet" {
                (view.times.moment(item.date))
                @if let Some(phone) = &item.phone_name { " · " bdi { (phone) } }
                " · " a href=(place::finding(item.from.as_written())) data-testid="inbox-sender" {
                    (rich(&said::inbox_with_sender(item.from.line(SENDER)), lang, |from| html! { bdi { (from) } }))
                }
            }
            @if let Some(title) = &item.title { h2 dir="auto" { (title.line(300)) } }
            @for line in &message.said { (said_line(line, view)) }
            @if !message.text.is_blank() {
                p class="text" data-testid="inbox-text" dir="auto" { (folded_in(message.text.as_written(), lang)) }
            }
            @if let Some(below) = &message.below { p class="quiet" dir="auto" { (below.line(300)) } }
            @if message.hidden { p class="quiet" { (lang.inbox_hidden()) } }
            @if message.is_beginning { (rest(fetched, lang)) }
            (list::marks(item, lang))
            (handling(message, view))
        }
        (reply.own)
        (asking(&item.key, &reply.by_kai, view))
    }
}

/// Why only the beginning of a message is shown.
fn rest(fetched: &Fetched, lang: Lang) -> Markup {
    html! {
        p class="quiet" data-testid="inbox-beginning" {
            (lang.inbox_beginning())
            @if let Fetched::Failed(why) = fetched { " " (rich(&said::inbox_failed(why.clone()), lang, |value| html! { bdi { (value) } })) }
        }
    }
}

fn said_line(line: &Line, view: &View<'_>) -> Markup {
    let sender =
        if line.sender.is_blank() { view.lang.inbox_you().to_owned() } else { line.sender.line(SENDER) };
    html! {
        div class="said-line" data-testid="inbox-line" {
            p class="quiet" { bdi { (sender) } @if let Some(at) = line.at { " · " (view.times.moment(at)) } }
            p class="text" dir="auto" { (folded_in(line.text.as_written(), view.lang)) }
        }
    }
}

/// The forms that mark the message. The script sends the first one as soon as the message is in view: loading the page
/// alone does not mark it, since a GET changes nothing.
fn handling(message: &Message, view: &View<'_>) -> Markup {
    let (path, lang) = (place::path(&message.item.key), view.lang);
    html! {
        div class="choices" {
            @if message.item.unread {
                form method="post" action=(format!("{path}/read")) data-live data-opened {
                    input type="hidden" name="csrf" value=(view.csrf);
                    button class="no-js" type="submit" data-testid="inbox-read" { (lang.inbox_mark_read()) }
                }
            }
            @let (act, testid, label) = if message.item.away {
                ("restore", "inbox-restore", lang.inbox_put_back())
            } else {
                ("dismiss", "inbox-dismiss", lang.inbox_dismiss())
            };
            form method="post" action=(format!("{path}/{act}")) data-live {
                input type="hidden" name="csrf" value=(view.csrf);
                button type="submit" data-testid=(testid) title=(lang.inbox_dismiss_help()) { (label) }
            }
        }
    }
}

/// The form that opens a chat about the message.
fn asking(key: &Key, by_kai: &Markup, view: &View<'_>) -> Markup {
    let lang = view.lang;
    html! {
        section class="card" aria-labelledby="inbox-ask-title" {
            h2 id="inbox-ask-title" { (lang.inbox_ask()) }
            form class="fields" method="post" action=(format!("{}/ask", place::path(key))) data-live {
                input type="hidden" name="csrf" value=(view.csrf);
                label for="inbox-question" { (lang.inbox_ask_label()) }
                textarea id="inbox-question" name="question" data-testid="inbox-question" rows="2" dir="auto" autocomplete="off" {}
                p class="quiet" { (lang.inbox_ask_help()) }
                p class="told" role="alert" {}
                div class="choices" {
                    button class="primary" type="submit" name="what" value="answer" data-testid="inbox-ask" { (lang.inbox_ask_button()) }
                    (by_kai)
                }
            }
        }
    }
}
