//! The phone in the pocket: the simulated handset, paired with the daemon, over a line that can be cut at any byte. It
//! receives, shows, sends, dies and comes back while the daemon is killed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kai_assistant::clock::SystemClock;
use kai_assistant::home;
use kai_assistant::home::Unlock;
use kai_assistant::sms::archive;
use kai_bridges::kdeconnect::{Folder, Limits, Message};
use kai_bridges::simulated::{Handset, HandsetSetup, SendFate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Dice;
use crate::paired::{only_here, open_store, pair_home};
use crate::phone::Phone;
use crate::sms::ALICE;

/// Its name, and who writes to it.
pub(super) const NAME: &str = "Pixel";
const BOB: &str = "+15550177";
/// Messages that were on it before it was paired: more than a few pages of one conversation, and some of others.
const OLD: u64 = 400;

pub(super) struct Pocket {
    runtime: Runtime,
    pub(super) handset: Arc<Handset>,
    line: Arc<Line>,
    /// How many messages it has received, and how many notifications it has shown, since it is read.
    pub(super) received: u64,
    pub(super) shown: u64,
}

/// What happens on the handset and on the line.
enum Event {
    Receives(u64),
    /// The line is cut.
    Cut,
    /// The line is cut after so many more bytes, in the middle of whatever is under way.
    CutAfter(usize),
    /// Its app dies, and is back after so many milliseconds.
    Dies(u64),
    /// The next message that it is told to send fares like this.
    Fate(SendFate),
}

impl Pocket {
    /// Pairs a handset with a home. `None` unless the network is our own, because a daemon with a paired phone announces
    /// itself to everybody.
    pub(super) fn pair(phone: &Phone) -> Option<Self> {
        if !only_here() {
            return None;
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let setup = HandsetSetup::local(NAME, Arc::new(SystemClock)).unwrap();
        let limits = Limits { between_connections: Duration::ZERO, ..Limits::default() };
        let handset = Arc::new(runtime.block_on(Handset::start(HandsetSetup { limits, ..setup })).unwrap());
        let line = runtime.block_on(Line::to(Arc::clone(&handset)));
        let began = Timestamp::now() - SignedDuration::from_hours(24);
        for number in 0..OLD {
            let from = [ALICE, BOB, BOB, BOB][usize::try_from(number % 4).unwrap()];
            let date = began + SignedDuration::from_secs(i64::try_from(number).unwrap());
            runtime.block_on(handset.receive(from, &format!("Long ago, old-{number}@"), date));
        }
        runtime.block_on(pair_home(&phone.home, &handset, &line.address.to_string()));
        Some(Self { runtime, handset, line, received: 0, shown: 0 })
    }

    /// Turns on what can be turned on, while a daemon runs.
    pub(super) fn may_be_used_by(phone: &Phone) {
        for switch in ["read_sms", "send_sms", "notifications"] {
            let on = phone.run(&["phones", "set", NAME, switch, "on"]);
            assert_eq!(on.code, 0, "{on:?}");
        }
        let on = phone.run(&["settings", "set", "notifications_reply_enabled", "true"]);
        assert_eq!(on.code, 0, "{on:?}");
    }

    /// Lets things happen from now on, some of them within so many milliseconds. There may be room for few messages.
    pub(super) fn goes_on(&mut self, dice: &mut Dice, within: u64, room: bool) -> JoinHandle<()> {
        let mut events = vec![];
        for _ in 0..dice.below(5) {
            let event = match dice.below(32) {
                0..=15 if room => {
                    self.received += 1;
                    Event::Receives(self.received)
                }
                0..=15 => continue,
                16..=20 => Event::Cut,
                21..=26 => Event::CutAfter(usize::try_from(dice.below(20_000)).unwrap()),
                27..=30 => Event::Dies(dice.below(within / 2 + 1)),
                _ => Event::Fate(
                    [SendFate::SentUnlisted, SendFate::Lost, SendFate::Failed]
                        [usize::try_from(dice.below(3)).unwrap()],
                ),
            };
            events.push((dice.below(within / 2 + 1), event));
        }
        let (handset, line) = (Arc::clone(&self.handset), Arc::clone(&self.line));
        self.runtime.spawn(async move {
            for (pause, event) in events {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                event.happens(&handset, &line).await;
            }
        })
    }

    pub(super) fn until_over(&self, going_on: JoinHandle<()>) {
        self.runtime.block_on(going_on).unwrap();
    }

    /// An app shows something. Returns its number.
    pub(super) fn shows(&mut self) -> u64 {
        self.shown += 1;
        let (title, text) = (format!("Bob {}", self.shown), format!("bubble-{}@ hello", self.shown));
        self.runtime.block_on(self.handset.post("org.chat", "Chat", &title, &text));
        self.shown
    }

    /// How many messages have left by it.
    pub(super) fn sent(&self) -> usize {
        self.handset.sent().len()
    }

    /// Waits until more messages have left by it than before. That need not happen: it may be away, or none was tapped.
    pub(super) fn until_more_sent(&self, before: usize) {
        let end = Instant::now() + Duration::from_secs(10);
        while self.sent() == before && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits a little until the daemon says that it is connected. It need not become so: it may be dead just now.
    pub(super) fn is_connected(phone: &Phone) -> bool {
        (0..30).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            let listed = phone.run(&["phones", "list", "--json"]);
            listed.code == 0 && listed.json()[0]["connected"] == true
        })
    }

    /// The texts on it that belong into the archive: received or sent, and nothing that failed.
    pub(super) fn texts(&self) -> Vec<String> {
        let kept = |message: &Message| matches!(message.folder, Folder::Inbox | Folder::Sent);
        let messages = self.handset.messages();
        messages.iter().filter(|m| kept(m)).map(|m| m.body.as_written().to_owned()).collect()
    }

    /// Waits, undisturbed, until everything on it is in the archive.
    pub(super) fn until_archived(&self, phone: &Phone) {
        let all = self.texts().len();
        for _ in 0..300 {
            if Self::archived(phone).len() >= all {
                return;
            }
            std::thread::sleep(Duration::from_millis(400));
        }
        let archived = Self::archived(phone);
        let missing: Vec<String> = self.texts().into_iter().filter(|text| !archived.contains(text)).collect();
        let phones = phone.run(&["phones", "list", "--json"]).out;
        panic!(
            "of {all} messages in the pocket {} are archived; {phones} misses {missing:?}",
            archived.len()
        );
    }

    /// The texts in the archive, as they lie in the store.
    pub(super) fn archived(phone: &Phone) -> Vec<String> {
        let folder = home::Home::at(phone.home.path()).unwrap();
        let (_, key) = folder.unlock(&Unlock { keyring: None, passphrase: &|| Ok(None) }).unwrap();
        let db = open_store(&folder, &key);
        let all = db.read_now(|tx| archive::after(tx, None, usize::MAX)).unwrap();
        all.into_iter().map(|(_, stored)| stored.body.as_written().to_owned()).collect()
    }
}

impl Event {
    async fn happens(self, handset: &Handset, line: &Line) {
        match self {
            Self::Receives(number) => {
                let text = format!("Hi, this is pocket-{number}@ and more");
                handset.receive(BOB, &text, Timestamp::now()).await;
            }
            Self::Cut => line.cut(),
            Self::CutAfter(bytes) => line.cut_after(bytes),
            Self::Dies(pause) => {
                // It has no time to say goodbye.
                line.cut();
                handset.vanish().await;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                handset.appear().await.unwrap();
            }
            Self::Fate(fate) => handset.next_send(fate),
        }
    }
}

/// The line between the daemon and the handset. The daemon knows only this end.
struct Line {
    address: SocketAddr,
    cuts: watch::Sender<u64>,
    /// How many bytes still go through, if it is about to be cut.
    left: Mutex<Option<usize>>,
}

impl Line {
    async fn to(handset: Arc<Handset>) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let line = Arc::new(Self { address, cuts: watch::Sender::default(), left: Mutex::default() });
        let carried = Arc::clone(&line);
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                // Nobody is there while the app is dead, and then the line is closed at once.
                let Some(to) = handset.address() else { continue };
                let Ok(to) = TcpStream::connect(to).await else { continue };
                tokio::spawn(between(from, to, Arc::clone(&carried)));
            }
        });
        line
    }

    fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    fn cut_after(&self, bytes: usize) {
        *self.left.lock().unwrap() = Some(bytes);
    }

    /// How many of so many bytes go through.
    fn passes(&self, length: usize) -> usize {
        let mut left = self.left.lock().unwrap();
        let Some(some) = *left else { return length };
        *left = some.checked_sub(length);
        length.min(some)
    }
}

async fn between(one: TcpStream, other: TcpStream, line: Arc<Line>) {
    let mut cuts = line.cuts.subscribe();
    let ((from_one, to_one), (from_other, to_other)) = (one.into_split(), other.into_split());
    tokio::select! {
        () = carry(from_one, to_other, &line) => {}
        () = carry(from_other, to_one, &line) => {}
        _ = cuts.changed() => {}
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, line: &Line) {
    let mut piece = [0; 4_096];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        let passes = line.passes(length);
        if to.write_all(&piece[..passes]).await.is_err() || passes < length {
            return;
        }
    }
}
