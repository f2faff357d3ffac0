//! Broken states that people get into, and what `kai doctor` says about each: what is wrong, and the next step.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::kit::{Done, Home, kai};

/// What doctor finds under a name.
fn check(done: &Done, name: &str) -> Value {
    let checks = done.json();
    checks.as_array().unwrap().iter().find(|check| check["name"] == name).cloned().unwrap_or_default()
}

/// It says this, and this is the next step.
fn says(home: &Home, command: &mut Command, name: &str, what: &str, next: &str) {
    let done: Done = command.args(["doctor", "--json"]).stdin(Stdio::null()).output().unwrap().into();
    let found = check(&done, name);
    let told = (found["says"].as_str().unwrap_or_default(), found["next"].as_str().unwrap_or_default());
    assert!(told.0.contains(what) && told.1.contains(next), "{name}: wanted {what:?}, {next:?}: {done:?}");
    assert_ne!(found["verdict"], "fine", "{found}");
    let broken = found["verdict"] == "broken";
    assert_eq!(done.code, if name == "store" && done.code == 3 { 3 } else { i32::from(broken) }, "{done:?}");
    // A person reads the same.
    let read = command_like(command, home).output().unwrap();
    let read = String::from_utf8_lossy(&read.stdout).into_owned();
    assert!(read.contains(next), "{name}: {read}");
}

/// The same surroundings, for a person.
fn command_like(command: &Command, home: &Home) -> Command {
    let mut again = kai(home.path());
    again.env_clear();
    for (name, value) in command.get_envs() {
        again.env(name, value.unwrap_or_default());
    }
    again.arg("doctor").stdin(Stdio::null());
    again
}

fn prepared() -> Home {
    let home = Home::new();
    assert_eq!(home.run(&["settings", "set", "theme", "dark"]).code, 0);
    home
}

/// A setting as another home had it.
pub(crate) fn take_in(home: &Home, key: &str, value: &str) {
    let file = home.path().join("setting.json");
    let export = serde_json::json!({"kai_export": 1, "sections": {"settings": {key: value}}});
    std::fs::write(&file, export.to_string()).unwrap();
    assert_eq!(home.run(&["import", file.to_str().unwrap(), "--yes"]).code, 0);
}

#[test]
fn a_locked_home_says_how_to_open_it() {
    let home = prepared();
    let locked = Command::new("bash")
        .args([
            "-c",
            "\"$0\" --home \"$1\" key move passphrase --passphrase-fd 9 9<<< 'correct horse battery'",
        ])
        .args([crate::kit::KAI.as_ref(), home.path()])
        .output()
        .unwrap();
    assert!(locked.status.success(), "{locked:?}");
    let done = home.run(&["doctor", "--json"]);
    assert_eq!(done.code, 3);
    assert!(check(&done, "store")["says"].as_str().unwrap().contains("--passphrase-fd"), "{done:?}");
}

#[test]
fn places_and_clocks() {
    let home = prepared();
    says(&home, kai(home.path()).env("TZ", "Nowhere/Atall"), "time zone", "unknown", "Set TZ");
    says(
        &home,
        kai(home.path()).env_remove("DBUS_SESSION_BUS_ADDRESS").env("XDG_RUNTIME_DIR", "/nowhere"),
        "notifications",
        "cannot be read here",
        "start Kai inside the session",
    );
    says(
        &home,
        kai(home.path()).env("TERMUX_VERSION", "0.118.1"),
        "phone",
        "SMS programs are not here",
        "pkg install termux-api",
    );
}
