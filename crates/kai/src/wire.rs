//! Builds an [`App`]: opens a home and its store and connects all features. Nothing else constructs one.

use std::sync::Arc;

use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, DbError, Migration};
use kai_assistant::device::alarm::{Mute, Ringer, Ringing};
use kai_assistant::device::{
    CreateCalendarEvent, LocalTime, OpenUrl, SendNotification, SetAlarm, ShellCommand,
};
use kai_assistant::home::{Home, KeyFile};
use kai_assistant::manifest::MANIFEST;
use kai_assistant::memory::promotion::PromoteLearning;
use kai_assistant::memory::{MemoryForget, MemoryLearn, MemoryReinforce, MemoryStore};
#[cfg(feature = "foss")]
use kai_assistant::notifications::{
    CheckNotifications, DismissNotification, ReadNotification, SearchNotifications, Shelf,
};
#[cfg(feature = "foss")]
use kai_assistant::sms::{CheckDrafts, CheckSms, ReadSms, ReplySms, SearchSms, SendSms};
use kai_assistant::tasks::{CancelTask, ListTasks, ScheduleTask};
use kai_assistant::tool::AnyTool;
use kai_assistant::toolbox::{Entry, Feature, Governed, Toolbox};
use kai_assistant::web::{
    FetchUrl, LocationFromIp, LocationServices, SearchServices, SystemResolver, Web, WebSearch,
};
use kai_assistant::{ledger, settings};
#[cfg(feature = "foss")]
use kai_bridges::simulated;
use kai_llm::{Http, Limits};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::app::last_noted::LastNoted;
#[cfg(feature = "foss")]
use crate::app::phone::Phone;
use crate::app::{App, Role, facts, sessions};
use crate::caller_env::{self, CallerEnv};
use crate::failure::Failure;
use crate::home::Keys;
use crate::machine::{Machine, NOT_IN_DEMO};

/// Unlocks the home and opens its store.
pub(crate) fn open(home: Home, keys: Keys, role: Role) -> Result<App, Failure> {
    let (key_file, key) = keys.unlock(&home)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let db = db::open(&home, &key, &migrations(), clock.now())?;
    // A demo never gets a real phone, no matter which process opens it.
    let machine = if home.is_demo() {
        simulated(role, &clock)
    } else {
        Machine::found(&db.read_now(settings::load)?, &home)
    };
    let ringer = ringer(&db, &clock, &machine, role);
    let env = caller_env::here();
    let last_noted = last_noted(&db, role)?;
    let opened = Opened { home, key_file, db, clock, machine, ringer, env };
    Ok(App { last_noted, ..put_together(opened, &Internet::real()) })
}

/// How far the note beside the key is assumed to be up to date. A daemon reads the note when it starts. A command
/// assumes that it is current and only updates it after appending records itself, because accessing a keyring is slow.
fn last_noted(db: &Db, role: Role) -> Result<LastNoted, DbError> {
    let end = match role {
        Role::Daemon => None,
        Role::Command => db.read_now(ledger::end)?,
    };
    Ok(end.map(|end| LastNoted::up_to(end.seq)).unwrap_or_default())
}

/// An opened store and the machine it runs on.
struct Opened {
    home: Home,
    key_file: KeyFile,
    db: Db,
    clock: Arc<dyn Clock>,
    machine: Machine,
    ringer: Result<Ringer, Mute>,
    env: CallerEnv,
}

fn put_together(opened: Opened, internet: &Internet) -> App {
    let Opened { home, key_file, db, clock, machine, ringer, env } = opened;
    #[cfg(feature = "foss")]
    let phone = Phone::new(machine.phone.clone(), &db, &clock);
    let toolbox = toolbox(&Parts {
        home: &home,
        internet,
        db: &db,
        clock: &clock,
        machine: &machine,
        ringer: ringer.as_ref().map_err(|mute| *mute),
        #[cfg(feature = "foss")]
        phone: &phone,
    });
    App {
        home,
        key_place: key_file.place.kind(),
        home_id: key_file.home,
        toolbox,
        db,
        clock,
        manifest: MANIFEST,
        http: Http::new(Limits::default()),
        env,
        ringer: ringer.ok(),
        opener: machine.opener,
        notifier: machine.notifier,
        sandbox: machine.sandbox,
        #[cfg(feature = "foss")]
        phone,
        #[cfg(feature = "foss")]
        demo: machine.demo,
        #[cfg(feature = "foss")]
        notifications: machine.notifications,
        #[cfg(feature = "foss")]
        tray: machine.tray,
        pages: watch::Sender::default(),
        daemon: None,
        erase: CancellationToken::new(),
        stop: CancellationToken::new(),
        last_noted: LastNoted::default(),
    }
}

