//! The only constructor: puts a home, its store and the features together.

use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::clock::{Clock, SystemClock};
use kai_assistant::db::{self, Db, Migration};
use kai_assistant::device::LocalTime;
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

/// Unlocks the home and opens its store.
pub(crate) fn open(home: Home, keys: Keys) -> Result<App, Failure> {
    let (key_file, key) = keys.unlock(&home)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let db = db::open(&home, &key, &migrations(), clock.now())?;
    Ok(App {
        home,
        home_id: key_file.home.clone(),
        key_place: key_file.place.name(),
        toolbox: toolbox(&db, &clock),
        db,
        clock,
        manifest: MANIFEST,
        http: Http::new(Limits::default()),
        around: around::here(),
        daemon: None,
    })
}

impl App {
    /// The words of the chosen language, or of the caller's.
    pub(crate) fn words(values: &Values, around: &Around) -> &'static Words {
        match values.of(&LANGUAGE).as_str() {
            "system" => Words::of(&around.locale),
            chosen => Words::of(chosen),
        }
    }
}

pub(crate) fn migrations() -> Vec<Migration> {
    [kai_assistant::MIGRATIONS, &[crate::daemon::MIGRATION, crate::web::MIGRATION]].concat()
}

fn toolbox(db: &Db, clock: &Arc<dyn Clock>) -> Toolbox {
    let own = |tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::OwnSwitch { on_by_default: true } };
    let memory = |tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::Feature(Feature::Memory) };
    let web = Web::new(SystemResolver);
    let (search, location) = (SearchServices::default(), LocationServices::default());
    Toolbox::new(vec![
        own(Arc::new(LocalTime { clock: Arc::clone(clock) })),
        own(Arc::new(WebSearch { db: db.clone(), web: web.clone(), services: search })),
        own(Arc::new(FetchUrl { db: db.clone(), web: web.clone() })),
        own(Arc::new(LocationFromIp { db: db.clone(), web, services: location })),
        memory(Arc::new(MemoryStore { db: db.clone(), clock: Arc::clone(clock) })),
        memory(Arc::new(MemoryForget { db: db.clone() })),
        memory(Arc::new(MemoryLearn { db: db.clone(), clock: Arc::clone(clock) })),
        memory(Arc::new(MemoryReinforce { db: db.clone() })),
    ])
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
        let toolbox = toolbox(&db, &clock);
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
            daemon: None,
        };
        (app, folder)
    }
}
