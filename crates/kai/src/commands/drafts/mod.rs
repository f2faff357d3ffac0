//! Drafts: lists them, sends one after a tap, edits and discards them, and takes that back.

pub(crate) mod news;
#[cfg_attr(not(feature = "foss"), path = "no_phones.rs")]
pub(crate) mod phones;
mod rows;

use kai_assistant::db::DbError;
use kai_assistant::outbox::discarded::{self, Discarded};
use kai_assistant::outbox::door::{self, NotEdited, Refused, Tap};
use kai_assistant::outbox::edit::{self, Edit, MailEdit};
use kai_assistant::outbox::{Draft, DraftId, Status};
use kai_words::said;
use rusqlite::Transaction;
use serde_json::Value;

use self::phones::{Phones, name_of};
use super::email;
use crate::app::App;
use crate::call::drafts::{DraftRow, DraftsCall, EditCall, TapCall};
use crate::call::json;
use crate::failure::Failure;

pub(crate) async fn answer(app: &App, call: DraftsCall) -> Result<Value, Failure> {
    match call {
        DraftsCall::List => json(list(app).await?),
        DraftsCall::Show { id } => json(show(app, id).await?),
        DraftsCall::Tap(call) => json(tap(app, call).await?),
        DraftsCall::Discard { id } => json(discard(app, id).await?),
        DraftsCall::Edit(call) => json(edit(app, call).await?),
        DraftsCall::DiscardAll { ids } => json(discard_all(app, ids).await?),
        DraftsCall::Undo => json(undo(app).await?),
    }
}

/// All drafts, oldest first.
pub(crate) async fn list(app: &App) -> Result<Vec<DraftRow>, DbError> {
    let (now, zone, here) = (app.clock.now(), app.clock.zone(), Phones::own(app));
    let rows = move |tx: &Transaction<'_>| {
        let phones = Phones::stored(tx, here)?;
        let row = |draft: &Draft| Ok(rows::row(&phones, draft, name_of(tx, draft)?.as_ref(), &zone));
        door::drafts(tx, now)?.iter().map(row).collect()
    };
    app.db.read(rows).await
}

async fn row_of(app: &App, draft: Draft) -> Result<DraftRow, DbError> {
    let (zone, here) = (app.clock.zone(), Phones::own(app));
    let row = move |tx: &Transaction<'_>| {
        let phones = Phones::stored(tx, here)?;
        Ok::<_, DbError>(rows::row(&phones, &draft, name_of(tx, &draft)?.as_ref(), &zone))
    };
    app.db.read(row).await
}

pub(crate) async fn show(app: &App, id: DraftId) -> Result<DraftRow, Failure> {
    found(app, id).await.map_err(|refused| refused_failure(app, &refused))
}

async fn found(app: &App, id: DraftId) -> Result<DraftRow, Refused> {
    list(app).await?.into_iter().find(|row| row.id == id).ok_or(Refused::Unknown(id))
}

/// What a command says if a draft could not be sent or discarded. The page has words of its own.
fn refused_failure(app: &App, refused: &Refused) -> Failure {
    let failure = Failure::failed(refused.to_string());
    match refused {
        // Only the daemon reaches paired phones.
        Refused::NotConnected(_) if app.daemon.is_none() => failure.try_instead("kai"),
        _ => failure,
    }
}

/// Sends a draft after a tap and returns it in its new state. A failed send is reported in the draft, not as an error.
pub(crate) async fn tap(app: &App, call: TapCall) -> Result<DraftRow, Failure> {
    tapped(app, call).await.map_err(|refused| refused_failure(app, &refused))
}

/// The same as [`tap`], with the reason for a refusal as a value.
pub(crate) async fn tapped(app: &App, call: TapCall) -> Result<DraftRow, Refused> {
    let tap = Tap { draft: call.id, act: call.button.into(), shown: call.shown, attempts: call.attempts };
    let draft = app.door.tap(tap).await?;
    if matches!(draft.status, Status::Unknown(_)) {
        // The phone may already know whether it was sent.
        app.door.settle().await?;
        return found(app, draft.id).await;
    }
    Ok(row_of(app, draft).await?)
}

pub(crate) async fn discard(app: &App, id: DraftId) -> Result<DraftRow, Failure> {
    discarded(app, id).await.map_err(|refused| refused_failure(app, &refused))
}

/// The same as [`discard`], with the reason for a refusal as a value.
pub(crate) async fn discarded(app: &App, id: DraftId) -> Result<DraftRow, Refused> {
    let draft = app.door.discard(id).await?;
    Ok(row_of(app, draft).await?)
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
    let known_contact = match call.to.as_deref().map(edit::number) {
        Some(Ok(number)) => phones::wrote_before(app, &number).await?,
        // The door says what is wrong with it, if anything is.
        Some(Err(_)) | None => email::are_known(app, &call).await?,
    };
    let EditCall { id, seen, to, body, cc, bcc, subject, without_quote } = call;
    let mail = MailEdit { cc, bcc, subject, without_quote };
    let draft = app.door.edit(Edit { draft: id, seen, to, body, mail }, known_contact).await?;
    Ok(row_of(app, draft).await?)
}

/// Discards those of these drafts that were not sent. Returns their ids.
pub(crate) async fn discard_all(app: &App, ids: Vec<DraftId>) -> Result<Vec<DraftId>, DbError> {
    Ok(ids_of(&app.door.discard_all(ids).await?))
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
    let restored = app.door.restore(ids).await?;
    if restored.is_empty() {
        return Err(Failure::failed(said::drafts_undo_late()));
    }
    Ok(ids_of(&restored))
}

fn ids_of(drafts: &[Draft]) -> Vec<DraftId> {
    drafts.iter().map(|draft| draft.id).collect()
}
