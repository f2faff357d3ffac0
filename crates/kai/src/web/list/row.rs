//! One chat in the list: its link, and what can be done with it once that is unfolded. The URL says which row is
//! unfolded or being renamed, so that it works without a script and survives when the list is rendered again.

use kai_assistant::agent::conversation::{Conversation, ConversationId, Kind, NAME_LENGTH};
use kai_assistant::agent::search::Hit;
use maud::{Markup, html};

use crate::web::view::{self, View};
use crate::web::{icons, snippet};

/// The query parameters of the list that a link to a chat keeps.
const KEPT: [&str; 2] = ["q", "listed"];

pub(super) fn row(chat: &Conversation, hit: Option<&Hit>, view: &View<'_>) -> Markup {
    let id = chat.id;
    let here = view.place.chat == Some(id);
    let number = id.0.to_string();
    if view.place.says("rename") == number {
        return renaming(chat, view);
    }
    let is_unfolded = view.place.says("menu") == number;
    html! {
        li id=(format!("chat-{number}")) class=[here.then_some("here")] {
            (link(chat, hit, here, view))
            (options(chat, is_unfolded, view))
            @if is_unfolded { (menu(chat, view)) }
        }
    }
}

fn link(chat: &Conversation, hit: Option<&Hit>, here: bool, view: &View<'_>) -> Markup {
    html! {
        a href=(address(chat.id, hit, view)) aria-current=[here.then_some("page")] {
            @if chat.kind == Kind::Heartbeat {
                span class="badge" data-testid="heartbeat-badge" title=(view.lang.list_heartbeat()) { (icons::heart()) }
            }
            span class="chat-title" data-testid="chat-title" dir="auto" { (title(chat, view)) }
            @if view.busy.contains(&chat.id) { span class="pulse" title=(view.lang.list_answering()) {} }
            @if let Some(hit) = hit { span class="snippet" data-testid="chat-snippet" dir="auto" { (snippet::text(&hit.snippet)) } }
        }
    }
}

/// The link that unfolds what can be done with a chat.
fn options(chat: &Conversation, is_unfolded: bool, view: &View<'_>) -> Markup {
    let number = chat.id.0.to_string();
    let unfolds = if is_unfolded { "" } else { number.as_str() };
    html! {
        a class="round more-of" href=(view.place.with(&[("menu", unfolds), ("rename", "")])) data-show
            data-testid="chat-options" aria-expanded=(is_unfolded) title=(view.lang.list_options_of())
            aria-label=(view.lang.list_options(title(chat, view))) { (icons::more()) }
    }
}

fn title<'a>(chat: &'a Conversation, view: &View<'_>) -> &'a str {
    view::title(chat.name.as_deref(), chat.kind, &chat.title, view.lang)
}

/// The address of a chat, at the message that was found. The list stays as it is.
fn address(id: ConversationId, hit: Option<&Hit>, view: &View<'_>) -> String {
    let kept = KEPT.iter().map(|name| (*name, view.place.says(name).to_owned()));
    let found = hit.map(|hit| ("hit", hit.entry.to_string()));
    let pairs = kept.chain(found).filter(|(_, value)| !value.is_empty());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let mark = if query.is_empty() { "" } else { "?" };
    let place = if hit.is_some() { "#hit" } else { "" };
    format!("/c/{}{mark}{query}{place}", id.0)
}

/// What can be done with a chat.
fn menu(chat: &Conversation, view: &View<'_>) -> Markup {
    let (lang, number) = (view.lang, chat.id.0.to_string());
    html! {
        div class="row-menu" {
            form method="post" action=(format!("/c/{number}/pin")) data-live data-shuts {
                input type="hidden" name="csrf" value=(view.csrf);
                button class="item" type="submit" name="pinned" value=(!chat.pinned) data-testid="chat-pin" {
                    (icons::pin()) (if chat.pinned { lang.list_unpin() } else { lang.list_pin() })
                }
            }
            a class="button item" href=(view.place.with(&[("rename", &number), ("menu", "")])) data-show
                data-testid="chat-rename" { (icons::pen()) (lang.list_rename()) }
            (export(chat.id, view))
            form method="post" action=(format!("/c/{number}/delete")) data-live data-shuts {
                input type="hidden" name="csrf" value=(view.csrf);
                button class="item" type="submit" data-testid="chat-delete" { (icons::bin()) (lang.list_delete()) }
            }
        }
    }
}

/// The link that downloads a chat as a file.
pub(in crate::web) fn export(id: ConversationId, view: &View<'_>) -> Markup {
    html! {
        a class="button item" href=(format!("/c/{}/export", id.0)) download data-testid="chat-export" {
            (icons::save()) (view.lang.list_export())
        }
    }
}

/// A row whose chat is being renamed.
fn renaming(chat: &Conversation, view: &View<'_>) -> Markup {
    let (lang, number) = (view.lang, chat.id.0.to_string());
    let field = format!("name-{number}");
    html! {
        li id=(format!("chat-{number}")) class="naming" {
            form method="post" action=(format!("/c/{number}/name")) data-live data-shuts {
                input type="hidden" name="csrf" value=(view.csrf);
                label class="seen-not" for=(field) { (lang.list_name()) }
                input type="text" id=(field) name="name" value=(title(chat, view)) maxlength=(NAME_LENGTH)
                    placeholder=(chat.title) data-testid="chat-name" autocomplete="off" autofocus dir="auto";
                div class="choices" {
                    button class="primary" type="submit" data-testid="chat-name-save" { (lang.list_name_save()) }
                    a class="button" href=(view.place.with(&[("rename", "")])) data-show data-cancels data-testid="chat-name-cancel" { (lang.list_name_cancel()) }
                }
                p class="told" role="status" {}
            }
        }
    }
}
