//! What the machine we run on can do for the tools: found out once, from the environment.

use std::path::PathBuf;
use std::sync::Arc;

use kai_assistant::device::{Notifier, Opener};
#[cfg(feature = "notifications")]
use kai_assistant::notifications::{Listener, Source};
use kai_bridges::termux::Termux;

/// What is not there is `None`, and the tools that need it say so.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) opener: Option<Arc<dyn Opener>>,
    pub(crate) notifier: Option<Arc<dyn Notifier>>,
    /// Who tells of other apps' notifications.
    #[cfg(feature = "notifications")]
    pub(crate) notifications: Option<Arc<Source>>,
}

impl Machine {
    /// Termux's programs are nowhere but in Termux, so where they are, they are meant.
    pub(crate) fn found() -> Self {
        let termux = |program: &str| Some(Arc::new(Termux::in_folder(folder_of(program)?)));
        Self {
            opener: termux("termux-open-url").map(|it| it as _).or_else(desktop_opener),
            notifier: termux("termux-notification").map(|it| it as _).or_else(desktop_notifier),
            #[cfg(feature = "notifications")]
            notifications: listener().map(|it| Arc::new(Source::new(it))),
        }
    }
}

/// The first folder of `PATH` that holds the program.
fn folder_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.is_absolute() && folder.join(program).is_file())
}

#[cfg(target_os = "linux")]
fn desktop_opener() -> Option<Arc<dyn Opener>> {
    let program = folder_of("xdg-open")?.join("xdg-open");
    Some(Arc::new(kai_bridges::desktop::XdgOpen::at(program)))
}

#[cfg(target_os = "linux")]
fn desktop_notifier() -> Option<Arc<dyn Notifier>> {
    Some(Arc::new(kai_bridges::desktop::Desktop::on(session_bus()?)))
}

/// The address of the desktop session's bus.
#[cfg(target_os = "linux")]
pub(crate) fn session_bus() -> Option<String> {
    let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok().filter(|address| !address.is_empty());
    let usual = || {
        let socket = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?).join("bus");
        socket.exists().then(|| format!("unix:path={}", socket.display()))
    };
    named.or_else(usual)
}

#[cfg(all(target_os = "linux", feature = "notifications"))]
fn listener() -> Option<Arc<dyn Listener>> {
    Some(Arc::new(kai_bridges::desktop::DesktopListener::on(session_bus()?)))
}

#[cfg(all(not(target_os = "linux"), feature = "notifications"))]
fn listener() -> Option<Arc<dyn Listener>> {
    None
}

#[cfg(not(target_os = "linux"))]
fn desktop_opener() -> Option<Arc<dyn Opener>> {
    None
}

#[cfg(not(target_os = "linux"))]
fn desktop_notifier() -> Option<Arc<dyn Notifier>> {
    None
}
