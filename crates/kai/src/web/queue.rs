//! What the user sends while Kai is answering. It waits on the page, where it can be edited or removed, and is sent when
//! the answer has ended. If the answer was stopped or failed, it stays until the user sends it, or until Kai has answered
//! their next message.

use std::time::Duration;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use kai_assistant::agent::Saying;
use kai_assistant::agent::conversation::{self, ConversationId, Entry};
use kai_assistant::agent::queued::{self, MOST, Offered, Queued, QueuedId, Released};
use kai_assistant::db::DbError;
use kai_words::{Lang, said};
use maud::{Markup, html};
use rusqlite::Transaction;
use serde::Deserialize;

use super::remedy::Trouble;
use super::state::Web;
use super::turns::{TurnInput, Turns};
use super::view::View;
use super::{icons, reply};
use crate::commands::chats::GoOn;

/// How often a turn of another process is looked after.
const LOOK: Duration = Duration::from_secs(1);

/// Queues a message if Kai is answering in this conversation; returns false if it can be sent at once.
pub(super) async fn offer(web: &Web, id: ConversationId, said: &Saying) -> Result<bool, Trouble> {
    if said.is_empty() {
        return Ok(false);
    }
    web.turns.settle(&web.app, id).await;
    let (said, now) = (said.clone(), web.app.clock.now());
    let offered = web.app.db.write(move |tx| queued::offer(tx, id, &said.text, &said.files, now)).await;
    match offered.map_err(|error: DbError| error.said())? {
        Offered::NotNeeded => Ok(false),
        Offered::Full => Err(said::queue_full(MOST).into()),
        Offered::Refused(refused) => Err(refused.said().into()),
        Offered::Queued => {
            if !web.turns.is_running(id) {
                tokio::spawn(after_another_process(web.clone(), id));
            }
            Ok(true)
        }
    }
}

/// Sends what is queued once another process, such as a command, has answered.
async fn after_another_process(web: Web, id: ConversationId) {
    tokio::select! {
        () = web.stop.cancelled() => {}
        () = Turns::until_free(&web.app, id, LOOK) => {
            if let Err(trouble) = send_after_answer(&web, id).await {
                web.turns.keep_unsent(id, trouble);
            }
        }
    }
}

/// Sends the first message that is queued, unless Kai is answering, or did not finish its last answer.
async fn send_after_answer(web: &Web, id: ConversationId) -> Result<(), Trouble> {
    let due = move |tx: &Transaction<'_>| {
        let last = conversation::entries(tx, id)?;
        let answered = last.iter().rfind(|entry| !entry.report).is_some_and(Entry::is_answer);
        Ok(answered && queued::turn_comes(tx, id)?)
    };
    let due = web.app.db.write(due).await.map_err(|error: DbError| error.said())?;
    if due && !web.turns.is_running(id) { send(web, id, None).await } else { Ok(()) }
}

/// Sends the first message that is queued. If one is meant, it has to be that.
async fn send(web: &Web, id: ConversationId, meant: Option<QueuedId>) -> Result<(), Trouble> {
    let queued = TurnInput::GoOn(id, GoOn::Queued(meant));
    web.turns.start(&web.app, queued, web.stop.clone()).await.map(drop)
}

/// The messages that wait in this conversation.
pub(super) fn list(view: &View<'_>) -> Markup {
    let (Some(id), false) = (view.place.chat, view.stored.queued.is_empty()) else { return html! {} };
    let waits = view.running() || view.answered_elsewhere();
    html! {
        ol aria-label=(view.lang.queue_label()) {
            @for (n, queued) in view.stored.queued.iter().enumerate() {
                li id=(format!("queued-{}", queued.id.0)) data-testid="queued" {
                    @if queued.held { (editing(id, queued, view)) } @else { (waiting(id, queued, n == 0 && !waits, view)) }
                }
            }
        }
    }
}

