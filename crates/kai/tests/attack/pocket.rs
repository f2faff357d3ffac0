//! A phone in an attacker's hands, paired with the house: the simulated handset, over a real connection on this machine.
//! Everything on it is hostile: its name, its messages, its contacts, its apps and their chats.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::clock::Clock;
use kai_assistant::db::{Db, DbError};
use kai_assistant::notifications::{NotificationId, store as notifications};
use kai_assistant::phones::store::{self, NewPhone};
use kai_assistant::phones::{Switch, Switches};
use kai_assistant::settings;
use kai_assistant::sms::{SmsId, archive};
use kai_assistant::source::SourceId;
use kai_assistant::untrusted::Untrusted;
use kai_bridges::kdeconnect::{
    Capabilities, ChatLine, Credentials, DeviceId, DeviceKind, DeviceName, Endpoint, Event, Identity, Limits,
    PairedPhone, PhoneLimits, Pin, Protocol, Reach, Setup, Shown, Strangers, Use,
};
use kai_bridges::simulated::{Handset, HandsetSetup};
use rusqlite::{Transaction, params};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::house::House;
use crate::phones::drivers::{Drivers, Features, Joined};

/// Beyond this a test has failed. Nothing waits for it otherwise.
const LONG: Duration = Duration::from_mins(1);
const ALL: Switches =
    Switches { read_sms: true, send_sms: true, notifications: true, names: true, composer: true, tell: true };

pub(super) struct Pocket {
    pub(super) handset: Handset,
    pub(super) source: SourceId,
    /// Its name, as the house knows it.
    pub(super) name: String,
    phone: Arc<PairedPhone>,
    endpoint: Arc<Endpoint>,
    _features: Features,
}

/// What is delivered together: a message, a contact with that number, and a notification.
pub(super) struct Delivery {
    pub(super) from: String,
    pub(super) text: String,
    pub(super) contact: String,
    /// The key of the notification on the phone.
    pub(super) key: String,
    pub(super) app: String,
    pub(super) title: String,
    pub(super) note: String,
}

/// What the house calls a message and a notification that were delivered.
#[derive(Debug, Clone)]
pub(super) struct Delivered {
    pub(super) sms: SmsId,
    pub(super) note: NotificationId,
}

impl Pocket {
    /// Pairs a handset that calls itself so. Everything is on that can be turned on.
    pub(super) async fn of(house: &House, name: &str) -> Self {
        let clock: Arc<dyn Clock> = house.clock.clone();
        let setup = HandsetSetup::local(name, Arc::clone(&clock)).unwrap();
        let handset = Handset::start(HandsetSetup { limits: limits(), ..setup }).await.unwrap();
        let (endpoint, events, pin, name) = paired(&handset, &clock).await;
        let db = house.app.db.clone();
        let source = kept(&db, &pin, &name, &clock);
        let limits = PhoneLimits { quiet: Duration::from_millis(50), ..PhoneLimits::default() };
        let (phone, told) = PairedPhone::new(pin.device, Arc::clone(&clock), limits);
        phone.allow(ALL).unwrap();
        let (senders, sources) = (&house.app.door.senders, &house.app.messages.notifications);
        let features = Features::new(db, clock, Arc::clone(senders), Arc::clone(sources));
        features.start(Joined { source, phone: Arc::clone(&phone), told });
        phone.connected(Arc::clone(&endpoint)).unwrap();
        features.connected(source, &phone);
        tokio::spawn(hear(Arc::clone(&phone), events));
        Self { handset, source, name, phone, endpoint, _features: features }
    }

