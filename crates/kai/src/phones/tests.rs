//! The network against simulated handsets, over real connections on this machine and nowhere else. Time is told and not
//! waited for.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::gate::RunKind;
use kai_assistant::ledger::{self, PhoneEvent, Record};
use kai_assistant::lock::lock;
use kai_assistant::notifications::{Sources, replying};
use kai_assistant::outbox::door::{Act, Door, Senders, Tap};
use kai_assistant::outbox::{self, Channel, Draft, DraftState, NewDraft};
use kai_assistant::pending;
use kai_assistant::phones::port::{Ask, FromPhone, PhoneLink};
use kai_assistant::phones::{Phone, SourceId, Switch, store};
use kai_assistant::settings::{self, SMS_ENABLED, SMS_SEND_ENABLED};
use kai_assistant::sms;
use kai_bridges::kdeconnect::{
    DeviceId, Event, Failure, Limits, PairedPhone, PhoneLimits, Protocol, Reach, Refusal, Use,
};
use kai_bridges::simulated::{Handset, HandsetSetup, OnPairing};
use rusqlite::Transaction;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::drivers::{Drivers, Features, Joined};
use super::order::{NotDone, StoredMessages};
use super::state::{AskedBy, LinkTrouble, NetworkState, NetworkTrouble, Outcome, Pairing};
use super::*;

/// Beyond this a test has failed. Nothing waits for it otherwise.
const LONG: Duration = Duration::from_mins(1);
const FIRST: SourceId = SourceId(2);
const SECOND: SourceId = SourceId(3);

/// Somebody who works with phones: reads what they tell, or hangs, or hands it to those who do in the program.
#[derive(Default)]
struct Readers {
    features: Option<Features>,
    /// What was told, by phone.
    told: Mutex<Vec<(SourceId, mpsc::UnboundedReceiver<FromPhone>)>>,
    /// Phones whose reader takes nothing.
    hanging: Mutex<Vec<(SourceId, mpsc::Receiver<FromPhone>)>>,
    hang: Mutex<Vec<SourceId>>,
    stopped: Mutex<Vec<SourceId>>,
    looked: Mutex<Vec<SourceId>>,
    /// Who is connected.
    present: Mutex<Vec<SourceId>>,
    forgotten: Arc<Mutex<Vec<SourceId>>>,
}

impl Drivers for Readers {
    fn start(&self, joined: Joined) {
        if let Some(features) = &self.features {
            return features.start(joined);
        }
        let Joined { source, phone, mut told } = joined;
        if lock(&self.hang).contains(&source) {
            lock(&self.hanging).push((source, told));
            return;
        }
        let (to, read) = mpsc::unbounded_channel();
        lock(&self.told).push((source, read));
        tokio::spawn(async move {
            while let Some(said) = told.recv().await {
                if said == FromPhone::Connected {
                    // It may be gone again already.
                    let _ = phone.ask(Ask::Threads).await;
                }
                drop(to.send(said));
            }
        });
    }

    fn connected(&self, source: SourceId, phone: &Arc<PairedPhone>) {
        assert!(phone.is_connected());
        lock(&self.present).push(source);
        if let Some(features) = &self.features {
            features.connected(source, phone);
        }
    }

    fn lost(&self, source: SourceId, phone: &Arc<PairedPhone>) {
        assert!(!phone.is_connected());
        lock(&self.present).retain(|present| *present != source);
        if let Some(features) = &self.features {
            features.lost(source, phone);
        }
    }

    fn retire(&self) {
        if let Some(features) = &self.features {
            features.retire();
        }
    }

    fn look(&self, source: SourceId) {
        lock(&self.looked).push(source);
    }

    fn stop(&self, source: SourceId) {
        lock(&self.stopped).push(source);
        if let Some(features) = &self.features {
            features.stop(source);
        }
    }

    fn forget(&self, _: &Transaction<'_>, source: SourceId) -> Result<(), DbError> {
        lock(&self.forgotten).push(source);
        Ok(())
    }
}

/// Kai with its network, which runs.
struct Kai {
    hub: Arc<Hub>,
    readers: Arc<Readers>,
    clock: Arc<ManualClock>,
    db: Db,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_second(1_794_702_151).unwrap()))
}

/// Limits under which a test need not wait for anything to be forgotten.
fn quick() -> Limits {
    Limits {
        between_connections: Duration::ZERO,
        between_reports: Duration::ZERO,
        silence_of_7: Duration::from_millis(300),
        ..Limits::default()
    }
}

