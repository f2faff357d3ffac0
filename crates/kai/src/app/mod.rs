//! An opened Kai: what commands, daemon and page all work on. [`wire`](crate::wire) puts it together.

pub(crate) mod facts;
pub(crate) mod last_noted;
#[cfg(feature = "foss")]
pub(crate) mod phone;
pub(crate) mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use kai_assistant::agent::{Driver, Face, Ready};
use kai_assistant::clock::Clock;
use kai_assistant::db::{Db, DbError};
use kai_assistant::device::alarm::Ringer;
use kai_assistant::device::shell::Sandbox;
use kai_assistant::device::{Notifier, Opener};
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::home::{Home, HomeId, KeyKind};
use kai_assistant::manifest::Manifest;
use kai_assistant::moment;
use kai_assistant::settings::{self, LANGUAGE, Values};
use kai_assistant::toolbox::Toolbox;
use kai_assistant::words::Words;
#[cfg(feature = "foss")]
use kai_bridges::simulated;
use kai_llm::Http;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::last_noted::LastNoted;
#[cfg(feature = "foss")]
use self::phone::Phone;
use crate::caller_env::CallerEnv;

/// An opened Kai: what commands, daemon and page all work on.
pub(crate) struct App {
    pub(crate) home: Home,
    pub(crate) home_id: HomeId,
    /// Where the key lies.
    pub(crate) key_place: KeyKind,
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) toolbox: Toolbox,
    pub(crate) manifest: Manifest,
    /// The one way to models; connections are kept.
    pub(crate) http: Http,
    /// What the environment of this process says.
    pub(crate) env: CallerEnv,
    /// Rings alarms; in a daemon that can show notifications.
    pub(crate) ringer: Option<Ringer>,
    /// Opens Kai's page in the person's browser.
    pub(crate) opener: Option<Arc<dyn Opener>>,
    /// Shows what Kai has to say when nobody looks at its page.
    pub(crate) notifier: Option<Arc<dyn Notifier>>,
    /// Keeps commands in.
    pub(crate) sandbox: Option<Arc<dyn Sandbox>>,
    #[cfg(feature = "foss")]
    pub(crate) phone: Phone,
    /// The phone of the demo that runs.
    #[cfg(feature = "foss")]
    pub(crate) demo: Option<Arc<simulated::Phone>>,
    /// Who tells of other apps' notifications.
    #[cfg(feature = "foss")]
    pub(crate) notifications: Option<Arc<kai_assistant::notifications::Source>>,
    /// The tray of the demo that runs.
    #[cfg(feature = "foss")]
    pub(crate) tray: Option<Arc<kai_bridges::simulated::Tray>>,
    /// How many pages are open, so that somebody looks at them.
    pub(crate) pages: watch::Sender<usize>,
    /// Set in the daemon only.
    pub(crate) daemon: Option<Running>,
    /// Cancelled when the person wants everything gone: the daemon then ends, and erases its home.
    pub(crate) erase: CancellationToken,
    /// Cancelled when the daemon is to end.
    pub(crate) stop: CancellationToken,
    /// How far the ledger is noted beside the key.
    pub(crate) last_noted: LastNoted,
}

/// What the daemon knows of itself.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    /// Where a person opens its page.
    pub(crate) address: String,
    /// What it listens on.
    pub(crate) bound: SocketAddr,
    pub(crate) since: Timestamp,
}

impl Running {
    /// Can other machines reach the page?
    pub(crate) fn is_open(&self) -> bool {
        !self.bound.ip().is_loopback()
    }
}

/// Of a page that other machines can reach.
pub(crate) const ON_A_NETWORK: &str = "whoever is on that network can read along and take the session. Safer: a tunnel, \
                                       or HTTPS in front of it (README, \"From another device\").";

const PLATFORM: &str = if cfg!(target_os = "android") { "Android (Termux)" } else { std::env::consts::OS };

/// Who opens the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A command that answers for itself and ends.
    Command,
    Daemon,
}

impl App {
    /// The settings as they are now.
    pub(crate) async fn values(&self) -> Result<Values, DbError> {
        self.db.read(settings::load).await
    }

    /// Asks these models in a run of this kind, which begins at this level.
    pub(crate) fn driver<'a>(
        &'a self,
        models: &'a [Ready],
        face: &'a dyn Face,
        kind: RunKind,
        level: Level,
    ) -> Driver<'a> {
        let (db, clock, toolbox) = (&self.db, self.clock.as_ref(), &self.toolbox);
        Driver { db, clock, toolbox, models, face, kind, level, shown: &[], platform: PLATFORM }
    }

    /// A moment as commands tell it: local time with its offset.
    pub(crate) fn local(&self, at: Timestamp) -> String {
        moment::local(at, &self.clock.zone())
    }

    /// The words of the chosen language, or of the caller's.
    pub(crate) fn words(values: &Values, env: &CallerEnv) -> &'static Words {
        Words::chosen(&values.of(&LANGUAGE), &env.locale)
    }
}
