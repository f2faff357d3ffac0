//! Shows notifications through org.freedesktop.Notifications on the session bus, and reports when one is tapped.
//!
//! A desktop reports taps only to connected clients, and some desktops only to the connection that posted. So one
//! connection is kept from the first notification on. If the bus went away, the next notification opens another.

use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kai_assistant::device::{Notification, Notifier, Place, PortError, PortFuture, Tap, Urgency};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use zbus::message::Type;
use zbus::{Connection, MatchRule, Message, MessageStream, Variant};

/// The desktop on one session bus.
pub struct Desktop {
    bus: String,
    line: Mutex<Option<Line>>,
    tell: mpsc::Sender<Tap>,
    taps: Mutex<mpsc::Receiver<Tap>>,
}

/// Timeout for the bus and the desktop.
const PATIENCE: Duration = Duration::from_secs(5);
/// Taps that may wait in the queue. Anyone who taps faster meant the same tap.
const TAPS: usize = 4;
const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";

impl Desktop {
    /// `bus` is the D-Bus address of the session, such as `unix:path=/run/user/1000/bus`.
    pub fn on(bus: String) -> Self {
        let (tell, taps) = mpsc::channel(TAPS);
        Self { bus, line: Mutex::default(), tell, taps: Mutex::new(taps) }
    }

    async fn show(&self, notification: &Notification) -> zbus::Result<()> {
        let mut line = self.line.lock().await;
        if let Some(kept) = line.as_ref().filter(|kept| !kept.ear.is_finished()) {
            match kept.show(notification).await {
                Err(zbus::Error::InputOutput(_)) => {}
                shown => return shown,
            }
        }
        line.insert(Line::on(&self.bus, self.tell.clone()).await?).show(notification).await
    }
}

impl Notifier for Desktop {
    fn notify<'a>(&'a self, notification: &'a Notification) -> PortFuture<'a> {
        Box::pin(async move {
            match tokio::time::timeout(PATIENCE, self.show(notification)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(PortError::Failed(format!("the desktop shows none now ({error})"))),
                Err(_) => Err(PortError::Unsure("the desktop did not answer in time".to_owned())),
            }
        })
    }

    fn tapped(&self) -> Pin<Box<dyn Future<Output = Tap> + Send + '_>> {
        Box::pin(async {
            match self.taps.lock().await.recv().await {
                Some(tap) => tap,
                // Cannot happen: `self` holds a sender.
                None => std::future::pending().await,
            }
        })
    }
}

/// A connection to the session bus, and a task that listens on it.
struct Line {
    bus: Connection,
    board: Arc<Mutex<Board>>,
    ear: JoinHandle<()>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.ear.abort();
    }
}

impl Line {
    async fn on(address: &str, taps: mpsc::Sender<Tap>) -> zbus::Result<Self> {
        let bus = zbus::connection::Builder::address(address).build().await?;
        let rule = MatchRule::builder().msg_type(Type::Signal).sender(NAME).interface(NAME).build()?;
        let signals = MessageStream::for_match_rule(rule, &bus, None).await?;
        let board = Arc::default();
        let ear = tokio::spawn(hear(signals, Arc::clone(&board), taps));
        Ok(Self { bus, board, ear })
    }

    async fn show(&self, notification: &Notification) -> zbus::Result<()> {
        let desktop = self.bus.call_method(Some(NAME), PATH, Some(NAME), "GetCapabilities", &()).await?;
        let capabilities: Vec<String> = desktop.body().deserialize()?;
        let can = |ability: &str| capabilities.iter().any(|can| can == ability);
        let body =
            if can("body-markup") { escaped(&notification.message) } else { (&notification.message).into() };
        let leads_to = notification.leads_to.filter(|_| can("actions"));
        let actions: &[&str] = if leads_to.is_some() { &[DEFAULT, OPEN] } else { &[] };
        // Locked until the notification is on the board, so that even a very quick tap finds it there.
        let mut board = self.board.lock().await;
        let replaces = board.replaces(&server(&desktop), notification.key.as_deref());
        let (hints, expires) = hints(notification.urgency);
        let call = ("Kai", replaces, "", &notification.title, &*body, actions, hints, expires);
        let posted = self.bus.call_method(Some(NAME), PATH, Some(NAME), "Notify", &call).await?;
        let (server, id, key) = (server(&posted), posted.body().deserialize()?, notification.key.clone());
        board.posted(Shown { server, id, key, leads_to, activation: None });
        Ok(())
    }
}