fn waiting(id: ConversationId, queued: &Queued, may_send: bool, view: &View<'_>) -> Markup {
    let lang = view.lang;
    let waits = view.running() || view.answered_elsewhere();
    html! {
        article class="said" data-testid="queued-text" dir="auto" {
            (queued.text)
            @if !queued.names.is_empty() { (files(queued, lang)) }
        }
        form class="foot quiet" method="post" action=(action(id)) data-live {
            (number(queued, view))
            span {
                @if waits { (lang.queue_waits()) }
                @else if let Some(trouble) = view.unsent.as_ref().filter(|_| may_send) { (trouble.render(lang)) }
                @else { (lang.queue_stays()) }
            }
            @if may_send {
                button type="submit" class="small" name="act" value="send" data-testid="queued-send" { (icons::send()) (lang.queue_send()) }
            }
            button type="submit" class="small" name="act" value="edit" data-testid="queued-edit" { (icons::pen()) (lang.queue_edit()) }
            button type="submit" class="small" name="act" value="remove" data-testid="queued-remove" { (icons::bin()) (lang.queue_remove()) }
        }
    }
}

/// The names of its files.
fn files(queued: &Queued, lang: Lang) -> Markup {
    html! {
        ul class="queued-files" aria-label=(lang.attach_attached()) {
            @for name in &queued.names { li { bdi { (name) } } }
        }
    }
}

fn editing(id: ConversationId, queued: &Queued, view: &View<'_>) -> Markup {
    let (lang, field) = (view.lang, format!("queued-text-{}", queued.id.0));
    html! {
        form class="rewrite" method="post" action=(action(id)) data-live data-edits {
            (number(queued, view))
            label class="seen-not" for=(field) { (lang.queue_field()) }
            textarea id=(field) name="text" required[queued.files.is_empty()] dir="auto" autocomplete="off" data-testid="queued-field" { (queued.text) }
            p class="quiet" { (lang.queue_editing()) }
            div class="choices" {
                button type="submit" class="primary" name="act" value="save" data-testid="queued-save" { (lang.queue_save()) }
                button type="submit" name="act" value="cancel" formnovalidate data-cancels data-testid="queued-cancel" { (lang.queue_cancel()) }
            }
        }
    }
}

fn action(id: ConversationId) -> String {
    format!("/c/{}/queued", id.0)
}

fn number(queued: &Queued, view: &View<'_>) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(view.csrf);
        input type="hidden" name="number" value=(queued.id.0);
    }
}

#[derive(Deserialize)]
pub(super) struct QueueForm {
    number: i64,
    act: Act,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Act {
    Edit,
    Save,
    Cancel,
    Remove,
    Send,
}

/// Edits, removes or sends a message that is queued.
pub(super) async fn act(
    State(web): State<Web>,
    Path(id): Path<i64>,
    headers: HeaderMap,
    form: Result<Form<QueueForm>, FormRejection>,
) -> Response {
    let Ok(Form(form)) = form else { return reply::misfilled(&headers) };
    match done(&web, ConversationId(id), form).await {
        Ok(()) => reply::done(&headers, &format!("/c/{id}")),
        Err(trouble) => reply::not_done(&headers, trouble),
    }
}

async fn done(web: &Web, id: ConversationId, form: QueueForm) -> Result<(), Trouble> {
    let (number, act, text) = (QueuedId(form.number), form.act, form.text.replace("\r\n", "\n"));
    if act == Act::Send {
        return send(web, id, Some(number)).await;
    }
    if act == Act::Save && text.trim().is_empty() && !has_files(web, id, number).await? {
        return Err(said::turn_no_text().into());
    }
    let waits = |is_there: bool| if is_there { Released::Waits } else { Released::Gone };
    let change = move |tx: &Transaction<'_>| match act {
        Act::Edit => queued::hold(tx, id, number).map(waits),
        Act::Save => queued::release(tx, id, number, Some(&text)),
        Act::Cancel => queued::release(tx, id, number, None),
        Act::Remove => queued::remove(tx, id, number).map(waits),
        Act::Send => Ok(Released::Waits),
    };
    match web.app.db.write(change).await.map_err(|error: DbError| error.said())? {
        Released::Gone => Err(said::queue_gone().into()),
        Released::Waits => Ok(()),
        // The answer that it waited for has ended while it was edited.
        Released::Due => send_after_answer(web, id).await,
    }
}

async fn has_files(web: &Web, id: ConversationId, number: QueuedId) -> Result<bool, Trouble> {
    let waiting =
        web.app.db.read(move |tx| queued::all(tx, id)).await.map_err(|error: DbError| error.said())?;
    Ok(waiting.iter().any(|queued| queued.id == number && !queued.files.is_empty()))
}
