//! A phone with the KDE Connect app that exists only here: it speaks the real protocol over real connections, and
//! tests and the demo decide what happens on it.

mod memory;
mod wired;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use kai_assistant::clock::Clock;
use kai_assistant::hex;
use kai_assistant::lock::lock;
use kai_assistant::untrusted::Untrusted;
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, mpsc};

use crate::kdeconnect::{
    Capabilities, Credentials, Device, DeviceId, DeviceKind, DeviceName, Endpoint, Event, Folder, Identity,
    Limits, Message, OpenError, Outgoing, Packet, Pin, Protocol, Reach, Refused, SendError, Setup, Shown,
    Strangers, Use,
};

pub use memory::{Press, Reply, SendFate};
pub use wired::WiredPhone;

use memory::{Memory, NewMessage, Post};

/// What a handset is like.
pub struct HandsetSetup {
    pub name: String,
    pub id: DeviceId,
    pub credentials: Credentials,
    pub protocol: Protocol,
    pub reach: Reach,
    pub limits: Limits,
    pub clock: Arc<dyn Clock>,
    pub pairing: OnPairing,
}

/// What the handset does when it is asked to pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPairing {
    /// It agrees at once, as if its owner had compared the keys.
    Accept,
    Refuse,
    /// Nobody touches it.
    Wait,
}

impl HandsetSetup {
    /// A handset of version 8 that only this machine can reach. Its id follows from its name.
    pub fn local(name: &str, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let id = id_of(name);
        let credentials = Credentials::make(&id, clock.now()).map_err(OpenError::Credentials)?;
        Ok(Self {
            name: name.to_owned(),
            id,
            credentials,
            protocol: Protocol::V8,
            reach: Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None },
            limits: Limits::default(),
            clock,
            pairing: OnPairing::Accept,
        })
    }

    fn identity(&self) -> Identity {
        let capabilities = Capabilities::of_phone(&Use::ALL);
        Identity {
            id: self.id.clone(),
            name: DeviceName::clean(&self.name),
            kind: DeviceKind::Phone,
            protocol: self.protocol,
            incoming: capabilities.incoming,
            outgoing: capabilities.outgoing,
        }
    }
}

/// The id that follows from a name.
fn id_of(name: &str) -> DeviceId {
    let hash = hex::encode(&Sha256::digest(name.as_bytes())[..16]);
    DeviceId::parse(&hash).unwrap_or_else(|| DeviceId::from_random([0; 16]))
}

/// A simulated phone. It leaves the network when it is dropped.
pub struct Handset {
    inner: Arc<Inner>,
}

struct Inner {
    setup: HandsetSetup,
    state: Mutex<State>,
    /// Rings whenever something happened.
    happened: Notify,
}

#[derive(Default)]
struct State {
    memory: Memory,
    endpoint: Option<Arc<Endpoint>>,
    pins: BTreeMap<DeviceId, Pin>,
    events: Vec<Event>,
}

impl Handset {
    /// Switches a handset on.
    pub async fn start(setup: HandsetSetup) -> Result<Self, OpenError> {
        let inner = Inner { setup, state: Mutex::default(), happened: Notify::new() };
        let handset = Self { inner: Arc::new(inner) };
        handset.appear().await?;
        Ok(handset)
    }

    /// Comes back to the network. What is on the handset, and with whom it is paired, is kept.
    pub async fn appear(&self) -> Result<(), OpenError> {
        let setup = &self.inner.setup;
        let pins = self.inner.state().pins.values().cloned().collect();
        let (endpoint, events) = Endpoint::open(Setup {
            me: setup.identity(),
            credentials: setup.credentials.clone(),
            pins,
            strangers: Strangers::Welcome,
            reach: setup.reach.clone(),
            limits: setup.limits.clone(),
            clock: setup.clock.clone(),
        })
        .await?;
        self.inner.state().endpoint = Some(Arc::new(endpoint));
        tokio::spawn(live(self.inner.clone(), events));
        Ok(())
    }

    /// Leaves the network, as if it were out of reach.
    pub async fn vanish(&self) {
        let endpoint = self.inner.state().endpoint.take();
        if let Some(endpoint) = endpoint {
            endpoint.close().await;
        }
    }

    pub fn id(&self) -> &DeviceId {
        &self.inner.setup.id
    }

