//! The side of the page: chats, the search for them, and the ways to the inbox and the settings.

use maud::{Markup, html};

use super::view::View;
use super::{frame, icons, settings};

pub(super) fn side(view: &View<'_>, chats: &Markup, inbox: &Markup) -> Markup {
    let lang = view.lang;
    html! {
        aside id="side" popover aria-label=(lang.chat_chats()) {
            div class="brand" { (frame::mark()) strong { "Kai" } a class="button" href="/new" { (icons::plus()) (lang.chat_new()) } }
            form class="search" method="get" role="search" aria-label=(lang.chat_search_chats()) {
                label class="seen-not" for="q" { (lang.chat_search_chats()) }
                input type="search" id="q" name="q" value=(view.place.q) placeholder=(lang.chat_search()) autocomplete="off" dir="auto";
                button class="round" type="submit" aria-label=(lang.chat_search()) { (icons::search()) }
            }
            nav aria-label=(lang.chat_chats()) { div id="chats" data-testid="conversation-list" { (chats) } }
            div id="inbox-link" { (inbox) }
            a class="button wide" href=(settings::FIRST) { (icons::gear()) (lang.chat_settings()) }
        }
    }
}
