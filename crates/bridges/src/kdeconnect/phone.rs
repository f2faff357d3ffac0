//! A paired phone behind the assistant's ports. It is there whether it is connected or not.
//!
//! Whoever runs the [`Endpoint`] tells it about connections and hands it packets. It passes on what the phone's switches
//! allow and drops the rest, so that nobody has to trust a phone to keep to what was announced.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kai_assistant::clock::Clock;
use kai_assistant::lock::lock;
use kai_assistant::phones::Switches;
use kai_assistant::phones::port::{Ask, FromPhone, NotReached, PhoneLink, Reaching};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::contacts::Card;
use super::endpoint::Endpoint;
use super::event::SendError;
use super::identity::DeviceId;
use super::lane::{Lane, Overflow};
use super::listed::Listed;
use super::notification::{Change, OddKeys};
use super::packet::Packet;
use super::ported;
use super::sms::Message;

/// How long a phone is waited for, and how much of what it tells may wait.
#[derive(Debug, Clone, Copy)]
pub struct PhoneLimits {
    /// A phone does not say when a list is complete; it is once it says nothing for so long.
    pub quiet: Duration,
    /// For a complete list. Also how long the phone may take to begin one.
    pub list: Duration,
    /// Until a message that was sent appears in the phone's list.
    pub sent: Duration,
    /// How much of what it told may wait to be stored, in bytes. Beyond that it has to connect anew.
    pub waiting: usize,
}

impl Default for PhoneLimits {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(1),
            list: Duration::from_secs(5),
            sent: Duration::from_mins(1),
            waiting: 32 * 1024 * 1024,
        }
    }
}

/// What [`Wire::send`] returns.
pub(crate) type Handing<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + Send + 'a>>;

/// A connection that takes packets for one phone.
pub(crate) trait Wire: Send + Sync {
    fn send(&self, packet: Packet) -> Handing<'_>;
}

/// A link of an endpoint.
struct Linked {
    endpoint: Arc<Endpoint>,
    device: DeviceId,
}

impl Wire for Linked {
    fn send(&self, packet: Packet) -> Handing<'_> {
        Box::pin(self.endpoint.send(&self.device, packet))
    }
}

/// A paired phone.
pub struct PairedPhone {
    device: DeviceId,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: PhoneLimits,
    pub(super) line: watch::Sender<Line>,
    pub(super) listed: watch::Sender<Listed>,
    /// Where notifications go while somebody listens.
    pub(super) ear: Mutex<Option<mpsc::Sender<Change>>>,
    pub(super) odd_keys: Mutex<OddKeys>,
    told: Lane<FromPhone>,
}

/// How the phone can be reached, and what it may be used for.
#[derive(Clone, Default)]
pub(super) struct Line {
    pub(super) wire: Option<Arc<dyn Wire>>,
    /// Counts connections.
    pub(super) number: u64,
    /// The phone was asked for its messages on this connection, so it tells about new ones.
    pub(super) asked: Option<Asked>,
    /// Something that the phone told on this connection was lost, so the rest is not taken either: whoever reads would
    /// believe that nothing came before it.
    deaf: bool,
    pub(super) allowed: Switches,
    /// How many wait to see a message in the phone's list.
    pub(super) looking: u32,
}

impl Line {
    /// Whether somebody needs what the phone lists.
    fn keeps_listed(&self) -> bool {
        self.allowed.read_sms || self.looking > 0
    }

    /// Returns whether what the phone listed is to be forgotten, because nobody needs it any more. The next one to look
    /// then has to ask again.
    pub(super) fn let_go_of_listed(&mut self) -> bool {
        let is_over = !self.keeps_listed();
        if is_over {
            self.asked = None;
        }
        is_over
    }

    fn keeps_told(&self) -> bool {
        self.wire.is_some() && (self.allowed.read_sms || self.allowed.names)
    }

    /// Whether messages or contacts were turned on, that were off before, while it is connected.
    fn has_more_than(&self, before: Switches) -> bool {
        let (reads, names) = (self.allowed.read_sms, self.allowed.names);
        self.wire.is_some() && (reads && !before.read_sms || names && !before.names)
    }
}

