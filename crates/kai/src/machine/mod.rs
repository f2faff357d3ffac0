//! Detects, once at the start, what this machine offers to the tools: a phone, notifications, a sandbox, a browser.

pub(crate) mod android;
#[cfg_attr(not(feature = "local"), path = "no_engine.rs")]
pub(crate) mod engine;
pub(crate) mod heap;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(crate) mod messages;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use kai_assistant::device::shell::Sandbox;
use kai_assistant::device::{Notifier, Opener};
use kai_assistant::email::port::MailServers;
use kai_assistant::home::Home;
use kai_assistant::mcp::port::Connector;
use kai_assistant::settings::{BRIDGE_TERMUX, Values};
use kai_bridges::mcp::{Leash, McpConnector};
use kai_bridges::termux::Termux;

pub(crate) use self::messages::Messages;
use crate::caller_env;

/// What this machine offers. Missing parts are `None`, and the tools that need them say so.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) opener: Option<Arc<dyn Opener>>,
    pub(crate) notifier: Option<Arc<dyn Notifier>>,
    /// Runs shell commands in isolation.
    pub(crate) sandbox: Option<Arc<dyn Sandbox>>,
    /// Reaches MCP servers. The demo's are simulated.
    pub(crate) servers: Option<Arc<dyn Connector>>,
    /// Reaches mail servers. The demo's are simulated.
    pub(crate) mail: Option<Arc<dyn MailServers>>,
    /// Where messages and notifications come from.
    pub(crate) messages: Messages,
}

impl Machine {
    /// Detects the parts of the real machine.
    pub(crate) fn found(values: &Values, home: &Home) -> Self {
        let mut termux = Programs::wanted(values, home);
        Self {
            opener: termux.having("termux-open-url").map(|it| it as _).or_else(desktop_opener),
            notifier: termux.having("termux-notification").map(|it| it as _).or_else(desktop_notifier),
            sandbox: sandbox(home),
            servers: Some(Arc::new(McpConnector::new(caller_env::for_programs(), Leash::ourselves()))),
            mail: mail(),
            messages: Messages::found(&mut termux),
        }
    }
}

/// Termux's programs by folder. All programs of a folder share one [`Termux`], which calls them one at a time.
struct Programs {
    wanted: bool,
    /// The command that opens our page, without the name of the place as its last argument.
    opening: Vec<OsString>,
    known: BTreeMap<PathBuf, Arc<Termux>>,
}

impl Programs {
    /// Uses Termux's programs inside Termux, or as the setting says.
    fn wanted(values: &Values, home: &Home) -> Self {
        let wanted = match values.of(&BRIDGE_TERMUX).as_str() {
            "on" => true,
            "off" => false,
            _ => in_termux(),
        };
        let ours = std::env::current_exe().unwrap_or_else(|_| "kai".into());
        let opening = vec![ours.into(), "--home".into(), home.dir.clone().into(), "open".into()];
        Self { wanted, opening, known: BTreeMap::new() }
    }

    /// The bridge to the folder that contains this program, if Termux's programs are to be used.
    fn having(&mut self, program: &str) -> Option<Arc<Termux>> {
        let folder = folder_of(program).filter(|_| self.wanted)?;
        let opening: Vec<&OsStr> = self.opening.iter().map(OsString::as_os_str).collect();
        let new = || {
            let termux = Termux::in_folder(folder.clone()).with_environment(caller_env::for_programs());
            Arc::new(termux.opening_with(&opening))
        };
        Some(Arc::clone(self.known.entry(folder.clone()).or_insert_with(new)))
    }
}

/// The way to mail servers. TLS works with the settings that are built in.
fn mail() -> Option<Arc<dyn MailServers>> {
    match kai_bridges::mail::Mail::new(caller_env::for_programs()) {
        Ok(mail) => Some(Arc::new(mail)),
        Err(error) => {
            tracing::warn!(%error, "mail cannot be encrypted, so there is none");
            None
        }
    }
}

pub(crate) fn in_termux() -> bool {
    std::env::var_os("TERMUX_VERSION").is_some_and(|version| !version.is_empty())
}

/// The first absolute folder in `PATH` that contains the program.
fn folder_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.is_absolute() && folder.join(program).is_file())
}

/// The sandbox for shell commands. It is only probed when needed, because that takes a moment.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn sandbox(home: &Home) -> Option<Arc<dyn Sandbox>> {
    // Android may end a process that so much as asks the kernel for a sandbox.
    if android::is_here() {
        return None;
    }
    let bubblewrap = folder_of("bwrap").map(|folder| folder.join("bwrap"));
    Some(Arc::new(kai_bridges::sandbox::Guarded::new(bubblewrap, std::env::temp_dir(), home.dir.clone())))
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn sandbox(_: &Home) -> Option<Arc<dyn Sandbox>> {
    None
}

#[cfg(target_os = "linux")]
fn desktop_opener() -> Option<Arc<dyn Opener>> {
    let program = folder_of("xdg-open")?.join("xdg-open");
    Some(Arc::new(kai_bridges::desktop::XdgOpen::at(program, caller_env::for_programs())))
}

#[cfg(target_os = "linux")]
fn desktop_notifier() -> Option<Arc<dyn Notifier>> {
    Some(Arc::new(kai_bridges::desktop::Desktop::on(session_bus()?)))
}

/// The address of the desktop's session bus. Always `None` in tests, so that they leave the developer's own session
/// alone.
#[cfg(target_os = "linux")]
pub(crate) fn session_bus() -> Option<String> {
    if cfg!(test) {
        return None;
    }
    let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok().filter(|address| !address.is_empty());
    let usual = || {
        let socket = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?).join("bus");
        socket.exists().then(|| format!("unix:path={}", socket.display()))
    };
    named.or_else(usual)
}

#[cfg(not(target_os = "linux"))]
fn desktop_opener() -> Option<Arc<dyn Opener>> {
    None
}

#[cfg(not(target_os = "linux"))]
fn desktop_notifier() -> Option<Arc<dyn Notifier>> {
    None
}