fn network() -> Network {
    Network {
        reach: Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None },
        limits: quick(),
        phone: PhoneLimits {
            quiet: Duration::from_millis(20),
            list: Duration::from_secs(1),
            waiting: 20_000,
            ..PhoneLimits::default()
        },
    }
}

impl Kai {
    async fn start() -> Self {
        Self::on(Db::in_memory(kai_assistant::MIGRATIONS).unwrap(), clock(), network()).await
    }

    async fn on(db: Db, clock: Arc<ManualClock>, network: Network) -> Self {
        Self::read_by(Readers::default(), db, clock, network).await
    }

    async fn read_by(readers: Readers, db: Db, clock: Arc<ManualClock>, network: Network) -> Self {
        let readers = Arc::new(readers);
        let hub = Arc::new(Hub::new(db.clone(), clock.clone(), readers.clone(), network));
        let stop = CancellationToken::new();
        let (running, until) = (hub.clone(), stop.clone());
        let task = tokio::spawn(async move { running.run(until).await });
        while hub.end_search().await == Err(NotDone::NotRunning) {
            tokio::task::yield_now().await;
        }
        Self { hub, readers, clock, db, stop, task }
    }

    /// Waits for a state, and returns what was found in it.
    async fn until<T>(&self, what: &str, look: impl Fn(&NetworkState) -> Option<T>) -> T {
        let mut states = self.hub.watch();
        let found = timeout(LONG, states.wait_for(|state| look(state).is_some())).await;
        let state = found.unwrap_or_else(|_| panic!("{what}: {:?}", self.hub.watch().borrow())).unwrap();
        look(&state).unwrap()
    }

    async fn connected(&self, source: SourceId) {
        self.until("a phone connects", |state| state.links.get(&source)?.connected).await;
        assert!(lock(&self.readers.present).contains(&source));
    }

    async fn away(&self, source: SourceId) {
        let away = |state: &NetworkState| state.links.get(&source)?.connected.is_none().then_some(());
        self.until("a phone is away", away).await;
        assert!(!lock(&self.readers.present).contains(&source));
    }

    async fn trouble(&self, source: SourceId) -> LinkTrouble {
        self.until("there is trouble", |state| state.links.get(&source)?.trouble).await
    }

    async fn pairing(&self) -> Pairing {
        self.until("somebody asks", |state| state.pairings.first().cloned()).await
    }

    async fn silent(&self) {
        self.until("nothing listens", |state| state.listening.is_none().then_some(())).await;
    }

    async fn outcome(&self) -> Outcome {
        let over = |state: &NetworkState| {
            state.pairings.is_empty().then(|| state.last_pairing.as_ref().map(|last| last.outcome)).flatten()
        };
        self.until("a pairing ends", over).await
    }

    fn state(&self) -> NetworkState {
        self.hub.watch().borrow().clone()
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.state().listening.unwrap().port))
    }

    /// So many seconds pass.
    fn pass(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
        self.hub.look();
    }

    async fn id(&self) -> DeviceId {
        let own = self.db.read(store::identity).await.unwrap().unwrap();
        DeviceId::parse(&own.device).unwrap()
    }

    async fn rows(&self) -> Vec<Phone> {
        self.db.read(store::all).await.unwrap()
    }

    async fn recorded(&self) -> Vec<PhoneEvent> {
        let reach = ledger::Reach { found: 100, looked: 100 };
        let piece =
            self.db.read(move |tx| ledger::piece(tx, &ledger::Wanted::default(), None, reach)).await.unwrap();
        let event = |record| match record {
            Record::Phone { event, .. } => event,
            other => panic!("{other:?}"),
        };
        piece.kept.into_iter().rev().map(|kept| event(kept.record)).collect()
    }

    /// Finds a handset, pairs with it and says that the keys are the same.
    async fn pair_with(&self, handset: &Handset) {
        self.hub.search().await.unwrap();
        let nearby = self.hub.connect(&handset.address().unwrap().to_string()).await.unwrap();
        self.hub.pair(&nearby.device).await.unwrap();
        let key = self.pairing().await.key;
        self.hub.accept(&nearby.device, &key).await.unwrap();
        assert!(matches!(self.outcome().await, Outcome::Paired(_)));
        self.hub.end_search().await.unwrap();
    }

    async fn said(&self, source: SourceId) -> FromPhone {
        let taken = |told: &mut Vec<(SourceId, _)>| {
            let at = told.iter().rposition(|(of, _)| *of == source).unwrap();
            told.remove(at).1
        };
        let mut read: mpsc::UnboundedReceiver<FromPhone> = taken(&mut lock(&self.readers.told));
        let said = timeout(LONG, read.recv()).await.expect("it says something").expect("somebody reads");
        lock(&self.readers.told).push((source, read));
        said
    }

    async fn end(self) -> (Db, Arc<ManualClock>) {
        self.stop.cancel();
        self.task.await.unwrap();
        assert!(lock(&self.readers.present).is_empty());
        assert_eq!(self.hub.search().await, Err(NotDone::NotRunning));
        (self.db, self.clock)
    }
}

