//! The only constructor: puts a home, its store and the features together.

use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, Migration};
use kai_assistant::device::alarm::{Mute, Ringer};
use kai_assistant::device::{
    CreateCalendarEvent, LocalTime, OpenUrl, SendNotification, SetAlarm, ShellCommand,
};
use kai_assistant::home::{Home, HomeId};
use kai_assistant::manifest::{MANIFEST, Manifest};
use kai_assistant::memory::{MemoryForget, MemoryLearn, MemoryReinforce, MemoryStore};
use kai_assistant::settings::{LANGUAGE, Values};
use kai_assistant::tool::AnyTool;
use kai_assistant::toolbox::{Entry, Feature, Governed, Toolbox};
use kai_assistant::web::{
    FetchUrl, LocationFromIp, LocationServices, SearchServices, SystemResolver, Web, WebSearch,
};
use kai_assistant::words::Words;

use kai_llm::{Http, Limits};

use crate::around;
use crate::call::Around;
use crate::failure::Failure;
use crate::home::Keys;
use crate::machine::Machine;

/// An opened Kai: what commands, daemon and page all work on.
pub(crate) struct App {
    pub(crate) home: Home,
    pub(crate) home_id: HomeId,
    /// Where the key lies: "file", "keyring" or "passphrase".
    pub(crate) key_place: &'static str,
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) toolbox: Toolbox,
    pub(crate) manifest: Manifest,
    /// The one way to models; connections are kept.
    pub(crate) http: Http,
    /// What the environment of this process says.
    pub(crate) around: Around,
    /// Rings alarms; in a daemon that can show notifications.
    pub(crate) ringer: Option<Ringer>,
    /// Who tells of other apps' notifications.
    #[cfg(feature = "notifications")]
    pub(crate) notifications: Option<Arc<kai_assistant::notifications::Source>>,
    /// Set in the daemon only.
    pub(crate) daemon: Option<Running>,
}

/// What the daemon knows of itself.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) address: String,
    pub(crate) since: Timestamp,
}

/// Who opens the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A command that answers for itself and ends.
    Command,
    Daemon,
}

/// Unlocks the home and opens its store.
pub(crate) fn open(home: Home, keys: Keys, role: Role) -> Result<App, Failure> {
    let (key_file, key) = keys.unlock(&home)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let db = db::open(&home, &key, &migrations(), clock.now())?;
    let machine = Machine::found();
    let ringer = ringer(&db, &clock, &machine, role);
    let toolbox = toolbox(&home, &db, &clock, &machine, ringer.as_ref().map_err(|mute| *mute));
    Ok(App {
        home,
        home_id: key_file.home.clone(),
        key_place: key_file.place.name(),
        toolbox,
        db,
        clock,
        manifest: MANIFEST,
        http: Http::new(Limits::default()),
        around: around::here(),
        ringer: ringer.ok(),
        #[cfg(feature = "notifications")]
        notifications: machine.notifications,
        daemon: None,
    })
}

impl App {
    /// The words of the chosen language, or of the caller's.
    pub(crate) fn words(values: &Values, around: &Around) -> &'static Words {
        Words::chosen(&values.of(&LANGUAGE), &around.locale)
    }
}

pub(crate) fn migrations() -> Vec<Migration> {
    [kai_assistant::MIGRATIONS, &[crate::daemon::MIGRATION, crate::web::MIGRATION]].concat()
}

/// Alarms are rung by the daemon alone, and only where somebody would see it.
fn ringer(db: &Db, clock: &Arc<dyn Clock>, machine: &Machine, role: Role) -> Result<Ringer, Mute> {
    if role == Role::Command {
        return Err(Mute::NoDaemon);
    }
    let notifier = machine.notifier.clone().ok_or(Mute::NoNotifier)?;
    let (db, clock) = (db.clone(), Arc::clone(clock));
    Ok(Ringer { db, clock, notifier, waker: Arc::default(), locale: around::here().locale })
}

fn toolbox(
    home: &Home,
    db: &Db,
    clock: &Arc<dyn Clock>,
    machine: &Machine,
    ringer: Result<&Ringer, Mute>,
) -> Toolbox {
    let switched = |tool, on_by_default| Entry { tool, governed: Governed::OwnSwitch { on_by_default } };
    let own = |tool: Arc<dyn AnyTool>| switched(tool, true);
    let off = |tool: Arc<dyn AnyTool>| switched(tool, false);
    let memory = |tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::Features(&[Feature::Memory]) };
    let web = Web::new(SystemResolver);
    let (search, location) = (SearchServices::default(), LocationServices::default());
    let entries = vec![
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
        off(Arc::new(ShellCommand)),
        own(Arc::new(WebSearch { db: db.clone(), web: web.clone(), services: search })),
        own(Arc::new(FetchUrl { db: db.clone(), web: web.clone() })),
        own(Arc::new(LocationFromIp { db: db.clone(), web, services: location })),
        memory(Arc::new(MemoryStore { db: db.clone(), clock: Arc::clone(clock) })),
        memory(Arc::new(MemoryForget { db: db.clone() })),
        memory(Arc::new(MemoryLearn { db: db.clone(), clock: Arc::clone(clock) })),
        memory(Arc::new(MemoryReinforce { db: db.clone() })),
    ];
    #[cfg(feature = "notifications")]
    let entries = [entries, crate::notifications::entries(db, clock, machine.notifications.as_ref())]
        .into_iter()
        .flatten()
        .collect();
    Toolbox::new(entries)
}

#[cfg(test)]
impl App {
    /// An app over a store in memory, with a clock that stands.
    pub(crate) fn for_tests(clock: Arc<dyn Clock>) -> (Self, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        let nobody = kai_assistant::home::Unlock { keyring: None, passphrase: &|| Ok(None) };
        let (key_file, _) = home.unlock(&nobody).unwrap();
        let db = Db::in_memory(&migrations()).unwrap();
        let machine = Machine::default();
        let toolbox = toolbox(&home, &db, &clock, &machine, Err(Mute::NoDaemon));
        let app = Self {
            home,
            home_id: key_file.home,
            key_place: "file",
            db,
            clock,
            toolbox,
            manifest: MANIFEST,
            http: Http::new(Limits::default()),
            around: Around::default(),
            ringer: None,
            #[cfg(feature = "notifications")]
            notifications: None,
            daemon: None,
        };
        (app, folder)
    }
}
