//! Notifications of other apps: lists, searches and deletes them, turns reading on and off, and reports the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::access::{Access, AccessState};
use kai_assistant::db::DbError;
use kai_assistant::notifications::capture::Captures;
use kai_assistant::notifications::store::{self, Gap, Sync};
use kai_assistant::notifications::toggle::{self, Toggle};
use kai_assistant::notifications::view::{Item, PhoneNames, Wanted, Whole, local};
use kai_assistant::notifications::{NotificationId, QUEUE, Record, Source, repeats};
use kai_assistant::pending::{self, PhoneShare};
use kai_assistant::phones;
use kai_assistant::settings::{self, NOTIFICATIONS_ENABLED, NOTIFICATIONS_IGNORED};
use kai_assistant::sms::archive;
use kai_assistant::source::SourceId;
use kai_assistant::tool::Eyes;
use kai_words::said;
use rusqlite::Transaction;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::call::json;
use crate::call::notifications::{
    Forgotten, GapRow, ListenerState, NotificationsCall, NotificationsStatus, SourceStatus,
};
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
    let read = app.db.read(move |tx| {
        let records: Vec<Record> = if all {
            store::newest(tx, now, usize::MAX, |_| true)?
        } else {
            pending::waiting(tx, QUEUE)?.into_iter().map(|waiting| waiting.entry).collect()
        };
        Ok::<_, DbError>((records, store::phone_names(tx)?))
    });
    let (records, names) = read.await?;
    Ok(items(app, &records, &names))
}

async fn search(app: &App, text: &str, package_name: Option<&str>) -> Result<Vec<Item>, Failure> {
    let wanted = Wanted::new(text, package_name)
        .ok_or_else(|| Failure::usage("The search text is empty. Type what to search for."))?;
    let now = app.clock.now();
    let search = app.db.read(move |tx| {
        let found = store::newest(tx, now, 20, |record| wanted.is_in(record, Eyes::All))?;
        Ok::<_, DbError>((found, store::phone_names(tx)?))
    });
    let (found, names) = search.await?;
    Ok(items(app, &found, &names))
}

fn items(app: &App, records: &[Record], names: &PhoneNames) -> Vec<Item> {
    let zone = app.clock.zone();
    records.iter().map(|record| Item::of(record, names, &zone, Eyes::All)).collect()
}

async fn read(app: &App, id: String) -> Result<Whole, Failure> {
    let (wanted, now) = (NotificationId::new(id.trim()), app.clock.now());
    let read =
        app.db.read(move |tx| Ok::<_, DbError>((store::find(tx, &wanted, now)?, store::phone_names(tx)?)));
    let (found, names) = read.await?;
    let unknown = || format!("There is no notification with the id {id}. See: kai notifications list --all");
    let record = found.ok_or_else(|| Failure::failed(unknown()))?;
    Ok(Whole::of(&record, &names, &app.clock.zone(), Eyes::All, usize::MAX))
}

/// Whether notifications can be read at all: this machine reports them, or a phone is paired.
pub(crate) async fn is_supported(app: &App) -> Result<bool, DbError> {
    Ok(app.messages.notifications.here().is_some() || !app.db.read(phones::store::all).await?.is_empty())
}

async fn need_support(app: &App) -> Result<(), Failure> {
    if is_supported(app).await? { Ok(()) } else { Err(unsupported()) }
}

fn unsupported() -> Failure {
    Failure::failed(said::notifications_unsupported())
}

