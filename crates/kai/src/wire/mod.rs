//! Builds an [`App`]: opens a home and its store and connects all features. Nothing else constructs one.

mod mail;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;

use std::sync::Arc;

use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, DbError, Migration};
use kai_assistant::device::alarm::{AlarmsUnavailable, Ringer, Ringing};
use kai_assistant::device::{
    CreateCalendarEvent, LocalTime, OpenUrl, SendNotification, SetAlarm, ShellCommand,
};
use kai_assistant::drafts::CheckDrafts;
use kai_assistant::home::{Home, KeyFile};
use kai_assistant::inbox;
use kai_assistant::ledger;
use kai_assistant::manifest::MANIFEST;
use kai_assistant::mcp::hub::Hub;
use kai_assistant::mcp::tools::FindTools;
use kai_assistant::memory::promotion::PromoteLearning;
use kai_assistant::memory::{MemoryForget, MemoryLearn, MemoryReinforce, MemoryStore};
use kai_assistant::outbox::door::Door;
use kai_assistant::settings::{self, MEMORY_ENABLED, SCHEDULING_ENABLED};
use kai_assistant::tasks::{CancelTask, ListTasks, ScheduleTask};
use kai_assistant::tool::AnyTool;
use kai_assistant::toolbox::{EnabledBy, Entry, Toolbox};
use kai_assistant::web::{
    FetchUrl, LocationFromIp, LocationServices, SearchServices, SystemResolver, Web, WebSearch,
};
use kai_llm::{Http, Limits};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::app::downloads::Downloads;
use crate::app::last_noted::LastNoted;
use crate::app::mail::Mail;
use crate::app::messages::{ANSWERABLE, Messages};
use crate::app::{App, Role, facts, sessions};
use crate::caller_env::{self, CallerEnv};
use crate::failure::Failure;
use crate::home::Keys;
use crate::machine::Machine;
use crate::machine::engine::Engine;

/// Unlocks the home and opens its store.
pub(crate) fn open(home: Home, keys: Keys, role: Role) -> Result<App, Failure> {
    let (key_file, key) = keys.unlock(&home)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let db = db::open(&home, &key, &migrations(), clock.now())?;
    // A demo never gets a real phone, no matter which process opens it.
    let machine = if home.is_demo() {
        messages::simulated(role, &clock)
    } else {
        Machine::found(&db.read_now(settings::load)?, &home)
    };
    let ringer = ringer(&db, &clock, &machine, role);
    let env = caller_env::here();
    let last_noted = last_noted(&db, role)?;
    let opened = Opened { home, key_file, db, clock, machine, ringer, env };
    Ok(App { last_noted, ..put_together(opened, &Internet::real()) })
}

/// The app of a home that does not exist yet, as it would be: with every setting as it begins. Its store is in memory, so
/// that looking creates nothing.
pub(crate) fn imagined(home: Home) -> Result<App, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let db = Db::in_memory(&migrations())?;
    let machine = Machine::found(&db.read_now(settings::load)?, &home);
    let (ringer, env) = (Err(AlarmsUnavailable::NoDaemon), caller_env::here());
    let opened = Opened { home, key_file: KeyFile::none(), db, clock, machine, ringer, env };
    Ok(put_together(opened, &Internet::real()))
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
    ringer: Result<Ringer, AlarmsUnavailable>,
    env: CallerEnv,
}

fn put_together(opened: Opened, internet: &Internet) -> App {
    let Opened { home, key_file, db, clock, machine, ringer, env } = opened;
    let door = Door {
        db: db.clone(),
        clock: Arc::clone(&clock),
        senders: Arc::default(),
        mailer: machine.mail.as_ref().map(|servers| Arc::new(Mail::mailer(servers, &db)) as _),
        answerable: ANSWERABLE,
        under_way: Arc::default(),
    };
    let messages = Messages::new(machine.messages.clone(), &db, &clock, &door);
    let mail = machine.mail.clone().map(|servers| Mail::new(servers, &db, &clock));
    let mut sources = messages.sources(&clock, &door);
    sources.extend(mail.as_ref().map(|mail| Box::new(mail.source(&clock)) as _));
    let inbox = inbox::Sources::new(sources);
    let toolbox = toolbox(&Parts {
        home: &home,
        internet,
        db: &db,
        clock: &clock,
        machine: &machine,
        ringer: ringer.as_ref().map_err(|mute| *mute),
        messages: &messages,
        door: &door,
        mail: mail.as_ref(),
    });
    App {
        home,
        key_place: key_file.place.kind(),
        home_id: key_file.home,
        toolbox,
        db,
        clock,
        manifest: MANIFEST,
        engine: Engine::default(),
        http: Http::new(Limits::default()),
        env,
        ringer: ringer.ok(),
        opener: machine.opener,
        notifier: machine.notifier,
        sandbox: machine.sandbox,
        door,
        inbox,
        mail,
        messages,
        downloads: Downloads::new(),
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

/// Only the daemon rings alarms, and only if it can show notifications.
fn ringer(
    db: &Db,
    clock: &Arc<dyn Clock>,
    machine: &Machine,
    role: Role,
) -> Result<Ringer, AlarmsUnavailable> {
    if role == Role::Command {
        return Err(AlarmsUnavailable::NoDaemon);
    }
    let notifier = machine.notifier.clone().ok_or(AlarmsUnavailable::NoNotifier)?;
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
    ringer: Result<&'a Ringer, AlarmsUnavailable>,
    #[cfg_attr(not(feature = "foss"), expect(dead_code, reason = "this edition has none"))]
    messages: &'a Messages,
    #[cfg_attr(not(feature = "foss"), expect(dead_code, reason = "this edition has no phones"))]
    door: &'a Door,
    mail: Option<&'a Mail>,
}

fn toolbox(parts: &Parts<'_>) -> Toolbox {
    let Parts { home, db, clock, machine, ringer, .. } = *parts;
    let switched = |tool, on_by_default| Entry { tool, governed: EnabledBy::OwnSwitch { on_by_default } };
    let own = |tool: Arc<dyn AnyTool>| switched(tool, true);
    let off = |tool: Arc<dyn AnyTool>| switched(tool, false);
    let memory =
        |tool: Arc<dyn AnyTool>| Entry { tool, governed: EnabledBy::Features(vec![&MEMORY_ENABLED]) };
    let promoting = |tool: Arc<dyn AnyTool>| Entry {
        tool,
        governed: EnabledBy::Features(vec![&MEMORY_ENABLED, &SCHEDULING_ENABLED]),
    };
    let tasks =
        |tool: Arc<dyn AnyTool>| Entry { tool, governed: EnabledBy::Features(vec![&SCHEDULING_ENABLED]) };
    let Internet { web, search, location } = parts.internet.clone();
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
    entries.extend(messages::tools(parts));
    entries.extend(mail::tools(parts));
    entries.push(Entry {
        tool: Arc::new(CheckDrafts { db: db.clone(), clock: Arc::clone(clock) }),
        governed: EnabledBy::Company([mail::DRAFTING, messages::DRAFTING].concat()),
    });
    entries
        .push(Entry { tool: Arc::new(FindTools { db: db.clone() }), governed: EnabledBy::Features(vec![]) });
    let toolbox = Toolbox::new(entries);
    let toolbox = match &machine.servers {
        Some(servers) => toolbox.with_servers(Hub::new(db.clone(), Arc::clone(servers))),
        None => toolbox,
    };
    if home.is_demo() { toolbox.apart() } else { toolbox }
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
