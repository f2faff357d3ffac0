//! Demo mode: two simulated phones, a simulated mailbox and MCP server, and models that play a script, in a home of its
//! own. Nothing in it is real, and the demo says so.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::db::DbError;
use kai_assistant::email;
use kai_assistant::heartbeat::Why;
use kai_assistant::home::Home;
use kai_assistant::mcp::store as servers;
use kai_assistant::outbox::DraftState;
use kai_assistant::phones::Switch;
use kai_assistant::phones::store::{self as phones, NewPhone};
use kai_assistant::settings::{self, EMAIL_ENABLED, SMS_ENABLED, SMS_SEND_ENABLED};
use kai_assistant::{notifications as shown, pending, sms as messages};
use kai_bridges::simulated::{NewMail, Weather};
use rusqlite::Transaction;
use serde_json::Value;
use tokio::sync::watch;

use crate::app::App;
use crate::call::demo::DemoCall;
use crate::call::heartbeat::RunOutcome;
use crate::call::json;
use crate::commands::{contacts, drafts, heartbeat, notifications, sms};
use crate::failure::Failure;
use crate::machine::messages::Simulated;
use crate::phones::drivers;

/// Answers the calls that simulate an incoming SMS or notification.
pub(crate) async fn answer(app: &App, call: DemoCall) -> Result<Value, Failure> {
    match call {
        DemoCall::Sms { from, text } => json(receive(app, &from, &text).await?),
        DemoCall::Notification { app: name, title, text } => {
            let demo = app.messages.demo.as_ref().ok_or_else(not_running)?;
            json(demo.tray.post(&name, &title, &text))
        }
    }
}

/// Turns every feature on and lets everybody write. Runs at every start, because what is simulated is new each time;
/// whatever the store kept of the demo before is replaced.
pub(crate) async fn prepare(app: &App) -> Result<(), Failure> {
    let Some(demo) = &app.messages.demo else { return Ok(()) };
    let fresh = |tx: &Transaction<'_>| {
        settings::store(tx, &SMS_ENABLED.key, "false")?;
        settings::store(tx, &SMS_SEND_ENABLED.key, "true")?;
        settings::store(tx, &EMAIL_ENABLED.key, "true")?;
        offer_weather(tx)?;
        pending::clear(tx, messages::queue::QUEUE).map(drop)
    };
    app.db.write(fresh).await.map_err(|error: DbError| error)?;
    for draft in drafts::list(app).await?.iter().filter(|draft| draft.status != DraftState::Sending) {
        drafts::discard(app, draft.id).await?;
    }
    sms::turn_reading_on(app).await?;
    contacts::switch(app, true).await?;
    show_notification(app, demo).await?;
    pair_work_phone(app, demo).await?;
    bring_mail(app, demo).await?;
    let now = app.clock.now();
    demo.phone.receive("+15550107", "Parcel locker 12: your parcel is here until Friday.", now);
    demo.phone.receive("+15550123", "Are you free for dinner tonight? 8 at the usual place?", now);
    sms::poll(app).await.map(drop)
}

/// Turns notifications on and posts one.
async fn show_notification(app: &App, demo: &Simulated) -> Result<(), Failure> {
    app.db.write(|tx| pending::clear(tx, shown::QUEUE)).await?;
    notifications::switch(app, true).await?;
    demo.tray.post("WhatsApp", "Alice", "Hey, are we still on for tonight?");
    Ok(())
}

/// Pairs the second phone, as if the user had compared the keys and let Kai read, send and use names there. One message
/// came just now; the others are older.
async fn pair_work_phone(app: &App, demo: &Simulated) -> Result<(), Failure> {
    let (now, device) = (app.clock.now(), demo.work.id().to_string());
    let paired = move |tx: &Transaction<'_>| {
        let (name, certificate) = (Simulated::WORK_PHONE.to_owned(), b"simulated".to_vec());
        let source = phones::pair(tx, &NewPhone { device, name, certificate, protocol: 8 }, now)?.source;
        phones::rename(tx, source, Simulated::WORK_PHONE)?;
        drivers::forget(tx, source)?;
        for switch in Switch::ALL {
            phones::set(tx, source, switch, false)?;
        }
        for switch in [Switch::ReadSms, Switch::SendSms, Switch::Names] {
            phones::set(tx, source, switch, true)?;
        }
        phones::begin_reading(tx, source, now)
    };
    app.db.write(paired).await?;
    demo.work.receive(
        "+15550166",
        "Can we move tomorrow's stand-up to ten? I have the dentist at nine.",
        now,
    );
    Ok(())
}

