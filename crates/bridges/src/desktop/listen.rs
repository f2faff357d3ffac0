//! Receives the desktop's notifications by monitoring its session bus.
//!
//! A monitor receives copies of other programs' messages but may not send any, so there are two connections: one
//! listens, the other asks the bus who a sender is. When the bus goes away, both are reopened, with growing pauses.

use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use kai_assistant::access::Access;
use kai_assistant::notifications::NotificationId;
use kai_assistant::notifications::port::{Dismissing, Ear, Heard, Listener};
use kai_words::{Said, said};
use zbus::fdo::MonitoringProxy;
use zbus::message::{Flags, Header, Type};
use zbus::names::BusName;
use zbus::{Connection, MatchRule, Message, MessageStream};

use super::pending::{Add, Arguments, Hints, Notify, PendingCalls, added, parsed, removed};
use super::sender::{SenderLookup, label};

/// Listens to the notifications on one session bus.
#[derive(Debug, Clone)]
pub struct DesktopListener {
    bus: String,
}

const FREEDESKTOP: &str = "org.freedesktop.Notifications";
/// Shows what GNOME's notification server passes on to it, under the same numbers.
const GNOME_SHELL: &str = "org.gnome.Shell";
const BUS: &str = "org.freedesktop.DBus";
/// The signal that reports which connections appear on the bus and which are gone.
const OWNERS: &str = "NameOwnerChanged";
const GTK: &str = "org.gtk.Notifications";
const PORTAL: &str = "org.freedesktop.portal.Notification";
/// Timeout for connecting to the bus.
const PATIENCE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Our own errors of the bus.
const SILENT: &str = "it does not answer";
const GONE: &str = "it went away";

impl DesktopListener {
    /// `bus` is the D-Bus address of the session, such as `unix:path=/run/user/1000/bus`.
    pub fn on(bus: &str) -> Self {
        Self { bus: without_guid(bus) }
    }

    async fn connect(&self) -> zbus::Result<Connection> {
        let connecting = zbus::connection::Builder::address(self.bus.as_str()).build();
        let silent = || zbus::Error::Failure(SILENT.to_owned());
        tokio::time::timeout(PATIENCE, connecting).await.map_err(|_| silent())?
    }

    /// Opens a stream of other programs' messages, and returns the id of the bus with it.
    async fn monitor(&self) -> zbus::Result<(MessageStream, String)> {
        let bus = self.connect().await?;
        let guid = bus.server_guid().to_string();
        // Created first, so that no message is missed.
        let stream = MessageStream::from(&bus);
        MonitoringProxy::new(&bus).await?.become_monitor(&rules()?, 0).await?;
        Ok((stream, guid))
    }

    async fn asking(&self) -> zbus::Result<SenderLookup> {
        SenderLookup::on(&self.connect().await?).await
    }

    /// Listens until the bus is lost and returns the error. `bound` is called once listening has started.
    async fn hear(&self, ear: &Ear, mut bound: impl FnMut() + Send) -> zbus::Error {
        let (mut stream, guid) = match self.monitor().await {
            Ok(monitor) => monitor,
            Err(error) => return error,
        };
        let mut senders = match self.asking().await {
            Ok(senders) => senders,
            Err(error) => return error,
        };
        ear.tell(Heard::Bound { standing: vec![] }).await;
        bound();
        let mut pending = PendingCalls::on(&guid);
        pending.owned_by(senders.owner(FREEDESKTOP).await);
        loop {
            let message = tokio::select! {
                message = stream.next() => message,
                () = ear.asked() => {
                    ear.looked();
                    continue;
                }
            };
            match message {
                Some(Ok(message)) => {
                    if let Some(heard) = understood(&message, &mut pending, &mut senders).await {
                        ear.tell(heard).await;
                    }
                }
                Some(Err(error)) => return error,
                None => return zbus::Error::Failure(GONE.to_owned()),
            }
        }
    }
}

impl Listener for DesktopListener {
    fn name(&self) -> &'static str {
        "desktop"
    }

    fn access(&self) -> Pin<Box<dyn Future<Output = Access> + Send + '_>> {
        Box::pin(async { self.monitor().await.map_or_else(|error| lost(&error), |_| Access::Granted) })
    }

    fn listen(&self, ear: Ear) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                let error = self.hear(&ear, || pause = FIRST_PAUSE).await;
                ear.tell(Heard::Unbound(lost(&error))).await.durable().await;
                ear.rest(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        })
    }

    fn dismiss<'a>(&'a self, id: &'a NotificationId) -> Dismissing<'a> {
        Box::pin(async move {
            let failed = |error| format!("The desktop did not take it away: {error}.");
            let bus = self.connect().await.map_err(failed)?;
            let here = parsed(id, bus.server_guid().as_str());
            let (desktop, number) =
                here.ok_or("This one cannot be taken away by Kai; the user can do it.")?;
            match close(&bus, desktop, number).await {
                // GNOME's server refuses to close what another app has posted, as long as that app runs.
                Err(refused @ (zbus::Error::MethodError(..) | zbus::Error::FDO(_))) => {
                    close(&bus, GNOME_SHELL, number).await.map_err(|_| failed(refused))
                }
                closed => closed.map_err(failed),
            }
        })
    }
}

async fn close(bus: &Connection, desktop: &str, number: u32) -> zbus::Result<()> {
    let path = "/org/freedesktop/Notifications";
    bus.call_method(Some(desktop), path, Some(FREEDESKTOP), "CloseNotification", &number).await.map(drop)
}

