//! The list of conversations in the sidebar, and deleting one.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use kai_assistant::agent::TurnError;
use kai_assistant::agent::conversation::{Conversation, ConversationId, Kind};
use maud::{Markup, html};

use super::bin::Kept;
use super::state::Web;
use super::view::{self, View};
use super::{icons, reasons, reply};
use crate::commands::chats;

/// How many conversations the list shows, so that the page stays small however many there are.
const SHOWN: usize = 60;

/// The rows of the list; the search field above them is part of the page.
pub(super) fn rows(view: &View<'_>) -> Markup {
    let list = &view.stored.list;
    html! {
        @for listed in list.iter().take(SHOWN) { (row(listed, view)) }
        @if list.len() > SHOWN { li class="quiet none" { (view.lang.list_more(list.len() - SHOWN)) } }
        @if list.is_empty() {
            li class="quiet none" {
                @if view.place.q.trim().is_empty() { (view.lang.list_none()) } @else { (view.lang.list_none_found()) }
            }
        }
    }
}

fn row(listed: &Conversation, view: &View<'_>) -> Markup {
    let id = listed.id;
    let here = view.place.chat == Some(id);
    let title = view::title(listed.kind, &listed.title, view.lang);
    html! {
        li id=(format!("chat-{}", id.0)) class=[here.then_some("here")] {
            a href=(format!("/c/{}", id.0)) aria-current=[here.then_some("page")] {
                @if listed.kind == Kind::Heartbeat {
                    span class="badge" data-testid="heartbeat-badge" title=(view.lang.list_heartbeat()) { (icons::heart()) }
                }
                span class="chat-title" dir="auto" { (title) }
                @if view.busy.contains(&id) { span class="pulse" title=(view.lang.list_answering()) {} }
            }
            form method="post" action=(format!("/c/{}/delete", id.0)) data-live {
                input type="hidden" name="csrf" value=(view.csrf);
                button class="round" type="submit" data-testid="chat-delete" title=(view.lang.list_delete())
                    aria-label=(view.lang.list_delete_chat(title)) { (icons::bin()) }
            }
        }
    }
}

pub(super) async fn delete(State(web): State<Web>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
    let id = ConversationId(id);
    match put_away(&web, id).await {
        Ok(()) => reply::done(&headers, "/"),
        Err(error) => reply::not_done(&headers, reasons::turn(&error)),
    }
}

/// Deletes a conversation and puts it into the undo bin.
async fn put_away(web: &Web, id: ConversationId) -> Result<(), TurnError> {
    let taken = chats::take_away(&web.app, id).await?;
    web.turns.forget(id);
    web.bin.put(Kept::Chat(Box::new(taken)), web.app.clock.now());
    // The bin is not in the store, so open pages have to be notified separately.
    web.turns.move_on();
    Ok(())
}
