//! Kai and the simulated handset against the real kdeconnectd, on a bus of its own and in a network of its own, which
//! no announcement leaves.

#![cfg(all(target_os = "linux", feature = "kdeconnect"))]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::clock::{Clock, SystemClock};
use kai_bridges::kdeconnect::*;
use kai_bridges::simulated::{Handset, HandsetSetup, OnPairing};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Beyond this a test has failed.
const LONG: Duration = Duration::from_mins(1);

/// Program and package of what is needed besides kdeconnectd.
const NEEDS: [(&str, &str); 7] = [
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("dbus-daemon", "dbus"),
    ("gdbus", "libglib2.0-bin"),
    ("Xvfb", "xvfb"),
    ("dunst", "dunst"),
    ("notify-send", "libnotify-bin"),
];

/// A network with nothing in it but this machine, where even a broadcast comes back.
const NETWORK: &str = "ip link set lo up
    ip addr add 10.77.0.1/32 dev lo
    ip route add default dev lo src 10.77.0.1
    exec \"$0\" \"$@\"";

#[test]
fn kai_pairs_with_the_real_daemon() {
    in_own_network("inside_kai");
}

#[test]
fn the_handset_passes_for_a_phone() {
    in_own_network("inside_handset");
}

/// Runs one of the ignored tests of this file in a network of its own.
fn in_own_network(test: &str) {
    let missing = missing();
    if !missing.is_empty() {
        return skipped(&format!("this needs other programs: apt-get install -y {}", missing.join(" ")));
    }
    let namespace = if rustix::process::geteuid().is_root() { "-n" } else { "-rn" };
    let allowed = Command::new("unshare").args([namespace, "true"]).output().unwrap().status.success();
    if !allowed {
        return skipped("this needs a network namespace, which this machine does not allow");
    }
    let mut command = Command::new("unshare");
    command.args([namespace, "sh", "-euc", NETWORK]).arg(std::env::current_exe().unwrap());
    let done = command.args([test, "--exact", "--ignored", "--nocapture"]).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", said(&done.stdout), said(&done.stderr));
    assert!(said(&done.stdout).contains("1 passed"), "it ran: {}", said(&done.stdout));
}

fn missing() -> Vec<&'static str> {
    let found = |name: &str| {
        ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    let others = NEEDS.iter().filter(|(name, _)| !found(name)).map(|(_, package)| *package);
    others.chain(kdeconnectd().is_none().then_some("kdeconnect")).collect()
}

/// Debian 12 has it among the libraries, Debian 13 in the usual place.
fn kdeconnectd() -> Option<PathBuf> {
    let libraries = fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path().join("libexec"));
    let folders = libraries.chain(["/usr/bin", "/usr/libexec"].map(PathBuf::from));
    folders.map(|folder| folder.join("kdeconnectd")).find(|path| path.exists())
}

fn skipped(why: &str) {
    // Not `eprintln`, which a test without --nocapture would swallow.
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}

/// A desktop with kdeconnectd, its bus, and somebody who shows notifications.
struct Desktop {
    children: Vec<Child>,
    address: String,
    home: tempfile::TempDir,
    display: String,
}

