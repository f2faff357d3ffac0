//! Turns messages seen on the session bus into posted and closed notifications. Pure: no bus, no clock.
//!
//! A notification's number appears only in the desktop's reply to the call that posted it, so each call is kept here
//! until its reply. A call that failed was never shown and is dropped.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use std::collections::{HashMap, VecDeque};

use kai_assistant::notifications::NotificationId;
use kai_assistant::notifications::port::Heard;
use kai_assistant::notifications::record::Post;
use kai_assistant::untrusted::Untrusted;
use zbus::{OwnedVariant, Variant};

use super::markup::stripped;
use super::sender::App;

/// Identifies a call on the bus: the caller and the call's serial.
type CallId = (String, u32);
pub(super) type Hints = HashMap<String, OwnedVariant>;

/// The arguments of `Notify` in org.freedesktop.Notifications that we use.
#[derive(Debug)]
pub(super) struct Notify {
    pub(super) app_name: String,
    pub(super) summary: String,
    pub(super) body: String,
    pub(super) hints: Hints,
}

/// The arguments as sent on the bus: app name, id to replace, icon, summary, body, actions, hints, timeout.
pub(super) type Arguments = (String, u32, String, String, String, Vec<String>, Hints, i32);

impl From<Arguments> for Notify {
    fn from((app_name, _, _, summary, body, _, hints, _): Arguments) -> Self {
        Self { app_name, summary, body, hints }
    }
}

/// The arguments of `AddNotification`, from org.gtk.Notifications or the portal.
#[derive(Debug)]
pub(super) struct Add {
    /// `None` from the portal, which does not send it.
    pub(super) app_id: Option<String>,
    pub(super) id: String,
    pub(super) fields: Hints,
}

/// Longer texts are cut to this many characters before any processing. Far less is stored.
const BODY: usize = 20_000;
/// How many calls may wait for their reply.
const WAITING: usize = 1_000;
/// The app of a sender that was gone before the bus could be asked who it was.
const UNKNOWN: &str = "unknown";

/// Calls that were seen and have no reply yet.
#[derive(Debug)]
pub(super) struct PendingCalls {
    /// Start of the bus id, to tell this bus from others and from itself before a restart.
    bus: String,
    calls: HashMap<CallId, Post>,
    order: VecDeque<CallId>,
    /// The connection that every app asks to show its notifications.
    desktop: Option<String>,
    /// The connection to which the desktop passes them on, if it does not show them itself. GNOME's does not.
    behind: Option<String>,
}

impl PendingCalls {
    pub(super) fn on(bus_guid: &str) -> Self {
        let bus = bus_guid.chars().take(8).collect();
        Self { bus, calls: HashMap::new(), order: VecDeque::new(), desktop: None, behind: None }
    }

    /// Notes which connection is the desktop from now on.
    pub(super) fn owned_by(&mut self, desktop: Option<String>) {
        self.desktop = desktop.filter(|name| !name.is_empty());
        self.behind = None;
    }

    /// Whether the desktop itself makes this call, to pass on what an app has posted. It is the same notification.
    pub(super) fn passed_on(&mut self, sender: &str, destination: Option<&str>) -> bool {
        // A desktop can also post to itself, or to whoever has the well-known name, which is the same.
        let Some(behind) = destination.filter(|name| name.starts_with(':') && *name != sender) else {
            return false;
        };
        let passes_on = self.desktop.as_deref() == Some(sender);
        if passes_on {
            self.behind = Some(behind.to_owned());
        }
        passes_on
    }

    /// Records a call that posts a notification. The reply will contain its number.
    pub(super) fn called(&mut self, call: CallId, notify: &Notify, app: &App) {
        // A placeholder, replaced when the number is known.
        let Some(post) = posted(NotificationId::new("?"), notify, app) else { return };
        if self.order.len() >= WAITING
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
        self.order.push_back(call.clone());
        self.calls.insert(call, post);
    }

    /// Completes a call with the desktop's reply.
    pub(super) fn replied(&mut self, call: &CallId, desktop: &str, number: u32) -> Option<Heard> {
        let post = self.take(call)?;
        Some(Heard::Posted(Box::new(Post { id: self.key(desktop, number), ..post })))
    }

    /// Drops a call that the desktop rejected, because its notification was never shown.
    pub(super) fn failed(&mut self, call: &CallId) {
        self.take(call);
    }

    fn take(&mut self, call: &CallId) -> Option<Post> {
        let post = self.calls.remove(call)?;
        self.order.retain(|other| other != call);
        Some(post)
    }

