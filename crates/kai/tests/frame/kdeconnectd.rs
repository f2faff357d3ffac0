//! Kai's daemon and the real kdeconnectd, which stands in for a phone: both ask to be paired, what the desktop shows
//! arrives in Kai, a restart keeps the pairing, and each side can end it. They are in a network of their own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::kit::{Daemon, Home, wait_for};
use crate::notify::Desktop;
use crate::paired::{in_own_network, open_to_others};

/// Where it can be reached. It ignores announcements from loopback.
const ADDRESS: &str = "10.77.0.1";
const ROOT: &str = "/modules/kdeconnect";

#[test]
fn kai_is_paired_with_the_real_kdeconnectd() {
    if kdeconnectd().is_none() {
        // Not `eprintln`, which a test without --nocapture would swallow.
        drop(writeln!(std::io::stderr(), "skipped: this needs kdeconnectd: apt-get install -y kdeconnect"));
        return;
    }
    in_own_network("kdeconnectd::inside");
}

/// Debian 12 has it among the libraries, Debian 13 in the usual place.
fn kdeconnectd() -> Option<PathBuf> {
    let libraries = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path().join("libexec"));
    let folders = libraries.chain(["/usr/bin", "/usr/libexec"].map(PathBuf::from));
    folders.map(|folder| folder.join("kdeconnectd")).find(|path| path.exists())
}

/// A desktop on which kdeconnectd runs.
struct Other {
    program: Child,
    desktop: Desktop,
}

impl Other {
    fn start() -> Self {
        let desktop = Desktop::start();
        let mut command = on(&desktop, &kdeconnectd().unwrap());
        let program = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let other = Self { program, desktop };
        wait_for("kdeconnectd", || other.call(ROOT, "daemon.devices").is_some());
        other
    }

    /// Calls a method of it, and returns what it prints, or `None` if that fails.
    fn call(&self, path: &str, method: &str) -> Option<String> {
        self.gdbus(path, &format!("org.kde.kdeconnect.{method}"), &[])
    }

    fn property(&self, path: &str, name: &str) -> Option<String> {
        self.gdbus(path, "org.freedesktop.DBus.Properties.Get", &["org.kde.kdeconnect.device", name])
    }

    fn gdbus(&self, path: &str, method: &str, arguments: &[&str]) -> Option<String> {
        let mut command = on(&self.desktop, Path::new("gdbus"));
        command.args(["call", "--session", "--dest", "org.kde.kdeconnect", "--object-path", path]);
        let done = command.args(["--method", method]).args(arguments).output().unwrap();
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap())
    }

    /// Kai, as it knows it: the only other device.
    fn kai(&self) -> Option<String> {
        let listed = self.call(ROOT, "daemon.devices")?;
        listed.split('\'').nth(1).map(|id| format!("{ROOT}/devices/{id}"))
    }

    fn is(&self, what: &str) -> bool {
        let told = self.kai().and_then(|kai| self.property(&kai, what));
        told.is_some_and(|value| value.contains("true"))
    }

    fn is_paired(&self) -> bool {
        // The name changed between versions.
        self.is("isTrusted") || self.is("isPaired")
    }

    /// The key that it shows to its user, in groups of four. In older versions it is a method that returns bytes.
    fn key(&self) -> String {
        let kai = self.kai().unwrap();
        let shown =
            self.call(&kai, "device.verificationKey").or_else(|| self.property(&kai, "verificationKey"));
        let shown = shown.unwrap();
        let byte = |word: &str| u8::from_str_radix(word.get(..2)?, 16).ok().map(char::from);
        let bytes = shown.split("0x").skip(1).filter_map(byte);
        let text = shown.split('\'').nth(1).map_or_else(|| bytes.collect(), str::to_owned).to_uppercase();
        format!("{} {}", &text[..4], &text[4..8])
    }

    /// Its user asks Kai.
    fn request_pairing(&self) {
        let kai = self.kai().unwrap();
        let names = ["device.requestPairing", "device.requestPair"];
        assert!(names.iter().any(|name| self.call(&kai, name).is_some()));
    }

    /// An app shows something on its desktop.
    fn show(&self, title: &str) {
        let plugin = ["kdeconnect_sendnotifications", "true"];
        let enabled = self.gdbus(&self.kai().unwrap(), "org.kde.kdeconnect.device.setPluginEnabled", &plugin);
        assert!(enabled.is_some());
        let mut command = on(&self.desktop, Path::new("notify-send"));
        assert!(command.args(["-a", "Calendar", title, "Room 4"]).status().unwrap().success());
    }
}

