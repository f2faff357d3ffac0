//! An opened home and everything that commands, the daemon and the page work with. [`wire`](crate::wire) builds it.

#[cfg_attr(not(feature = "local"), path = "no_catalogue.rs")]
pub(crate) mod catalogue;
pub(crate) mod downloads;
pub(crate) mod facts;
pub(crate) mod last_noted;
pub(crate) mod mail;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(crate) mod messages;
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
use kai_assistant::inbox;
use kai_assistant::manifest::Manifest;
use kai_assistant::moment;
use kai_assistant::outbox::door::Door;
use kai_assistant::settings::{self, LANGUAGE, Values};
use kai_assistant::toolbox::Toolbox;
use kai_llm::Http;
use kai_words::Lang;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::downloads::Downloads;
use self::last_noted::LastNoted;
use self::mail::Mail;
use self::messages::Messages;
use crate::caller_env::CallerEnv;
use crate::machine::engine::Engine;

/// An opened home and everything that commands, the daemon and the page work with.
pub(crate) struct App {
    pub(crate) home: Home,
    pub(crate) home_id: HomeId,
    /// Where the key is stored.
    pub(crate) key_place: KeyKind,
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) toolbox: Toolbox,
    pub(crate) manifest: Manifest,
    /// Runs the models that are on this machine.
    pub(crate) engine: Engine,
    /// The HTTP client for models; it keeps connections open.
    pub(crate) http: Http,
    /// The locale and model keys from this process's environment.
    pub(crate) env: CallerEnv,
    /// Rings alarms. Only set in a daemon that can show notifications.
    pub(crate) ringer: Option<Ringer>,
    /// Opens Kai's page in the user's browser.
    pub(crate) opener: Option<Arc<dyn Opener>>,
    /// Shows desktop or phone notifications when no page is open.
    pub(crate) notifier: Option<Arc<dyn Notifier>>,
    /// Runs shell commands in isolation.
    pub(crate) sandbox: Option<Arc<dyn Sandbox>>,
    /// The one way out for messages to other people.
    pub(crate) door: Door,
    /// Everything that the user received, as one list.
    pub(crate) inbox: inbox::Sources,
    /// The mail accounts. The demo's is simulated.
    pub(crate) mail: Option<Mail>,
    pub(crate) messages: Messages,
    /// The download of a model, if any.
    pub(crate) downloads: Arc<Downloads>,
    /// How many pages are open in browsers.
    pub(crate) pages: watch::Sender<usize>,
    /// Set in the daemon only.
    pub(crate) daemon: Option<Running>,
    /// Cancelled when the user asks to erase everything: the daemon then shuts down and erases its home.
    pub(crate) erase: CancellationToken,
    /// Cancelled when the daemon should shut down.
    pub(crate) stop: CancellationToken,
    /// How far the ledger is copied to the note beside the key.
    pub(crate) last_noted: LastNoted,
}

/// A running daemon's process id and addresses.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    /// The URL of its page.
    pub(crate) address: String,
    /// The address it listens on.
    pub(crate) bound: SocketAddr,
    pub(crate) since: Timestamp,
}

impl Running {
    /// Whether other machines can reach the page.
    pub(crate) fn is_open(&self) -> bool {
        !self.bound.ip().is_loopback()
    }
}

/// The warning for a page that other machines can reach.
pub(crate) const ON_A_NETWORK: &str = "anyone on that network can read your chats and take over your session. Use a \
                                       tunnel, or HTTPS in front of it (README, \"From another device\").";

fn platform() -> &'static str {
    if crate::machine::android::is_here() { "Android (Termux)" } else { std::env::consts::OS }
}

/// What kind of process opens the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A command that runs without a daemon and exits.
    Command,
    Daemon,
}

impl App {
    /// Loads the current settings.
    pub(crate) async fn values(&self) -> Result<Values, DbError> {
        self.db.read(settings::load).await
    }

    /// A driver that asks these models in a run of this kind, starting at this level.
    pub(crate) fn driver<'a>(
        &'a self,
        models: &'a [Ready],
        face: &'a dyn Face,
        kind: RunKind,
        level: Level,
    ) -> Driver<'a> {
        let (db, clock, toolbox) = (&self.db, self.clock.as_ref(), &self.toolbox);
        Driver { db, clock, toolbox, models, face, kind, level, shown: &[], platform: platform() }
    }

    /// A timestamp as commands print it: local time with its UTC offset.
    pub(crate) fn local(&self, at: Timestamp) -> String {
        moment::local(at, &self.clock.zone())
    }

    /// The language that is set, or else the caller's.
    pub(crate) fn lang(values: &Values, env: &CallerEnv) -> Lang {
        Lang::chosen(&values.of(&LANGUAGE), &env.locale)
    }
}