/// The action for a tap on the notification itself.
const DEFAULT: &str = "default";
/// The label of that action, on desktops that show it as a button.
const OPEN: &str = "Open";
const DESKTOP_DECIDES: i32 = -1;
const NEVER: i32 = 0;

fn hints(urgency: Urgency) -> (HashMap<&'static str, Variant<'static>>, i32) {
    let (level, expires) = match urgency {
        Urgency::Normal => (1_u8, DESKTOP_DECIDES),
        Urgency::Alarm => (2_u8, NEVER),
    };
    let mut hints = HashMap::from([("urgency", level.into()), ("desktop-entry", "kai".into())]);
    if urgency == Urgency::Alarm {
        hints.insert("sound-name", "alarm-clock-elapsed".into());
    }
    (hints, expires)
}

/// The unique bus name of the desktop that sent this message. The bus never reuses such a name.
fn server(message: &Message) -> String {
    message.header().sender().map(ToString::to_string).unwrap_or_default()
}

/// Handles signals until the bus is lost.
async fn hear(mut signals: MessageStream, board: Arc<Mutex<Board>>, taps: mpsc::Sender<Tap>) {
    while let Some(Ok(message)) = signals.next().await {
        let Some(signal) = Signal::of(&message) else { continue };
        if let Some(tap) = board.lock().await.heard(&server(&message), signal) {
            // The queue is full; one more tap would change nothing.
            let _ = taps.try_send(tap);
        }
    }
}

/// A signal from the desktop about a notification.
#[derive(Debug, PartialEq, Eq)]
enum Signal {
    /// A token that lets a program come to the front. It is sent just before the tap it belongs to.
    Activation {
        id: u32,
        token: String,
    },
    Invoked {
        id: u32,
        action: String,
    },
    Closed {
        id: u32,
    },
}

impl Signal {
    /// Parses a signal. Malformed ones are ignored.
    fn of(message: &Message) -> Option<Self> {
        let (header, body) = (message.header(), message.body());
        match header.member()?.as_str() {
            "ActivationToken" => {
                let (id, token) = body.deserialize().ok()?;
                Some(Self::Activation { id, token })
            }
            "ActionInvoked" => {
                let (id, action) = body.deserialize().ok()?;
                Some(Self::Invoked { id, action })
            }
            "NotificationClosed" => {
                let (id, _reason): (u32, u32) = body.deserialize().ok()?;
                Some(Self::Closed { id })
            }
            _ => None,
        }
    }
}

/// The notifications we have shown that can still be replaced or tapped.
#[derive(Default)]
struct Board {
    shown: Vec<Shown>,
}

/// One notification that we have shown.
struct Shown {
    /// The desktop that showed it. Every desktop numbers from the start, so an id is unique only together with this.
    server: String,
    id: u32,
    /// `None` once it is closed, because the desktop may reuse the id and we must not replace another notification.
    key: Option<String>,
    leads_to: Option<Place>,
    activation: Option<String>,
}

/// How many are remembered. Older ones are dropped, because some desktops never report that one was closed.
const REMEMBERED: usize = 50;

impl Board {
    /// The id of the notification to replace; 0 for none.
    fn replaces(&self, server: &str, key: Option<&str>) -> u32 {
        let same = |shown: &&Shown| shown.server == server && key.is_some() && shown.key.as_deref() == key;
        self.shown.iter().rfind(same).map_or(0, |shown| shown.id)
    }

    fn posted(&mut self, new: Shown) {
        self.shown.retain(|old| (&old.server, old.id) != (&new.server, new.id));
        self.shown.push(new);
        if self.shown.len() > REMEMBERED {
            self.shown.remove(0);
        }
    }

    /// Handles a signal. Returns the tap if it is one on a notification of ours that leads somewhere.
    fn heard(&mut self, server: &str, signal: Signal) -> Option<Tap> {
        let (Signal::Activation { id, .. } | Signal::Invoked { id, .. } | Signal::Closed { id }) = signal;
        let shown = self.shown.iter_mut().find(|shown| shown.server == server && shown.id == id)?;
        match signal {
            Signal::Activation { token, .. } => shown.activation = Some(token),
            // Kept, because some desktops close a notification before they report the tap.
            Signal::Closed { .. } => shown.key = None,
            Signal::Invoked { action, .. } if action == DEFAULT => {
                return Some(Tap { place: shown.leads_to?, activation: shown.activation.take() });
            }
            Signal::Invoked { .. } => {}
        }
        None
    }
}

/// Escapes a body, because most desktops interpret it as markup and a model's text must stay text. Titles are never
/// markup.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return text.into();
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into()
}

#[cfg(test)]
pub(super) mod tests;