    /// A notification that was closed. If the app is gone, GNOME reports it only from behind the desktop.
    pub(super) fn closed(&self, sender: &str, number: u32) -> Heard {
        let is_behind = self.behind.as_deref() == Some(sender);
        let desktop = self.desktop.as_deref().filter(|_| is_behind).unwrap_or(sender);
        Heard::Closed(self.key(desktop, number))
    }

    /// The notification's key. Every desktop and every bus numbers from the start, so both are part of it.
    fn key(&self, desktop: &str, number: u32) -> NotificationId {
        NotificationId::new(&format!("dbus:{}{desktop}:{number}", self.bus))
    }
}

/// The desktop's bus name and its number for a notification, if the key belongs to this bus.
pub(super) fn parsed<'a>(key: &'a NotificationId, bus_guid: &str) -> Option<(&'a str, u32)> {
    let bus: String = bus_guid.chars().take(8).collect();
    let (desktop, number) = key.as_str().strip_prefix("dbus:")?.strip_prefix(&bus)?.rsplit_once(':')?;
    Some((desktop, number.parse().ok()?))
}

/// Builds the post; `None` for transient notifications, and for those that would come back to us or were already
/// seen.
fn posted(id: NotificationId, notify: &Notify, app: &App) -> Option<Post> {
    let hints = &notify.hints;
    let entry = text(hints, "desktop-entry").map(|entry| entry.trim_end_matches(".desktop").to_owned());
    let loops = notify.app_name == "Kai" || hints.contains_key("x-kdeconnect-source-device");
    if loops || app.hands_on || truth(hints, "transient") {
        return None;
    }
    let named = Some(notify.app_name.trim().to_lowercase()).filter(|name| !name.is_empty());
    let entry = entry.filter(|entry| !entry.is_empty());
    // An app that names its desktop file is identified by it, whichever program sends the message.
    let (other_names, sender_unknown) = match &entry {
        Some(_) => (vec![], false),
        None => (app.perhaps.iter().cloned().chain(named).collect(), app.name.is_none()),
    };
    // All unidentified senders count as one app, whatever they call themselves, because the number stored per app is
    // limited.
    let package = entry.or_else(|| app.name.clone()).unwrap_or_else(|| UNKNOWN.to_owned());
    let category = text(hints, "category").unwrap_or_default();
    let label = text(hints, "x-kde-display-appname").unwrap_or_else(|| notify.app_name.clone());
    let goes_on = truth(hints, "resident") || hints.contains_key("value") || category.starts_with("transfer");
    Some(Post {
        app_label: Some(Untrusted::new(label)),
        subtext: text(hints, "x-kde-origin-name").map(Untrusted::new),
        category: meaning(&category).map(str::to_owned),
        ongoing: Some(goes_on),
        sensitive: keeps_passwords(&package) || other_names.iter().any(|name| keeps_passwords(name)),
        other_names,
        sender_unknown,
        ..Post::new(id, &package, start(&notify.summary), &stripped(start(&notify.body)))
    })
}

/// A post through GTK or the portal. Its body is plain text unless it is marked as markup.
pub(super) fn added(add: &Add, app: &App) -> Option<Heard> {
    if app.hands_on {
        return None;
    }
    let package = package(add.app_id.as_deref(), app);
    let plain = text(&add.fields, "body");
    let body = plain.or_else(|| text(&add.fields, "markup-body").map(|body| stripped(&body)));
    let title = text(&add.fields, "title").unwrap_or_default();
    let post = Post::new(gtk_key(&package, &add.id), &package, &title, &body.unwrap_or_default());
    let sender_unknown = add.app_id.as_ref().is_none_or(String::is_empty) && app.name.is_none();
    Some(Heard::Posted(Box::new(Post { sensitive: keeps_passwords(&package), sender_unknown, ..post })))
}

pub(super) fn removed(app_id: Option<&str>, id: &str, app: &App) -> Heard {
    Heard::Closed(gtk_key(&package(app_id, app), id))
}

fn package(app_id: Option<&str>, app: &App) -> String {
    let told = app_id.filter(|id| !id.is_empty()).map(str::to_owned);
    told.or_else(|| app.name.clone()).unwrap_or_else(|| UNKNOWN.to_owned())
}

fn gtk_key(package: &str, id: &str) -> NotificationId {
    NotificationId::new(&format!("gtk:{package}:{id}"))
}