/// A handset that keeps its port when it vanishes and appears.
fn setup(name: &str, clock: &Arc<ManualClock>) -> HandsetSetup {
    let free = kai_stand_ins::port::free();
    let reach = Reach { address: Ipv4Addr::LOCALHOST.into(), ports: free..=free, announcements: None };
    HandsetSetup { reach, limits: quick(), ..HandsetSetup::local(name, clock.clone()).unwrap() }
}

async fn handset(name: &str, kai: &Kai) -> Handset {
    Handset::start(setup(name, &kai.clock)).await.unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.expect("it happens in time")
}

#[tokio::test]
async fn nothing_listens_before_a_search_and_nothing_after_it() {
    let kai = Kai::start().await;
    kai.hub.look();
    assert_eq!(kai.state(), NetworkState::default());
    assert!(kai.db.read(store::identity).await.unwrap().is_none(), "it is made when it is needed");
    kai.hub.search().await.unwrap();
    let listening = kai.until("it listens", |state| state.listening).await;
    assert!(!listening.hears_announcements, "a test announces nothing");
    let address = kai.address();
    tokio::net::TcpStream::connect(address).await.unwrap();
    kai.hub.end_search().await.unwrap();
    kai.silent().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    // It ends by itself as well, and can be made longer.
    kai.hub.search().await.unwrap();
    kai.pass(200);
    kai.hub.search().await.unwrap();
    kai.pass(299);
    kai.until("it goes on", |state| state.search.is_some().then_some(())).await;
    assert!(kai.state().listening.is_some());
    kai.pass(1);
    kai.silent().await;
    assert_eq!(kai.state().search, None);
    let first = kai.id().await;
    kai.hub.search().await.unwrap();
    assert_eq!(kai.id().await, first, "it stays the same");
    kai.end().await;
}

#[tokio::test]
async fn a_phone_that_is_asked_is_paired_when_both_people_agree() {
    for confirmed_first in [true, false] {
        let kai = Kai::start().await;
        let waits = HandsetSetup { pairing: OnPairing::Wait, ..setup("Pixel", &kai.clock) };
        let handset = Handset::start(waits).await.unwrap();
        let nearby = kai.hub.connect(&handset.address().unwrap().to_string()).await.unwrap();
        assert_eq!((nearby.name.as_str(), &nearby.device), ("Pixel", handset.id()));
        kai.until("it is in reach", |state| (state.nearby == [nearby.clone()]).then_some(())).await;
        kai.hub.pair(handset.id()).await.unwrap();
        let pairing = kai.pairing().await;
        assert_eq!((pairing.asked_by, pairing.agreed, pairing.name.as_str()), (AskedBy::Us, false, "Pixel"));
        assert_eq!(within(handset.shows_key()).await, pairing.key);
        assert_eq!(kai.hub.accept(handset.id(), "00000000").await, Err(NotDone::NotAsked));
        let id = kai.id().await;
        if confirmed_first {
            kai.hub.accept(handset.id(), &pairing.key).await.unwrap();
            kai.until("it is confirmed", |state| state.pairings[0].confirmed.then_some(())).await;
            handset.accept_pairing(&id).unwrap();
        } else {
            handset.accept_pairing(&id).unwrap();
            kai.until("the phone agreed", |state| state.pairings[0].agreed.then_some(())).await;
            assert!(kai.rows().await.is_empty() && kai.state().links.is_empty(), "not without a tap here");
            kai.hub.accept(handset.id(), &pairing.key).await.unwrap();
        }
        assert_eq!(kai.outcome().await, Outcome::Paired(FIRST));
        kai.connected(FIRST).await;
        let [row] = kai.rows().await.try_into().unwrap();
        assert_eq!(
            (row.name.as_str(), row.device.as_str(), row.protocol),
            ("Pixel", handset.id().as_str(), 8)
        );
        assert_eq!(row.address, Some(handset.address().unwrap().to_string()));
        assert_eq!(
            (row.switches, row.last_seen),
            (kai_assistant::phones::Switches::default(), Some(kai.clock.now()))
        );
        assert_eq!(kai.recorded().await, [PhoneEvent::Paired]);
        assert!(kai.hub.phone(FIRST).unwrap().is_connected());
        assert_eq!(kai.hub.pair(handset.id()).await, Err(NotDone::PairedAlready));
        kai.hub.end_search().await.unwrap();
        assert!(kai.state().listening.is_some(), "a paired phone can connect");
        let stranger = self::handset("Stranger", &kai).await;
        let refused = stranger.connect(kai.address()).await;
        assert!(refused.is_err(), "nobody else can: {refused:?}");
        kai.end().await;
    }
}