/// Checks now: for access if Kai is waiting for it, then for notifications if reading is on.
pub(crate) async fn refresh(app: &App) -> Result<(), Failure> {
    need_support(app).await?;
    let here = app.messages.notifications.here();
    if let Some(here) = &here {
        toggle::come_back(&app.db, app.clock.as_ref(), here).await?;
    }
    if !app.db.read(settings::load).await?.on(&NOTIFICATIONS_ENABLED) {
        return Ok(());
    }
    match here {
        _ if app.daemon.is_some() => app.messages.notifications.check_now(LOOK).await,
        Some(here) => drop(here.ask(app.clock.now()).await),
        None => {}
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
    if app.db.read(|tx| store::sync(tx, SourceId::HERE)).await?.waiting_since.is_some() {
        return turn(app, true).await.map(drop);
    }
    let source = app.messages.notifications.here().ok_or_else(unsupported)?;
    match source.ask(app.clock.now()).await {
        Access::Granted => Ok(()),
        Access::Denied(todo) | Access::Silent(todo) => Err(Failure::failed(todo)),
    }
}

/// Turns reading on or off and returns the resulting state. Turned on without access, it waits for access.
pub(crate) async fn turn(app: &App, on: bool) -> Result<Toggle, Failure> {
    let (now, sources) = (app.clock.now(), &app.messages.notifications);
    if on {
        need_support(app).await?;
        return Ok(toggle::turn_on(&app.db, app.clock.as_ref(), sources).await?);
    }
    app.db.write(move |tx| toggle::turn_off(tx, now)).await?;
    sources.changed();
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

/// The status, after asking the platforms whether Kai has access. Does not ask while reading is off.
pub(crate) async fn status(app: &App) -> Result<NotificationsStatus, DbError> {
    if app.db.read(settings::load).await?.on(&NOTIFICATIONS_ENABLED) {
        app.messages.notifications.probe_access(&app.db, app.clock.now()).await?;
    }
    known(app).await
}

/// The status as far as it is known, without asking the platforms. As a whole it speaks of this machine's own source,
/// otherwise of the first phone that is read.
pub(crate) async fn known(app: &App) -> Result<NotificationsStatus, DbError> {
    let now = app.clock.now();
    let read = app.db.read(move |tx| {
        let on = settings::load(tx)?.on(&NOTIFICATIONS_ENABLED);
        Ok::<_, DbError>((on, store::sync(tx, SourceId::HERE)?.hint, stored(tx, now)?, totals(tx)?))
    });
    let (enabled, hint, (here, phones), (queued, dropped, kept)) = read.await?;
    let here = source_status(app, enabled, here);
    let phones: Vec<SourceStatus> = phones.into_iter().map(|it| source_status(app, enabled, it)).collect();
    let own = app.messages.notifications.here().map(|_| here.clone());
    let read = phones.iter().find(|phone| phone.enabled).or(phones.first());
    let main = own.clone().or_else(|| read.cloned()).unwrap_or(here);
    let sources: Vec<SourceStatus> = own.into_iter().chain(phones).collect();
    Ok(NotificationsStatus {
        supported: !sources.is_empty(),
        enabled,
        state: main.state,
        access: main.access,
        bridge: main.bridge,
        queued,
        dropped,
        kept,
        last_seen_id: main.last_seen_id,
        last_sync: main.last_sync,
        last_attempt: main.last_attempt,
        unread_count: queued,
        last_error: main.last_error,
        hint,
        gaps: main.gaps,
        sources,
    })
}

/// How many are queued, were dropped and are kept, of all sources together.
fn totals(tx: &Transaction<'_>) -> Result<(u32, u32, u32), DbError> {
    let dropped = pending::dropped(tx, QUEUE)?.iter().map(|(_, count)| count).sum();
    Ok((pending::count(tx, QUEUE)?, dropped, store::count(tx)?))
}

/// What the store holds about one source.
struct Stored {
    source: SourceId,
    /// The name of a paired phone.
    name: Option<String>,
    /// A paired phone's own switch is on.
    allowed: bool,
    sync: Sync,
    gaps: Vec<Gap>,
    share: Option<PhoneShare>,
    kept: u32,
}

/// What the store holds about this machine's own source and about each paired phone.
fn stored(tx: &Transaction<'_>, now: jiff::Timestamp) -> Result<(Stored, Vec<Stored>), DbError> {
    let (shares, counts) = (pending::by_phone(tx, QUEUE)?, store::counts(tx)?);
    let one = |source, name, allowed| {
        Ok::<_, DbError>(Stored {
            source,
            name,
            allowed,
            sync: store::sync(tx, source)?,
            gaps: store::gaps(tx, source, now)?,
            share: shares.iter().find(|share| share.phone == source).copied(),
            kept: counts.get(&source).copied().unwrap_or_default(),
        })
    };
    let phones = phones::store::all(tx)?.into_iter();
    let phones = phones.map(|phone| one(phone.source, Some(phone.name), phone.switches.notifications));
    Ok((one(SourceId::HERE, None, true)?, phones.collect::<Result<_, _>>()?))
}

fn source_status(app: &App, feature_on: bool, stored: Stored) -> SourceStatus {
    let Stored { source, name, allowed, sync, gaps, share, kept } = stored;
    let (enabled, listener) = (feature_on && allowed, app.messages.notifications.get(source));
    SourceStatus {
        source,
        name,
        bridge: listener.as_ref().map(|source| source.listener.name().to_owned()),
        enabled,
        state: state(enabled, &sync, app.daemon.is_some()),
        access: access(listener.as_deref()),
        queued: share.map_or(0, |share| share.waiting),
        dropped: share.map_or(0, |share| share.dropped),
        kept,
        last_seen_id: sync.last_seen_id,
        last_sync: sync.last_sync_at,
        last_attempt: sync.last_attempt_at,
        last_error: sync.last_error,
        gaps: gaps.into_iter().map(|gap| row(app, gap)).collect(),
    }
}

fn access(source: Option<&Source>) -> AccessState {
    source.and_then(Source::known).map_or(AccessState::Unknown, |access| access.state())
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

/// Captures the notifications of every source in the daemon until told to stop.
pub(crate) async fn listen_on(app: Arc<App>, stop: CancellationToken) {
    let captures = Captures {
        db: app.db.clone(),
        clock: Arc::clone(&app.clock),
        sources: Arc::clone(&app.messages.notifications),
        repeats_sms: Arc::new(repeats_sms),
    };
    captures.run(stop.cancelled()).await;
}

/// Whether a notification repeats an SMS that came from the same phone.
fn repeats_sms(tx: &Transaction<'_>, source: SourceId, record: &Record) -> Result<bool, DbError> {
    let came = archive::received(tx, source, &repeats::dates(record))?;
    Ok(came.iter().any(|(date, body)| repeats::repeats(record, *date, body)))
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

    /// Pairs a phone whose notifications are read, and lets it show one.
    async fn pair(app: &App) -> SourceId {
        use kai_assistant::notifications::port::Heard;
        use kai_assistant::notifications::record::Post;
        let now = app.clock.now();
        let new = phones::store::NewPhone {
            device: "a".to_owned(),
            name: "Pixel".to_owned(),
            certificate: vec![1],
            protocol: 8,
        };
        let paired = app.db.write(move |tx| {
            let phone = phones::store::pair(tx, &new, now)?.source;
            toggle::switch_phone(tx, phone, true, now)?;
            let post = Post::new(NotificationId::new("1"), "org.app", "Alice", "Hi");
            let heard = [Heard::Bound { standing: vec![] }, Heard::Posted(Box::new(post))];
            store::hear(tx, phone, heard.iter().map(|heard| (now, heard)), &repeats::never)?;
            Ok::<_, DbError>(phone)
        });
        paired.await.unwrap()
    }

    fn clock() -> Arc<kai_assistant::clock::ManualClock> {
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        Arc::new(kai_assistant::clock::ManualClock::at(now))
    }

    #[tokio::test]
    async fn a_paired_phone_is_enough() {
        let (app, _folder) = App::for_tests(clock());
        assert!(!known(&app).await.unwrap().supported && turn(&app, true).await.is_err());
        let pixel = pair(&app).await;
        let status = known(&app).await.unwrap();
        let [source] = status.sources.as_slice() else { panic!("{status:?}") };
        assert_eq!((source.source, source.name.as_deref(), source.queued), (pixel, Some("Pixel"), 1));
        assert!(status.supported && status.enabled && !status.has_own());
        assert_eq!(
            (status.state, status.queued, status.kept),
            (source.state, 1, 1),
            "it speaks of the phone"
        );
        assert_eq!(status.last_seen_id, Some(NotificationId::new("p2:1")));
        assert_eq!(turn(&app, true).await.unwrap(), Toggle::On);
        let listed = list(&app, false).await.unwrap();
        assert_eq!((listed[0].id.as_str(), &listed[0].phone), ("p2:1", &None), "there is only one");
        turn(&app, false).await.unwrap();
        let status = known(&app).await.unwrap();
        assert!(status.keeps() && !status.sources[0].enabled);
        forget(&app).await.unwrap();
        assert!(!known(&app).await.unwrap().keeps());
    }

    #[tokio::test]
    async fn beside_this_machines_own_a_phone_is_one_of_the_sources() {
        let clock = clock();
        let phone = kai_bridges::simulated::Phone::new(clock.clone());
        let (app, _folder) = App::with_phone(clock, Arc::new(phone));
        let pixel = pair(&app).await;
        let status = known(&app).await.unwrap();
        let sources: Vec<(SourceId, u32)> = status.sources.iter().map(|it| (it.source, it.queued)).collect();
        assert_eq!(sources, [(SourceId::HERE, 0), (pixel, 1)]);
        assert_eq!(
            (status.bridge.as_deref(), status.queued),
            (Some("simulated"), 1),
            "the numbers are summed"
        );
        assert_eq!((status.last_seen_id.as_ref(), status.has_own()), (None, true), "the rest is its own");
        assert_eq!(status.phones().map(|(name, _)| name).collect::<Vec<_>>(), ["Pixel"]);
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