impl Desktop {
    async fn start() -> Self {
        let networks = fs::read_dir("/sys/class/net").unwrap().count();
        let alone =
            fs::read_to_string("/proc/net/route").unwrap().lines().skip(1).all(|l| l.starts_with("lo"));
        assert!(alone, "only in a network of its own, not among {networks} others");
        let home = tempfile::tempdir().unwrap();
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut screen = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (address, display) = (first_line(&mut bus), format!(":{}", first_line(&mut screen)));
        let mut desktop = Self { children: vec![screen, bus], address, home, display };
        let heard = announcements();
        for program in [PathBuf::from("dunst"), kdeconnectd().unwrap()] {
            let mut command = desktop.command(&program);
            let log = fs::File::create(desktop.home.path().join("log")).unwrap();
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
            desktop.children.push(child);
        }
        desktop.wait("kdeconnectd", |desktop| desktop.call(ROOT, "daemon.devices", &[]).is_some()).await;
        // It announces itself when it starts. Whoever appears later is alone in connecting.
        let mut announced = [0; 8_192];
        let length = timeout(LONG, heard.recv(&mut announced)).await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&announced[..length]).contains("kdeconnect.identity"));
        desktop
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path())
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .env("DISPLAY", &self.display)
            .env("QT_QPA_PLATFORM", "offscreen")
            .env("LANG", "C.UTF-8");
        command
    }

    /// Calls a method of kdeconnectd, and returns what it prints, or `None` if that fails.
    fn call(&self, path: &str, method: &str, arguments: &[&str]) -> Option<String> {
        self.gdbus(path, &format!("org.kde.kdeconnect.{method}"), arguments)
    }

    /// A property of one of its objects.
    fn property(&self, path: &str, interface: &str, name: &str) -> Option<String> {
        let interface = format!("org.kde.kdeconnect.{interface}");
        self.gdbus(path, "org.freedesktop.DBus.Properties.Get", &[&interface, name])
    }

    fn gdbus(&self, path: &str, method: &str, arguments: &[&str]) -> Option<String> {
        let mut command = self.command(Path::new("gdbus"));
        command.args(["call", "--session", "--dest", "org.kde.kdeconnect", "--object-path", path]);
        let done = command.args(["--method", method]).args(arguments).output().unwrap();
        fs::write(self.home.path().join("gdbus"), &done.stderr).unwrap();
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap().trim().to_owned())
    }

    async fn wait(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !done(self) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(timeout(LONG, waiting).await.is_ok(), "waited in vain for {what}\n{}", self.log());
    }

    fn log(&self) -> String {
        let read = |name| fs::read_to_string(self.home.path().join(name)).unwrap_or_default();
        format!("{}{}", read("log"), read("gdbus"))
    }

    fn is_paired(&self, device: &DeviceId) -> bool {
        let path = object(device);
        let told = ["isTrusted", "isPaired"].map(|name| self.property(&path, "device", name));
        told.iter().flatten().any(|value| value.contains("true"))
    }

    fn reaches(&self, device: &DeviceId) -> bool {
        self.property(&object(device), "device", "isReachable").is_some_and(|value| value.contains("true"))
    }

    /// The key that the daemon shows to its user: the first eight characters in capitals. In older versions it is a
    /// method that returns bytes, in newer ones a property.
    fn key(&self, device: &DeviceId) -> String {
        let property = || self.property(&object(device), "device", "verificationKey");
        let shown = self.call(&object(device), "device.verificationKey", &[]).or_else(property).unwrap();
        let byte = |word: &str| u8::from_str_radix(word.get(..2)?, 16).ok().map(char::from);
        let bytes = shown.split("0x").skip(1).filter_map(byte);
        let text = shown.split('\'').nth(1).map_or_else(|| bytes.collect(), str::to_owned);
        text.chars().take(8).collect::<String>().to_uppercase()
    }

    /// Makes the daemon ask for pairing. Its name for that changed between versions.
    fn request_pairing(&self, device: &DeviceId) {
        let names = ["device.requestPairing", "device.requestPair"];
        let asked = names.iter().find_map(|name| self.call(&object(device), name, &[]));
        assert!(asked.is_some(), "{}", self.log());
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Hears announcements on the port of all devices.
fn announcements() -> tokio::net::UdpSocket {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, UDP_PORT))).unwrap();
    tokio::net::UdpSocket::from_std(socket.into()).unwrap()
}

const ROOT: &str = "/modules/kdeconnect";

fn object(device: &DeviceId) -> String {
    format!("{ROOT}/devices/{device}")
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

struct Kai {
    endpoint: Endpoint,
    events: mpsc::Receiver<Event>,
}

fn kai_id() -> DeviceId {
    DeviceId::from_random([0x5a; 16])
}

impl Kai {
    async fn start(credentials: Credentials, pins: Vec<Pin>) -> Self {
        let Capabilities { incoming, outgoing } = Capabilities::of_computer(&Use::ALL);
        let me = Identity {
            id: kai_id(),
            name: DeviceName::clean("Kai"),
            kind: DeviceKind::Phone,
            protocol: Protocol::V8,
            incoming,
            outgoing,
        };
        let (endpoint, events) = Endpoint::open(Setup {
            me,
            credentials,
            pins,
            strangers: Strangers::Welcome,
            reach: Reach::default(),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
        })
        .await
        .unwrap();
        Self { endpoint, events }
    }

    async fn until<T>(&mut self, what: &str, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let mut seen = vec![];
        let waiting = async {
            loop {
                let event = self.events.recv().await.unwrap();
                if let Some(found) = wanted(&event) {
                    return found;
                }
                seen.push(event);
            }
        };
        let found = timeout(LONG, waiting).await.ok();
        found.unwrap_or_else(|| panic!("waited in vain for {what}; there was {seen:?}"))
    }

    async fn linked(&mut self) -> Device {
        self.until("a link", |event| match event {
            Event::Linked(device) => Some(device.clone()),
            _ => None,
        })
        .await
    }

    async fn key(&mut self) -> String {
        self.until("a key", |event| match event {
            Event::PairingRequested { key, .. } | Event::PairingAsked { key, .. } => Some(key.clone()),
            _ => None,
        })
        .await
    }

    async fn pin(&mut self) -> Pin {
        self.until("a pin", |event| match event {
            Event::Paired(pin) => Some(pin.clone()),
            _ => None,
        })
        .await
    }

    async fn unpaired(&mut self) -> By {
        self.until("the end of the pairing", |event| match event {
            Event::Unpaired { by, .. } => Some(*by),
            _ => None,
        })
        .await
    }
}

const DAEMON: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)), 1716);

