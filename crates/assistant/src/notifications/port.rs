//! Where the outside begins: a platform that tells us what its apps show, and the ear it tells it to.
//!
//! Hearing is push. A bridge says what it heard and may go on at once; the [`Receipt`] it gets tells when that is
//! durable. The way to the writer is bounded: a bridge that is faster than the disk has to wait.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::record::{NotificationId, Post};
use crate::access::{Access, Known};
use crate::clock::Clock;

/// A platform that can tell of notifications.
pub trait Listener: Send + Sync {
    /// One word for people and scripts: "desktop", "termux".
    fn name(&self) -> &'static str;
    /// May we listen? Where the platform can ask the person, this makes it ask.
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>>;
    /// Listens until it is dropped, and tries again when it lost the platform.
    fn listen(&self, ear: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Takes a notification off the person's screen, or says why not, as a sentence.
    fn dismiss<'a>(&'a self, id: &'a NotificationId) -> Dismissing<'a>;
}

pub type Dismissing<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// What a bridge can hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// From now on everything is heard. What stood on the screen already comes along, where the platform tells.
    Bound {
        standing: Vec<Post>,
    },
    Posted(Box<Post>),
    /// It is no longer shown.
    Closed(NotificationId),
    /// From now on nothing is heard, and why.
    Unbound(Access),
}

/// A listener of this machine, and what is known of its access.
pub struct Source {
    pub listener: Arc<dyn Listener>,
    known: Known,
    /// Everything is heard right now, so nobody need be asked whether it may.
    bound: AtomicBool,
    /// The person turned something on or off.
    pub(super) changed: Notify,
    /// The person wants it looked at now.
    asked: Notify,
    looks: watch::Sender<Looks>,
}

/// How often a look at the platform was begun, and which one came last to its end.
#[derive(Debug, Clone, Copy)]
struct Looks {
    begun: u64,
    finished: u64,
}

impl Source {
    pub fn new(listener: Arc<dyn Listener>) -> Self {
        let (known, changed, asked) = (Known::default(), Notify::new(), Notify::new());
        Self {
            listener,
            known,
            bound: AtomicBool::new(false),
            changed,
            asked,
            looks: watch::Sender::new(Looks { begun: 1, finished: 0 }),
        }
    }

    /// What the platform says now, or said within the last minute.
    pub async fn access(&self, now: Timestamp) -> Access {
        match self.known.last() {
            Some(access) if self.bound.load(Ordering::Relaxed) || !self.known.is_old(now) => access,
            _ => self.ask(now).await,
        }
    }

    /// Nobody listens any more.
    pub(super) fn unbound(&self) {
        self.bound.store(false, Ordering::Relaxed);
    }

    /// What the platform says now.
    pub async fn ask(&self, now: Timestamp) -> Access {
        let access = self.listener.access().await;
        self.known.learn(access.clone(), now);
        access
    }

    /// What was last learned, without asking.
    pub fn known(&self) -> Option<Access> {
        self.known.last()
    }

    /// A setting of this feature was changed.
    pub fn changed(&self) {
        self.changed.notify_one();
    }

    /// Has the listener check now, and waits for that, but not for ever. A check that is under way does not count: what
    /// the person means may have happened since it began.
    pub async fn check_now(&self, patience: Duration) {
        let mut looks = self.looks.subscribe();
        let wanted = looks.borrow_and_update().begun + 1;
        self.asked.notify_one();
        drop(tokio::time::timeout(patience, looks.wait_for(|looks| looks.finished >= wanted)).await);
    }
}

/// What a bridge tells.
#[derive(Clone)]
pub struct Ear {
    source: Arc<Source>,
    clock: Arc<dyn Clock>,
    to: mpsc::Sender<Delivery>,
}

/// What a bridge heard, on its way to the writer.
#[derive(Debug)]
pub struct Delivery {
    pub(super) at: Timestamp,
    pub(super) heard: Heard,
    pub(super) written: oneshot::Sender<()>,
}

/// Tells when what was told is durable.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<()>);

impl Receipt {
    /// False if it never will be: the writer has gone.
    pub async fn durable(self) -> bool {
        self.0.await.is_ok()
    }
}

/// So many may wait to be written.
const ROOM: usize = 1_024;

impl Ear {
    pub fn new(source: Arc<Source>, clock: Arc<dyn Clock>) -> (Self, mpsc::Receiver<Delivery>) {
        let (to, from) = mpsc::channel(ROOM);
        (Self { source, clock, to }, from)
    }

    /// Waits only while the writer is behind.
    pub async fn tell(&self, heard: Heard) -> Receipt {
        let at = self.clock.now();
        match &heard {
            Heard::Bound { .. } => {
                self.source.known.learn(Access::Granted, at);
                self.source.bound.store(true, Ordering::Relaxed);
            }
            Heard::Unbound(access) => {
                self.source.unbound();
                self.source.known.learn(access.clone(), at);
            }
            Heard::Posted(_) | Heard::Closed(_) => {}
        }
        let (written, receipt) = oneshot::channel();
        // If the writer has gone, the receipt says so.
        drop(self.to.send(Delivery { at, heard, written }).await);
        Receipt(receipt)
    }

    /// Where the person is, for platforms that tell local times.
    pub fn zone(&self) -> jiff::tz::TimeZone {
        self.clock.zone()
    }

    /// Until the person wants it looked at now.
    pub async fn asked(&self) {
        self.source.asked.notified().await;
    }

    /// For a platform that tells by itself, a look is nothing but this.
    pub fn looked(&self) {
        self.source.looks.send_modify(|looks| {
            looks.begun += 1;
            looks.finished = looks.begun;
        });
    }

    /// A pause between two looks, cut short when the person asks.
    pub async fn rest(&self, pause: Duration) {
        self.source.looks.send_modify(|looks| looks.finished = looks.begun);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.asked() => {}
        }
        self.source.looks.send_modify(|looks| looks.begun += 1);
    }
}
