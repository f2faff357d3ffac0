//! The phone and the notifications that this machine offers.

use std::sync::Arc;

use kai_assistant::notifications::{Listener, Source};
use kai_assistant::outbox::door::Sender;
use kai_assistant::sms::port::SmsReader;
use kai_bridges::simulated;

#[cfg(target_os = "linux")]
use super::session_bus;
use super::{Machine, Programs};

/// Where messages and notifications come from. Missing parts are `None`.
#[derive(Clone, Default)]
pub(crate) struct Messages {
    pub(crate) phone: Option<PhoneParts>,
    /// This machine's own source of other apps' notifications.
    pub(crate) notifications: Option<Arc<Source>>,
    /// The demo's simulated phone, to deliver messages to.
    pub(crate) demo: Option<Arc<simulated::Phone>>,
    /// The demo's simulated tray, to post notifications to.
    pub(crate) tray: Option<Arc<simulated::Tray>>,
}

impl Messages {
    pub(super) fn found(termux: &mut Programs) -> Self {
        let notifications = listener(termux).map(|it| Arc::new(Source::new(it)));
        Self { phone: termux_phone(termux), notifications, demo: None, tray: None }
    }
}

impl Machine {
    /// The demo's machine: a simulated phone and tray and nothing else, so that nothing can be sent.
    pub(crate) fn simulated(phone: Arc<simulated::Phone>) -> Self {
        let (reader, sender) = (Arc::clone(&phone) as _, Arc::clone(&phone) as _);
        let tray = Arc::new(simulated::Tray::default());
        let messages = Messages {
            phone: Some(PhoneParts { bridge: "simulated", reader, sender }),
            notifications: Some(Arc::new(Source::new(Arc::clone(&tray) as _))),
            demo: Some(phone),
            tray: Some(tray),
        };
        Self { messages, ..Self::default() }
    }
}

/// A phone whose SMS can be read and sent.
#[derive(Clone)]
pub(crate) struct PhoneParts {
    /// The name of the bridge.
    pub(crate) bridge: &'static str,
    pub(crate) reader: Arc<dyn SmsReader>,
    pub(crate) sender: Arc<dyn Sender>,
}

/// The phone that Kai runs on, inside Termux.
fn termux_phone(programs: &mut Programs) -> Option<PhoneParts> {
    let termux = programs.having("termux-sms-list")?;
    Some(PhoneParts { bridge: "termux", reader: Arc::clone(&termux) as _, sender: termux })
}

/// Listens to the phone's notifications in Termux, otherwise to the desktop's.
fn listener(programs: &mut Programs) -> Option<Arc<dyn Listener>> {
    programs.having("termux-notification-list").map(|it| it as _).or_else(desktop_listener)
}

#[cfg(target_os = "linux")]
fn desktop_listener() -> Option<Arc<dyn Listener>> {
    Some(Arc::new(kai_bridges::desktop::DesktopListener::on(&session_bus()?)))
}

#[cfg(not(target_os = "linux"))]
fn desktop_listener() -> Option<Arc<dyn Listener>> {
    None
}
