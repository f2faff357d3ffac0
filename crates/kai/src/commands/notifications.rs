//! Notifications of other apps: lists, searches and deletes them, turns reading on and off, and reports the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::access::{Access, AccessState};
use kai_assistant::db::DbError;
use kai_assistant::notifications::capture::Capture;
use kai_assistant::notifications::store::{self, Gap, Sync};
use kai_assistant::notifications::toggle::{self, Toggle};
use kai_assistant::notifications::view::{Item, Wanted, Whole, local};
use kai_assistant::notifications::{NotificationId, QUEUE, Record};
use kai_assistant::pending;
use kai_assistant::settings::{self, NOTIFICATIONS_ENABLED, NOTIFICATIONS_IGNORED};
use kai_assistant::tool::Eyes;
use kai_words::said;
use rusqlite::Transaction;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::call::json;
use crate::call::notifications::{Forgotten, GapRow, ListenerState, NotificationsCall, NotificationsStatus};
use crate::failure::Failure;

/// How long a check may take, because a slow Termux call is only given up after that.
const LOOK: Duration = Duration::from_secs(12);

pub(crate) async fn answer(app: &App, call: NotificationsCall) -> Result<Value, Failure> {
    match call {
        NotificationsCall::List { all } => json(list(app, all).await?),
        NotificationsCall::Read { id } => json(read(app, id).await?),
        NotificationsCall::Search { text, package_name } => {
            json(search(app, &text, package_name.as_deref()).await?)
        }
        NotificationsCall::Clear => json(app.db.write(|tx| pending::clear(tx, QUEUE)).await?),
        NotificationsCall::Forget => json(forget(app).await?),
        NotificationsCall::Refresh => {
            refresh(app).await?;
            json(status(app).await?)
        }
        NotificationsCall::Known => json(known(app).await?),
    }
}

/// Deletes all stored notifications. Refused while reading is on, because Kai would store them again at once.
pub(crate) async fn forget(app: &App) -> Result<Forgotten, Failure> {
    let forgotten = app.db.write(|tx| {
        if settings::load(tx)?.on(&NOTIFICATIONS_ENABLED) {
            return Ok::<_, DbError>(None);
        }
        store::forget_all(tx).map(Some)
    });
    let (records, queued) = forgotten.await?.ok_or_else(|| {
        Failure::failed(said::notifications_still_on())
            .try_instead("kai settings set notifications_enabled false")
    })?;
    Ok(Forgotten { records, queued })
}

async fn list(app: &App, all: bool) -> Result<Vec<Item>, Failure> {
    let now = app.clock.now();
    let records: Vec<Record> = app
        .db
        .read(move |tx| {
            if all {
                return store::newest(tx, now, usize::MAX, |_| true);
            }
            Ok(pending::waiting(tx, QUEUE)?.into_iter().map(|waiting| waiting.entry).collect())
        })
        .await?;
    Ok(items(app, &records))
}

async fn search(app: &App, text: &str, package_name: Option<&str>) -> Result<Vec<Item>, Failure> {
    let wanted = Wanted::new(text, package_name)
        .ok_or_else(|| Failure::usage("The search text is empty. Type what to search for."))?;
    let now = app.clock.now();
    let search = app.db.read(move |tx| store::newest(tx, now, 20, |record| wanted.is_in(record, Eyes::All)));
    let found: Result<_, DbError> = search.await;
    Ok(items(app, &found?))
}

fn items(app: &App, records: &[Record]) -> Vec<Item> {
    let zone = app.clock.zone();
    records.iter().map(|record| Item::of(record, &zone, Eyes::All)).collect()
}

async fn read(app: &App, id: String) -> Result<Whole, Failure> {
    let (wanted, now) = (NotificationId::new(id.trim()), app.clock.now());
    let found: Option<Record> = app.db.read(move |tx| store::find(tx, &wanted, now)).await?;
    let unknown = || format!("There is no notification with the id {id}. See: kai notifications list --all");
    let record = found.ok_or_else(|| Failure::failed(unknown()))?;
    Ok(Whole::of(&record, &app.clock.zone(), Eyes::All, usize::MAX))
}

/// Checks now: for access if Kai is waiting for it, then for notifications if reading is on.
pub(crate) async fn refresh(app: &App) -> Result<(), Failure> {
    let Some(source) = &app.messages.notifications else {
        return Err(Failure::failed(said::notifications_unsupported()));
    };
    toggle::come_back(&app.db, app.clock.as_ref(), source).await?;
    if !app.db.read(settings::load).await?.on(&NOTIFICATIONS_ENABLED) {
        return Ok(());
    }
    if app.daemon.is_some() {
        source.check_now(LOOK).await;
    } else {
        source.ask(app.clock.now()).await;
    }
    Ok(())
}

