//! The phone and the notifications that this machine offers.

use std::sync::Arc;

use kai_assistant::clock::Clock;
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
    /// What the demo is made of; `None` in a real Kai.
    pub(crate) demo: Option<Simulated>,
}

/// Everything that the demo simulates, to make things happen there.
#[derive(Clone)]
pub(crate) struct Simulated {
    /// The phone that Kai seems to run on.
    pub(crate) phone: Arc<simulated::Phone>,
    /// The phone that seems to be paired.
    pub(crate) work: Arc<simulated::WiredPhone>,
    pub(crate) tray: Arc<simulated::Tray>,
    pub(crate) mailbox: Arc<simulated::Mailbox>,
    /// An MCP server.
    pub(crate) weather: simulated::Weather,
}

impl Simulated {
    /// The name of the phone that Kai seems to run on.
    pub(crate) const PRIVATE_PHONE: &str = "Private phone";
    /// The name of the phone that seems to be paired.
    pub(crate) const WORK_PHONE: &str = "Work phone";
    /// The address of the mail account.
    pub(crate) const ADDRESS: &str = "you@example.org";

    /// Everything beside this phone. The clock dates what was there before the demo began.
    pub(crate) fn beside(phone: Arc<simulated::Phone>, clock: &Arc<dyn Clock>) -> Self {
        Self {
            phone,
            work: Arc::new(simulated::WiredPhone::at_work(Self::WORK_PHONE, Arc::clone(clock))),
            tray: Arc::default(),
            mailbox: Arc::new(simulated::Mailbox::with_inbox(Self::ADDRESS, clock.now())),
            weather: simulated::Weather::default(),
        }
    }
}

impl Messages {
    pub(super) fn found(termux: &mut Programs) -> Self {
        let notifications = listener(termux).map(|it| Arc::new(Source::new(it)));
        Self { phone: termux_phone(termux), notifications, demo: None }
    }
}

impl Machine {
    /// The demo's machine: what is simulated and nothing else, so that nothing can leave.
    pub(crate) fn simulated(demo: Simulated) -> Self {
        let (reader, sender) = (Arc::clone(&demo.phone) as _, Arc::clone(&demo.phone) as _);
        let (mail, servers) = (Arc::clone(&demo.mailbox) as _, Arc::new(demo.weather.clone()) as _);
        let messages = Messages {
            phone: Some(PhoneParts { bridge: "simulated", reader, sender }),
            notifications: Some(Arc::new(Source::new(Arc::clone(&demo.tray) as _))),
            demo: Some(demo),
        };
        Self { messages, mail: Some(mail), servers: Some(servers), ..Self::default() }
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
