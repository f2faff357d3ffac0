//! Notifications as commands, status, doctor and daemon ask for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::access::Access;
use kai_assistant::clock::Clock;
use kai_assistant::db::{Db, DbError};
use kai_assistant::notifications::capture::Capture;
use kai_assistant::notifications::store::{self, Gap, Sync};
use kai_assistant::notifications::toggle::{self, Toggle};
use kai_assistant::notifications::view::{Item, Wanted, Whole, local};
use kai_assistant::notifications::{
    CheckNotifications, DismissNotification, NotificationId, QUEUE, ReadNotification, Record,
    SearchNotifications, Shelf, Source,
};
use kai_assistant::pending;
use kai_assistant::settings::{self, NOTIFICATIONS_ENABLED, NOTIFICATIONS_IGNORED};
use kai_assistant::tool::{AnyTool, Eyes};
use kai_assistant::toolbox::{Entry, Feature, Governed};
use kai_bridges::simulated::Tray;
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::answer::json;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::wire::App;

/// What a command wants of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// What waits for the next heartbeat, or all that is kept.
    List {
        all: bool,
    },
    Read {
        id: String,
    },
    Search {
        text: String,
        package_name: Option<String>,
    },
    Clear,
    /// Erase all that is kept of them.
    Forget,
    Refresh,
    /// How it stands, without asking the platform.
    Known,
    /// An app of the demo shows something.
    Arrive {
        app: String,
        title: String,
        text: String,
    },
}

/// How reading notifications stands; the part of `kai status --json` that is about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotificationsStatus {
    pub(crate) supported: bool,
    pub(crate) enabled: bool,
    /// "off", "waiting" (for access), "listening", or "inactive" (on, and nothing is heard).
    pub(crate) state: String,
    /// "granted", "denied" or "unknown".
    pub(crate) access: String,
    pub(crate) bridge: Option<String>,
    pub(crate) queued: u32,
    /// Let go because too many came, since the last heartbeat.
    pub(crate) dropped: u32,
    pub(crate) kept: u32,
    #[serde(rename = "lastSeenId")]
    pub(crate) last_seen_id: Option<NotificationId>,
    #[serde(rename = "lastSyncEpochMs")]
    pub(crate) last_sync: Option<i64>,
    #[serde(rename = "lastAttemptEpochMs")]
    pub(crate) last_attempt: Option<i64>,
    #[serde(rename = "unreadCount")]
    pub(crate) unread_count: u32,
    #[serde(rename = "lastError")]
    pub(crate) last_error: Option<String>,
    /// Why it is not on, and what to do.
    pub(crate) hint: Option<String>,
    pub(crate) gaps: Vec<GapRow>,
}

/// A time in which nothing was heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GapRow {
    #[serde(flatten)]
    pub(crate) gap: Gap,
    pub(crate) began_local: String,
    pub(crate) ended_local: Option<String>,
}

/// A Termux call may take so long until it is given up.
const LOOK: Duration = Duration::from_secs(12);
pub(crate) const UNSUPPORTED: &str =
    "No notifications can be read on this machine: there is neither a desktop's session bus nor Termux:API.";

/// The tools, in the order in which a model is told of them.
pub(crate) fn entries(db: &Db, clock: &Arc<dyn Clock>, source: Option<&Arc<Source>>) -> Vec<Entry> {
    let shelf = || Shelf { db: db.clone(), clock: Arc::clone(clock), source: source.cloned() };
    let reading =
        |tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::Features(&[Feature::Notifications]) };
    let dismissing = |tool: Arc<dyn AnyTool>| Entry {
        tool,
        governed: Governed::Features(&[Feature::Notifications, Feature::DismissNotifications]),
    };
    vec![
        reading(Arc::new(CheckNotifications(shelf()))),
        reading(Arc::new(ReadNotification(shelf()))),
        reading(Arc::new(SearchNotifications(shelf()))),
        dismissing(Arc::new(DismissNotification(shelf()))),
    ]
}