    /// Where it listens, as long as it has not vanished.
    pub fn address(&self) -> Option<SocketAddr> {
        let port = self.inner.state().endpoint.as_ref()?.port();
        let address = self.inner.setup.reach.address;
        let address = if address.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address };
        Some(SocketAddr::new(address, port))
    }

    /// Announces itself, as the app does when it is opened.
    pub async fn announce(&self) -> io::Result<()> {
        match self.inner.endpoint() {
            Some(endpoint) => endpoint.announce().await,
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub async fn connect(&self, address: SocketAddr) -> Result<Device, Refused> {
        match self.inner.endpoint() {
            Some(endpoint) => endpoint.connect(address).await,
            None => Err(crate::kdeconnect::Refusal::Unreachable.into()),
        }
    }

    /// Its owner taps *Request pairing*.
    pub fn request_pairing(&self, device: &DeviceId) -> Result<(), SendError> {
        self.inner.linked(|endpoint| endpoint.request_pairing(device))
    }

    /// Its owner taps *Accept*.
    pub fn accept_pairing(&self, device: &DeviceId) -> Result<(), SendError> {
        let shown = |event: &Event| match event {
            Event::PairingAsked { device: asked, key } if asked == device => Some(key.clone()),
            _ => None,
        };
        let key = self.events().iter().rev().find_map(shown).unwrap_or_default();
        self.inner.linked(|endpoint| endpoint.accept_pairing(device, &key))
    }

    /// Its owner unpairs a device.
    pub fn unpair(&self, device: &DeviceId) {
        self.inner.state().pins.remove(device);
        if let Some(endpoint) = self.inner.endpoint() {
            endpoint.unpair(device);
        }
    }

    /// A message arrives. Returns its id.
    pub async fn receive(&self, from: &str, text: &str, date: Timestamp) -> i64 {
        self.file(Folder::Inbox, &[from], text, date).await
    }

    /// A message appears in one of the folders, with several addresses if it belongs to a group.
    pub async fn file(&self, folder: Folder, with: &[&str], text: &str, date: Timestamp) -> i64 {
        let addresses = with.iter().map(|address| (*address).to_owned()).collect();
        let draft = NewMessage { folder, addresses, text: text.to_owned() };
        let (id, posts) = self.inner.state().memory.file(draft, date);
        self.inner.deliver(posts).await;
        id
    }

    /// A message is deleted, so that its id can be used again. Returns whether it existed.
    pub fn delete(&self, id: i64) -> bool {
        self.inner.state().memory.delete(id)
    }

    /// An app shows a notification. It can be answered if `reply_id` is set; each packet then has an id of its own.
    pub async fn show(&self, shown: Shown) {
        let post = self.inner.state().memory.show(&shown);
        self.inner.deliver(vec![post]).await;
    }

    /// An app shows a notification with a title and a text. Returns its key.
    pub async fn post(&self, package: &str, app: &str, title: &str, text: &str) -> String {
        let key = self.inner.state().memory.new_key(package);
        self.show(Shown {
            key: key.clone(),
            app: Some(Untrusted::new(app)),
            title: Some(Untrusted::new(title)),
            text: Some(Untrusted::new(text)),
            ticker: Some(Untrusted::new(format!("{title}: {text}"))),
            posted_at: Some(self.inner.setup.clock.now()),
            dismissable: true,
            reply_id: Some("reply".to_owned()),
            ..Shown::default()
        })
        .await;
        key
    }

    /// The owner wipes a notification away.
    pub async fn wipe_away(&self, key: &str) {
        let post = self.inner.state().memory.remove(key);
        self.inner.deliver(post.into_iter().collect()).await;
    }

    pub fn save_contact(&self, id: &str, changed: i64, vcard: &str) {
        self.inner.state().memory.save_contact(id, changed, vcard);
    }

    /// Turns features of the app off: it no longer answers packets about them.
    pub fn turn_off(&self, features: &[Use]) {
        self.inner.state().memory.off.extend(features);
    }

    /// Sets what happens to the next message to be sent. Calls add up.
    pub fn next_send(&self, fate: SendFate) {
        self.inner.state().memory.fates.push_back(fate);
    }

    /// Everything that it ever sent, oldest first.
    pub fn sent(&self) -> Vec<Outgoing> {
        self.inner.state().memory.sent.clone()
    }

    /// All its messages, newest first.
    pub fn messages(&self) -> Vec<Message> {
        self.inner.state().memory.messages()
    }

    pub fn replies(&self) -> Vec<Reply> {
        self.inner.state().memory.replies.clone()
    }

    pub fn presses(&self) -> Vec<Press> {
        self.inner.state().memory.presses.clone()
    }

    /// Keys of the notifications that were dismissed from afar.
    pub fn dismissed(&self) -> Vec<String> {
        self.inner.state().memory.dismissed.clone()
    }

    /// Addresses that it was told to open.
    pub fn opened(&self) -> Vec<String> {
        self.inner.state().memory.opened.clone()
    }

    /// Notifications that others showed on it.
    pub fn told(&self) -> Vec<Shown> {
        self.inner.state().memory.told.clone()
    }

    pub fn pings(&self) -> usize {
        self.inner.state().memory.pings
    }

    /// The devices that it is paired with.
    pub fn paired(&self) -> Vec<DeviceId> {
        self.inner.state().pins.keys().cloned().collect()
    }

    /// Everything that happened to it on the network, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.inner.state().events.clone()
    }

    /// Waits until `look` finds what it wants. It is asked again whenever something happened.
    pub async fn until<T>(&self, look: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            let happened = self.inner.happened.notified();
            if let Some(found) = look(self) {
                return found;
            }
            happened.await;
        }
    }

    /// Waits for a link with a device.
    pub async fn linked(&self, device: &DeviceId) {
        let linked = |event: &Event| matches!(event, Event::Linked(found) if found.identity.id == *device);
        self.until(|handset| handset.events().iter().any(linked).then_some(())).await;
    }

    /// Waits until it shows a key for pairing, and returns it.
    pub async fn shows_key(&self) -> String {
        let key = |event: &Event| match event {
            Event::PairingRequested { key, .. } | Event::PairingAsked { key, .. } => Some(key.clone()),
            _ => None,
        };
        self.until(|handset| handset.events().iter().rev().find_map(key)).await
    }
}

