//! What paired phones show while nobody looks, over real connections with simulated handsets on this machine alone.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::reports::{self, Report};
use kai_assistant::clock::ManualClock;
use kai_assistant::db::DbError;
use kai_assistant::device::{Notification, Notifier, PortFuture};
use kai_assistant::gate::RunKind;
use kai_assistant::outbox::{Channel, NewDraft, store as drafts};
use kai_assistant::phones::Switch;
use kai_assistant::phones::port::Contact;
use kai_assistant::settings::{self, LANGUAGE};
use kai_assistant::sms::names;
use kai_assistant::source::SourceId;
use kai_assistant::untrusted::Untrusted;
use kai_bridges::kdeconnect::{Limits, Reach};
use kai_bridges::simulated::{Handset, HandsetSetup};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::commands::{announce, phones};
use crate::phones::drivers::Features;
use crate::phones::order::NotDone;
use crate::phones::state::NetworkState;
use crate::phones::{Hub, Network};

/// Beyond this a test has failed. Nothing waits for it otherwise.
const LONG: Duration = Duration::from_mins(1);

/// Records the notifications instead of showing them.
#[derive(Default)]
struct Screen(Mutex<Vec<Notification>>);

impl Notifier for Screen {
    fn notify<'a>(&'a self, notification: &'a Notification) -> PortFuture<'a> {
        self.0.lock().unwrap().push(notification.clone());
        Box::pin(async { Ok(()) })
    }
}

/// Kai with its network, which runs.
struct Kai {
    app: Arc<App>,
    clock: Arc<ManualClock>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

fn limits() -> Limits {
    Limits { between_connections: Duration::ZERO, between_reports: Duration::ZERO, ..Limits::default() }
}

fn local(port: u16) -> Reach {
    Reach { address: Ipv4Addr::LOCALHOST.into(), ports: port..=port, announcements: None }
}

impl Kai {
    async fn start(notifier: Option<Arc<dyn Notifier>>) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let (mut app, folder) = App::for_tests(clock.clone());
        let (senders, sources) = (Arc::clone(&app.door.senders), Arc::clone(&app.messages.notifications));
        let features = Features::new(app.db.clone(), clock.clone(), senders, sources);
        let network = Network { reach: local(0), limits: limits(), ..Network::default() };
        app.messages.network = Hub::new(app.db.clone(), clock.clone(), Arc::new(features), network);
        app.notifier = notifier;
        let (app, stop) = (Arc::new(app), CancellationToken::new());
        let (running, until) = (app.clone(), stop.clone());
        let task = tokio::spawn(async move { running.messages.network.run(until).await });
        while app.messages.network.end_search().await == Err(NotDone::NotRunning) {
            tokio::task::yield_now().await;
        }
        Self { app, clock, stop, task, _folder: folder }
    }

    async fn until<T>(&self, what: &str, look: impl Fn(&NetworkState) -> Option<T>) -> T {
        let mut states = self.app.messages.network.watch();
        let found = timeout(LONG, states.wait_for(|state| look(state).is_some())).await;
        look(&found.unwrap_or_else(|_| panic!("{what}")).unwrap()).unwrap()
    }

    /// Waits until every paired phone is connected, or none is.
    async fn all(&self, connected: bool) {
        let all = |state: &NetworkState| {
            let mut links = state.links.values();
            links.all(|link| link.connected.is_some() == connected).then_some(())
        };
        self.until(if connected { "all connect" } else { "all are away" }, all).await;
    }

    /// Every phone that is away is called again.
    async fn call_all(&self) {
        self.clock.advance(SignedDuration::from_mins(10));
        self.app.messages.network.look();
        self.all(true).await;
    }

    /// A handset that is paired. It keeps its port when it vanishes.
    async fn paired(&self, name: &str) -> Handset {
        let free = kai_stand_ins::port::free();
        let setup = HandsetSetup::local(name, self.clock.clone()).unwrap();
        let setup = HandsetSetup { reach: local(free), limits: limits(), ..setup };
        let handset = Handset::start(setup).await.unwrap();
        let hub = &self.app.messages.network;
        hub.search().await.unwrap();
        let nearby = hub.connect(&handset.address().unwrap().to_string()).await.unwrap();
        hub.pair(&nearby.device).await.unwrap();
        let asked = |state: &NetworkState| {
            state.pairings.iter().find(|asked| asked.device == nearby.device).map(|asked| asked.key.clone())
        };
        let key = self.until("it is asked", asked).await;
        hub.accept(&nearby.device, &key).await.unwrap();
        let is_over = |state: &NetworkState| {
            (state.pairings.is_empty() && state.links.values().any(|link| link.connected.is_some()))
                .then_some(())
        };
        self.until("it is paired", is_over).await;
        hub.end_search().await.unwrap();
        handset
    }

