//! The connected phone and the other apps' notifications: reading them, and the door through which messages are sent.

use std::sync::Arc;

use kai_assistant::access::Known;
use kai_assistant::clock::Clock;
use kai_assistant::db::Db;
use kai_assistant::inbox;
use kai_assistant::notifications::{NotificationSource, Sources, replying};
use kai_assistant::outbox::door::{Door, Senders};
use kai_assistant::sms::{ContactBook, Inbox, Poller, Received, Shelf, SmsSource};
use kai_assistant::source::SourceId;
use kai_bridges::simulated;
use kai_words::said;

use crate::failure::Failure;
use crate::machine;
use crate::machine::messages::PhoneParts;
use crate::phones::drivers::Features;
use crate::phones::{Hub, Network};

/// Everything that messages and notifications need.
pub(crate) struct Messages {
    pub(crate) phone: Phone,
    /// The sources of other apps' notifications. Paired phones come and go.
    pub(crate) notifications: Arc<Sources>,
    /// Everything that the user received, as one list.
    pub(crate) inbox: inbox::Sources,
    /// The network of paired phones. Only the daemon runs it.
    pub(crate) network: Hub,
    /// The simulated phone, while the demo runs.
    pub(crate) demo: Option<Arc<simulated::Phone>>,
    /// The simulated notification tray, while the demo runs.
    pub(crate) tray: Option<Arc<simulated::Tray>>,
}

impl Messages {
    pub(crate) fn new(found: machine::Messages, db: &Db, clock: &Arc<dyn Clock>) -> Self {
        let machine::Messages { phone, notifications, demo, tray } = found;
        let notifications = Arc::new(Sources::new(notifications));
        let phone = Phone::new(phone, db, clock);
        let inbox = inbox(&phone, &notifications, clock);
        let senders = Arc::clone(&phone.door.senders);
        let drivers = Features::new(db.clone(), Arc::clone(clock), senders, Arc::clone(&notifications));
        let network = Hub::new(db.clone(), Arc::clone(clock), Arc::new(drivers), Network::default());
        Self { phone, notifications, inbox, network, demo, tray }
    }
}

/// The sources of the inbox. A further kind of messages is one more of them.
fn inbox(phone: &Phone, notifications: &Arc<Sources>, clock: &Arc<dyn Clock>) -> inbox::Sources {
    let shelf = phone.inbox.as_ref().map(|inbox| Shelf::new(Arc::clone(inbox), Arc::clone(clock)));
    inbox::Sources::new(vec![
        Box::new(SmsSource { shelf, sends_here: phone.door.senders.has(SourceId::HERE) }),
        Box::new(NotificationSource { platforms: Arc::clone(notifications) }),
    ])
}

/// The connected phone, if any, and the door, which always exists.
pub(crate) struct Phone {
    /// The name of the bridge that connects it.
    pub(crate) bridge: Option<&'static str>,
    pub(crate) inbox: Option<Arc<Inbox>>,
    /// The messages of this phone and of all paired ones.
    pub(crate) received: Received,
    pub(crate) poller: Option<Poller>,
    pub(crate) contacts: Option<ContactBook>,
    pub(crate) door: Door,
    /// Held while a tick polls the phone, so that only one does.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

impl Phone {
    fn new(parts: Option<PhoneParts>, db: &Db, clock: &Arc<dyn Clock>) -> Self {
        let (bridge, reader, sender) = match parts {
            Some(PhoneParts { bridge, reader, sender }) => (Some(bridge), Some(reader), Some(sender)),
            None => (None, None, None),
        };
        let inbox = reader.map(|reader| Arc::new(Inbox::new(reader, Arc::clone(clock))));
        let poller = inbox.clone().map(|inbox| Poller { db: db.clone(), clock: Arc::clone(clock), inbox });
        let contacts = inbox.clone().map(|inbox| ContactBook::new(db.clone(), Arc::clone(clock), inbox));
        let senders = Arc::new(Senders::default());
        if let Some(sender) = sender {
            senders.register(SourceId::HERE, sender);
        }
        let door = Door {
            db: db.clone(),
            clock: Arc::clone(clock),
            senders,
            answerable: replying::answerable,
            under_way: Arc::default(),
        };
        let received = Received::new(db.clone(), inbox.clone());
        Self { bridge, inbox, received, poller, contacts, door, looking: tokio::sync::Mutex::default() }
    }

    /// What is known about the permission to send by the phone that Kai runs on; `None` if it cannot send.
    pub(crate) fn sending(&self) -> Option<Arc<Known>> {
        self.door.senders.access(SourceId::HERE)
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
