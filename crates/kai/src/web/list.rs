//! The list of chats in the sidebar, and what is done with one there: it is pinned, renamed, exported, deleted.

mod dates;
mod row;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use dates::Age;
use jiff::Zoned;
use kai_assistant::agent::TurnError;
use kai_assistant::agent::conversation::{Conversation, ConversationId};
use kai_assistant::agent::listing::{Listed, PAGE};
use kai_assistant::agent::search::Found;
use maud::{Markup, html};
pub(super) use row::export;
use serde::Deserialize;

use super::bin::Kept;
use super::state::Web;
use super::view::{Asked, ChatList, View};
use super::{page, reasons, reply};
use crate::app::App;
use crate::app::sessions::Session;
use crate::commands::chats;
use crate::failure::Failure;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/c/{id}/delete", post(delete))
        .route("/c/{id}/name", post(rename))
        .route("/c/{id}/pin", post(pin))
        .route("/c/{id}/export", get(download))
}

/// The rows of the list; the search field above them is part of the page.
pub(super) fn rows(view: &View<'_>) -> Markup {
    match &view.stored.list {
        ChatList::All { chats, asked } => all(chats, asked, view),
        ChatList::Found(found) => matching(found, view),
    }
}

fn all(chats: &Listed<Conversation>, asked: &Asked, view: &View<'_>) -> Markup {
    let now = view.times.now.to_zoned(view.times.zone.clone());
    let (pinned, others): (Vec<&Conversation>, Vec<&Conversation>) =
        chats.rows.iter().partition(|chat| chat.pinned);
    html! {
        @if !pinned.is_empty() { (group("list-pinned", view.lang.list_pinned(), &pinned, view)) }
        @if asked.count > 0 { (questions(asked, view)) }
        @for (age, chats) in by_age(&others, &now) { (group(&age.id(), &age.heading(view.lang, &now), &chats, view)) }
        @if chats.rows.is_empty() && asked.count == 0 { p class="quiet none" { (view.lang.list_none()) } }
        @if chats.more || asked.rows.more { (older(view)) }
    }
}

/// Chats that stand one after the other and have the same age.
fn by_age<'a>(chats: &[&'a Conversation], now: &Zoned) -> Vec<(Age, Vec<&'a Conversation>)> {
    let mut groups: Vec<(Age, Vec<&Conversation>)> = vec![];
    for chat in chats {
        let age = Age::of(chat.updated_at, now);
        match groups.last_mut() {
            Some((same, group)) if *same == age => group.push(chat),
            _ => groups.push((age, vec![chat])),
        }
    }
    groups
}

fn group(id: &str, heading: &str, chats: &[&Conversation], view: &View<'_>) -> Markup {
    let label = format!("{id}-heading");
    html! {
        div class="chat-group" id=(id) {
            h2 id=(label) { (heading) }
            ul aria-labelledby=(label) { @for chat in chats { (row::row(chat, None, view)) } }
        }
    }
}

/// Questions of a command line, folded under one heading.
fn questions(asked: &Asked, view: &View<'_>) -> Markup {
    let turned = if asked.is_unfolded { "no" } else { "yes" };
    html! {
        div class="chat-group" id="list-asked" {
            h2 {
                a href=(view.place.with(&[("asked", turned)])) data-show data-testid="list-asked" aria-expanded=(asked.is_unfolded) {
                    (view.lang.list_asked()) " " span class="tag" { (asked.count) }
                }
            }
            @if asked.is_unfolded {
                ul aria-label=(view.lang.list_asked()) { @for chat in &asked.rows.rows { (row::row(chat, None, view)) } }
            }
        }
    }
}

fn matching(found: &Listed<Found>, view: &View<'_>) -> Markup {
    html! {
        ul id="list-found" { @for Found { chat, hit } in &found.rows { (row::row(chat, hit.as_ref(), view)) } }
        @if found.rows.is_empty() { p class="quiet none" { (view.lang.list_none_found()) } }
        @if found.more { (older(view)) }
    }
}

/// The link that makes the list longer. The script follows it when it comes into view.
fn older(view: &View<'_>) -> Markup {
    let longer = (view.place.listed() + PAGE).to_string();
    html! {
        a class="button wide" id="list-older" href=(view.place.with(&[("listed", &longer)])) data-show data-testid="list-older" {
            (view.lang.list_older())
        }
    }
}

async fn delete(State(web): State<Web>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
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

#[derive(Deserialize)]
struct NameForm {
    name: String,
}

async fn rename(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<NameForm>, FormRejection>,
) -> Response {
    let Ok(Form(NameForm { name })) = form else { return reply::misfilled(&headers) };
    changed(&headers, chats::rename(&web.app, ConversationId(id), &name).await)
}

#[derive(Deserialize)]
struct PinForm {
    pinned: bool,
}

async fn pin(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<PinForm>, FormRejection>,
) -> Response {
    let Ok(Form(PinForm { pinned })) = form else { return reply::misfilled(&headers) };
    changed(&headers, chats::pin(&web.app, ConversationId(id), pinned).await)
}

fn changed(headers: &HeaderMap, id: Result<ConversationId, Failure>) -> Response {
    match id {
        Ok(_) if reply::by_script(headers) => reply::done_here(headers),
        // The page that the form was on would still show it.
        Ok(id) => reply::done(headers, &format!("/c/{}", id.0)),
        Err(failure) => reply::not_done(headers, failure.message),
    }
}

/// `/c/<id>/export`: the chat as a Markdown file.
async fn download(
    State(web): State<Web>,
    Extension(session): Extension<Option<Session>>,
    Path(id): Path<i64>,
) -> Response {
    if session.is_none() {
        return page::sign_in(&HeaderMap::new(), &web.app.home);
    }
    match exported(&web, ConversationId(id)).await {
        Ok(file) => file,
        Err(failure) => page::trouble(failure.message),
    }
}

async fn exported(web: &Web, id: ConversationId) -> Result<Response, Failure> {
    let lang = App::lang(&web.app.values().await?, &web.app.env);
    if !web.app.db.read(move |tx| kai_assistant::agent::conversation::exists(tx, id)).await? {
        return Ok(page::no_chat());
    }
    let chat = chats::export(&web.app, id, lang).await?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let encoded = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let name: String = chat.file.bytes().map(encoded).collect();
    let headers = [
        (header::CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{name}")),
    ];
    Ok((headers, chat.text).into_response())
}
