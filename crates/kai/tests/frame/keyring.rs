//! The key in a real desktop keyring: GNOME's and KDE's, each on a session bus of its own.

#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::bus::Bus;
use crate::kit::{Daemon, Done, Home, kai, wait_for};

/// A bus with an unlocked keyring on it.
struct Desktop {
    keyring: Child,
    bus: Bus,
}

impl Desktop {
    fn start() -> Self {
        let bus = Bus::start();
        let desktop = Self { keyring: unlocked_keyring(&bus.address, bus.home.path()), bus };
        desktop.wait_until_it_answers();
        desktop
    }

    fn wait_until_it_answers(&self) {
        wait_for("the keyring to answer", || {
            let asked = Command::new("dbus-send")
                .env("DBUS_SESSION_BUS_ADDRESS", &self.bus.address)
                .args([
                    "--session",
                    "--print-reply",
                    "--reply-timeout=1000",
                    "--dest=org.freedesktop.secrets",
                ])
                .args([
                    "/org/freedesktop/secrets",
                    "org.freedesktop.Secret.Service.ReadAlias",
                    "string:default",
                ])
                .output()
                .unwrap();
            String::from_utf8_lossy(&asked.stdout).contains("collection")
        });
    }

    fn run(&self, home: &Home, args: &[&str]) -> Done {
        self.bus.run(home, args)
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        drop(self.keyring.kill());
        drop(self.keyring.wait());
    }
}