#[tokio::test]
async fn a_phone_that_asks_waits_for_a_tap() {
    let kai = Kai::start().await;
    kai.hub.search().await.unwrap();
    kai.until("it listens", |state| state.listening).await;
    let handset = handset("Pixel", &kai).await;
    let id = kai.id().await;
    handset.connect(kai.address()).await.unwrap();
    within(handset.linked(&id)).await;
    handset.request_pairing(&id).unwrap();
    let pairing = kai.pairing().await;
    assert_eq!((pairing.asked_by, &pairing.key), (AskedBy::Them, &within(handset.shows_key()).await));
    // The search may end meanwhile.
    kai.hub.end_search().await.unwrap();
    assert!(kai.rows().await.is_empty());
    assert_eq!(kai.hub.accept(handset.id(), "00000000").await, Err(NotDone::NotAsked));
    kai.hub.accept(handset.id(), &pairing.key).await.unwrap();
    assert_eq!(kai.outcome().await, Outcome::Paired(FIRST));
    kai.connected(FIRST).await;
    within(handset.until(|handset| (handset.paired() == [id.clone()]).then_some(()))).await;
    assert_eq!(kai.rows().await[0].address.as_deref(), Some("127.0.0.1:1716"), "where phones usually listen");
    kai.end().await;
}

#[tokio::test]
async fn what_is_not_agreed_on_is_not_paired() {
    // Refused by the user here, before and after the phone agreed; nobody compares the keys; refused on the phone.
    for (pairing, agreed, late, expected) in [
        (OnPairing::Wait, false, false, Failure::Withdrawn),
        (OnPairing::Accept, true, false, Failure::Withdrawn),
        (OnPairing::Accept, true, true, Failure::TimedOut),
        (OnPairing::Refuse, false, true, Failure::Refused),
    ] {
        let kai = Kai::start().await;
        let handset = Handset::start(HandsetSetup { pairing, ..setup("Pixel", &kai.clock) }).await.unwrap();
        kai.hub.connect(&handset.address().unwrap().to_string()).await.unwrap();
        kai.hub.pair(handset.id()).await.unwrap();
        if agreed {
            kai.until("the phone agreed", |state| state.pairings.first()?.agreed.then_some(())).await;
        } else if pairing == OnPairing::Wait {
            kai.pairing().await;
        }
        match (late, agreed) {
            (false, _) => kai.hub.refuse(handset.id()).await.unwrap(),
            (true, true) => kai.pass(31),
            (true, false) => {}
        }
        assert_eq!(kai.outcome().await, Outcome::Failed(expected), "{pairing:?}");
        within(handset.until(|handset| handset.paired().is_empty().then_some(()))).await;
        assert_eq!(kai.hub.refuse(handset.id()).await, Err(NotDone::NotAsked));
        kai.hub.end_search().await.unwrap();
        kai.silent().await;
        assert!(kai.rows().await.is_empty());
        kai.end().await;
    }
}

#[tokio::test]
async fn a_phone_that_was_away_is_called_again_and_so_after_a_restart() {
    let kai = Kai::start().await;
    let handset = handset("Pixel", &kai).await;
    kai.pair_with(&handset).await;
    kai.connected(FIRST).await;
    kai.pass(100);
    handset.vanish().await;
    kai.away(FIRST).await;
    let seen = kai.until_seen().await;
    kai.pass(2);
    assert_eq!(kai.trouble(FIRST).await, LinkTrouble::Unreachable);
    handset.appear().await.unwrap();
    kai.pass(60);
    kai.connected(FIRST).await;
    assert_eq!(kai.state().links[&FIRST].trouble, None);
    assert!(kai.rows().await[0].last_seen.unwrap() >= seen);
    let (db, clock) = kai.end().await;
    let kai = Kai::on(db, clock, network()).await;
    kai.connected(FIRST).await;
    assert_eq!(kai.state().search, None);
    kai.end().await;
}

