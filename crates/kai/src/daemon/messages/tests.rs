//! What becomes of a message that is being sent when Kai is told to stop. The phone is a simulated handset, over a real
//! connection on this machine.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::gate::RunKind;
use kai_assistant::outbox::door::{Act, Refused, Tap};
use kai_assistant::outbox::{Channel, Draft, DraftState, NewDraft, store as drafts};
use kai_assistant::phones::port::PhoneLink;
use kai_assistant::phones::{SourceId, Switch, store};
use kai_assistant::settings::{self, SMS_SEND_ENABLED};
use kai_bridges::kdeconnect::{Event, Folder, Limits, Packet, PhoneLimits, Reach};
use kai_bridges::simulated::{Handset, HandsetSetup, SendFate};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::{Listen, Work, bind};
use crate::app::App;
use crate::phones::drivers::Features;
use crate::phones::order::NotDone;
use crate::phones::state::NetworkState;
use crate::phones::{Hub, Network};
use crate::socket;

/// Beyond this a test has failed. Nothing waits for it otherwise.
const LONG: Duration = Duration::from_mins(1);
const PIXEL: SourceId = SourceId(2);
const LENA: &str = "+15550142123";

/// A daemon at work.
struct Kai {
    app: Arc<App>,
    clock: Arc<ManualClock>,
    work: Work,
    _folder: TempDir,
}

fn reach() -> Reach {
    Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None }
}

/// Limits under which nobody has to wait before connecting again.
fn limits() -> Limits {
    Limits { between_connections: Duration::ZERO, between_reports: Duration::ZERO, ..Limits::default() }
}

/// A hub whose port only this machine can reach, and which announces nothing.
fn loopback(app: &App) -> Hub {
    let phone = PhoneLimits { quiet: Duration::from_millis(20), ..PhoneLimits::default() };
    let network = Network { reach: reach(), limits: limits(), phone };
    let (senders, sources) = (Arc::clone(&app.door.senders), Arc::clone(&app.messages.notifications));
    let drivers = Features::new(app.db.clone(), Arc::clone(&app.clock), senders, sources);
    Hub::new(app.db.clone(), Arc::clone(&app.clock), Arc::new(drivers), network)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.expect("it happens in time")
}

/// Waits until something is so that nobody tells about.
async fn until_so(is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    within(so).await;
}

impl Kai {
    async fn start() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let (mut app, folder) = App::for_tests(clock.clone());
        app.messages.network = loopback(&app);
        let app = Arc::new(app);
        let listen = Listen { bind: Ipv4Addr::LOCALHOST.into(), port: Some(0) };
        let (page, address) = bind(listen).await.unwrap();
        let socket = socket::listen(&app.home).unwrap();
        let work = Work::begin(&app, page, address, socket);
        while app.messages.network.end_search().await == Err(NotDone::NotRunning) {
            tokio::task::yield_now().await;
        }
        Self { app, clock, work, _folder: folder }
    }

    /// Waits for a state of the network, and returns what was found in it.
    async fn until<T>(&self, look: impl Fn(&NetworkState) -> Option<T>) -> T {
        let mut states = self.app.messages.network.watch();
        let found = within(states.wait_for(|state| look(state).is_some())).await.unwrap();
        look(&found).unwrap()
    }

    async fn until_connected(&self, connected: bool) {
        let is_so =
            |state: &NetworkState| (state.links.get(&PIXEL)?.connected.is_some() == connected).then_some(());
        self.until(is_so).await;
    }

    /// A handset that is paired and may send. It has a message, so it has something to list.
    async fn pixel(&self) -> Handset {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let setup = HandsetSetup { limits: limits(), ..HandsetSetup::local("Pixel", clock).unwrap() };
        let handset = Handset::start(setup).await.unwrap();
        handset.receive(LENA, "Where are you?", self.clock.now()).await;
        let hub = &self.app.messages.network;
        hub.search().await.unwrap();
        let nearby = hub.connect(&handset.address().unwrap().to_string()).await.unwrap();
        hub.pair(&nearby.device).await.unwrap();
        let key = self.until(|state| state.pairings.first().map(|asked| asked.key.clone())).await;
        hub.accept(&nearby.device, &key).await.unwrap();
        self.until_connected(true).await;
        hub.end_search().await.unwrap();
        let on = self.app.db.write(|tx| {
            settings::store(tx, &SMS_SEND_ENABLED.key, "true")?;
            store::set(tx, PIXEL, Switch::SendSms, true)
        });
        on.await.unwrap();
        // What Kai announces changes by that, so the phone has to come again.
        hub.look();
        self.until_connected(false).await;
        self.clock.advance(SignedDuration::from_mins(1));
        hub.look();
        self.until_connected(true).await;
        handset
    }
}

/// Stages a draft and taps *Send*.
async fn tapped(app: &App, body: &str) -> JoinHandle<Result<Draft, Refused>> {
    let new = NewDraft {
        channel: Channel::Sms,
        phone: PIXEL,
        to: LENA.to_owned(),
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
    let (door, now) = (app.door.clone(), app.clock.now());
    let draft = app.db.write(move |tx| drafts::stage(tx, &new, now)).await.unwrap();
    let tap = Tap { draft: draft.id, act: Act::Send, shown: draft.digest(), attempts: draft.attempts };
    tokio::spawn(async move { door.tap(tap).await })
}

fn was_told_to_send(event: &Event) -> Option<()> {
    matches!(event, Event::Packet(_, Packet::SendSms(_))).then_some(())
}

/// Only the phone can say that it has sent a message, so it stays connected until it does. Nothing else leaves by it
/// meanwhile.
#[tokio::test]
async fn a_message_that_is_being_sent_keeps_its_phone() {
    let kai = Kai::start().await;
    let pixel = kai.pixel().await;
    // It takes a while to list what it sent.
    pixel.next_send(SendFate::SentUnlisted);
    let sending = tapped(&kai.app, "On my way").await;
    within(pixel.until(|handset| handset.events().iter().find_map(was_told_to_send))).await;

    let Kai { app, clock, work, _folder } = kai;
    let stopped = {
        let app = Arc::clone(&app);
        tokio::spawn(async move { work.end(&app).await })
    };
    until_so(|| !app.door.senders.has(PIXEL)).await;
    let phone = app.messages.network.phone(PIXEL).expect("the network still runs");
    assert!(phone.is_connected(), "it has not said yet what became of the message");
    let next = within(tapped(&app, "Never mind").await).await.unwrap();
    assert!(matches!(next, Err(Refused::NotConnected(_))), "{next:?}");

    pixel.file(Folder::Sent, &[LENA], "On my way", clock.now()).await;
    let sent = within(sending).await.unwrap().unwrap();
    assert_eq!(sent.status.state(), DraftState::Sent);
    within(stopped).await.unwrap();
    until_so(|| !phone.is_connected()).await;
    assert_eq!(pixel.sent().len(), 1);
}