#[tokio::test]
#[ignore = "needs a network of its own: kai_pairs_with_the_real_daemon starts it"]
async fn inside_kai() {
    let desktop = Desktop::start().await;
    let credentials = Credentials::make(&kai_id(), SystemClock.now()).unwrap();

    // Kai connects by address, asks, and the daemon's user agrees.
    let mut kai = Kai::start(credentials.clone(), vec![]).await;
    let daemon = kai.endpoint.connect(DAEMON).await.unwrap().identity.id;
    desktop.wait("Kai in reach", |desktop| desktop.reaches(&kai_id())).await;
    kai.endpoint.request_pairing(&daemon).unwrap();
    let key = kai.key().await;
    desktop
        .wait("the request", |desktop| {
            desktop.call(&object(&kai_id()), "device.acceptPairing", &[]).is_some()
        })
        .await;
    let pin = kai.pin().await;
    assert_eq!(desktop.key(&kai_id()), key);
    assert!(desktop.is_paired(&kai_id()));
    notification_arrives(&desktop, &mut kai).await;

    // Kai restarts and is still paired; somebody with another certificate is not.
    kai.endpoint.close().await;
    drop(kai);
    let other = Credentials::make(&kai_id(), SystemClock.now()).unwrap();
    let mut forger = Kai::start(other, vec![pin.clone()]).await;
    if forger.endpoint.connect(DAEMON).await.is_ok() {
        forger.until("being cut off", |event| matches!(event, Event::Lost { .. }).then_some(())).await;
    }
    forger.endpoint.close().await;
    drop(forger);
    let mut kai = Kai::start(credentials, vec![pin]).await;
    // This time by announcement: the daemon connects, and Kai is the client of the encryption.
    kai.endpoint.announce().await.unwrap();
    let device = kai.linked().await;
    assert!(device.paired);
    assert_eq!(device.identity.id, daemon);
    notification_arrives(&desktop, &mut kai).await;

    // The daemon's user unpairs, and asks anew.
    assert!(desktop.call(&object(&kai_id()), "device.unpair", &[]).is_some(), "{}", desktop.log());
    assert_eq!(kai.unpaired().await, By::Them);
    desktop.request_pairing(&kai_id());
    let key = kai.key().await;
    assert_eq!(desktop.key(&kai_id()), key);
    kai.endpoint.accept_pairing(&daemon, &key).unwrap();
    kai.pin().await;
    desktop.wait("the pairing", |desktop| desktop.is_paired(&kai_id())).await;

    // Kai unpairs.
    kai.endpoint.unpair(&daemon);
    assert_eq!(kai.unpaired().await, By::Us);
    desktop.wait("the end of the pairing", |desktop| !desktop.is_paired(&kai_id())).await;
}