impl Drop for Handset {
    fn drop(&mut self) {
        self.inner.state().endpoint = None;
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn endpoint(&self) -> Option<Arc<Endpoint>> {
        self.state().endpoint.clone()
    }

    fn linked(&self, act: impl FnOnce(&Endpoint) -> Result<(), SendError>) -> Result<(), SendError> {
        self.endpoint().map_or(Err(SendError::NotConnected), |endpoint| act(&endpoint))
    }

    async fn deliver(&self, posts: Vec<Post>) {
        let Some(endpoint) = self.endpoint() else { return };
        for post in posts {
            let (to, packet) = match post {
                Post::To(device, packet) => (vec![device], packet),
                Post::ToAll(packet) => (self.state().pins.keys().cloned().collect(), packet),
            };
            for device in to {
                // A device that is gone gets nothing, as with a real phone.
                let _ = endpoint.send(&device, packet.clone()).await;
            }
        }
    }

    async fn take(&self, event: Event) {
        let posts = self.noted(&event);
        self.deliver(posts).await;
        // What it has to say is on its way before anybody is told that something happened.
        if let Event::Packet(_, Packet::Other(_)) = event {
            return;
        }
        self.state().events.push(event);
        self.happened.notify_waiters();
    }

    fn noted(&self, event: &Event) -> Vec<Post> {
        let mut state = self.state();
        match event {
            Event::Linked(device) => state.memory.connected(&device.identity.id),
            Event::Paired(pin) => drop(state.pins.insert(pin.device.clone(), pin.clone())),
            Event::Unpaired { device, .. } => drop(state.pins.remove(device)),
            Event::PairingAsked { device, key } => {
                let _ = match (self.setup.pairing, &state.endpoint) {
                    (OnPairing::Accept, Some(endpoint)) => endpoint.accept_pairing(device, key),
                    (OnPairing::Refuse, Some(endpoint)) => endpoint.refuse_pairing(device),
                    (OnPairing::Wait, _) | (_, None) => Ok(()),
                };
            }
            Event::Packet(from, packet) => {
                return state.memory.answer(from, packet.clone(), self.setup.clock.now());
            }
            Event::Lost { .. }
            | Event::PairingRequested { .. }
            | Event::PairingFailed { .. }
            | Event::Refused { .. } => {}
        }
        vec![]
    }
}

/// The life of a handset on the network. It ends when the endpoint is gone.
async fn live(inner: Arc<Inner>, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        inner.take(event).await;
    }
}
