//! What the user does to drafts besides sending them: edits and discards them, and takes that back.

use kai_assistant::db::DbError;
use kai_assistant::outbox::discarded::{self, Discarded};
use kai_assistant::outbox::door::NotEdited;
use kai_assistant::outbox::edit::{self, Edit};
use kai_assistant::outbox::{Draft, DraftId};
use kai_words::said;
use serde_json::Value;

use super::sms;
use crate::app::App;
use crate::call::drafts::{DraftsCall, EditCall};
use crate::call::json;
use crate::call::sms::DraftRow;
use crate::failure::Failure;

pub(crate) async fn answer(app: &App, call: DraftsCall) -> Result<Value, Failure> {
    match call {
        DraftsCall::Edit(call) => json(edit(app, call).await?),
        DraftsCall::DiscardAll { ids } => json(discard_all(app, ids).await?),
        DraftsCall::Undo => json(undo(app).await?),
    }
}

/// Edits a draft and returns it as it waits now.
pub(crate) async fn edit(app: &App, call: EditCall) -> Result<DraftRow, Failure> {
    edited(app, call).await.map_err(|why| match why {
        NotEdited::Unknown(_) => Failure::failed(why.said()).try_instead("kai drafts list"),
        _ => Failure::failed(why.said()),
    })
}

/// The same as [`edit()`], with the reason for a refusal as a value.
pub(crate) async fn edited(app: &App, call: EditCall) -> Result<DraftRow, NotEdited> {
    let phone = &app.messages.phone;
    let known_contact = match call.to.as_deref().map(edit::number) {
        Some(Ok(number)) => phone.received.wrote_before(&number).await?,
        // The door says what is wrong with it, if anything is.
        Some(Err(_)) | None => false,
    };
    let EditCall { id, seen, to, body } = call;
    let draft = phone.door.edit(Edit { draft: id, seen, to, body }, known_contact).await?;
    Ok(sms::row_of(app, draft).await?)
}

/// Discards those of these drafts that were not sent. Returns their ids.
pub(crate) async fn discard_all(app: &App, ids: Vec<DraftId>) -> Result<Vec<DraftId>, DbError> {
    Ok(ids_of(&app.messages.phone.door.discard_all(ids).await?))
}

/// What was discarded a moment ago and can be taken back, the latest first.
pub(crate) async fn recent(app: &App) -> Result<Vec<Discarded>, DbError> {
    let now = app.clock.now();
    app.db.read(move |tx| discarded::recent(tx, now)).await
}

/// Takes back everything that was discarded a moment ago. Returns the ids.
pub(crate) async fn undo(app: &App) -> Result<Vec<DraftId>, Failure> {
    let ids = recent(app).await?.iter().flat_map(|discarded| ids_of(&discarded.drafts)).collect();
    restore(app, ids).await
}

/// Takes back the discard of these drafts. Fails if none of them is left.
pub(crate) async fn restore(app: &App, ids: Vec<DraftId>) -> Result<Vec<DraftId>, Failure> {
    let restored = app.messages.phone.door.restore(ids).await?;
    if restored.is_empty() {
        return Err(Failure::failed(said::drafts_undo_late()));
    }
    Ok(ids_of(&restored))
}

fn ids_of(drafts: &[Draft]) -> Vec<DraftId> {
    drafts.iter().map(|draft| draft.id).collect()
}