impl Kai {
    /// When the phone was last seen, once that is now.
    async fn until_seen(&self) -> Timestamp {
        let now = self.clock.now();
        within(async {
            let mut changes = self.db.changes();
            while self.rows().await[0].last_seen != Some(now) {
                changes.changed().await.unwrap();
            }
        })
        .await;
        now
    }
}

#[tokio::test]
async fn another_certificate_and_an_older_protocol_are_refused_and_recorded_once() {
    for (protocol, trouble, event) in [
        (Protocol::V8, LinkTrouble::WrongCertificate, PhoneEvent::WrongCertificate),
        (Protocol::V7, LinkTrouble::OlderProtocol, PhoneEvent::OlderProtocol),
    ] {
        let kai = Kai::start().await;
        let real = setup("Pixel", &kai.clock);
        let (reach, credentials) = (real.reach.clone(), real.credentials.clone());
        let handset = Handset::start(real).await.unwrap();
        kai.pair_with(&handset).await;
        kai.connected(FIRST).await;
        handset.vanish().await;
        kai.away(FIRST).await;
        let mut other = HandsetSetup { reach, protocol, ..setup("Pixel", &kai.clock) };
        if protocol == Protocol::V7 {
            other.credentials = credentials;
        }
        let impostor = Handset::start(other).await.unwrap();
        kai.pass(60);
        let found = |state: &NetworkState| (state.links.get(&FIRST)?.trouble == Some(trouble)).then_some(());
        kai.until("it is refused", found).await;
        // Again and again.
        for _ in 0..3 {
            let refused = impostor.connect(kai.address()).await;
            assert!(refused.is_err(), "{refused:?}");
        }
        assert_eq!(kai.recorded().await, [PhoneEvent::Paired, event]);
        assert_eq!(kai.state().links[&FIRST].connected, None);
        // The real one is still welcome.
        impostor.vanish().await;
        handset.appear().await.unwrap();
        kai.pass(300);
        kai.connected(FIRST).await;
        assert_eq!(kai.state().links[&FIRST].trouble, None);
        kai.end().await;
    }
}

#[tokio::test]
async fn what_is_on_is_announced_and_passed_on() {
    let kai = Kai::start().await;
    let handset = handset("Pixel", &kai).await;
    handset.receive("+15550142123", "before", kai.clock.now()).await;
    kai.pair_with(&handset).await;
    kai.connected(FIRST).await;
    let announced = |handset: &Handset| {
        let mut links = handset.events().into_iter().rev().filter_map(|event| match event {
            Event::Linked(device) => Some(device.identity.incoming),
            _ => None,
        });
        links.next().unwrap()
    };
    assert_eq!(announced(&handset), ["kdeconnect.ping"], "nothing is on");
    kai.db
        .write(|tx| {
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            store::set(tx, FIRST, Switch::ReadSms, true)
        })
        .await
        .unwrap();
    kai.away(FIRST).await;
    kai.pass(10);
    kai.connected(FIRST).await;
    let reads = |handset: &Handset| announced(handset).iter().any(|name| name == "kdeconnect.sms.messages");
    within(handset.until(|handset| reads(handset).then_some(()))).await;
    let messages = within(async {
        loop {
            if let FromPhone::Messages(list) = kai.said(FIRST).await {
                return list.messages;
            }
        }
    });
    assert_eq!(messages.await[0].body.as_written(), "before");
    kai.db.write(|tx| store::set(tx, FIRST, Switch::ReadSms, false)).await.unwrap();
    assert_eq!(kai.said(FIRST).await, FromPhone::Lost);
    kai.end().await;
}

#[tokio::test]
async fn a_phone_that_floods_only_harms_itself() {
    let kai = Kai::start().await;
    lock(&kai.readers.hang).push(FIRST);
    let (one, other) = (handset("Pixel", &kai).await, handset("Work", &kai).await);
    kai.pair_with(&one).await;
    kai.pair_with(&other).await;
    kai.db
        .write(|tx| {
            settings::store(tx, &SMS_ENABLED.key, "true")?;
            store::set(tx, FIRST, Switch::ReadSms, true)?;
            store::set(tx, SECOND, Switch::ReadSms, true)
        })
        .await
        .unwrap();
    kai.away(SECOND).await;
    kai.pass(60);
    kai.connected(FIRST).await;
    kai.connected(SECOND).await;
    kai.hub.phone(FIRST).unwrap().ask(Ask::Threads).await.unwrap();
    within(one.until(|handset| handset.events().iter().rev().find_map(asked_for_threads))).await;
    for number in 0..100 {
        one.receive("+15550142123", &"x".repeat(1_000), kai.clock.now()).await;
        if number == 50 {
            other.receive("+15550142123", "hello", kai.clock.now()).await;
        }
    }
    let too_much =
        |state: &NetworkState| (state.links.get(&FIRST)?.trouble == Some(LinkTrouble::TooMuch)).then_some(());
    kai.until("the flood is cut off", too_much).await;
    kai.away(FIRST).await;
    let heard = within(async {
        loop {
            if let FromPhone::Messages(list) = kai.said(SECOND).await {
                return list.messages;
            }
        }
    });
    assert_eq!(heard.await[0].body.as_written(), "hello");
    assert!(kai.state().links[&SECOND].connected.is_some());
    kai.end().await;
}