/// What an app on the daemon's desktop shows arrives here.
async fn notification_arrives(desktop: &Desktop, kai: &mut Kai) {
    let plugin = ["kdeconnect_sendnotifications", "true"];
    desktop.call(&object(&kai_id()), "device.setPluginEnabled", &plugin).unwrap();
    let shown = desktop
        .command(Path::new("notify-send"))
        .args(["-a", "Calendar", "Stand-up in 5 min", "Room 4"])
        .status();
    assert!(shown.unwrap().success());
    kai.until("the notification", |event| match event {
        Event::Packet(_, Packet::Notification(Change::Posted(shown))) => {
            let texts = [&shown.title, &shown.text, &shown.ticker];
            texts
                .into_iter()
                .flatten()
                .any(|text| text.as_written().contains("Stand-up in 5 min"))
                .then_some(())
        }
        _ => None,
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a network of its own: the_handset_passes_for_a_phone starts it"]
async fn inside_handset() {
    let desktop = Desktop::start().await;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let local = HandsetSetup::local("Pixel", clock.clone()).unwrap();
    let setup = HandsetSetup { reach: Reach::default(), pairing: OnPairing::Accept, ..local };
    let handset = Handset::start(setup).await.unwrap();
    handset.receive("+15550100", "Dinner at 8?", clock.now()).await;
    let id = handset.id().clone();

    // The handset announces itself, the daemon connects and asks.
    handset.announce().await.unwrap();
    desktop.wait("the handset", |desktop| desktop.reaches(&id)).await;
    desktop.request_pairing(&id);
    desktop.wait("the pairing", |desktop| desktop.is_paired(&id)).await;
    assert_eq!(timeout(LONG, handset.shows_key()).await.unwrap(), desktop.key(&id));

    messages_show_up(&desktop, &handset).await;
    notifications_show_up(&desktop, &handset).await;

    // The handset's owner unpairs.
    let daemon = handset.paired().remove(0);
    handset.unpair(&daemon);
    desktop.wait("the end of the pairing", |desktop| !desktop.is_paired(&id)).await;
}

async fn messages_show_up(desktop: &Desktop, handset: &Handset) {
    let path = object(handset.id());
    let shows = |desktop: &Desktop, text: &str| {
        let listed = desktop.call(&path, "device.conversations.activeConversations", &[]);
        listed.is_some_and(|listed| listed.contains(text))
    };
    desktop
        .wait("conversations", |desktop| {
            desktop.call(&path, "device.conversations.requestAllConversationThreads", &[]).is_some()
        })
        .await;
    desktop.wait("the message", |desktop| shows(desktop, "Dinner at 8?")).await;
    let id = handset.id().to_string();
    let arguments = ["-d", &id, "--destination", "+15550142", "--send-sms", "On my way"];
    let sent = desktop.command(Path::new("kdeconnect-cli")).args(arguments).output().unwrap();
    assert!(sent.status.success());
    let outgoing = timeout(LONG, handset.until(|handset| handset.sent().first().cloned())).await.unwrap();
    assert_eq!((outgoing.to, outgoing.text.as_str()), (vec!["+15550142".to_owned()], "On my way"));
    desktop.wait("the sent message", |desktop| shows(desktop, "On my way")).await;
    handset.receive("+15550100", "Are you there?", SystemClock.now()).await;
    desktop.wait("the new message", |desktop| shows(desktop, "Are you there?")).await;
}

async fn notifications_show_up(desktop: &Desktop, handset: &Handset) {
    let tray = format!("{}/notifications", object(handset.id()));
    let key = handset.post("org.signal", "Signal", "Alice", "Dinner?").await;
    let first = |desktop: &Desktop| {
        let listed = desktop.call(&tray, "device.notifications.activeNotifications", &[])?;
        let number: String = listed.chars().filter(char::is_ascii_digit).collect();
        (!number.is_empty()).then(|| format!("{tray}/{number}"))
    };
    desktop.wait("the notification", |desktop| first(desktop).is_some()).await;
    let note = first(desktop).unwrap();
    let property = |name: &str| desktop.property(&note, "device.notifications.notification", name).unwrap();
    assert!(property("title").contains("Alice") && property("text").contains("Dinner?"));
    assert!(property("internalId").contains(&key) && property("dismissable").contains("true"));
    let reply_id = property("replyId").replace(['(', '<', '\'', '>', ',', ')'], "");
    desktop.call(&tray, "device.notifications.sendReply", &[reply_id.trim(), "Yes"]).unwrap();
    let reply = timeout(LONG, handset.until(|handset| handset.replies().first().cloned())).await.unwrap();
    assert_eq!((reply.key, reply.text.as_str()), (key.clone(), "Yes"));
    desktop.call(&note, "device.notifications.notification.dismiss", &[]).unwrap();
    timeout(LONG, handset.until(|handset| (handset.dismissed() == [key.clone()]).then_some(())))
        .await
        .unwrap();
    desktop.wait("an empty tray", |desktop| first(desktop).is_none()).await;
}