    /// The user wants to be told on this phone. What Kai announces changes by that, so every phone has to come again.
    async fn tell_on(&self, name: &str) {
        phones::set(&self.app, name, Switch::Tell, true).await.unwrap();
        self.all(false).await;
        self.call_all().await;
    }

    /// A heartbeat drafts an SMS.
    async fn draft(&self, to: &str) {
        let new = NewDraft {
            channel: Channel::Sms,
            phone: SourceId::HERE,
            to: to.to_owned(),
            app: None,
            body: "See you".to_owned(),
            mail: None,
            in_reply_to: None,
            quoted: None,
            known_contact: false,
            origin: RunKind::Heartbeat,
            guest: None,
            conversation: 0,
        };
        let now = self.app.clock.now();
        self.app.db.write(move |tx| drafts::stage(tx, &new, now)).await.unwrap();
    }

    async fn news(&self) {
        announce::news(&self.app).await.unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// What a handset was told, once it is so many.
async fn told(handset: &Handset, count: usize) -> Vec<(String, String)> {
    let enough = |handset: &Handset| (handset.told().len() >= count).then(|| handset.told());
    let told = timeout(LONG, handset.until(enough)).await.expect("it is told");
    let written = |text: Option<Untrusted>| text.unwrap_or_default().as_written().to_owned();
    told.into_iter().map(|shown| (shown.key, written(shown.text))).collect()
}

fn says(key: &str, text: &str) -> (String, String) {
    (key.to_owned(), text.to_owned())
}

#[tokio::test]
async fn a_phone_says_once_that_something_waits_and_nothing_of_it() {
    for has_desktop in [true, false] {
        let screen = Arc::new(Screen::default());
        let kai = Kai::start(has_desktop.then(|| Arc::clone(&screen) as _)).await;
        let (pixel, work) = (kai.paired("Pixel").await, kai.paired("Work").await);
        kai.tell_on("Pixel").await;
        let lena = Contact {
            uid: "1".to_owned(),
            name: Untrusted::new("Lena"),
            numbers: vec![Untrusted::new("+15550101")],
        };
        kai.app.db.write(move |tx| names::replace(tx, SourceId::HERE, &[lena])).await.unwrap();
        kai.draft("+15550101").await;
        kai.news().await;
        kai.news().await;
        assert_eq!(told(&pixel, 1).await, [says("kai-drafts", "A draft is waiting for you.")]);
        let shown = format!("{:?}", pixel.told());
        assert!(["555", "See you", "Lena"].iter().all(|word| !shown.contains(word)), "{shown}");
        // A page that is open shows it, and nobody is told later either.
        kai.app.pages.send_replace(1);
        kai.draft("+15550102").await;
        kai.news().await;
        kai.app.pages.send_replace(0);
        kai.news().await;
        let now = kai.app.clock.now();
        let reported = kai.app.db.write(move |tx| {
            settings::store(tx, &LANGUAGE.key, "de")?;
            let said = "Lena asks.".to_owned();
            reports::keep(tx, &Report { said, spoken: None, at: now, raises: true }).map_err(|e: DbError| e)
        });
        reported.await.unwrap();
        kai.news().await;
        kai.draft("+15550103").await;
        kai.news().await;
        let then = [
            says("kai-drafts", "A draft is waiting for you."),
            says("kai-heartbeat", "Kai hat etwas zu berichten."),
            says("kai-drafts", "3 Entwürfe warten auf Sie."),
        ];
        assert_eq!(told(&pixel, 3).await, then);
        assert_eq!(work.told().len(), 0, "nobody wants it there");
        let screen = screen.0.lock().unwrap().clone();
        assert_eq!(screen.len(), if has_desktop { 3 } else { 0 });
        let first = "To Lena · +15550101: See you";
        assert!(screen.first().is_none_or(|shown| shown.message == first), "{screen:?}");
        kai.end().await;
    }
}

#[tokio::test]
async fn what_nobody_could_be_told_waits_for_the_phone() {
    let kai = Kai::start(None).await;
    let pixel = kai.paired("Pixel").await;
    kai.tell_on("Pixel").await;
    pixel.vanish().await;
    kai.all(false).await;
    kai.draft("+15550101").await;
    kai.news().await;
    pixel.appear().await.unwrap();
    kai.call_all().await;
    for _ in 0..2 {
        kai.news().await;
    }
    kai.draft("+15550102").await;
    kai.news().await;
    let both = [
        says("kai-drafts", "A draft is waiting for you."),
        says("kai-drafts", "2 drafts are waiting for you."),
    ];
    assert_eq!(told(&pixel, 2).await, both);
    kai.end().await;
}