/// An app that has shown notifications, or that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppRow {
    pub(crate) package: String,
    pub(crate) label: String,
    pub(crate) ignored: bool,
}

/// The apps that showed notifications in the last day, and those that the user ignores.
pub(crate) async fn apps(app: &App) -> Result<Vec<AppRow>, DbError> {
    let now = app.clock.now();
    let read = app.db.read(move |tx| {
        let ignored = store::rules(&settings::load(tx)?).ignored;
        Ok::<_, DbError>((ignored, store::newest(tx, now, usize::MAX, |_| true)?))
    });
    let (ignored, records) = read.await?;
    // The list ignores case.
    let ignored: Vec<String> = ignored.iter().map(|package| package.to_lowercase()).collect();
    let mut labels: BTreeMap<String, String> =
        ignored.iter().map(|package| (package.clone(), package.clone())).collect();
    for record in records.into_iter().rev() {
        labels.insert(record.package_name.to_lowercase(), record.app_label.line(60));
    }
    let row =
        |(package, label): (String, String)| AppRow { ignored: ignored.contains(&package), package, label };
    Ok(labels.into_iter().map(row).collect())
}

/// Whether the user wants an app's notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppWish {
    Heard,
    Ignored,
}

/// Changes one app in the list of ignored apps, in one transaction, so that simultaneous changes are all kept.
pub(crate) async fn switch_app(app: &App, package: String, wish: AppWish) -> Result<(), Failure> {
    let switched = move |tx: &Transaction<'_>| {
        let package = package.trim().to_owned();
        let mut ignored = store::rules(&settings::load(tx)?).ignored;
        ignored.retain(|other| other.to_lowercase() != package.to_lowercase());
        if wish == AppWish::Ignored {
            ignored.push(package);
        }
        match NOTIFICATIONS_IGNORED.accept(&ignored.join(",")) {
            Ok(list) => settings::store(tx, &NOTIFICATIONS_IGNORED.key, &list).map(Ok),
            Err(_) => Ok(Err(Failure::usage(said::settings_refused_names()))),
        }
    };
    app.db.write(switched).await.map_err(|error: DbError| error)?
}

/// The button "Open notification access": asks for access if the platform can.
pub(crate) async fn ask(app: &App) -> Result<(), Failure> {
    if app.db.read(store::sync).await?.waiting_since.is_some() {
        return turn(app, true).await.map(drop);
    }
    let source = app
        .messages
        .notifications
        .as_ref()
        .ok_or_else(|| Failure::failed(said::notifications_unsupported()))?;
    match source.ask(app.clock.now()).await {
        Access::Granted => Ok(()),
        Access::Denied(todo) | Access::Silent(todo) => Err(Failure::failed(todo)),
    }
}

/// Turns reading on or off and returns the resulting state. Turned on without access, it waits for access.
pub(crate) async fn turn(app: &App, on: bool) -> Result<Toggle, Failure> {
    let now = app.clock.now();
    if on {
        let source = app
            .messages
            .notifications
            .as_ref()
            .ok_or_else(|| Failure::failed(said::notifications_unsupported()))?;
        return Ok(toggle::turn_on(&app.db, app.clock.as_ref(), source).await?);
    }
    app.db.write(move |tx| toggle::turn_off(tx, now)).await?;
    if let Some(source) = &app.messages.notifications {
        source.changed();
    }
    Ok(Toggle::Off { hint: None })
}

/// Sets `notifications_enabled` for commands: fails if turning it on does not take effect at once.
pub(crate) async fn switch(app: &App, on: bool) -> Result<(), Failure> {
    match turn(app, on).await? {
        Toggle::On => Ok(()),
        Toggle::Off { .. } if !on => Ok(()),
        Toggle::Waiting { todo, .. } => Err(Failure::failed(format!(
            "Kai is waiting for access to notifications. {todo} Then: kai notifications refresh"
        ))),
        Toggle::Off { hint } => {
            Err(Failure::failed(format!("Reading notifications stays off. {}", hint.unwrap_or_default())))
        }
    }
}

