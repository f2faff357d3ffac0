//! The network while it runs: one task that owns the endpoint and the paired phones.
//!
//! It decides nothing about time ([`Plan`] does) and waits for nobody: calls run in tasks of their own, and what phones
//! send goes into a queue per phone.

mod links;
mod log;
mod opening;
mod orders;
mod pairing;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::clock::Clock;
use kai_assistant::db::{Db, DbError};
use kai_assistant::ledger::{PhoneEvent, Record};
use kai_assistant::phones::{Phone, SourceId, Switches, store};
use kai_assistant::settings::{
    self, CONTACT_NAMES_ENABLED, NOTIFICATIONS_ENABLED, SMS_ENABLED, SMS_SEND_ENABLED, Values,
};
use kai_bridges::kdeconnect::{
    Device, DeviceId, Endpoint, Event, Limits, PairedPhone, PhoneLimits, Pin, Protocol, Reach, Refusal,
    Refused, Strangers, Use,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::log::LogPace;
use super::drivers::{Drivers, Joined};
use super::plan::Plan;
use super::state::{
    AskedBy, LinkState, LinkTrouble, Listening, Nearby, NetworkState, NetworkTrouble, Outcome, Pairing,
    PairingOutcome,
};

/// The longest pause between two looks at the clock, which may be set or sleep with the machine.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How this machine is in the network.
#[derive(Clone, Default)]
pub(crate) struct Network {
    pub(crate) reach: Reach,
    pub(crate) limits: Limits,
    pub(crate) phone: PhoneLimits,
}

/// What the network needs.
pub(super) struct Around {
    pub(super) db: Db,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) drivers: Arc<dyn Drivers>,
    pub(super) network: Network,
}

/// The network while it runs.
pub(super) struct Running<'a> {
    around: &'a Around,
    plan: Plan,
    open: Option<Open>,
    phones: BTreeMap<SourceId, Paired>,
    /// Phones that ended their pairing, and whose messages are still there.
    former: BTreeSet<SourceId>,
    pairings: BTreeMap<DeviceId, Asking>,
    /// Devices that are still to be told that they are unpaired.
    leaving: BTreeSet<DeviceId>,
    calls: JoinSet<(SourceId, Result<Device, Refused>)>,
    last_pairing: Option<PairingOutcome>,
    trouble: Option<NetworkTrouble>,
    log_pace: LogPace,
}

/// An open endpoint.
struct Open {
    endpoint: Arc<Endpoint>,
    events: mpsc::Receiver<Event>,
    /// What it announced that phones are used for.
    uses: BTreeSet<Use>,
}

/// A paired phone.
struct Paired {
    row: Phone,
    device: DeviceId,
    phone: Arc<PairedPhone>,
    in_force: Switches,
    connected: Option<Timestamp>,
    trouble: Option<LinkTrouble>,
}

/// A pairing that waits for an answer, and the pin once the phone has agreed.
struct Asking {
    shown: Pairing,
    pin: Option<Pin>,
}

/// What woke the network up.
pub(super) enum Happened {
    Event(Event),
    Called(SourceId, Result<Device, Refused>),
    /// Time passed.
    Time,
}

impl<'a> Running<'a> {
    pub(super) fn new(around: &'a Around) -> Self {
        Self {
            around,
            plan: Plan::default(),
            open: None,
            phones: BTreeMap::new(),
            former: BTreeSet::new(),
            pairings: BTreeMap::new(),
            leaving: BTreeSet::new(),
            calls: JoinSet::new(),
            last_pairing: None,
            trouble: None,
            log_pace: LogPace::default(),
        }
    }

    fn now(&self) -> Timestamp {
        self.around.clock.now()
    }

    /// Waits for something to happen. Losing the future loses nothing.
    pub(super) async fn next(&mut self) -> Happened {
        let pause = self.pause();
        let Self { open, calls, .. } = self;
        let event = async {
            match open {
                Some(open) => open.events.recv().await,
                None => None,
            }
        };
        tokio::select! {
            Some(event) = event => Happened::Event(event),
            Some(Ok((source, outcome))) = calls.join_next() => Happened::Called(source, outcome),
            () = sleep(pause) => Happened::Time,
        }
    }

    fn pause(&self) -> Duration {
        // The others have a limit of their own.
        let agreed = self.pairings.values().filter(|asking| asking.pin.is_some());
        let planned = if self.open.is_some() { self.plan.next() } else { self.plan.next_while_closed() };
        let next = agreed.map(|asking| asking.shown.until).chain(planned).min();
        let left = next.map(|at| Duration::try_from(at.duration_since(self.now())).unwrap_or_default());
        // A moment at least: what is due and cannot be done is tried again, but not without a pause.
        left.unwrap_or(LONGEST_PAUSE).clamp(Duration::from_millis(20), LONGEST_PAUSE)
    }