    /// Delivers everything, and waits until the house has it. Returns what the house calls it.
    pub(super) async fn deliver(&self, house: &House, all: &[Delivery]) -> Vec<Delivered> {
        self.meet(house, all).await;
        let (db, now) = (&house.app.db, house.clock.now());
        let before = db.read_now(archived).unwrap().len();
        for one in all {
            self.handset.receive(&one.from, &one.text, now).await;
            self.handset.show(shown(one, now)).await;
        }
        let ids: Vec<NotificationId> =
            all.iter().map(|one| NotificationId::new(&one.key).of(self.source)).collect();
        let there = |tx: &Transaction<'_>| {
            let noted =
                ids.iter().map(|id| notifications::is_shown(tx, id)).collect::<Result<Vec<_>, _>>()?;
            Ok(archived(tx)?.len() == before + all.len() && noted.into_iter().all(|noted| noted))
        };
        until(db, "everything is delivered", there).await;
        let mut messages = db.read_now(archived).unwrap();
        messages.sort_by_key(|stored| stored.id);
        let messages = messages.into_iter().skip(before);
        messages.zip(ids).map(|(stored, note)| Delivered { sms: stored.id, note }).collect()
    }

    /// Makes the house know the contacts, which it asks for when the phone connects, and look at the phone's apps.
    async fn meet(&self, house: &House, all: &[Delivery]) {
        let changed = house.clock.now().as_millisecond();
        for (n, one) in all.iter().enumerate() {
            let name = one.contact.replace(['\r', '\n'], " ");
            let card = format!("BEGIN:VCARD\nFN:{name}\nTEL:{}\nEND:VCARD", one.from);
            self.handset.save_contact(&n.to_string(), changed, &card);
        }
        self.phone.connected(Arc::clone(&self.endpoint)).unwrap();
        let known = |tx: &Transaction<'_>| {
            let sql = "SELECT count(*) FROM contacts WHERE source = ?1 AND changed = ?2";
            let known: isize = tx.query_row(sql, params![self.source, changed], |row| row.get(0))?;
            Ok(known.unsigned_abs() == all.len())
        };
        until(&house.app.db, "the contacts are known", known).await;
        house.app.messages.notifications.check_now(LONG).await;
    }

    /// Everything that left by it, or was done on it, without which it would be as it was.
    pub(super) fn done_on_it(&self) -> Vec<String> {
        let sent = self.handset.sent().into_iter().map(|sent| format!("sent {}", sent.text));
        let replies = self.handset.replies().into_iter().map(|reply| format!("replied {}", reply.text));
        let opened = self.handset.opened().into_iter().map(|opened| format!("opened {opened}"));
        sent.chain(replies).chain(opened).collect()
    }
}

fn limits() -> Limits {
    Limits { between_connections: Duration::ZERO, ..Limits::default() }
}

/// A chat in an app. Its names are as hostile as its text.
fn shown(one: &Delivery, now: jiff::Timestamp) -> Shown {
    let said = |text: &str| Some(Untrusted::new(text));
    Shown {
        key: one.key.clone(),
        app: said(&one.app),
        title: said(&one.title),
        text: said(&one.note),
        ticker: said(&one.note),
        posted_at: Some(now),
        dismissable: true,
        reply_id: Some("reply".to_owned()),
        conversation: vec![ChatLine {
            sender: Untrusted::new(&*one.title),
            text: Untrusted::new(&*one.note),
        }],
        group_name: said(&one.title),
        ..Shown::default()
    }
}

/// Pairs as Kai does, with everything on. Returns what the handset calls itself.
async fn paired(
    handset: &Handset,
    clock: &Arc<dyn Clock>,
) -> (Arc<Endpoint>, mpsc::Receiver<Event>, Pin, String) {
    let id = DeviceId::from_random([7; 16]);
    let Capabilities { incoming, outgoing } = Capabilities::of_computer(&Use::ALL);
    let (kind, protocol) = (DeviceKind::Desktop, Protocol::V8);
    let me = Identity { id: id.clone(), name: DeviceName::clean("Kai"), kind, protocol, incoming, outgoing };
    let setup = Setup {
        me,
        credentials: Credentials::make(&id, clock.now()).unwrap(),
        pins: vec![],
        strangers: Strangers::Welcome,
        reach: Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None },
        limits: limits(),
        clock: Arc::clone(clock),
    };
    let (endpoint, mut events) = Endpoint::open(setup).await.unwrap();
    let device = endpoint.connect(handset.address().unwrap()).await.unwrap();
    endpoint.request_pairing(handset.id()).unwrap();
    loop {
        if let Event::Paired(pin) = events.recv().await.unwrap() {
            return (Arc::new(endpoint), events, pin, device.identity.name.to_string());
        }
    }
}

fn kept(db: &Db, pin: &Pin, name: &str, clock: &Arc<dyn Clock>) -> SourceId {
    let (device, certificate) = (pin.device.to_string(), pin.certificate.clone());
    let new = NewPhone { device, name: name.to_owned(), certificate, protocol: 8 };
    let now = clock.now();
    let keep = |tx: &Transaction<'_>| {
        let source = store::pair(tx, &new, now)?.source;
        for switch in Switch::ALL {
            store::set(tx, source, switch, true)?;
        }
        store::begin_reading(tx, source, now)?;
        settings::store(tx, "contact_names_enabled", "true")?;
        Ok::<_, DbError>(source)
    };
    db.write_now(keep).unwrap()
}

async fn hear(phone: Arc<PairedPhone>, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        if let Event::Packet(_, packet) = event {
            phone.packet(packet).unwrap();
        }
    }
}

/// Waits until the store says so.
async fn until(db: &Db, what: &str, is_so: impl Fn(&Transaction<'_>) -> Result<bool, DbError>) {
    let mut changes = db.changes();
    let so = async {
        while !db.read_now(&is_so).unwrap() {
            changes.changed().await.unwrap();
        }
    };
    timeout(LONG, so).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Everything in the archive, oldest first.
fn archived(tx: &Transaction<'_>) -> Result<Vec<archive::Stored>, DbError> {
    Ok(archive::after(tx, None, usize::MAX)?.into_iter().map(|(_, stored)| stored).collect())
}
