//! What the machine we run on can do for the tools: found out once, from the environment.

use std::path::PathBuf;
use std::sync::Arc;

use kai_assistant::device::{Notifier, Opener};
#[cfg(feature = "sms")]
use kai_assistant::outbox::door::Sender;
use kai_assistant::settings::{self, Values};
#[cfg(feature = "sms")]
use kai_assistant::sms::port::SmsReader;
use kai_bridges::termux::Termux;

/// What is not there is `None`, and the tools that need it say so.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) opener: Option<Arc<dyn Opener>>,
    pub(crate) notifier: Option<Arc<dyn Notifier>>,
    #[cfg(feature = "sms")]
    pub(crate) phone: Option<PhoneParts>,
    /// The same phone, to play with.
    #[cfg(feature = "sms")]
    pub(crate) demo: Option<Arc<kai_bridges::simulated::Phone>>,
}

/// A phone whose SMS can be read and sent.
#[cfg(feature = "sms")]
#[derive(Clone)]
pub(crate) struct PhoneParts {
    /// The name of the bridge.
    pub(crate) bridge: &'static str,
    pub(crate) reader: Arc<dyn SmsReader>,
    pub(crate) sender: Arc<dyn Sender>,
}

impl Machine {
    /// Termux's programs are nowhere but in Termux, so where they are, they are meant.
    pub(crate) fn found(values: &Values) -> Self {
        let termux = |program: &str| Some(Arc::new(Termux::in_folder(folder_of(program)?)));
        Self {
            opener: termux("termux-open-url").map(|it| it as _).or_else(desktop_opener),
            notifier: termux("termux-notification").map(|it| it as _).or_else(desktop_notifier),
            #[cfg(feature = "sms")]
            phone: termux_phone(values),
            #[cfg(feature = "sms")]
            demo: None,
        }
    }
}

/// The phone we run on, in Termux or where the person says so.
#[cfg(feature = "sms")]
fn termux_phone(values: &Values) -> Option<PhoneParts> {
    let wanted = match values.of(&settings::BRIDGE_TERMUX).as_str() {
        "on" => true,
        "off" => false,
        _ => in_termux(),
    };
    let folder = folder_of("termux-sms-list").filter(|_| wanted)?;
    let termux = Arc::new(Termux::in_folder(folder));
    Some(PhoneParts { bridge: "termux", reader: Arc::clone(&termux) as _, sender: termux })
}

pub(crate) fn in_termux() -> bool {
    std::env::var_os("TERMUX_VERSION").is_some_and(|version| !version.is_empty())
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

#[cfg(not(target_os = "linux"))]
fn desktop_opener() -> Option<Arc<dyn Opener>> {
    None
}

#[cfg(not(target_os = "linux"))]
fn desktop_notifier() -> Option<Arc<dyn Notifier>> {
    None
}