pub(crate) async fn answer(app: &App, asked: Asked) -> Result<Value, Failure> {
    match asked {
        Asked::List { all } => json(list(app, all).await?),
        Asked::Read { id } => json(read(app, id).await?),
        Asked::Search { text, package_name } => json(search(app, &text, package_name.as_deref()).await?),
        Asked::Clear => json(app.db.write(|tx| pending::clear(tx, QUEUE)).await?),
        Asked::Forget => json(forget(app).await?),
        Asked::Refresh => {
            refresh(app).await?;
            json(status(app).await?)
        }
        Asked::Known => json(known(app).await?),
        Asked::Arrive { app: name, title, text } => {
            let tray = app.tray.as_ref().ok_or_else(crate::demo::not_running)?;
            json(tray.post(&name, &title, &text))
        }
    }
}

impl NotificationsStatus {
    /// Is anything kept of them?
    pub(crate) fn keeps(&self) -> bool {
        let heard = self.last_seen_id.is_some() || self.last_sync.is_some() || self.last_attempt.is_some();
        self.kept > 0 || self.queued > 0 || self.dropped > 0 || !self.gaps.is_empty() || heard
    }

    /// What is kept, as a part of a sentence.
    pub(crate) fn kept(&self) -> String {
        match (self.kept, self.queued) {
            (0, 0) => "a note of when it last listened".to_owned(),
            (1, 0 | 1) | (0, 1) => "1 notification of the last day".to_owned(),
            (kept, queued) => format!("{} notifications of the last day", kept.max(queued)),
        }
    }
}

/// What `kai notifications forget` erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) records: usize,
    pub(crate) queued: usize,
}

/// Erases all that is kept of them. Not while reading is on: Kai would at once begin to keep them again.
pub(crate) async fn forget(app: &App) -> Result<Forgotten, Failure> {
    let forgotten = app.db.write(|tx| {
        if settings::load(tx)?.on(&NOTIFICATIONS_ENABLED) {
            return Ok::<_, DbError>(None);
        }
        store::forget_all(tx).map(Some)
    });
    let (records, queued) = forgotten.await?.ok_or_else(|| {
        Failure::failed(
            "Reading notifications is on, so Kai would keep them again at once. Turn it off first: \
             kai settings set notifications_enabled false",
        )
    })?;
    Ok(Forgotten { records, queued })
}

/// A demo's machine also has a tray.
pub(crate) fn with_tray(machine: Machine) -> Machine {
    let tray = Arc::new(Tray::default());
    let source = Arc::new(Source::new(Arc::clone(&tray) as _));
    Machine { notifications: Some(source), tray: Some(tray), ..machine }
}

/// On, with something that has just come in. Anew at every start, since the tray is new each time.
pub(crate) async fn prepare_demo(app: &App) -> Result<(), Failure> {
    app.db.write(|tx| pending::clear(tx, QUEUE)).await?;
    switch(app, true).await?;
    if let Some(tray) = &app.tray {
        tray.post("WhatsApp", "Alice", "Hey, are we still on for tonight?");
    }
    Ok(())
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
    let wanted = Wanted::new(text, package_name).ok_or_else(|| Failure::usage("Say what to search for."))?;
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

/// Looks now: at the access when it waits for that, else at the platform.
pub(crate) async fn refresh(app: &App) -> Result<(), Failure> {
    let Some(source) = &app.notifications else { return Err(Failure::failed(UNSUPPORTED)) };
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

/// An app that shows something, or is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppRow {
    pub(crate) package: String,
    pub(crate) label: String,
    pub(crate) ignored: bool,
}

/// The apps of the last day, and those that the person wants left alone.
pub(crate) async fn apps(app: &App) -> Result<Vec<AppRow>, DbError> {
    let now = app.clock.now();
    let read = app.db.read(move |tx| {
        let ignored = store::rules(&settings::load(tx)?).ignored;
        Ok::<_, DbError>((ignored, store::newest(tx, now, usize::MAX, |_| true)?))
    });
    let (ignored, records) = read.await?;
    // The list is matched without regard to case.
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

/// What the person wants of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppWish {
    Heard,
    Ignored,
}

/// Switches one app and leaves the rest of the list as it is, in one transaction: two switches at once are two.
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
            Err(refused) => Ok(Err(Failure::usage(refused.to_string()))),
        }
    };
    app.db.write(switched).await.map_err(|error: DbError| error)?
}

/// "Open notification access": where the platform can ask the person, it does.
pub(crate) async fn ask(app: &App) -> Result<(), Failure> {
    if app.db.read(store::sync).await?.waiting_since.is_some() {
        return turn(app, true).await.map(drop);
    }
    let source = app.notifications.as_ref().ok_or_else(|| Failure::failed(UNSUPPORTED))?;
    match source.ask(app.clock.now()).await {
        Access::Granted => Ok(()),
        Access::Denied(todo) | Access::Silent(todo) => Err(Failure::failed(todo)),
    }
}