fn asked_for_threads(event: &Event) -> Option<()> {
    matches!(event, Event::Packet(_, kai_bridges::kdeconnect::Packet::RequestConversations)).then_some(())
}

impl Kai {
    /// With everything in it that works with phones in the program, and the door for drafts.
    async fn whole() -> (Self, Door) {
        let db = Db::in_memory(kai_assistant::MIGRATIONS).unwrap();
        let (time, senders) = (clock(), Arc::new(Senders::default()));
        let sources = Arc::new(Sources::new(None));
        let features = Features::new(db.clone(), time.clone(), Arc::clone(&senders), sources);
        let door = Door {
            mailer: None,
            db: db.clone(),
            clock: time.clone(),
            senders,
            answerable: replying::answerable,
            under_way: Arc::default(),
        };
        let readers = Readers { features: Some(features), ..Readers::default() };
        (Self::read_by(readers, db, time, network()).await, door)
    }

    /// Waits until the store says so.
    async fn stored(&self, what: &str, is_so: impl Fn(&Transaction<'_>) -> Result<bool, DbError>) {
        let mut changes = self.db.changes();
        let so = async {
            while !self.db.read_now(&is_so).unwrap() {
                changes.changed().await.unwrap();
            }
        };
        timeout(LONG, so).await.unwrap_or_else(|_| panic!("{what}"));
    }

    fn draft(&self, phone: SourceId, body: &str) -> Draft {
        let new = NewDraft {
            channel: Channel::Sms,
            phone,
            to: "+15550142123".to_owned(),
            app: None,
            body: body.to_owned(),
            mail: None,
            in_reply_to: None,
            quoted: None,
            known_contact: true,
            origin: RunKind::Chat,
            guest: None,
            conversation: 0,
        };
        self.db.write_now(|tx| outbox::store::stage(tx, &new, self.clock.now())).unwrap()
    }
}

/// A phone without the permission for SMS says nothing at all: its messages are never listed, and nothing that it was
/// told to send appears. The other one is filled, brings news and sends meanwhile.
#[tokio::test]
async fn a_phone_that_hangs_does_not_hold_up_another() {
    let (kai, door) = Kai::whole().await;
    let (hangs, works) = (handset("Pixel", &kai).await, handset("Work", &kai).await);
    hangs.turn_off(&[Use::Sms]);
    let earlier = kai.clock.now().saturating_sub(SignedDuration::from_hours(1)).unwrap();
    for number in 0..150 {
        works.receive("+15550142123", &format!("Number {number}"), earlier).await;
    }
    kai.pair_with(&hangs).await;
    kai.pair_with(&works).await;
    let on = |tx: &Transaction<'_>| {
        for master in [&SMS_ENABLED, &SMS_SEND_ENABLED] {
            settings::store(tx, &master.key, "true")?;
        }
        for phone in [FIRST, SECOND] {
            store::set(tx, phone, Switch::ReadSms, true)?;
            store::set(tx, phone, Switch::SendSms, true)?;
        }
        Ok::<_, DbError>(())
    };
    kai.db.write(on).await.unwrap();
    kai.away(SECOND).await;
    kai.pass(60);
    kai.connected(FIRST).await;
    kai.connected(SECOND).await;
    within(hangs.until(|handset| handset.events().iter().rev().find_map(asked_for_threads))).await;
    let tap = |draft: &Draft| {
        let tap = Tap { draft: draft.id, act: Act::Send, shown: draft.digest(), attempts: draft.attempts };
        let door = door.clone();
        tokio::spawn(async move { door.tap(tap).await })
    };
    let unheard = tap(&kai.draft(FIRST, "Nobody hears this"));
    let told = |event: &Event| {
        matches!(event, Event::Packet(_, kai_bridges::kdeconnect::Packet::SendSms(_))).then_some(())
    };
    within(hangs.until(|handset| handset.events().iter().find_map(told))).await;
    let now = kai.clock.now();
    let filled = |tx: &Transaction<'_>| {
        let state = sms::phone_state(tx, SECOND, now)?;
        Ok(state.messages == 150 && state.done == 1)
    };
    kai.stored("the other phone is filled", filled).await;
    works.receive("+15550142123", "Dinner?", now).await;
    let queued = |tx: &Transaction<'_>| {
        let shares = pending::by_phone(tx, sms::queue::QUEUE)?;
        Ok(shares.iter().any(|share| (share.phone, share.waiting) == (SECOND, 1)))
    };
    kai.stored("its news is queued", queued).await;
    let sent = within(tap(&kai.draft(SECOND, "On my way"))).await.unwrap().unwrap();
    assert_eq!(sent.status.state(), DraftState::Sent);
    assert_eq!(works.sent().len(), 1);
    assert!(!unheard.is_finished(), "the first is still waited for");
    assert!(hangs.sent().is_empty());
    kai.end().await;
}

