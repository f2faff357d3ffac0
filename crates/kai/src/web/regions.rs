//! Renders a page of the chat, region by region. A live update consists of the regions that changed.

use maud::{Markup, html};

use super::inbox::place::INBOX;
use super::talk::{self, RenderContext};
use super::turns::Sight;
use super::view::View;
use super::{banners, codes, icons, list, picker, queue, trust};
use crate::commands::inbox::COUNTED;

/// The parts of the page that are updated live, except the messages.
pub(super) struct Regions {
    pub(super) banners: Markup,
    /// The title of the chat, which may be renamed.
    pub(super) title: Markup,
    pub(super) turn: Markup,
    /// What waits until the answer has ended.
    pub(super) queued: Markup,
    /// The model that answers.
    pub(super) picker: Markup,
    pub(super) controls: Markup,
    pub(super) chats: Markup,
    pub(super) menu: Markup,
    /// The link to the inbox, with the number of unread messages.
    pub(super) inbox: Markup,
    /// What the turn is doing, for screen readers.
    pub(super) state: Markup,
}

impl Regions {
    /// Each region as HTML, with the id of its element.
    pub(super) fn named(self) -> Vec<(&'static str, String)> {
        let Self { banners, title, turn, queued, picker, controls, chats, menu, inbox, state } = self;
        let all = [
            ("banners", banners),
            ("title", title),
            ("turn", turn),
            ("queued", queued),
            ("picker", picker),
            ("controls", controls),
            ("chats", chats),
            ("chat-menu", menu),
            ("inbox-link", inbox),
            ("state", state),
        ];
        all.into_iter().map(|(id, region)| (id, region.into_string())).collect()
    }
}

pub(super) fn regions(view: &View<'_>) -> Regions {
    let elsewhere = view.answered_elsewhere().then(Sight::default);
    Regions {
        banners: banners::all(view),
        title: html! { (view.title()) },
        turn: html! {
            (talk::turn(view.coming().or(elsewhere.as_ref()), view.lang))
            (trust::line(view))
        },
        queued: queue::list(view),
        picker: picker::choice(view),
        controls: controls(view),
        chats: list::rows(view),
        menu: menu(view),
        inbox: inbox(view),
        state: html! {
            @if view.running() { (if view.asks() { view.lang.regions_asks() } else { view.lang.regions_answering() }) }
        },
    }
}

/// What can be done with the whole chat.
fn menu(view: &View<'_>) -> Markup {
    let (Some(id), Some(chat)) = (view.place.chat, &view.stored.chat) else { return html! {} };
    html! {
        (codes::menu(view, id, chat))
        (list::export(id, view))
        form method="post" action=(format!("/c/{}/delete", id.0)) data-live data-shuts {
            input type="hidden" name="csrf" value=(view.csrf);
            button class="item" type="submit" data-testid="chat-menu-delete" { (icons::bin()) (view.lang.chat_menu_delete()) }
        }
    }
}

/// The link to the inbox. An edition that receives nothing has none.
fn inbox(view: &View<'_>) -> Markup {
    let Some(unread) = view.stored.unread else { return html! {} };
    let lang = view.lang;
    let counted =
        if unread < COUNTED { lang.inbox_unread_count(unread) } else { lang.inbox_unread_many(COUNTED - 1) };
    html! {
        a class="button wide" href=(INBOX) data-testid="inbox-link" {
            (icons::inbox()) (lang.inbox_title())
            @if unread > 0 { span class="tag good" data-testid="inbox-count" { (counted) } }
        }
    }
}

/// The Send button, and Stop while a turn is running. What is sent meanwhile is queued. Stop does not take Send's place, so that a double click on Send
/// does not hit it.
fn controls(view: &View<'_>) -> Markup {
    let running = view.place.chat.filter(|_| view.running());
    let lang = view.lang;
    let send = if running.is_some() || view.answered_elsewhere() {
        lang.regions_queue()
    } else {
        lang.regions_send()
    };
    html! {
        @if let Some(id) = running {
            button class="round" id="stop" type="submit" formaction=(format!("/c/{}/stop", id.0)) formnovalidate
                data-testid="chat-stop" aria-label=(view.lang.regions_stop()) title=(view.lang.regions_stop()) { (icons::stop()) }
        }
        button class="round primary" id="send" type="submit" data-testid="chat-send"
            aria-label=(send) title=(send) { (icons::send()) }
    }
}

/// The messages as HTML, one block per exchange.
pub(super) fn blocks(view: &View<'_>) -> Vec<String> {
    let (Some(id), Some(chat)) = (view.place.chat, &view.stored.chat) else { return vec![] };
    let (csrf, lang, times, sight) = (view.csrf, view.lang, &view.times, view.sight.as_ref());
    let waits = view.running() || view.answered_elsewhere();
    let hit = view.stored.hit;
    talk::blocks(&chat.entries, &RenderContext { id, csrf, lang, times, sight, waits, hit })
}
