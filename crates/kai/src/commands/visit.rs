//! Opens Kai's page in the user's browser, signed in, after a tap on a notification or for `kai open`.

use std::sync::Arc;

use crate::commands::drafts;
use kai_assistant::agent::conversation;
use kai_assistant::db::DbError;
use kai_assistant::device::{Place, Tap, Target};
use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use crate::app::{App, facts, sessions};
use crate::failure::Failure;

/// Opens the page whenever a notification is tapped, until told to stop.
pub(crate) async fn follow_taps(app: Arc<App>, stop: CancellationToken) {
    let Some(notifier) = &app.notifier else { return };
    loop {
        let Tap { place, activation } = tokio::select! {
            () = stop.cancelled() => return,
            tap = notifier.tapped() => tap,
        };
        if let Err(failure) = open(&app, place, activation.as_deref()).await {
            tracing::warn!(failure = %failure.message, "a notification was tapped, but the page did not open");
        }
    }
}

/// Opens a page in the browser with a fresh sign-in link. The link is created now and not with the notification,
/// because it expires after a minute and people may tap hours later.
pub(crate) async fn open(app: &App, place: Place, activation: Option<&str>) -> Result<(), Failure> {
    let link = facts::link_command(&app.home);
    if app.daemon.is_none() {
        return Err(not_running());
    }
    let Some(opener) = &app.opener else {
        return Err(Failure::failed(format!(
            "Kai found no program here that opens a browser. Type {link} and open the link it prints."
        )));
    };
    let path = app.db.read(move |tx| path(tx, place)).await?;
    let page = Target::Web(sessions::own_link(app, path).await?.url);
    opener.open_for_tap(&page, activation).await.map_err(|error| {
        Failure::failed(format!("The browser could not be opened: {error}. Type {link} instead."))
    })
}

pub(crate) fn not_running() -> Failure {
    Failure::failed("Kai is not running, so there is no page to open. Start it: kai serve")
}

/// The current path of a place. If it no longer exists, the path leads to the current chat.
fn path(tx: &Transaction<'_>, place: Place) -> Result<String, DbError> {
    let found = match place {
        Place::Chat => None,
        Place::Heartbeat => conversation::heartbeat(tx)?.map(|id| format!("/c/{}", id.0)),
        Place::Drafts => drafts::news::pending_draft_path(tx)?,
    };
    Ok(found.unwrap_or_else(|| "/".to_owned()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kai_assistant::agent::reports::{self, Report};
    use kai_assistant::clock::ManualClock;

    use super::*;

    #[tokio::test]
    async fn a_place_is_where_it_is_now() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let (app, _folder) = App::for_tests(Arc::new(ManualClock::at(now)));
        let at = |place| app.db.read(move |tx| path(tx, place));
        assert_eq!(at(Place::Chat).await.unwrap(), "/");
        assert_eq!(at(Place::Heartbeat).await.unwrap(), "/", "there is none yet");
        let report = Report { said: "Alice asks.".to_owned(), spoken: None, at: now, raises: true };
        app.db.write(move |tx| reports::keep(tx, &report)).await.unwrap();
        assert_eq!(at(Place::Heartbeat).await.unwrap(), "/c/1");
        let failure = open(&app, Place::Heartbeat, None).await.unwrap_err();
        assert!(failure.message.to_string().starts_with("Kai is not running"), "{}", failure.message);
    }
}
