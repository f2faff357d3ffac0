//! The port to the platform: the trait for a bridge that reports notifications, and the [`Ear`] that it reports to.
//!
//! The bridge pushes. It reports an event and may go on at once; the [`Receipt`] it gets tells when the event is
//! durable. The channel to the writer is bounded, so a bridge that is faster than the disk has to wait.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::record::{NotificationId, Post};
use crate::access::{Access, Known};
use crate::clock::Clock;
use crate::source::SourceId;

/// A platform that reports notifications.
pub trait Listener: Send + Sync {
    /// A one-word name for users and scripts, such as "desktop" or "termux".
    fn name(&self) -> &'static str;
    /// Whether Kai may listen. If the platform can prompt the user for the permission, this makes it prompt.
    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>>;
    /// Listens until the future is dropped, and reconnects when the connection to the platform is lost.
    fn listen(&self, ear: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Dismisses a notification from the user's screen, or returns a sentence that says why not. The id is the
    /// platform's own key, as this bridge reported it.
    fn dismiss<'a>(&'a self, id: &'a NotificationId) -> Dismissing<'a>;
}

pub type Dismissing<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// An event that a bridge reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// The bridge is connected and receives everything from now on. `standing` holds the notifications already on the
    /// screen, if the platform reports them.
    Bound {
        standing: Vec<Post>,
    },
    /// A notification that was on the screen before, from a platform that reports those one by one.
    Standing(Box<Post>),
    Posted(Box<Post>),
    /// A notification is no longer shown.
    Closed(NotificationId),
    /// The bridge receives nothing from now on. The access says why; [`Access::Granted`] means that Kai itself stopped.
    Unbound(Access),
}

/// A source of notifications: its listener, and what is known about its permission.
pub struct Source {
    pub id: SourceId,
    pub listener: Arc<dyn Listener>,
    known: Known,
    /// The listener is connected right now, so there is no need to ask for the permission.
    bound: AtomicBool,
    /// Signals that a setting of this feature changed.
    pub(super) changed: Notify,
    /// Signals that the user wants a check now.
    asked: Notify,
    looks: watch::Sender<Looks>,
}

/// Counts the checks of the platform: the number of the last one begun, and of the last one finished.
#[derive(Debug, Clone, Copy)]
struct Looks {
    begun: u64,
    finished: u64,
}

/// How long a platform may take to dismiss a notification.
const DISMISSING: Duration = Duration::from_secs(15);

impl Source {
    /// This machine's own source.
    pub fn new(listener: Arc<dyn Listener>) -> Self {
        Self::of(SourceId::HERE, listener)
    }

    /// The source with that number, such as a paired phone.
    pub fn of(id: SourceId, listener: Arc<dyn Listener>) -> Self {
        let (known, changed, asked) = (Known::default(), Notify::new(), Notify::new());
        Self {
            id,
            listener,
            known,
            bound: AtomicBool::new(false),
            changed,
            asked,
            looks: watch::Sender::new(Looks { begun: 1, finished: 0 }),
        }
    }

    /// The permission: as last known if the listener is connected or it was learned within the last minute, otherwise
    /// asks the platform.
    pub async fn access(&self, now: Timestamp) -> Access {
        match self.known.last() {
            Some(access) if self.is_bound() || !self.known.is_old(now) => access,
            _ => self.ask(now).await,
        }
    }

    /// Whether the listener is connected right now.
    pub fn is_bound(&self) -> bool {
        self.bound.load(Ordering::Relaxed)
    }

    /// Dismisses one of its notifications from the user's screen, or returns a sentence that says why not.
    pub async fn dismiss(&self, id: &NotificationId) -> Result<(), String> {
        let key = id.key();
        let dismissed = tokio::time::timeout(DISMISSING, self.listener.dismiss(&key)).await;
        dismissed.unwrap_or_else(|_| Err("Kai got no answer, so it may still be on the screen.".to_owned()))
    }

    /// Records that the listener is no longer connected.
    pub(super) fn unbound(&self) {
        self.bound.store(false, Ordering::Relaxed);
    }

    /// Asks the platform for the permission now.
    pub async fn ask(&self, now: Timestamp) -> Access {
        let access = self.listener.access().await;
        self.known.learn(access.clone(), now);
        access
    }

    /// The last known permission, without asking the platform.
    pub fn known(&self) -> Option<Access> {
        self.known.last()
    }

    /// Tells the capture loop that a setting of this feature changed.
    pub fn changed(&self) {
        self.changed.notify_one();
    }

    /// Makes the listener check now, and waits for that for at most `patience`. A check that is already running does
    /// not count: what the user is waiting for may have happened after it began.
    pub async fn check_now(&self, patience: Duration) {
        let mut looks = self.looks.subscribe();
        let wanted = looks.borrow_and_update().begun + 1;
        self.asked.notify_one();
        drop(tokio::time::timeout(patience, looks.wait_for(|looks| looks.finished >= wanted)).await);
    }
}

/// The handle through which a bridge reports events.
#[derive(Clone)]
pub struct Ear {
    source: Arc<Source>,
    clock: Arc<dyn Clock>,
    to: mpsc::Sender<Delivery>,
}

/// An event on its way to the writer.
#[derive(Debug)]
pub struct Delivery {
    pub(super) at: Timestamp,
    pub heard: Heard,
    pub(super) written: oneshot::Sender<()>,
}

/// Resolves once a reported event is durable.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<()>);

impl Receipt {
    /// Waits until the event is durable. Returns false if it never will be, because the writer is gone.
    pub async fn durable(self) -> bool {
        self.0.await.is_ok()
    }
}

/// How many events may wait to be written.
const ROOM: usize = 1_024;

impl Ear {
    pub fn new(source: Arc<Source>, clock: Arc<dyn Clock>) -> (Self, mpsc::Receiver<Delivery>) {
        let (to, from) = mpsc::channel(ROOM);
        (Self { source, clock, to }, from)
    }

    /// Reports an event. Waits only while the channel to the writer is full.
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
            Heard::Standing(_) | Heard::Posted(_) | Heard::Closed(_) => {}
        }
        let (written, receipt) = oneshot::channel();
        // If the writer is gone, the receipt reports it.
        drop(self.to.send(Delivery { at, heard, written }).await);
        Receipt(receipt)
    }

    /// The user's time zone, for platforms that report local times.
    pub fn zone(&self) -> jiff::tz::TimeZone {
        self.clock.zone()
    }

    /// Waits until the user wants a check now.
    pub async fn asked(&self) {
        self.source.asked.notified().await;
    }

    /// Counts a check as done at once. For platforms that push events, where there is nothing to check.
    pub fn looked(&self) {
        self.source.looks.send_modify(|looks| {
            looks.begun += 1;
            looks.finished = looks.begun;
        });
    }

    /// Ends a check, pauses until the next one, and begins it. The pause ends early if the user wants a check now.
    pub async fn rest(&self, pause: Duration) {
        self.source.looks.send_modify(|looks| looks.finished = looks.begun);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.asked() => {}
        }
        self.source.looks.send_modify(|looks| looks.begun += 1);
    }
}
