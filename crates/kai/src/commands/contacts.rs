//! Contact names: turns them on and off, and reads the contacts of the phone that Kai runs on.

use kai_assistant::db::DbError;
use kai_assistant::settings::{self, CONTACT_NAMES_ENABLED};
use kai_assistant::sms::names;
use kai_assistant::source::SourceId;
use kai_words::Said;

use crate::app::App;

/// Turns names on or off for all phones. Turning them off deletes them; turning them on, even again, reads them anew.
pub(crate) async fn switch(app: &App, on: bool) -> Result<(), DbError> {
    let switched = app.db.write(move |tx| {
        settings::store(tx, &CONTACT_NAMES_ENABLED.key, if on { "true" } else { "false" })?;
        names::ask_anew(tx)
    });
    switched.await?;
    app.messages.network.look();
    read_if_due(app).await
}

/// Reads the contacts of the phone that Kai runs on if names are on and it is time to.
pub(crate) async fn read_if_due(app: &App) -> Result<(), DbError> {
    match &app.messages.phone.contacts {
        Some(contacts) => contacts.read_if_due().await,
        None => Ok(()),
    }
}

/// Why the contacts of the phone that Kai runs on could not be read, if the last attempt failed.
pub(crate) async fn trouble(app: &App) -> Result<Option<Said>, DbError> {
    let last = app.db.read(|tx| names::last_read(tx, SourceId::HERE)).await?;
    Ok(last.and_then(|last| last.error).filter(|_| app.messages.phone.contacts.is_some()))
}