    pub(super) async fn on(&mut self, happened: Happened) {
        match happened {
            Happened::Event(event) => self.on_event(event).await,
            Happened::Called(source, outcome) => self.on_called(source, outcome),
            Happened::Time => {}
        }
    }

    /// Reads the store, and takes up phones that are new, lets go of those that are gone, and keeps to the switches.
    pub(super) async fn reload(&mut self) {
        let read = |tx: &rusqlite::Transaction<'_>| Ok::<_, DbError>((store::all(tx)?, settings::load(tx)?));
        let (rows, values) = match self.around.db.read(read).await {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "the paired phones could not be read");
                self.trouble = Some(NetworkTrouble::Store);
                return;
            }
        };
        self.trouble.take_if(|trouble| *trouble == NetworkTrouble::Store);
        let (rows, former): (Vec<Phone>, Vec<Phone>) = rows.into_iter().partition(Phone::is_paired);
        self.former = former.into_iter().map(|row| row.source).collect();
        let gone: Vec<SourceId> = self
            .phones
            .keys()
            .filter(|source| rows.iter().all(|row| row.source != **source))
            .copied()
            .collect();
        for source in gone {
            self.leave(source);
        }
        for row in rows {
            self.take_up(row, &values);
        }
    }

    fn take_up(&mut self, row: Phone, values: &Values) {
        let in_force = in_force(row.switches, values);
        let source = row.source;
        if let Some(known) = self.phones.get_mut(&source) {
            known.row = row;
            if known.in_force != in_force {
                known.in_force = in_force;
                let allowed = known.phone.allow(in_force);
                self.hang_up_if(source, allowed.is_err());
            }
            return;
        }
        let Some(device) = DeviceId::parse(&row.device) else { return };
        let (clock, limits) = (Arc::clone(&self.around.clock), self.around.network.phone);
        let (phone, told) = PairedPhone::new(device.clone(), clock, limits);
        // Nothing was told yet, so there is room.
        let _ = phone.allow(in_force);
        self.around.drivers.start(Joined { source, phone: Arc::clone(&phone), told });
        self.plan.expect(source, self.around.clock.now());
        let (connected, trouble) = (None, None);
        self.phones.insert(source, Paired { row, device, phone, in_force, connected, trouble });
    }

    /// Lets go of a phone that is no longer paired.
    fn leave(&mut self, source: SourceId) {
        let Some(paired) = self.phones.remove(&source) else { return };
        paired.phone.lost();
        if paired.connected.is_some() {
            self.around.drivers.lost(source, &paired.phone);
        }
        self.plan.forget(source);
        self.around.drivers.stop(source);
        self.cut_off(&paired.device);
    }

    /// Unpairs a device, unless it did so itself: then it may be asking anew.
    fn cut_off(&mut self, device: &DeviceId) {
        let Some(open) = &self.open else { return };
        let devices = open.endpoint.devices();
        let linked = devices.iter().find(|linked| linked.identity.id == *device);
        if linked.is_some_and(|linked| !linked.paired) {
            return;
        }
        if linked.is_some() {
            self.leaving.insert(device.clone());
        }
        open.endpoint.unpair(device);
    }

    /// Brings the endpoint in line with what is wanted, and does what is due.
    pub(super) async fn settle(&mut self) {
        self.end_late_pairings();
        let now = self.now();
        let searching = self.plan.search(now).is_some();
        let asked = !self.pairings.is_empty() || self.plan.lingers(now);
        let answering = asked || !self.leaving.is_empty();
        let wanted = searching || answering || !self.phones.is_empty();
        let uses: BTreeSet<Use> = self.phones.values().flat_map(|phone| Use::of(phone.in_force)).collect();
        let outdated = self.open.as_ref().is_some_and(|open| open.uses != uses) && !answering;
        if self.open.is_some() && (!wanted || outdated) {
            self.close().await;
        }
        if !wanted {
            self.trouble.take_if(|trouble| *trouble != NetworkTrouble::Store);
        } else if self.open.is_none() && self.plan.may_open(now) {
            self.open_up(uses).await;
        }
        let Some(open) = &self.open else { return };
        open.endpoint.set_strangers(if searching || asked { Strangers::Welcome } else { Strangers::Refused });
        self.do_due().await;
        self.note_seen().await;
    }

    async fn do_due(&mut self) {
        let Some(open) = &self.open else { return };
        let endpoint = Arc::clone(&open.endpoint);
        let due = self.plan.due(self.now());
        if due.announce {
            self.announce(&endpoint).await;
        }
        for source in due.call {
            let Some(paired) = self.phones.get(&source) else { continue };
            let address: Option<SocketAddr> = paired.row.address.as_ref().and_then(|at| at.parse().ok());
            let endpoint = Arc::clone(&endpoint);
            self.calls.spawn(async move {
                let outcome = match address {
                    Some(address) => endpoint.connect(address).await,
                    // Where it is becomes known when it hears us, or we hear it.
                    None => Err(Refusal::Unreachable.into()),
                };
                (source, outcome)
            });
        }
    }

    async fn announce(&mut self, endpoint: &Endpoint) {
        use std::io::ErrorKind::{NetworkDown, NetworkUnreachable};
        match endpoint.announce().await {
            Ok(()) => drop(self.trouble.take_if(|trouble| *trouble == NetworkTrouble::NoNetwork)),
            Err(error) if matches!(error.kind(), NetworkDown | NetworkUnreachable) => {
                self.trouble = Some(NetworkTrouble::NoNetwork);
            }
            // Phones can still be connected to by their addresses.
            Err(error) => tracing::debug!(%error, "no announcement was sent"),
        }
    }

    /// Ends everything. What was seen is noted.
    pub(super) async fn end(mut self) {
        let connected = self.phones.values().filter(|paired| paired.connected.is_some());
        let seen: Vec<SourceId> = connected.map(|paired| paired.row.source).collect();
        self.note(seen).await;
        self.close().await;
        for source in self.phones.keys() {
            self.around.drivers.stop(*source);
        }
    }

    async fn on_event(&mut self, event: Event) {
        match event {
            Event::Linked(device) if device.paired => self.on_linked(&device).await,
            // Those who are not paired are read from the endpoint.
            Event::Linked(_) => {}
            Event::Lost { device, .. } => self.on_lost(&device).await,
            Event::PairingRequested { device, key } => self.on_asking(device, key, AskedBy::Us),
            Event::PairingAsked { device, key } => self.on_asking(device, key, AskedBy::Them),
            Event::PairingFailed { device, why } => self.conclude(&device, Outcome::Failed(why)),
            Event::Paired(pin) => self.on_agreed(pin).await,
            Event::Unpaired { device, by } => self.on_unpaired(&device, by).await,
            Event::Packet(device, packet) => self.on_packet(&device, packet),
            Event::Refused { from, refused, times } => {
                if let Some(times) = self.log_pace.line(times, self.now()) {
                    tracing::info!(%from, why = ?refused.why, times, "a connection was refused");
                }
                self.on_refused(&refused).await;
            }
        }
    }

    fn source_of(&self, device: &DeviceId) -> Option<SourceId> {
        self.phones.values().find(|paired| paired.device == *device).map(|paired| paired.row.source)
    }

    /// The phones by number, for those who send to them.
    pub(super) fn phones(&self) -> BTreeMap<SourceId, Arc<PairedPhone>> {
        self.phones.iter().map(|(source, paired)| (*source, Arc::clone(&paired.phone))).collect()
    }

    /// How it stands.
    pub(super) fn state(&mut self) -> NetworkState {
        let search = self.plan.search(self.now());
        let devices = self.open.as_ref().map(|open| open.endpoint.devices()).unwrap_or_default();
        let strangers = devices.into_iter().filter(|device| !device.paired && search.is_some());
        let mut nearby: Vec<Nearby> = strangers.map(nearby).collect();
        nearby.sort_by(|one, other| (&one.name, &one.device).cmp(&(&other.name, &other.device)));
        let paired = self.phones.iter().map(|(source, paired)| {
            (*source, LinkState { connected: paired.connected, trouble: paired.trouble })
        });
        let unpaired = LinkState { connected: None, trouble: Some(LinkTrouble::Unpaired) };
        NetworkState {
            listening: self.open.as_ref().map(|open| Listening {
                port: open.endpoint.port(),
                hears_announcements: open.endpoint.hears(),
            }),
            search,
            nearby,
            pairings: self.pairings.values().map(|asking| asking.shown.clone()).collect(),
            links: paired.chain(self.former.iter().map(|source| (*source, unpaired))).collect(),
            last_pairing: self.last_pairing.clone(),
            trouble: self.trouble.clone(),
        }
    }
}

/// What a phone may be used for: what is on for it, under the switches for all.
pub(in crate::phones) fn in_force(on: Switches, values: &Values) -> Switches {
    let sends = values.on(&SMS_SEND_ENABLED);
    Switches {
        read_sms: on.read_sms && values.on(&SMS_ENABLED),
        send_sms: on.send_sms && sends,
        notifications: on.notifications && values.on(&NOTIFICATIONS_ENABLED),
        names: on.names && values.on(&CONTACT_NAMES_ENABLED),
        composer: on.composer && sends,
        tell: on.tell,
    }
}

fn nearby(device: Device) -> Nearby {
    let Device { identity, address, .. } = device;
    Nearby { device: identity.id, name: identity.name.to_string(), kind: identity.kind, address }
}

fn version(protocol: Protocol) -> u8 {
    u8::try_from(protocol.number()).unwrap_or(u8::MAX)
}

fn record(phone: &Phone, event: PhoneEvent) -> Record {
    Record::Phone { phone: phone.source.0, name: phone.name.clone(), event }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(at)
}

fn warn_unless_stored(stored: Result<(), DbError>) {
    if let Err(error) = stored {
        tracing::warn!(%error, "what happened with a phone could not be stored");
    }
}
