//! The page of a conversation, and the forms on it. The server sends it complete; the script only keeps it up to date.

use std::collections::BTreeMap;

use axum::extract::rejection::FormRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use kai_assistant::agent::Saying;
use kai_assistant::agent::conversation::{self, ConversationId, Which};
use kai_assistant::db::DbError;
use kai_assistant::heartbeat;
use kai_assistant::settings::THEME;
use kai_words::{Lang, Said, said};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::assets::COMPOSER_SCRIPT;
use super::regions::{self, Regions};
use super::remedy::Trouble;
use super::rich::rich;
use super::state::Web;
use super::turns::TurnInput;
use super::view::{self, Place, View};
use super::{
    attach, dialogs, drafts, frame, icons, ideas, live, messages, page, picker, queue, reply, settings, side,
};
use crate::app::sessions::Session;
use crate::commands::models;

type Signed = Extension<Option<Session>>;

/// The query of a chat page's URL: words to search for, and the draft to show in full or to edit.
#[derive(Deserialize)]
pub(super) struct ChatQuery {
    #[serde(default)]
    q: String,
    whole: Option<i64>,
    edit: Option<i64>,
}

impl ChatQuery {
    fn place(self, chat: Option<ConversationId>, query: BTreeMap<String, String>) -> Place {
        let Self { q, whole, edit } = self;
        Place { chat, q, whole, edit, query }
    }
}

/// `/`: the most recent conversation.
pub(super) async fn current(
    State(web): State<Web>,
    Extension(session): Signed,
    Query(seeking): Query<ChatQuery>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    match web.app.db.read(conversation::newest).await {
        Ok(None) if session.is_some() && settings::welcome::is_due(&web.app).await.unwrap_or(false) => {
            Redirect::to(settings::Page::Welcome.path()).into_response()
        }
        Ok(chat) => show(&web, session, seeking.place(chat, query), None).await,
        Err(error) => page::trouble(DbError::said(&error)),
    }
}

/// `/new`: an empty conversation, stored once the user sends the first message.
pub(super) async fn fresh(
    State(web): State<Web>,
    Extension(session): Signed,
    Query(seeking): Query<ChatQuery>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    show(&web, session, seeking.place(None, query), None).await
}

/// `/c/<id>`: one conversation.
pub(super) async fn one(
    State(web): State<Web>,
    Extension(session): Signed,
    Path(id): Path<i64>,
    Query(seeking): Query<ChatQuery>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    show(&web, session, seeking.place(Some(ConversationId(id)), query), None).await
}

/// A message that could not be accepted, and why. The page shows it again so that the user can retry.
struct RejectedMessage<'a> {
    text: &'a str,
    why: Trouble,
}

async fn show(
    web: &Web,
    session: Option<Session>,
    place: Place,
    untaken: Option<RejectedMessage<'_>>,
) -> Response {
    let Some(session) = session else { return page::sign_in(&HeaderMap::new(), &web.app.home) };
    let stored = match view::stored(web, &place, &session, None).await {
        Ok(stored) => stored,
        Err(error) => return page::trouble(error.said()),
    };
    if place.chat.is_some() && stored.chat.is_none() {
        return page::no_chat();
    }
    let csrf = session.csrf();
    let view = View::of(web, &place, &stored, &csrf);
    let blocks = regions::blocks(&view);
    let empty = if blocks.is_empty() {
        beginning(web, &view).await
    } else {
        html! {}
    };
    let status = if untaken.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let body = body(&view, &blocks, &empty, untaken.as_ref(), web.app.home.is_demo());
    let title = format!("{} · Kai", view.title());
    // Without a script, the page reloads itself while a turn is running, unless that would undo what is being edited.
    let reloads = view.running() && !view.stored.queued.iter().any(|queued| queued.held);
    let head = html! {
        (drafts::script())
        script src=(*COMPOSER_SCRIPT) defer {}
        (attach::head())
        @if reloads { noscript { meta http-equiv="refresh" content="2"; } }
    };
    (status, frame::frame(&title, view.lang, &stored.values.of(&THEME), &head, &body)).into_response()
}