fn on(desktop: &Desktop, program: &Path) -> Command {
    let home = desktop.bus.home.path();
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("DBUS_SESSION_BUS_ADDRESS", &desktop.bus.address)
        .env("DISPLAY", &desktop.display)
        .env("QT_QPA_PLATFORM", "offscreen")
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null());
    command
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

/// A command on a terminal, and all that stood there.
struct Screen {
    child: Child,
    seen: String,
}

impl Screen {
    fn of(home: &Home, arguments: &str) -> Self {
        Self { child: home.terminal(arguments), seen: String::new() }
    }

    /// Reads until this stands at the end.
    fn until(&mut self, words: &str) {
        let screen = self.child.stdout.as_mut().unwrap();
        let (mut byte, mut bytes) = ([0], self.seen.clone().into_bytes());
        while !bytes.ends_with(words.as_bytes()) {
            let more = screen.read(&mut byte).unwrap() == 1;
            assert!(more, "it ended without {words:?}: {}", String::from_utf8_lossy(&bytes));
            bytes.push(byte[0]);
        }
        self.seen = String::from_utf8(bytes).unwrap();
    }

    fn types(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Answers the questions about switches: of them, only notifications are wanted.
    fn wants_notifications(mut self) {
        for answer in ["n", "n", "y", "n", "n", "n"] {
            self.until("[y/N] ");
            self.seen.clear();
            self.types(answer);
        }
        let done = self.child.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

#[test]
#[ignore = "only in a network of its own"]
fn inside() {
    let routes = std::fs::read_to_string("/proc/net/route").unwrap();
    assert!(routes.lines().skip(1).all(|line| line.starts_with("lo")), "only in a network of its own");
    let other = Other::start();
    let home = Home::new();
    let daemon = home.start();
    kai_asks(&home, &other);
    arrives(&home, &other, "Stand-up in 5 min");

    // Kai restarts, connects by itself and is believed.
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    let daemon = home.start();
    wait_for("Kai to be connected again", || is_connected(&home));
    arrives(&home, &other, "Lunch");

    // It ends the pairing there, and asks for another one.
    assert!(other.call(&other.kai().unwrap(), "device.unpair").is_some());
    wait_for("the end of the pairing", || home.run(&["phones", "list"]).out.contains("no longer paired"));
    wait_for("the port to close", || open_to_others(&daemon).is_empty());
    kdeconnectd_asks(&home, &other, &daemon);
    arrives(&home, &other, "Tea");

    // Kai ends it.
    let removed = home.run(&["phones", "remove", "2", "--keep-messages"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    wait_for("the other side to know", || !other.is_paired());
    wait_for("the port to close", || open_to_others(&daemon).is_empty());
}

fn is_connected(home: &Home) -> bool {
    home.run(&["phones", "list", "--json"]).json()[0]["connected"] == true
}

fn kai_asks(home: &Home, other: &Other) {
    let mut pair = Screen::of(home, &format!("phones pair {ADDRESS}"));
    pair.until("[y/N] ");
    assert!(pair.seen.contains(&other.key()), "{} in {}", other.key(), pair.seen);
    pair.seen.clear();
    pair.types("y");
    wait_for("the other side to accept", || {
        // It may be too busy to say.
        let accepts = |kai: String| other.call(&kai, "device.acceptPairing");
        other.kai().and_then(accepts);
        other.is_paired()
    });
    pair.wants_notifications();
    wait_for("both to be paired", || other.is_paired() && is_connected(home));
}

fn kdeconnectd_asks(home: &Home, other: &Other, daemon: &Daemon) {
    let mut pair = Screen::of(home, "phones pair");
    // The announcement is heard there, and it connects.
    pair.until("Type the number of your phone: ");
    assert_eq!(open_to_others(daemon), ["tcp 1717", "udp 1716"], "the first port is taken");
    other.request_pairing();
    pair.until("[y/N] ");
    assert!(pair.seen.contains("wants to be paired") && pair.seen.contains(&other.key()), "{}", pair.seen);
    pair.seen.clear();
    pair.types("y");
    pair.wants_notifications();
    wait_for("both to be paired", || other.is_paired() && is_connected(home));
}

/// What an app shows there arrives here.
fn arrives(home: &Home, other: &Other, title: &str) {
    let state = || home.run(&["status", "--json"]).json()["notifications"]["state"].clone();
    wait_for("Kai to listen", || state() == "listening");
    other.show(title);
    let listed = || home.run(&["notifications", "list", "--all"]).out;
    wait_for(title, || listed().contains(title));
}