/// The address without the id of the current bus, because a bus that restarts at the same address has another one.
fn without_guid(address: &str) -> String {
    let one = |address: &str| {
        address.split(',').filter(|part| !part.starts_with("guid=")).collect::<Vec<_>>().join(",")
    };
    address.split(';').map(one).collect::<Vec<_>>().join(";")
}

/// What to monitor: calls that post or remove notifications, the desktop's replies and signals, and errors. No other
/// program's replies are delivered to us.
fn rules() -> zbus::Result<Vec<MatchRule<'static>>> {
    let calls = [
        (FREEDESKTOP, "Notify"),
        (GTK, "AddNotification"),
        (GTK, "RemoveNotification"),
        (PORTAL, "AddNotification"),
        (PORTAL, "RemoveNotification"),
    ];
    let call = |(interface, member)| {
        MatchRule::builder().msg_type(Type::MethodCall).interface(interface).member(member).build()
    };
    let closed = MatchRule::builder().msg_type(Type::Signal).interface(FREEDESKTOP).build();
    let owners = MatchRule::builder().msg_type(Type::Signal).interface(BUS).member(OWNERS).build();
    let replies = MatchRule::builder().msg_type(Type::MethodReturn).sender(FREEDESKTOP).build();
    let errors = MatchRule::builder().msg_type(Type::Error).build();
    calls.into_iter().map(call).chain([closed, owners, replies, errors]).collect()
}

fn lost(error: &zbus::Error) -> Access {
    match error {
        zbus::Error::MethodError(..) | zbus::Error::FDO(_) => {
            Access::Denied(said::access_desktop_denied(error))
        }
        zbus::Error::Failure(why) if why == SILENT => unheard(said::access_desktop_silent()),
        zbus::Error::Failure(why) if why == GONE => unheard(said::access_desktop_gone()),
        other => {
            let other = other.to_string();
            unheard(other.split(" (os error").next().unwrap_or_default().into())
        }
    }
}

fn unheard(why: Said) -> Access {
    Access::Silent(said::access_desktop_unheard(why))
}

/// Interprets a message. Malformed messages are ignored.
async fn understood(
    message: &Message,
    pending: &mut PendingCalls,
    senders: &mut SenderLookup,
) -> Option<Heard> {
    let header = message.header();
    let sender = header.sender()?.as_str();
    match header.message_type() {
        Type::MethodCall => called(message, &header, pending, senders).await,
        Type::MethodReturn => {
            let number = message.body().deserialize().ok()?;
            pending.replied(&answered(&header)?, sender, number)
        }
        Type::Error => {
            pending.failed(&answered(&header)?);
            None
        }
        Type::Signal if header.member()?.as_str() == "NotificationClosed" => {
            let (number, _reason): (u32, u32) = message.body().deserialize().ok()?;
            Some(pending.closed(sender, number))
        }
        Type::Signal if sender == BUS && header.member()?.as_str() == OWNERS => {
            let (name, before, now): (String, String, String) = message.body().deserialize().ok()?;
            match (before.is_empty(), now.is_empty()) {
                _ if name == FREEDESKTOP => pending.owned_by(Some(now)),
                (true, false) if name.starts_with(':') => senders.appeared(&name),
                (false, true) if name.starts_with(':') => senders.vanished(&name),
                _ => {}
            }
            None
        }
        Type::Signal => None,
    }
}

async fn called(
    message: &Message,
    header: &Header<'_>,
    pending: &mut PendingCalls,
    senders: &mut SenderLookup,
) -> Option<Heard> {
    let sender = header.sender()?.as_str();
    let body = message.body();
    match (header.interface()?.as_str(), header.member()?.as_str()) {
        (FREEDESKTOP, "Notify") if pending.passed_on(sender, header.destination().map(BusName::as_str)) => {
            None
        }
        (FREEDESKTOP, "Notify") => {
            let call = (sender.to_owned(), header.primary().serial_num().get());
            let notify = Notify::from(body.deserialize::<Arguments>().ok()?);
            pending.called(call.clone(), &notify, &senders.app(sender, &notify.app_name).await);
            // No reply will come to give the notification's number, so the call's serial is used instead.
            let unanswered = header.primary().flags().contains(Flags::NO_REPLY_EXPECTED);
            if unanswered { pending.replied(&call, sender, call.1) } else { None }
        }
        (GTK, "AddNotification") => {
            let (app_id, id, fields): (String, String, Hints) = body.deserialize().ok()?;
            let app = senders.app(sender, &app_id).await;
            labelled(added(&Add { app_id: Some(app_id), id, fields }, &app))
        }
        (GTK, "RemoveNotification") => {
            let (app_id, id): (String, String) = body.deserialize().ok()?;
            Some(removed(Some(&app_id), &id, &senders.app(sender, &app_id).await))
        }
        (PORTAL, "AddNotification") => {
            let (id, fields): (String, Hints) = body.deserialize().ok()?;
            labelled(added(&Add { app_id: None, id, fields }, &senders.app(sender, "").await))
        }
        (PORTAL, "RemoveNotification") => {
            let id = body.deserialize::<String>().ok()?;
            Some(removed(None, &id, &senders.app(sender, "").await))
        }
        _ => None,
    }
}

/// The caller and serial of the call that this message replies to.
fn answered(header: &Header<'_>) -> Option<(String, u32)> {
    Some((header.destination()?.to_string(), header.reply_serial()?.get()))
}

/// Adds the app's name from its desktop file, because these ways of posting do not include it.
fn labelled(heard: Option<Heard>) -> Option<Heard> {
    let Some(Heard::Posted(mut post)) = heard else { return heard };
    post.app_label = label(&post.package_name).map(kai_assistant::untrusted::Untrusted::new);
    Some(Heard::Posted(post))
}

#[cfg(test)]
mod tests;