fn body(
    view: &View<'_>,
    blocks: &[String],
    empty: &Markup,
    untaken: Option<&RejectedMessage<'_>>,
    demo: bool,
) -> Markup {
    let regions = regions::regions(view);
    let Regions { banners, title, turn, queued, chats, menu, inbox, state, .. } = &regions;
    let lang = view.lang;
    html! {
        a class="skip" href="#chat-input" { (lang.chat_skip()) }
        div class="app chat" data-chat=[view.place.chat.map(|id| id.0)] data-have=(live::sum(blocks)) {
            (side::side(view, chats, inbox))
            (top(view, title, menu, demo))
            div id="banners" role="region" aria-label=(lang.chat_attention()) aria-live="polite" { (banners) }
            main id="main" tabindex="-1" {
                div class="column" {
                    div role="log" aria-label=(lang.chat_messages()) {
                        ol id="messages" { @for block in blocks { (PreEscaped(block)) } }
                    }
                    div id="turn" { (turn) }
                    div id="queued" { (queued) }
                    (empty)
                }
            }
            section class="bottom" aria-label=(lang.chat_input_label()) {
                (frame::script_words(lang))
                p id="state" class="seen-not" role="status" { (state) }
                p id="toast" role="alert" { @if let Some(untaken) = untaken { (untaken.why.render(lang)) } }
                (attach::tray(lang))
                (composer(view, &regions, untaken))
                (picker::form(view))
            }
        }
    }
}

fn top(view: &View<'_>, title: &Markup, menu: &Markup, demo: bool) -> Markup {
    let lang = view.lang;
    html! {
        header class="top" {
            button class="round menu" type="button" popovertarget="side" aria-label=(lang.chat_chats()) { (icons::menu()) }
            h1 id="title" dir="auto" { (title) }
            @if demo {
                span class="tag" { (lang.chat_demo()) span class="roomy" { ": " (lang.chat_demo_simulated()) } }
                (messages::way_back(lang))
            }
            span class="tag offline" id="offline" role="status" {}
            (dialogs::opener(lang))
            @if view.place.chat.is_some() {
                button class="round" type="button" popovertarget="chat-menu" data-testid="chat-menu"
                    aria-label=(lang.chat_menu()) title=(lang.chat_menu()) { (icons::more()) }
                div id="chat-menu" popover { (menu) }
            }
            a class="round" href="/new" aria-label=(lang.chat_new()) title=(lang.chat_new()) { (icons::plus()) }
        }
    }
}

fn composer(view: &View<'_>, regions: &Regions, untaken: Option<&RejectedMessage<'_>>) -> Markup {
    let (Regions { picker, controls, .. }, lang) = (regions, view.lang);
    let action = view.place.chat.map_or_else(|| "/say".to_owned(), |id| format!("/c/{}/say", id.0));
    html! {
        form id="composer" method="post" action=(action) data-live {
            input type="hidden" name="csrf" value=(view.csrf);
            label class="seen-not" for="chat-input" { (view.lang.chat_input_label()) }
            textarea id="chat-input" name="text" data-testid="chat-input" rows="1" required dir="auto"
                placeholder=(view.lang.chat_input()) autocomplete="off" { @if let Some(untaken) = untaken { (untaken.text) } }
            div class="row" {
                (attach::button(lang))
                div id="picker" { (picker) }
                // In the row and not above the messages, where it would cover what can be tapped there.
                button class="round to-end js-only" type="button" id="to-end" data-testid="to-end"
                    aria-label=(lang.chat_newest()) title=(lang.chat_newest()) hidden { (icons::down()) }
                div id="controls" { (controls) }
            }
        }
    }
}

/// What an empty conversation shows: suggestions for a first message, or how to set up a model if none is ready.
async fn beginning(web: &Web, view: &View<'_>) -> Markup {
    let (lang, values) = (view.lang, &view.stored.values);
    let rows = models::rows(&web.app, &web.app.env).await.unwrap_or_default();
    let is_demo = web.app.home.is_demo();
    let ideas = if is_demo { ideas::of_demo(lang) } else { ideas::ideas(&web.app.toolbox, values, lang) };
    let ready = rows.iter().find(|row| row.ready);
    html! {
        section class="empty" aria-label=(lang.chat_getting_started()) {
            (frame::mark())
            @match ready {
                Some(model) => {
                    h2 { (lang.chat_welcome()) }
                    p class="quiet" { (rich(&said::chat_who_answers(messages::model_name(&model.name, lang)), lang, |name| html! { bdi { (name) } })) }
                    ul class="ideas js-only" {
                        @for idea in ideas { li { button type="button" data-idea data-testid="idea" { (idea) } } }
                    }
                }
                None => (no_model(web, rows.first().and_then(|row| row.why_not.as_ref()), view.csrf, lang)),
            }
        }
    }
}