pub(crate) fn migrations() -> Vec<Migration> {
    [kai_assistant::MIGRATIONS, &[facts::MIGRATION], &sessions::MIGRATIONS].concat()
}

/// The demo's machine. The simulated phone only exists in the daemon.
#[cfg(feature = "foss")]
fn simulated(role: Role, clock: &Arc<dyn Clock>) -> Machine {
    match role {
        Role::Daemon => Machine::simulated(Arc::new(simulated::Phone::with_inbox(Arc::clone(clock)))),
        Role::Command => Machine::default(),
    }
}

#[cfg(not(feature = "foss"))]
fn simulated(_: Role, _: &Arc<dyn Clock>) -> Machine {
    Machine::default()
}

/// Only the daemon rings alarms, and only if it can show notifications.
fn ringer(db: &Db, clock: &Arc<dyn Clock>, machine: &Machine, role: Role) -> Result<Ringer, Mute> {
    if role == Role::Command {
        return Err(Mute::NoDaemon);
    }
    let notifier = machine.notifier.clone().ok_or(Mute::NoNotifier)?;
    let (db, clock) = (db.clone(), Arc::clone(clock));
    let (waker, locale, ringing) = (Arc::default(), caller_env::here().locale, Ringing::default());
    Ok(Ringer { db, clock, notifier, waker, locale, ringing })
}

/// Web access and the online services that tools use.
#[derive(Clone)]
struct Internet {
    web: Web,
    search: SearchServices,
    location: LocationServices,
}

impl Internet {
    fn real() -> Self {
        let web = Web::new(SystemResolver);
        Self { web, search: SearchServices::default(), location: LocationServices::default() }
    }
}

/// What the tools are built from.
struct Parts<'a> {
    home: &'a Home,
    internet: &'a Internet,
    db: &'a Db,
    clock: &'a Arc<dyn Clock>,
    machine: &'a Machine,
    ringer: Result<&'a Ringer, Mute>,
    #[cfg(feature = "foss")]
    phone: &'a Phone,
}

fn toolbox(parts: &Parts<'_>) -> Toolbox {
    let Parts { home, db, clock, machine, ringer, .. } = *parts;
    let switched = |tool, on_by_default| Entry { tool, governed: Governed::OwnSwitch { on_by_default } };
    let own = |tool: Arc<dyn AnyTool>| switched(tool, true);
    let off = |tool: Arc<dyn AnyTool>| switched(tool, false);
    let memory = |tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::Features(&[Feature::Memory]) };
    let promoting = |tool: Arc<dyn AnyTool>| Entry {
        tool,
        governed: Governed::Features(&[Feature::Memory, Feature::Scheduling]),
    };
    let tasks = |tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::Features(&[Feature::Scheduling]) };
    let Internet { web, search, location } = parts.internet.clone();
    #[cfg_attr(not(feature = "foss"), expect(unused_mut, reason = "the foss edition has more"))]
    let mut entries = vec![
        own(Arc::new(LocalTime { clock: Arc::clone(clock) })),
        own(Arc::new(OpenUrl { opener: machine.opener.clone(), db: db.clone(), files: home.files() })),
        own(Arc::new(SendNotification { notifier: machine.notifier.clone() })),
        own(Arc::new(CreateCalendarEvent {
            clock: Arc::clone(clock),
            opener: machine.opener.clone(),
            files: home.files(),
        })),
        own(Arc::new(SetAlarm {
            db: db.clone(),
            clock: Arc::clone(clock),
            ringing: ringer.map(Ringer::waker),
        })),
        off(Arc::new(ShellCommand {
            db: db.clone(),
            sandbox: machine.sandbox.clone(),
            home: home.dir.clone(),
        })),
        own(Arc::new(WebSearch { db: db.clone(), web: web.clone(), services: search })),
        own(Arc::new(FetchUrl { db: db.clone(), web: web.clone() })),
        own(Arc::new(LocationFromIp { db: db.clone(), web, services: location })),
        memory(Arc::new(MemoryStore { db: db.clone(), clock: Arc::clone(clock) })),
        memory(Arc::new(MemoryForget { db: db.clone() })),
        memory(Arc::new(MemoryLearn { db: db.clone(), clock: Arc::clone(clock) })),
        memory(Arc::new(MemoryReinforce { db: db.clone() })),
        promoting(Arc::new(PromoteLearning { db: db.clone(), clock: Arc::clone(clock) })),
        tasks(Arc::new(ScheduleTask { db: db.clone(), clock: Arc::clone(clock) })),
        tasks(Arc::new(ListTasks { db: db.clone(), clock: Arc::clone(clock) })),
        tasks(Arc::new(CancelTask { db: db.clone() })),
    ];
    #[cfg(feature = "foss")]
    entries.extend(sms_tools(parts));
    #[cfg(feature = "foss")]
    entries.extend(notification_tools(parts));
    let toolbox = Toolbox::new(entries);
    if home.is_demo() { toolbox.apart(NOT_IN_DEMO) } else { toolbox }
}