/// Turns it, and says where it stands then: turned on without access, it waits.
pub(crate) async fn turn(app: &App, on: bool) -> Result<Toggle, Failure> {
    let now = app.clock.now();
    if on {
        let source = app.notifications.as_ref().ok_or_else(|| Failure::failed(UNSUPPORTED))?;
        return Ok(toggle::turn_on(&app.db, app.clock.as_ref(), source).await?);
    }
    app.db.write(move |tx| toggle::turn_off(tx, now)).await?;
    if let Some(source) = &app.notifications {
        source.changed();
    }
    Ok(Toggle::Off { hint: None })
}

/// The setting `notifications_enabled`, for those who wait for no page: what is not on is a failure.
pub(crate) async fn switch(app: &App, on: bool) -> Result<(), Failure> {
    match turn(app, on).await? {
        Toggle::On => Ok(()),
        Toggle::Off { .. } if !on => Ok(()),
        Toggle::Waiting { todo, .. } => Err(Failure::failed(format!(
            "Kai waits for access to notifications. {todo} When that is done: kai notifications refresh"
        ))),
        Toggle::Off { hint } => {
            Err(Failure::failed(format!("Notifications stay off. {}", hint.unwrap_or_default())))
        }
    }
}

/// How it stands, the platform asked whether Kai may. What is off is not asked for.
pub(crate) async fn status(app: &App) -> Result<NotificationsStatus, DbError> {
    if let Some(source) = &app.notifications
        && app.db.read(settings::load).await?.on(&NOTIFICATIONS_ENABLED)
    {
        source.access(app.clock.now()).await;
    }
    known(app).await
}

/// How it stands as far as it is known; nobody is asked.
pub(crate) async fn known(app: &App) -> Result<NotificationsStatus, DbError> {
    let now = app.clock.now();
    let read = app.db.read(move |tx| {
        let dropped = pending::dropped(tx, QUEUE)?.iter().map(|(_, count)| count).sum();
        let counts = (pending::count(tx, QUEUE)?, dropped, store::count(tx)?);
        let on = settings::load(tx)?.on(&NOTIFICATIONS_ENABLED);
        Ok::<_, DbError>((on, store::sync(tx)?, store::gaps(tx, now)?, counts))
    });
    let (enabled, sync, gaps, (queued, dropped, kept)) = read.await?;
    let access = app.notifications.as_ref().and_then(|source| source.known());
    let access = access.map_or("unknown", |access| access.name());
    Ok(NotificationsStatus {
        supported: app.notifications.is_some(),
        enabled,
        state: state(enabled, &sync, app.daemon.is_some()).to_owned(),
        access: access.to_owned(),
        bridge: app.notifications.as_ref().map(|source| source.listener.name().to_owned()),
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

/// What the store says of listening is only true while somebody runs who could.
fn state(enabled: bool, sync: &Sync, daemon: bool) -> &'static str {
    match (enabled, sync.waiting_since) {
        (true, _) if daemon && sync.listening => "listening",
        (true, _) => "inactive",
        (false, Some(_)) => "waiting",
        (false, None) => "off",
    }
}

fn row(app: &App, gap: Gap) -> GapRow {
    let zone = app.clock.zone();
    let ended_local = gap.ended.map(|at| local(at, &zone));
    GapRow { began_local: local(gap.began, &zone), ended_local, gap }
}

/// Listens in the daemon until told to stop.
pub(crate) async fn listen_on(app: Arc<App>, stop: CancellationToken) {
    let Some(source) = &app.notifications else { return };
    let capture = Capture { db: app.db.clone(), clock: Arc::clone(&app.clock), source: Arc::clone(source) };
    capture.run(stop.cancelled()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two switches on two pages, or two quick ones on one: neither takes the other back.
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
            (false, sync(false, None), true, "off"),
            (false, sync(false, Some(1)), true, "waiting"),
            (true, sync(true, None), true, "listening"),
            (true, sync(false, None), true, "inactive"),
            // Whoever listened was killed and could not say so.
            (true, sync(true, None), false, "inactive"),
        ] {
            assert_eq!(state(enabled, &sync, daemon), expected);
        }
    }
}
