//! The connected phone and the other apps' notifications.

use std::sync::Arc;

use kai_assistant::clock::Clock;
use kai_assistant::db::Db;
use kai_assistant::inbox::MessageSource;
use kai_assistant::notifications::{NotificationSource, Sources, replying};
use kai_assistant::outbox::door::{Door, FindAnswerable};
use kai_assistant::sms::{ContactBook, Inbox, Poller, Received, Shelf, SmsSource};
use kai_assistant::source::SourceId;
use kai_words::said;

use crate::failure::Failure;
use crate::machine;
use crate::machine::messages::{PhoneParts, Simulated};
use crate::phones::drivers::Features;
use crate::phones::{Hub, Network};

/// Everything that messages and notifications need.
pub(crate) struct Messages {
    pub(crate) phone: Phone,
    /// The sources of other apps' notifications. Paired phones come and go.
    pub(crate) notifications: Arc<Sources>,
    /// The network of paired phones. Only the daemon runs it.
    pub(crate) network: Hub,
    /// What is simulated, while the demo runs.
    pub(crate) demo: Option<Simulated>,
}

impl Messages {
    pub(crate) fn new(found: machine::Messages, db: &Db, clock: &Arc<dyn Clock>, door: &Door) -> Self {
        let machine::Messages { phone, notifications, demo } = found;
        let notifications = Arc::new(Sources::new(notifications));
        let phone = Phone::new(phone, db, clock, door);
        let senders = Arc::clone(&door.senders);
        let drivers = Features::new(db.clone(), Arc::clone(clock), senders, Arc::clone(&notifications));
        let network = Hub::new(db.clone(), Arc::clone(clock), Arc::new(drivers), Network::default());
        Self { phone, notifications, network, demo }
    }

    /// What the phone that Kai runs on is called, if it has a name: the demo's does.
    pub(crate) fn own_name(&self) -> Option<&'static str> {
        self.demo.as_ref().map(|_| Simulated::PRIVATE_PHONE)
    }

    /// What the inbox lists of them.
    pub(crate) fn sources(&self, clock: &Arc<dyn Clock>, door: &Door) -> Vec<Box<dyn MessageSource>> {
        let inbox = self.phone.inbox.as_ref();
        vec![
            Box::new(SmsSource {
                shelf: inbox.map(|inbox| Shelf::new(Arc::clone(inbox), Arc::clone(clock))),
                sends_here: door.senders.has(SourceId::HERE),
            }),
            Box::new(NotificationSource { platforms: Arc::clone(&self.notifications) }),
        ]
    }
}

/// Finds out how a notification can be answered.
pub(crate) const ANSWERABLE: FindAnswerable = replying::answerable;

/// The connected phone, if any.
pub(crate) struct Phone {
    /// The name of the bridge that connects it.
    pub(crate) bridge: Option<&'static str>,
    pub(crate) inbox: Option<Arc<Inbox>>,
    /// The messages of this phone and of all paired ones.
    pub(crate) received: Received,
    pub(crate) poller: Option<Poller>,
    pub(crate) contacts: Option<ContactBook>,
    /// Held while a tick polls the phone, so that only one does.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

impl Phone {
    fn new(parts: Option<PhoneParts>, db: &Db, clock: &Arc<dyn Clock>, door: &Door) -> Self {
        let (bridge, reader, sender) = match parts {
            Some(PhoneParts { bridge, reader, sender }) => (Some(bridge), Some(reader), Some(sender)),
            None => (None, None, None),
        };
        let inbox = reader.map(|reader| Arc::new(Inbox::new(reader, Arc::clone(clock))));
        let poller = inbox.clone().map(|inbox| Poller { db: db.clone(), clock: Arc::clone(clock), inbox });
        let contacts = inbox.clone().map(|inbox| ContactBook::new(db.clone(), Arc::clone(clock), inbox));
        if let Some(sender) = sender {
            door.senders.register(SourceId::HERE, sender);
        }
        let received = Received::new(db.clone(), inbox.clone());
        Self { bridge, inbox, received, poller, contacts, looking: tokio::sync::Mutex::default() }
    }

    pub(crate) fn poller(&self) -> Result<&Poller, Failure> {
        self.poller.as_ref().ok_or_else(no_phone)
    }

    pub(crate) fn inbox(&self) -> Result<&Inbox, Failure> {
        self.inbox.as_deref().ok_or_else(no_phone)
    }
}

/// The command for somebody who has connected no phone.
pub(crate) const PAIR: &str = "kai phones pair";

pub(crate) fn no_phone() -> Failure {
    Failure::failed(said::lacks_reading()).try_instead(PAIR)
}

/// Only the daemon reaches paired phones.
pub(crate) fn start_kai() -> Failure {
    Failure::failed("Kai reaches phones only while it is running. Start Kai first: kai serve")
}