/// A message that is being sent keeps its phone connected while Kai stops, and nothing new may leave by it then.
#[tokio::test]
async fn while_kai_stops_no_phone_takes_a_draft_not_even_one_that_comes_back() {
    let (kai, door) = Kai::whole().await;
    let handset = handset("Pixel", &kai).await;
    kai.pair_with(&handset).await;
    kai.connected(FIRST).await;
    assert!(door.senders.has(FIRST));
    kai.hub.retire();
    assert!(!door.senders.has(FIRST) && kai.hub.phone(FIRST).unwrap().is_connected());
    kai.pass(100);
    handset.vanish().await;
    kai.away(FIRST).await;
    handset.appear().await.unwrap();
    kai.pass(60);
    kai.connected(FIRST).await;
    assert!(!door.senders.has(FIRST));
    kai.end().await;
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whatever others on the network do, and whosever id they use: there is one line a minute about it.
#[tokio::test]
async fn hostile_peers_get_one_line_a_minute_in_the_log() {
    let log = Log::default();
    let written = log.clone();
    let writer = tracing_subscriber::fmt().with_ansi(false).with_writer(move || written.clone()).finish();
    let _writing = tracing::subscriber::set_default(writer);
    let lines = || String::from_utf8(lock(&log.0).clone()).unwrap().matches("was refused").count();
    let kai = Kai::start().await;
    let handset = handset("Pixel", &kai).await;
    kai.pair_with(&handset).await;
    kai.connected(FIRST).await;
    kai.hub.search().await.unwrap();
    let claims = |protocol: u32| {
        let id = handset.id();
        let body = format!(
            r#"{{"deviceId":"{id}","deviceName":"Pixel","deviceType":"phone","protocolVersion":{protocol}}}"#
        );
        format!("{{\"id\":1,\"type\":\"kdeconnect.identity\",\"body\":{body}}}\n")
    };
    let too_long = "x".repeat(9_000);
    for _ in 0..5 {
        for (said, is_encrypted) in
            [("nonsense\n", false), (&claims(7), false), (&claims(8), true), (&too_long, false)]
        {
            let mut stream = tokio::net::TcpStream::connect(kai.address()).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            if is_encrypted {
                within(stream.read_exact(&mut [0])).await.unwrap();
                stream.write_all(b"this is not a handshake").await.unwrap();
            }
            // It is hung up on, politely or not.
            let _ = within(stream.read_to_end(&mut vec![])).await;
        }
        let impostor = Handset::start(setup("Pixel", &kai.clock)).await.unwrap();
        impostor.connect(kai.address()).await.unwrap_err();
    }
    let found = |state: &NetworkState| state.links.get(&FIRST)?.trouble;
    kai.until("somebody was refused", found).await;
    assert_eq!(lines(), 1);
    kai.pass(61);
    let mut stream = tokio::net::TcpStream::connect(kai.address()).await.unwrap();
    stream.write_all(b"nonsense\n").await.unwrap();
    within(async {
        while lines() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    kai.end().await;
    assert_eq!(lines(), 2);
}

#[tokio::test]
async fn unpairing_here_tells_the_phone_and_closes_the_last_door() {
    for (messages, kept) in [(StoredMessages::Forget, false), (StoredMessages::Keep, true)] {
        let kai = Kai::start().await;
        let handset = handset("Pixel", &kai).await;
        kai.pair_with(&handset).await;
        kai.connected(FIRST).await;
        assert_eq!(kai.hub.unpair(SECOND, messages).await, Err(NotDone::Unknown));
        let address = kai.address();
        kai.hub.unpair(FIRST, messages).await.unwrap();
        within(handset.until(|handset| handset.paired().is_empty().then_some(()))).await;
        kai.silent().await;
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
        assert_eq!(*lock(&kai.readers.stopped), [FIRST]);
        assert_eq!(*lock(&kai.readers.forgotten), if kept { vec![] } else { vec![FIRST] });
        assert_eq!(
            kai.rows().await.iter().map(Phone::is_paired).collect::<Vec<_>>(),
            if kept { vec![false] } else { vec![] }
        );
        assert_eq!(kai.recorded().await, [PhoneEvent::Paired, PhoneEvent::Unpaired]);
        assert!(kai.hub.phone(FIRST).is_none());
        kai.end().await;
    }
}

#[tokio::test]
async fn unpairing_there_ends_it_here_and_keeps_the_messages_until_somebody_decides() {
    let kai = Kai::start().await;
    let handset = handset("Pixel", &kai).await;
    kai.pair_with(&handset).await;
    kai.connected(FIRST).await;
    handset.unpair(&kai.id().await);
    let unpaired = |state: &NetworkState| {
        (state.links.get(&FIRST)?.trouble == Some(LinkTrouble::Unpaired)).then_some(())
    };
    kai.until("it is unpaired", unpaired).await;
    assert_eq!((lock(&kai.readers.stopped).len(), lock(&kai.readers.forgotten).len()), (1, 0));
    kai.pass(5);
    kai.silent().await;
    assert!(!kai.rows().await[0].is_paired());
    // It can be paired again, and is the same phone.
    kai.pair_with(&handset).await;
    kai.connected(FIRST).await;
    assert_eq!(kai.rows().await.len(), 1);
    handset.unpair(&kai.id().await);
    kai.until("it is unpaired", unpaired).await;
    kai.hub.unpair(FIRST, StoredMessages::Forget).await.unwrap();
    assert!(kai.rows().await.is_empty());
    assert_eq!(*lock(&kai.readers.forgotten), [FIRST]);
    let (paired, left) = (PhoneEvent::Paired, PhoneEvent::UnpairedByPhone);
    assert_eq!(kai.recorded().await, [paired, left, paired, left]);
    kai.end().await;
}

#[tokio::test]
async fn a_phone_that_forgot_us_can_ask_anew() {
    let kai = Kai::start().await;
    let handset = handset("Pixel", &kai).await;
    kai.pair_with(&handset).await;
    kai.connected(FIRST).await;
    let id = kai.id().await;
    // The link is no longer new, so the endpoint itself does not try once more.
    kai.pass(100);
    handset.vanish().await;
    kai.away(FIRST).await;
    handset.unpair(&id);
    handset.appear().await.unwrap();
    kai.pass(60);
    kai.connected(FIRST).await;
    within(handset.until(|handset| {
        let links = handset.events().iter().filter(|event| matches!(event, Event::Linked(_))).count();
        (links >= 2).then_some(())
    }))
    .await;
    handset.request_pairing(&id).unwrap();
    let pairing = kai.pairing().await;
    assert_eq!(pairing.asked_by, AskedBy::Them);
    assert_eq!(kai.state().links[&FIRST].trouble, Some(LinkTrouble::Unpaired), "nothing is as it was");
    kai.hub.accept(handset.id(), &pairing.key).await.unwrap();
    assert_eq!(kai.outcome().await, Outcome::Paired(FIRST));
    kai.connected(FIRST).await;
    kai.end().await;
}

#[tokio::test]
async fn what_is_in_the_way_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let reach = Reach { ports: port..=port, ..network().reach };
    let db = Db::in_memory(kai_assistant::MIGRATIONS).unwrap();
    let kai = Kai::on(db, clock(), Network { reach, ..network() }).await;
    assert_eq!(kai.hub.search().await, Err(NotDone::NoNetwork));
    kai.until("the ports are taken", |state| {
        (state.trouble == Some(NetworkTrouble::PortsTaken)).then_some(())
    })
    .await;
    drop(taken);
    kai.pass(30);
    kai.until("it listens", |state| state.listening).await;
    assert_eq!(kai.state().trouble, None);
    assert_eq!(kai.hub.connect("my phone").await, Err(NotDone::NoAddress));
    assert_eq!(kai.hub.connect("8.8.8.8").await, Err(NotDone::NotReached(Refusal::NotLocal)));
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 9)).to_string();
    assert_eq!(kai.hub.connect(&nobody).await, Err(NotDone::NotReached(Refusal::Unreachable)));
    kai.end().await;
}