/// Translates a freedesktop category to Android's.
fn meaning(category: &str) -> Option<&'static str> {
    let (class, _) = category.split_once('.').unwrap_or((category, ""));
    match (category, class) {
        ("call.incoming", _) | (_, "call") => Some("call"),
        (_, "im") => Some("msg"),
        (_, "email") => Some("email"),
        (_, "device" | "network") => Some("sys"),
        (_, "transfer") => Some("progress"),
        (_, "presence") => Some("social"),
        _ => None,
    }
}

/// Whether an app manages passwords. What it shows is always sensitive, and desktops have no way to mark that.
fn keeps_passwords(package: &str) -> bool {
    let package = package.to_lowercase();
    ["keepass", "bitwarden", "1password", "gnome.secrets", "authenticator"]
        .iter()
        .any(|name| package.contains(name))
}

fn text(hints: &Hints, name: &str) -> Option<String> {
    match hints.get(name).map(|value| &**value) {
        Some(Variant::Str(text)) => Some(start(text.as_str()).to_owned()),
        _ => None,
    }
}

fn start(text: &str) -> &str {
    text.char_indices().nth(BODY).map_or(text, |(end, _)| &text[..end])
}

/// Reads a boolean hint. Some apps send a number.
fn truth(hints: &Hints, name: &str) -> bool {
    match hints.get(name).map(|value| &**value) {
        Some(Variant::Bool(value)) => *value,
        Some(Variant::U8(n)) => *n != 0,
        Some(Variant::I32(n)) => *n != 0,
        Some(Variant::U32(n)) => *n != 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::fuzz::call;
    use super::*;

    fn hints(pairs: &[(&str, Variant<'static>)]) -> Hints {
        let owned = |value: &Variant<'static>| OwnedVariant::try_from(value.try_clone().unwrap()).unwrap();
        pairs.iter().map(|(name, value)| ((*name).to_owned(), owned(value))).collect()
    }

    fn notify(app: &str, pairs: &[(&str, Variant<'static>)]) -> Notify {
        Notify {
            app_name: app.to_owned(),
            summary: "Alice".to_owned(),
            body: "<b>Dinner</b> &amp; co".to_owned(),
            hints: hints(pairs),
        }
    }

    fn program(name: &str) -> App {
        App { name: Some(name.to_owned()), ..App::default() }
    }

    fn hear(notify: &Notify, app: &App) -> Option<Post> {
        let mut pending = PendingCalls::on("0123456789abcdef");
        pending.called(call(1), notify, app);
        match pending.replied(&call(1), ":1.5", 7)? {
            Heard::Posted(post) => Some(*post),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_is_mapped_field_by_field() {
        let entry = ("desktop-entry", Variant::from("org.signal.Signal.desktop"));
        let category = ("category", Variant::from("im.received"));
        let post = hear(&notify("Signal", &[entry, category]), &program("electron")).unwrap();
        assert_eq!(post.id.as_str(), "dbus:01234567:1.5:7");
        assert_eq!(parsed(&post.id, "0123456789abcdef"), Some((":1.5", 7)));
        assert_eq!(parsed(&post.id, "ffff456789abcdef"), None);
        assert_eq!(post.package_name, "org.signal.Signal");
        assert_eq!(post.app_label, Some(Untrusted::new("Signal")));
        assert_eq!((post.title.as_written(), post.text.as_written()), ("Alice", "Dinner & co"));
        assert_eq!(
            (post.category.as_deref(), post.ongoing, post.sensitive),
            (Some("msg"), Some(false), false)
        );
        for (name, app, program, expected) in [
            ("the program, if it names no desktop file", "Signal", program("electron"), "electron"),
            ("not what it calls itself", "Signal", App::default(), "unknown"),
            ("nothing at all", "", App::default(), "unknown"),
        ] {
            let post = hear(&notify(app, &[]), &program).unwrap();
            assert_eq!(post.package_name, expected, "{name}");
            assert_eq!(post.sender_unknown, program.name.is_none(), "{name}");
        }
        let perhaps = App { perhaps: vec!["gdbus".to_owned()], ..program("notify-send") };
        let post = hear(&notify("Mail", &[]), &perhaps).unwrap();
        assert_eq!(
            (post.package_name.as_str(), post.other_names),
            ("notify-send", vec!["gdbus".to_owned(), "mail".to_owned()])
        );
        let entry = ("desktop-entry", Variant::from("org.mail"));
        let post = hear(&notify("Mail", &[entry]), &App::default()).unwrap();
        assert_eq!(
            (post.package_name.as_str(), post.other_names.len(), post.sender_unknown),
            ("org.mail", 0, false)
        );
    }

    #[test]
    fn what_goes_on_what_passes_and_what_goes_in_circles() {
        let told = |name: &'static str, value| (name, value);
        for (pairs, expected) in [
            (vec![told("resident", Variant::from(true))], Some(true)),
            (vec![told("resident", Variant::from(0_u8))], Some(false)),
            (vec![told("value", Variant::from(40_i32))], Some(true)),
            (vec![told("category", Variant::from("transfer.complete"))], Some(true)),
            (vec![told("transient", Variant::from(true))], None),
            (vec![told("x-kdeconnect-source-device", Variant::from("phone"))], None),
        ] {
            let post = hear(&notify("App", &pairs), &program("app"));
            assert_eq!(post.and_then(|post| post.ongoing), expected, "{pairs:?}");
        }
        assert_eq!(hear(&notify("Kai", &[]), &program("kai")), None, "our own");
        let portal = App { hands_on: true, ..program("xdg-desktop-portal-gtk") };
        assert_eq!(hear(&notify("App", &[]), &portal), None, "heard already");
        for app in [program("keepassxc"), App::default()] {
            assert!(hear(&notify("KeePassXC", &[]), &app).unwrap().sensitive, "{app:?}");
        }
    }

    #[test]
    fn a_reply_finds_its_call_and_nothing_else_does() {
        let mut pending = PendingCalls::on("0123456789abcdef");
        pending.called(call(1), &notify("a", &[]), &program("a"));
        pending.called(call(2), &notify("b", &[]), &program("b"));
        assert_eq!(pending.replied(&call(3), ":1.5", 1), None, "somebody else's reply");
        assert_eq!(pending.replied(&(":1.8".to_owned(), 1), ":1.5", 1), None, "another caller's");
        pending.failed(&call(1));
        assert_eq!(pending.replied(&call(1), ":1.5", 1), None, "it was never shown");
        assert!(pending.replied(&call(2), ":1.5", 2).is_some());
        assert_eq!(pending.replied(&call(2), ":1.5", 2), None, "once is enough");
        for serial in 10..2_000 {
            pending.called(call(serial), &notify("a", &[]), &program("a"));
        }
        assert_eq!((pending.calls.len(), pending.order.len()), (WAITING, WAITING), "there is an end");
        assert!(pending.replied(&call(1_999), ":1.5", 9).is_some());
    }

    #[test]
    fn what_a_desktop_passes_on_is_one_notification_and_closed_from_behind() {
        let mut pending = PendingCalls::on("0123456789abcdef");
        pending.owned_by(Some(":1.5".to_owned()));
        let key = |key: &str| Heard::Closed(NotificationId::new(key));
        assert!(!pending.passed_on(":1.7", Some(":1.5")), "an app posts");
        assert!(!pending.passed_on(":1.5", Some("org.freedesktop.Notifications")), "to itself");
        assert!(!pending.passed_on(":1.5", Some(":1.5")), "to itself");
        assert_eq!(pending.closed(":1.2", 3), key("dbus:01234567:1.2:3"), "nobody yet");
        assert!(pending.passed_on(":1.5", Some(":1.2")));
        assert_eq!(pending.closed(":1.2", 3), key("dbus:01234567:1.5:3"));
        assert_eq!(pending.closed(":1.5", 3), key("dbus:01234567:1.5:3"));
        pending.owned_by(Some(":1.9".to_owned()));
        assert_eq!(pending.closed(":1.2", 3), key("dbus:01234567:1.2:3"), "another desktop");
        assert!(!pending.passed_on(":1.5", Some(":1.2")), "not the desktop any more");
    }

    #[test]
    fn gtk_and_the_portal_post_by_name() {
        let fields = || hints(&[("title", Variant::from("Backup")), ("body", Variant::from("a < b &amp;"))]);
        let gtk = Add { app_id: Some("org.app.X".to_owned()), id: "done".to_owned(), fields: fields() };
        let Some(Heard::Posted(post)) = added(&gtk, &program("x")) else { panic!("nothing heard") };
        assert_eq!((post.id.as_str(), post.package_name.as_str()), ("gtk:org.app.X:done", "org.app.X"));
        assert_eq!((post.title.as_written(), post.text.as_written()), ("Backup", "a < b &amp;"));
        let portal = Add { app_id: None, id: "done".to_owned(), fields: fields() };
        let Some(Heard::Posted(same)) = added(&portal, &program("org.app.X")) else {
            panic!("nothing heard")
        };
        assert_eq!(same.id, post.id, "whichever way it takes");
        assert_eq!(removed(None, "done", &program("org.app.X")), Heard::Closed(post.id));
        let backend = App { hands_on: true, ..program("xdg-desktop-portal") };
        assert_eq!(added(&gtk, &backend), None);
    }
}