/// When a phone was asked for its newest messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// The number of the connection.
    pub(super) number: u64,
    /// How much it had told before, as [`Listed`] counts it.
    pub(super) told: u64,
    pub(super) at: Instant,
}

impl PairedPhone {
    /// A phone that is not connected yet, and where it reports its messages and contacts.
    pub fn new(
        device: DeviceId,
        clock: Arc<dyn Clock>,
        limits: PhoneLimits,
    ) -> (Arc<Self>, mpsc::Receiver<FromPhone>) {
        let (told, received) = Lane::new(limits.waiting);
        let (line, listed, ear) = (watch::Sender::default(), watch::Sender::default(), Mutex::default());
        let odd_keys = Mutex::default();
        (Arc::new(Self { device, clock, limits, line, listed, ear, odd_keys, told }), received)
    }

    pub fn device(&self) -> &DeviceId {
        &self.device
    }

    /// There is a link with it. It replaces an older one.
    pub fn connected(&self, endpoint: Arc<Endpoint>) -> Result<(), Overflow> {
        self.connected_by(Arc::new(Linked { endpoint, device: self.device.clone() }))
    }

    /// The same by any wire, such as one to a simulated phone.
    pub(crate) fn connected_by(&self, wire: Arc<dyn Wire>) -> Result<(), Overflow> {
        self.change(|line| {
            line.wire = Some(wire);
            line.number += 1;
            (line.asked, line.deaf) = (None, false);
        })?;
        // A link that takes the place of another one is new to whoever asked for something on the old one.
        if self.line.borrow().keeps_told() { self.told.push(FromPhone::Connected, 1) } else { Ok(()) }
    }

    /// The link with it ended.
    pub fn lost(&self) {
        // There is always room for a word about the end, or whoever reads is so far behind that the next link says it.
        let _ = self.change(|line| {
            line.wire = None;
            line.asked = None;
        });
    }

    /// Sets what it may be used for.
    pub fn allow(&self, switches: Switches) -> Result<(), Overflow> {
        let (before, mut forget) = (self.allowed(), false);
        let changed = self.change(|line| {
            line.allowed = switches;
            // While a message is being sent, what was listed before it is still needed.
            forget = line.let_go_of_listed();
        });
        if forget {
            self.listed.send_modify(Listed::forget);
        }
        changed?;
        // Whoever reads begins anew, and finds what it did not ask for before.
        let begins = self.line.borrow().has_more_than(before);
        if begins { self.told.push(FromPhone::Connected, 1) } else { Ok(()) }
    }

    /// Whether the user wants to be told on it, and it is connected.
    pub fn can_be_told(&self) -> bool {
        let line = self.line.borrow();
        line.wire.is_some() && line.allowed.tell
    }

    /// Changes the line, and says that the connection ended if it did for those who read.
    fn change(&self, change: impl FnOnce(&mut Line)) -> Result<(), Overflow> {
        let mut ended = false;
        self.line.send_modify(|line| {
            let before = line.keeps_told();
            change(line);
            ended = before && !line.keeps_told();
        });
        if ended { self.told.push(FromPhone::Lost, 1) } else { Ok(()) }
    }

    /// Takes a packet that it sent. What is off is dropped. Once there was no room, nothing more is taken on the same
    /// connection.
    pub fn packet(&self, packet: Packet) -> Result<(), Overflow> {
        if self.line.borrow().deaf {
            return Err(Overflow);
        }
        let taken = self.take(packet);
        if taken.is_err() {
            self.line.send_modify(|line| line.deaf = true);
        }
        taken
    }

    fn take(&self, packet: Packet) -> Result<(), Overflow> {
        let allowed = self.allowed();
        match packet {
            Packet::Messages(messages) => self.take_messages(&messages.list),
            Packet::Contacts(stamps) if allowed.names => {
                let weight = stamps.iter().map(|stamp| stamp.uid.len() + size_of_val(stamp)).sum();
                self.told.push(FromPhone::ContactList(stamps), weight)
            }
            Packet::Cards(cards) if allowed.names => {
                let weight = cards.iter().map(|card| card.vcard.as_written().len()).sum();
                let contacts = cards.iter().filter_map(Card::contact).collect();
                self.told.push(FromPhone::Contacts(contacts), weight)
            }
            Packet::Notification(change) if allowed.notifications => self.take_notification(change),
            _ => Ok(()),
        }
    }