/// Adds the mail account anew, and lets three mails arrive there: from a person, from a program, and a newsletter.
async fn bring_mail(app: &App, demo: &Simulated) -> Result<(), Failure> {
    let Some(mail) = &app.mail else { return Ok(()) };
    let (now, new) = (app.clock.now(), demo.mailbox.account());
    let added = move |tx: &Transaction<'_>| {
        if let Some(before) = email::store::by_address(tx, &new.address)? {
            email::store::remove(tx, before.source)?;
        }
        email::store::add(tx, &new, now)
    };
    let account = app.db.write(added).await.map_err(|why| Failure::failed(why.to_string()))?;
    // The first look only notes what is there already.
    for arriving in [&[][..], &MAILS] {
        for (minutes, mail) in arriving {
            let ago = SignedDuration::from_mins(*minutes);
            demo.mailbox.receive(mail, now.checked_sub(ago).unwrap_or(now));
        }
        let looked = mail.poller.poll(account.source).await;
        looked.map_err(|why| Failure::failed(why.said()))?;
    }
    Ok(())
}

/// The mails that arrived when the demo begins: minutes ago, and what.
const MAILS: [(i64, NewMail<'static>); 3] = [
    (
        48,
        NewMail {
            from: ("Harbour Bank", "no-reply@harbour.example"),
            subject: "Your sign-in code",
            text: "Your one-time code is 604 211. It expires in 10 minutes. Nobody from the bank will ask for it.\n",
            bulk: false,
        },
    ),
    (
        31,
        NewMail {
            from: ("Night Train Weekly", "news@nighttrain.example"),
            subject: "Five routes for the long weekend",
            text: "Sleep through three borders and wake up by the sea. This week: five routes, one of them new.\n",
            bulk: true,
        },
    ),
    (
        12,
        NewMail {
            from: ("Mia Lindqvist", "mia@example.com"),
            subject: "Our three photos",
            text: "Hi!\n\nThe print shop needs our photos by Thursday. I'd take the harbour, the bridge and the market. \
               Is that fine with you, or would you rather swap one?\n\nMia\n",
            bulk: false,
        },
    ),
];

/// Adds the MCP server anew, with both of its tools approved as if the user had read them.
fn offer_weather(tx: &Transaction<'_>) -> Result<(), DbError> {
    if let Some(before) = servers::named(tx, Weather::NAME)? {
        servers::remove(tx, before.id)?;
    }
    let Some(id) = servers::add(tx, &Weather::server(), Timestamp::UNIX_EPOCH)? else { return Ok(()) };
    let tools = Weather::offers();
    servers::note_tools(tx, id, &tools)?;
    for tool in tools {
        servers::approve(tx, id, &tool.name, &tool.digest())?;
    }
    Ok(())
}

/// The demo's opening scene, once a page is open: a message arrives, the heartbeat notices it, and an answer is
/// drafted.
pub(crate) async fn story(app: Arc<App>, mut pages: watch::Receiver<usize>) {
    let Some(demo) = &app.messages.demo else { return };
    if pages.wait_for(|open| *open > 0).await.is_err() {
        return;
    }
    tokio::time::sleep(ARRIVES).await;
    demo.phone.receive(
        "+15550142",
        "Jonas here. I'd rather come at half past six, is that OK?",
        app.clock.now(),
    );
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
    let demo = app.messages.demo.as_ref().ok_or_else(not_running)?;
    let id = demo.phone.receive(from, text, app.clock.now()).0;
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
