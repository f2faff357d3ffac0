//! The key in a real desktop keyring: GNOME's, on a session bus of its own.

#![cfg(target_os = "linux")]

use std::io::Write;
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