/// The ways to a model: the welcome, which has all of them, and the demo.
fn no_model(web: &Web, why_not: Option<&Said>, csrf: &str, lang: Lang) -> Markup {
    let is_running = web.app.downloads.running().is_some();
    html! {
        h2 { (lang.chat_no_model()) }
        @if let Some(why) = why_not { p { (rich(why, lang, |name| html! { bdi { (name) } })) } }
        p class="quiet" { (lang.chat_no_model_why()) }
        @if is_running {
            p role="status" { (lang.chat_downloading()) }
            a class="button primary" href="/settings/models#here" data-testid="download-see" { (lang.chat_downloading_see()) }
        } @else {
            a class="button primary" href=(settings::Page::Welcome.path()) data-testid="set-up-model" { (lang.chat_set_up_model()) }
        }
        (messages::try_demo(csrf, lang))
    }
}

#[derive(Deserialize)]
pub(super) struct SayForm {
    text: String,
    /// The model for a new conversation.
    #[serde(default)]
    model: String,
    /// The numbers of the attached files.
    #[serde(default)]
    files: String,
}

type SayBody = Result<Form<SayForm>, FormRejection>;

/// `/say`: starts a new conversation with the user's message.
pub(super) async fn say_first(
    State(web): State<Web>,
    Extension(session): Signed,
    headers: HeaderMap,
    form: SayBody,
) -> Response {
    take_message(&web, session, &headers, None, form).await
}

pub(super) async fn say(
    State(web): State<Web>,
    Extension(session): Signed,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: SayBody,
) -> Response {
    take_message(&web, session, &headers, Some(ConversationId(id)), form).await
}

async fn take_message(
    web: &Web,
    session: Option<Session>,
    headers: &HeaderMap,
    chat: Option<ConversationId>,
    form: SayBody,
) -> Response {
    let Ok(Form(SayForm { text, model, files })) = form else { return reply::misfilled(headers) };
    let Some(files) = attach::ids(&files) else { return reply::misfilled(headers) };
    // Browsers submit line breaks as CR LF.
    let text = text.replace("\r\n", "\n");
    let model = picker::named(model).filter(|_| chat.is_none());
    let said = Saying { model, files, ..Saying::from(text.clone()) };
    match send_or_queue(web, said, chat).await {
        Ok(id) => reply::done(headers, &format!("/c/{}", id.0)),
        Err(trouble) if reply::by_script(headers) => reply::not_done(headers, trouble),
        // Show the page again with the message in its field, so that the user's text is not lost.
        Err(why) => {
            let untaken = RejectedMessage { text: &text, why };
            show(web, session, Place { chat, ..Place::default() }, Some(untaken)).await
        }
    }
}

/// Sends a message, or queues it if Kai is answering in its conversation.
async fn send_or_queue(
    web: &Web,
    said: Saying,
    chat: Option<ConversationId>,
) -> Result<ConversationId, Trouble> {
    if let Some(id) = chat
        && queue::offer(web, id, &said).await?
    {
        return Ok(id);
    }
    let saying = TurnInput::Said(said.clone(), chat.map_or(Which::New, Which::Id));
    match (web.turns.start(&web.app, saying, web.stop.clone()).await, chat) {
        // Another page was quicker, and Kai answers that one first.
        (Err(_), Some(id)) if queue::offer(web, id, &said).await? => Ok(id),
        (sent, _) => sent,
    }
}

pub(super) async fn stop(State(web): State<Web>, Path(id): Path<i64>, headers: HeaderMap) -> Response {
    web.turns.stop(ConversationId(id));
    reply::done(&headers, &format!("/c/{id}"))
}

#[derive(Deserialize)]
pub(super) struct ClickForm {
    question: String,
    answer: Click,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Click {
    Allow,
    Deny,
}

/// Allows or denies a tool call that waits for approval.
pub(super) async fn click(
    State(web): State<Web>,
    headers: HeaderMap,
    form: Result<Form<ClickForm>, FormRejection>,
) -> Response {
    let Ok(Form(ClickForm { question, answer })) = form else { return reply::misfilled(&headers) };
    if web.turns.click(&question, answer == Click::Allow) {
        return reply::done_here(&headers);
    }
    reply::not_done(&headers, said::chat_answered_already())
}

/// Dismisses the banner of a heartbeat's report.
pub(super) async fn heartbeat_seen(State(web): State<Web>, headers: HeaderMap) -> Response {
    match web.app.db.write(heartbeat::store::lower).await {
        Ok(()) => reply::done_here(&headers),
        Err(error) => reply::not_done(&headers, error.said()),
    }
}
