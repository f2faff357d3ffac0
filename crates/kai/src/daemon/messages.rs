//! The daemon's work with messages and notifications.

use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::db::DbError;
use kai_assistant::notifications::store;
use kai_assistant::sms::archive;
use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::commands::{contacts, notifications};
use crate::demo;
use crate::failure::Failure;

/// Recovers after a crash, and sets the demo up.
pub(super) async fn begin(app: &App) -> Result<(), Failure> {
    app.db.write(store::begin).await?;
    demo::prepare(app).await
}

/// Listens to notifications and to paired phones until told to stop. A demo is in no network: its phone is simulated.
pub(super) async fn listen(app: Arc<App>, stop: CancellationToken) {
    let network = async {
        match &app.messages.demo {
            Some(demo) => app.messages.network.play(&demo.work, stop.clone()).await,
            None => app.messages.network.run(stop.clone()).await,
        }
    };
    tokio::join!(notifications::listen_on(Arc::clone(&app), stop.clone()), network);
}

/// Lets nothing more leave by paired phones. What is being sent goes on.
pub(super) fn retire(app: &App) {
    app.messages.network.retire();
}

/// Whether Kai runs on a phone or one is paired.
pub(super) async fn has_phone(app: &App) -> Result<Option<bool>, Failure> {
    let paired = app.db.read(kai_assistant::phones::store::all).await?;
    Ok(Some(app.messages.phone.inbox.is_some() || !paired.is_empty()))
}

/// Polls the phone, unless the last poll still runs.
pub(super) async fn poll(app: &App) {
    if let Ok(_alone) = app.messages.phone.looking.try_lock() {
        look_at_phone(app).await;
    }
}

/// Reads the phone's contacts if that is due. Nobody waits for it.
pub(super) async fn read_contacts(app: &App) {
    if let Err(error) = contacts::read_if_due(app).await {
        tracing::warn!(%error, "contacts could not be stored");
    }
}

/// Deletes archived messages that are older than the user wants.
pub(super) fn sweep(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    archive::sweep(tx, now).map(drop)
}

pub(super) fn tick(tx: &Transaction<'_>, now: Timestamp) -> Result<(), DbError> {
    store::tick(tx, now)
}

/// Settles drafts with an unknown outcome and polls for new messages.
pub(crate) async fn look_at_phone(app: &App) {
    if let Err(error) = app.door.settle().await {
        tracing::warn!(%error, "drafts could not be settled");
    }
    let Some(poller) = &app.messages.phone.poller else { return };
    match poller.tick().await {
        Ok(Some(brought)) => tracing::info!(fresh = brought.fresh, more = brought.more, "polled the phone"),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "a poll failed"),
    }
}

#[cfg(test)]
mod tests;
