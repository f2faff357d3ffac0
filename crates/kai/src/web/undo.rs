//! Undoes a deletion, or drops the deleted item for good.

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use kai_words::said;
use serde::Deserialize;

use super::reply;
use super::state::Web;
use crate::failure::Failure;

#[derive(Deserialize)]
pub(super) struct UndoForm {
    number: u64,
    act: UndoAct,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum UndoAct {
    Restore,
    Forget,
}

pub(super) async fn undo(
    State(web): State<Web>,
    headers: HeaderMap,
    form: Result<Form<UndoForm>, FormRejection>,
) -> Response {
    let Ok(Form(UndoForm { number, act })) = form else { return reply::misfilled(&headers) };
    let restored = match (web.bin.take(number, web.app.clock.now()), act) {
        (_, UndoAct::Forget) => Ok(None),
        (Some(kept), UndoAct::Restore) => kept.restore(&web.app).await,
        (None, UndoAct::Restore) => Err(Failure::failed(said::undo_too_late())),
    };
    // The bin is not in the store, so open pages have to be notified separately.
    web.turns.move_on();
    match restored {
        Ok(Some(to)) => reply::done(&headers, &to),
        Ok(None) => reply::done_here(&headers),
        Err(failure) => reply::not_done(&headers, failure.message),
    }
}