fn unlocked_keyring(bus: &str, data: &std::path::Path) -> Child {
    let mut keyring = Command::new("gnome-keyring-daemon")
        .args(["--foreground", "--unlock", "--components=secrets"])
        .env("DBUS_SESSION_BUS_ADDRESS", bus)
        .env("XDG_DATA_HOME", data)
        .env("XDG_RUNTIME_DIR", data)
        .env("HOME", data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    keyring.stdin.take().unwrap().write_all(b"desktop password").unwrap();
    keyring
}

#[test]
fn the_desktop_keyring_keeps_the_key_and_the_note_of_the_ledgers_end() {
    let desktop = Desktop::start();
    a_new_home_keeps_its_key_there(&desktop);
    an_older_home_is_found_by_its_note(&desktop);
    a_keyring_that_goes_away_makes_nothing_untrue(desktop);
}

fn a_new_home_keeps_its_key_there(desktop: &Desktop) {
    let home = Home::new();
    let stored = desktop.run(&home, &["tools", "call", "memory_store", r#"{"key": "a", "content": "b"}"#]);
    assert_eq!(stored.code, 0, "{stored:?}");
    assert_eq!(desktop.run(&home, &["status", "--json"]).json()["key"], "keyring");
    let file = std::fs::read_to_string(home.path().join("kai.key")).unwrap();
    assert!(!file.contains("\"key\""), "the file only says where the key is: {file}");
    assert_eq!(desktop.run(&home, &["memory", "list"]).out, "a  b\n");

    home.run(&["memory", "list"]).refused(3, "desktop keyring");
    let elsewhere = Desktop::start();
    elsewhere.run(&home, &["memory", "list"]).refused(3, "no longer there");

    assert_eq!(desktop.run(&home, &["key", "move", "file"]).code, 0);
    assert_eq!(home.run(&["memory", "list"]).out, "a  b\n", "from a file it opens without a desktop");
    assert_eq!(desktop.run(&home, &["key", "move", "keyring"]).code, 0);
    assert_eq!(desktop.run(&home, &["memory", "list"]).out, "a  b\n");
    home.run(&["key", "move", "keyring"]).refused(3, "desktop keyring");
}

/// The note of the ledger's end lies in the keyring beside the key, so that even a copy of the whole home is found out.
fn an_older_home_is_found_by_its_note(desktop: &Desktop) {
    let (home, older) = (Home::new(), Home::new());
    let remember = |key: &str| {
        let call = format!(r#"{{"key": "{key}", "content": "b"}}"#);
        assert_eq!(desktop.run(&home, &["tools", "call", "memory_store", &call]).code, 0);
    };
    let copy = |from: &Home, to: &Home| {
        for entry in std::fs::read_dir(from.path()).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
            }
        }
    };
    remember("one");
    copy(&home, &older);
    remember("two");
    assert_eq!(desktop.run(&home, &["ledger", "verify"]).code, 0);
    assert!(!home.path().join("kai.head").exists(), "it lies in the keyring");
    copy(&older, &home);
    let found = desktop.run(&home, &["ledger", "verify"]);
    assert!(found.code == 1 && found.out.contains("noted record 4"), "{found:?}");

    // It goes where the key goes, and comes back with it.
    assert_eq!(desktop.run(&home, &["key", "move", "file"]).code, 0);
    assert!(home.run(&["ledger", "verify"]).out.contains("noted record 4"));
    assert_eq!(desktop.run(&home, &["key", "move", "keyring"]).code, 0);
    assert!(!home.path().join("kai.head").exists());
    assert!(desktop.run(&home, &["ledger", "verify"]).out.contains("noted record 4"));
    assert_eq!(desktop.run(&home, &["memory", "list"]).out, "one  b\n", "the key is found as ever");
}

/// A daemon outlives the keyring that opened its home. What cannot be noted or compared then is said, not guessed.
fn a_keyring_that_goes_away_makes_nothing_untrue(mut desktop: Desktop) {
    let home = Home::new();
    let remember = ["tools", "call", "memory_store", r#"{"key": "a", "content": "b"}"#];
    assert_eq!(desktop.run(&home, &remember).code, 0);
    let mut command = kai(home.path());
    command.env("DBUS_SESSION_BUS_ADDRESS", &desktop.bus.address);
    let daemon = Daemon::start(command.args(["serve", "--port", "0"]));
    desktop.keyring.kill().unwrap();
    desktop.keyring.wait().unwrap();
    assert_eq!(home.run(&remember).code, 0, "through the daemon");
    let checked = home.run(&["ledger", "verify"]);
    assert!(checked.code == 0 && checked.err.contains("cannot tell"), "{checked:?}");
    assert!(home.run(&["doctor"]).out.contains("kept beside the key, could not be used"));
    let (code, log) = daemon.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("could not be noted beside the key").count(), 1, "{log}");
}

/// KDE's wallets on a bus of their own, of which one is the keyring, opened as at a login.
struct Kde {
    wallets: Wallets,
    bus: Bus,
    wallet: &'static str,
}

impl Kde {
    fn start(wallet: &'static str) -> Self {
        let bus = Bus::start();
        let config = format!(
            "[Wallet]\nFirst Use=false\nDefault Wallet={wallet}\n[org.freedesktop.secrets]\napiEnabled=true\n"
        );
        let mut kde = Self { wallets: Wallets::start(&bus, &config), bus, wallet };
        kde.log_in();
        // A wallet that was just made is a keyring from the next login on.
        kde.log_out();
        kde.log_in_again();
        kde
    }

    fn log_out(&mut self) {
        self.wallets.0.kill().unwrap();
        self.wallets.0.wait().unwrap();
        wait_for("the wallets to be gone", || !Wallets::answer(&self.bus));
    }

    fn log_in_again(&mut self) {
        self.wallets = Wallets(kwalletd(&self.bus));
        self.log_in();
    }

    fn log_in(&self) {
        wait_for("the wallets", || Wallets::answer(&self.bus));
        let hash = (1..=56).map(|byte| byte.to_string()).collect::<Vec<_>>().join(",");
        let (wallet, hash) = (format!("string:{}", self.wallet), format!("array:byte:{hash}"));
        Wallets::ask(&self.bus, &["org.kde.KWallet.pamOpen", &wallet, &hash, "int32:0"]);
        let is_open = ["org.kde.KWallet.isOpen", &wallet];
        wait_for("the wallet to be open", || Wallets::ask(&self.bus, &is_open).contains("true"));
    }
}

/// The program that keeps KDE's wallets, ended when the test is over.
struct Wallets(Child);

impl Wallets {
    fn start(bus: &Bus, config: &str) -> Self {
        std::fs::write(bus.home.path().join("kwalletrc"), config).unwrap();
        Self(kwalletd(bus))
    }

    fn answer(bus: &Bus) -> bool {
        Self::ask(bus, &["org.kde.KWallet.wallets"]).contains("array")
    }

    fn ask(bus: &Bus, words: &[&str]) -> String {
        let asked = Command::new("dbus-send")
            .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
            .args(["--session", "--print-reply", "--dest=org.kde.kwalletd5", "/modules/kwalletd5"])
            .args(words)
            .output()
            .unwrap();
        String::from_utf8_lossy(&asked.stdout).into_owned()
    }
}

impl Drop for Wallets {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn kwalletd(bus: &Bus) -> Child {
    Command::new("kwalletd5")
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .env("QT_QPA_PLATFORM", "offscreen")
        .env("HOME", bus.home.path())
        .env("XDG_CONFIG_HOME", bus.home.path())
        .env("XDG_DATA_HOME", bus.home.path())
        .env("XDG_RUNTIME_DIR", bus.home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn kdes_wallet_keeps_the_key_and_the_note() {
    // The second one has another name in its path on the bus.
    for wallet in ["kdewallet", "Tresor für Kai"] {
        a_wallet_keeps_the_key_and_the_note(Kde::start(wallet));
    }
}

/// KDE says that an open wallet is locked, until somebody asks for it.
fn a_wallet_keeps_the_key_and_the_note(mut kde: Kde) {
    let home = Home::new();
    let stored = kde.bus.run(&home, &["tools", "call", "memory_store", r#"{"key": "a", "content": "b"}"#]);
    assert_eq!(stored.code, 0, "{stored:?}");
    // It writes by itself only after five seconds, and this is no orderly end.
    kde.log_out();
    let file = std::fs::read_to_string(home.path().join("kai.key")).unwrap();
    assert!(!file.contains("\"key\""), "{}: the file only says where the key is: {file}", kde.wallet);
    kde.bus.run(&home, &["memory", "list"]).refused(3, "desktop keyring");
    kde.log_in_again();
    assert_eq!(kde.bus.run(&home, &["memory", "list"]).out, "a  b\n", "{}", kde.wallet);
    let checked = kde.bus.run(&home, &["ledger", "verify"]);
    assert!(checked.code == 0 && !checked.err.contains("cannot tell"), "{}: {checked:?}", kde.wallet);
    assert!(!home.path().join("kai.head").exists(), "the note lies in the wallet");
}

/// KDE would ask somebody to create a wallet with the name of the other keyring, again for each note.
#[test]
fn kdes_wallets_beside_another_keyring_are_left_alone() {
    let desktop = Desktop::start();
    let config = "[Wallet]\nFirst Use=false\n[org.freedesktop.secrets]\napiEnabled=false\n";
    let _wallets = Wallets::start(&desktop.bus, config);
    wait_for("the wallets", || Wallets::answer(&desktop.bus));
    let (monitor, home) = (Monitor::start(&desktop.bus), Home::new());
    for key in ["a", "b"] {
        let call = format!(r#"{{"key": "{key}", "content": "c"}}"#);
        let stored = desktop.run(&home, &["tools", "call", "memory_store", &call]);
        assert_eq!(stored.code, 0, "{stored:?}");
    }
    let checked = desktop.run(&home, &["ledger", "verify"]);
    assert!(checked.code == 0 && !checked.err.contains("cannot tell"), "{checked:?}");
    assert_eq!(desktop.run(&home, &["status", "--json"]).json()["key"], "keyring");
    let seen = monitor.seen(&desktop.bus);
    assert!(seen.contains("member=CreateItem"), "the key and the notes cross the bus: {seen}");
    assert!(!seen.contains("member=open"), "no wallet is opened: {seen}");
}

/// Everything that crosses a bus, as `dbus-monitor` writes it.
struct Monitor {
    program: Child,
    file: PathBuf,
}

impl Monitor {
    fn start(bus: &Bus) -> Self {
        let file = bus.home.path().join("monitor");
        let program = Command::new("dbus-monitor")
            .args(["--address", &bus.address])
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&file).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let monitor = Self { program, file };
        wait_for("the monitor", || {
            mark(bus, "kai.start");
            monitor.written().contains("kai.start")
        });
        monitor
    }

    /// All that happened until now: the bus has an order, in which our mark is the last.
    fn seen(&self, bus: &Bus) -> String {
        mark(bus, "kai.end");
        wait_for("the monitor to see it all", || self.written().contains("kai.end"));
        self.written()
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.file).unwrap()).into_owned()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

/// Asks the bus for this name, which nobody has.
fn mark(bus: &Bus, name: &str) {
    let asked = Command::new("dbus-send")
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .args(["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus"])
        .args(["org.freedesktop.DBus.NameHasOwner", &format!("string:{name}")])
        .output()
        .unwrap();
    assert!(asked.status.success(), "{asked:?}");
}