    fn take_messages(&self, messages: &[Message]) -> Result<(), Overflow> {
        let line = self.line.borrow().clone();
        if line.keeps_listed() {
            self.listed.send_modify(|listed| listed.take(messages));
        }
        if !line.allowed.read_sms {
            return Ok(());
        }
        let list = ported::list(messages);
        let weight = ported::weight(&list);
        self.told.push(FromPhone::Messages(list), weight)
    }

    fn take_notification(&self, change: Change) -> Result<(), Overflow> {
        let ear = lock(&self.ear).clone();
        match ear.map(|ear| ear.try_send(change)) {
            Some(Err(mpsc::error::TrySendError::Full(_))) => Err(Overflow),
            Some(Ok(()) | Err(mpsc::error::TrySendError::Closed(_))) | None => Ok(()),
        }
    }

    /// Opens the phone's own app with a message filled in. The user sends it there.
    pub(super) async fn open_composer(&self, number: &str, text: &str) -> Result<(), NotReached> {
        self.reach(|on| on.composer, ported::composer(number, text)).await
    }

    /// Answers a notification by the id that came with it. The phone does not say whether the id still worked.
    pub(super) async fn answer(&self, reply_id: &str, text: &str) -> Result<(), NotReached> {
        let packet = Packet::ReplyNotification { reply_id: reply_id.to_owned(), text: text.to_owned() };
        self.reach(|on| on.notifications, packet).await
    }

    /// Shows a notification on the phone. One with the same key replaces it. What others wrote must not be in it.
    pub async fn tell(&self, key: &str, title: &str, text: &str) -> Result<(), NotReached> {
        self.reach(|on| on.tell, ported::notice(key, title, text)).await
    }

    pub(super) fn allowed(&self) -> Switches {
        self.line.borrow().allowed
    }

    /// Sends a packet if that is allowed. To whoever is not allowed, the phone is not connected.
    pub(super) async fn reach(
        &self,
        may: impl Fn(Switches) -> bool,
        packet: Packet,
    ) -> Result<(), NotReached> {
        let line = self.line.borrow().clone();
        let wire = line.wire.filter(|_| may(line.allowed)).ok_or(NotReached::NotConnected)?;
        let sent = wire.send(packet).await;
        sent.map_err(|error| match error {
            SendError::NotConnected | SendError::NotPaired => NotReached::NotConnected,
            SendError::Busy => NotReached::Busy,
            SendError::Unsure => NotReached::Unsure,
        })
    }

    /// Asks for the newest message of every conversation, for whoever may.
    pub(super) async fn ask_threads(&self, may: impl Fn(Switches) -> bool) -> Result<Asked, NotReached> {
        let number = self.line.borrow().number;
        // The answer may be here before the request counts as sent.
        let told = self.listed.borrow().told;
        self.reach(may, Packet::RequestConversations).await?;
        let asked = Asked { number, told, at: Instant::now() };
        self.line.send_if_modified(|line| {
            if line.number == number && line.keeps_listed() {
                line.asked = Some(asked);
            }
            false
        });
        Ok(asked)
    }
}

impl PhoneLink for PairedPhone {
    fn is_connected(&self) -> bool {
        self.line.borrow().wire.is_some()
    }

    fn ask(&self, ask: Ask) -> Reaching<'_> {
        Box::pin(async move {
            match ask {
                Ask::Threads => self.ask_threads(|on| on.read_sms).await.map(drop),
                Ask::Thread { .. } => self.reach(|on| on.read_sms, ported::request(ask)).await,
                Ask::ContactList | Ask::Contacts { .. } => {
                    self.reach(|on| on.names, ported::request(ask)).await
                }
            }
        })
    }
}
