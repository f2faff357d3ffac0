//! Demo mode: a simulated phone and a model that plays a script, in a home of its own. Nothing in it is real, and the
//! demo says so.

use std::sync::Arc;
use std::time::Duration;

use kai_assistant::db::DbError;
use kai_assistant::heartbeat::Why;
use kai_assistant::home::Home;
use kai_assistant::outbox::DraftState;
use kai_assistant::settings::{self, SMS_ENABLED, SMS_SEND_ENABLED};
use kai_assistant::{notifications as shown, pending, sms as messages};
use rusqlite::Transaction;
use serde_json::Value;
use tokio::sync::watch;

use crate::app::App;
use crate::call::demo::DemoCall;
use crate::call::heartbeat::RunOutcome;
use crate::call::json;
use crate::commands::{drafts, heartbeat, notifications, sms};
use crate::failure::Failure;

/// Answers the calls that simulate an incoming SMS or notification.
pub(crate) async fn answer(app: &App, call: DemoCall) -> Result<Value, Failure> {
    match call {
        DemoCall::Sms { from, text } => json(receive(app, &from, &text).await?),
        DemoCall::Notification { app: name, title, text } => {
            let tray = app.messages.tray.as_ref().ok_or_else(not_running)?;
            json(tray.post(&name, &title, &text))
        }
    }
}

/// Turns every feature on and delivers two messages. Runs at every start, because the simulated phone is new each time.
pub(crate) async fn prepare(app: &App) -> Result<(), Failure> {
    let Some(phone) = &app.messages.demo else { return Ok(()) };
    let fresh = |tx: &Transaction<'_>| {
        settings::store(tx, &SMS_ENABLED.key, "false")?;
        settings::store(tx, &SMS_SEND_ENABLED.key, "true")?;
        pending::clear(tx, messages::queue::QUEUE).map(drop)
    };
    app.db.write(fresh).await.map_err(|error: DbError| error)?;
    for draft in drafts::list(app).await?.iter().filter(|draft| draft.status != DraftState::Sending) {
        drafts::discard(app, draft.id).await?;
    }
    sms::turn_reading_on(app).await?;
    show_notification(app).await?;
    let now = app.clock.now();
    phone.receive("+15550107", "Parcel locker 12: your parcel is here until Friday.", now);
    phone.receive("+15550123", "Are you free for dinner tonight? 8 at the usual place?", now);
    sms::poll(app).await.map(drop)
}

/// Turns notifications on and posts one. Runs at every start, because the simulated tray is new each time.
async fn show_notification(app: &App) -> Result<(), Failure> {
    app.db.write(|tx| pending::clear(tx, shown::QUEUE)).await?;
    notifications::switch(app, true).await?;
    if let Some(tray) = &app.messages.tray {
        tray.post("WhatsApp", "Alice", "Hey, are we still on for tonight?");
    }
    Ok(())
}

/// The demo's opening scene, once a page is open: a message arrives, the heartbeat notices it, and an answer is
/// drafted.
pub(crate) async fn story(app: Arc<App>, mut pages: watch::Receiver<usize>) {
    let Some(phone) = &app.messages.demo else { return };
    if pages.wait_for(|open| *open > 0).await.is_err() {
        return;
    }
    tokio::time::sleep(ARRIVES).await;
    phone.receive("+15550142", "Jonas here. I'd rather come at half past six, is that OK?", app.clock.now());
    if let Err(failure) = sms::poll(&app).await {
        tracing::warn!(failure = %failure.message, "the demo's phone could not be polled");
    }
    tokio::time::sleep(NOTICED).await;
    drop(run_heartbeat(&app).await);
}

/// Runs a heartbeat. If the scheduled one is in progress, waits for it and tries again.
async fn run_heartbeat(app: &App) -> Result<(), Failure> {
    for _ in 0..PATIENCE {
        if heartbeat::run(app, &app.env, Why::Asked).await?.outcome != RunOutcome::Busy {
            break;
        }
        tokio::time::sleep(NOTICED).await;
    }
    Ok(())
}

/// How long after the page was opened the message arrives.
const ARRIVES: Duration = Duration::from_secs(4);
/// How long after the message the heartbeat runs, and how long to wait while another one is in progress.
const NOTICED: Duration = Duration::from_secs(5);
/// How often a heartbeat is tried while another one is in progress.
const PATIENCE: u32 = 5;

/// Delivers an SMS to the simulated phone, then polls and runs a heartbeat at once: the user should not wait half an
/// hour.
pub(crate) async fn receive(app: &App, from: &str, text: &str) -> Result<i64, Failure> {
    let phone = app.messages.demo.as_ref().ok_or_else(not_running)?;
    let id = phone.receive(from, text, app.clock.now()).0;
    sms::poll(app).await?;
    run_heartbeat(app).await?;
    Ok(id)
}

pub(crate) fn not_running() -> Failure {
    Failure::failed("The demo is not running. Start it in another terminal: kai serve --demo")
}

/// The demo's home inside the given one. Only starting the demo creates it.
pub(crate) fn home_in(home: Home, starts: bool) -> Result<Home, Failure> {
    if home.is_demo() {
        Ok(home)
    } else if starts {
        home.demo().map_err(|e| Failure::store(format!("The demo's home could not be created: {e}.")))
    } else {
        home.old_demo().ok_or_else(not_running)
    }
}