#[cfg(feature = "foss")]
fn sms_tools(parts: &Parts<'_>) -> Vec<Entry> {
    let (db, clock, inbox, sending) =
        (parts.db, parts.clock, parts.phone.inbox.clone(), parts.phone.sending());
    let on = |features, tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::Features(features) };
    let (db, clock, inbox, sending) =
        (|| db.clone(), || Arc::clone(clock), || inbox.clone(), || sending.clone());
    vec![
        on(&[Feature::ReadSms], Arc::new(CheckSms { db: db(), clock: clock(), inbox: inbox() })),
        on(&[Feature::ReadSms], Arc::new(ReadSms { db: db(), clock: clock(), inbox: inbox() })),
        on(&[Feature::ReadSms], Arc::new(SearchSms { db: db(), clock: clock(), inbox: inbox() })),
        on(
            &[Feature::SendSms],
            Arc::new(SendSms { db: db(), clock: clock(), inbox: inbox(), sending: sending() }),
        ),
        on(
            &[Feature::SendSms, Feature::ReadSms],
            Arc::new(ReplySms { db: db(), clock: clock(), inbox: inbox(), sending: sending() }),
        ),
        on(&[Feature::SendSms], Arc::new(CheckDrafts { db: db(), clock: clock() })),
    ]
}

/// The notification tools, in the order in which the model sees them.
#[cfg(feature = "foss")]
fn notification_tools(parts: &Parts<'_>) -> Vec<Entry> {
    let shelf = || Shelf {
        db: parts.db.clone(),
        clock: Arc::clone(parts.clock),
        source: parts.machine.notifications.clone(),
    };
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

#[cfg(test)]
impl App {
    /// An app with an in-memory store and a clock that the test controls.
    pub(crate) fn for_tests(clock: Arc<dyn Clock>) -> (Self, tempfile::TempDir) {
        Self::on(clock, Machine::default(), Role::Daemon)
    }

    /// The same with this machine, opened by a daemon or by a command.
    pub(crate) fn on(clock: Arc<dyn Clock>, machine: Machine, role: Role) -> (Self, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        (Self::in_memory(home, clock, machine, role, &Internet::real()), folder)
    }

    /// The demo's app with this phone; its model plays the script.
    #[cfg(feature = "foss")]
    pub(crate) fn with_phone(
        clock: Arc<dyn Clock>,
        phone: Arc<simulated::Phone>,
    ) -> (Self, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap().demo().unwrap();
        (Self::in_memory(home, clock, Machine::simulated(phone), Role::Daemon, &Internet::real()), folder)
    }

    /// An app on this machine whose internet is one server on loopback: every page and service resolves to it.
    #[cfg(feature = "foss")]
    pub(crate) fn under_attack(
        clock: Arc<dyn Clock>,
        machine: Machine,
        server: std::net::SocketAddr,
    ) -> (Self, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        let web = Web::with_stand_ins(SystemResolver, vec![server.ip()]);
        let at = |path: &str| std::borrow::Cow::from(format!("http://{server}/{path}"));
        let search = SearchServices { duckduckgo: at("search"), brave: at("search"), tavily: at("search") };
        let location = LocationServices { ipwho: at("location"), ipapi: at("location") };
        (Self::in_memory(home, clock, machine, Role::Daemon, &Internet { web, search, location }), folder)
    }

    fn in_memory(
        home: Home,
        clock: Arc<dyn Clock>,
        machine: Machine,
        role: Role,
        internet: &Internet,
    ) -> Self {
        let nobody = kai_assistant::home::Unlock { keyring: None, passphrase: &|| Ok(None) };
        let (key_file, _) = home.unlock(&nobody).unwrap();
        let db = Db::in_memory(&migrations()).unwrap();
        let (ringer, env) = (ringer(&db, &clock, &machine, role), CallerEnv::default());
        put_together(Opened { home, key_file, db, clock, machine, ringer, env }, internet)
    }
}