/// The status, after asking the platform whether Kai has access. Does not ask while reading is off.
pub(crate) async fn status(app: &App) -> Result<NotificationsStatus, DbError> {
    if let Some(source) = &app.messages.notifications
        && app.db.read(settings::load).await?.on(&NOTIFICATIONS_ENABLED)
    {
        source.access(app.clock.now()).await;
    }
    known(app).await
}

/// The status as far as it is known, without asking the platform.
pub(crate) async fn known(app: &App) -> Result<NotificationsStatus, DbError> {
    let now = app.clock.now();
    let read = app.db.read(move |tx| {
        let dropped = pending::dropped(tx, QUEUE)?.iter().map(|(_, count)| count).sum();
        let counts = (pending::count(tx, QUEUE)?, dropped, store::count(tx)?);
        let on = settings::load(tx)?.on(&NOTIFICATIONS_ENABLED);
        Ok::<_, DbError>((on, store::sync(tx)?, store::gaps(tx, now)?, counts))
    });
    let (enabled, sync, gaps, (queued, dropped, kept)) = read.await?;
    let access = app.messages.notifications.as_ref().and_then(|source| source.known());
    let access = access.map_or(AccessState::Unknown, |access| access.state());
    Ok(NotificationsStatus {
        supported: app.messages.notifications.is_some(),
        enabled,
        state: state(enabled, &sync, app.daemon.is_some()),
        access,
        bridge: app.messages.notifications.as_ref().map(|source| source.listener.name().to_owned()),
        queued,
        dropped,
        kept,
        last_seen_id: sync.last_seen_id,
        last_sync: sync.last_sync_at,
        last_attempt: sync.last_attempt_at,
        unread_count: queued,
        last_error: sync.last_error,
        hint: sync.hint,
        gaps: gaps.into_iter().map(|gap| row(app, gap)).collect(),
    })
}

/// The listener's state. A stored "listening" is only true while a daemon is running.
fn state(enabled: bool, sync: &Sync, daemon: bool) -> ListenerState {
    match (enabled, sync.waiting_since) {
        (true, _) if daemon && sync.listening => ListenerState::Listening,
        (true, _) => ListenerState::Inactive,
        (false, Some(_)) => ListenerState::Waiting,
        (false, None) => ListenerState::Off,
    }
}

fn row(app: &App, gap: Gap) -> GapRow {
    let zone = app.clock.zone();
    let ended_local = gap.ended.map(|at| local(at, &zone));
    GapRow { began_local: local(gap.began, &zone), ended_local, gap }
}

/// Captures notifications in the daemon until told to stop.
pub(crate) async fn listen_on(app: Arc<App>, stop: CancellationToken) {
    let Some(source) = &app.messages.notifications else { return };
    let capture = Capture { db: app.db.clone(), clock: Arc::clone(&app.clock), source: Arc::clone(source) };
    capture.run(stop.cancelled()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two changes at once, on two pages or in quick succession, must not undo each other.
    #[tokio::test]
    async fn switches_of_the_app_list_at_once_all_count() {
        use kai_assistant::clock::ManualClock;
        let (app, _folder) = App::for_tests(Arc::new(ManualClock::at(jiff::Timestamp::UNIX_EPOCH)));
        let switch = |n: u32, wish| switch_app(&app, format!("Org.App{n}"), wish);
        for done in futures_util::future::join_all((0..20).map(|n| switch(n, AppWish::Ignored))).await {
            done.unwrap();
        }
        let ignored = || async { store::rules(&app.db.read(settings::load).await.unwrap()).ignored.len() };
        assert_eq!(ignored().await, 20);
        switch(3, AppWish::Ignored).await.unwrap();
        assert_eq!(ignored().await, 20, "once is enough");
        for done in futures_util::future::join_all((0..20).map(|n| switch(n, AppWish::Heard))).await {
            done.unwrap();
        }
        assert_eq!(ignored().await, 0);
    }

    #[test]
    fn how_it_stands() {
        let sync = |listening, waiting_since| Sync { listening, waiting_since, ..Sync::default() };
        for (enabled, sync, daemon, expected) in [
            (false, sync(false, None), true, ListenerState::Off),
            (false, sync(false, Some(1)), true, ListenerState::Waiting),
            (true, sync(true, None), true, ListenerState::Listening),
            (true, sync(false, None), true, ListenerState::Inactive),
            // The listening daemon was killed and could not update the store.
            (true, sync(true, None), false, ListenerState::Inactive),
        ] {
            assert_eq!(state(enabled, &sync, daemon), expected);
        }
    }
}
