//! Broken states that people get into, and what `kai doctor` says about each: what is wrong, and the next step.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
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

fn open_to(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_key_that_is_the_owners_alone_is_said_to_be() {
    let home = prepared();
    let found = check(&home.run(&["doctor", "--json"]), "key");
    assert!(found["verdict"] == "fine" && found["says"].as_str().unwrap().contains("readable by you alone"));
    assert_eq!(home.run(&["key", "show"]).out, "The key is in kai.key, which only you can read.\n");
    open_to(&home.path().join("kai.key"), 0o640);
    let shown = home.run(&["key", "show"]);
    assert!(shown.out.contains("other users can open") && shown.err.contains("chmod 600"), "{shown:?}");
}

#[test]
fn a_store_that_does_not_open_says_what_to_do() {
    type Spoiled = (&'static str, fn(&Home), &'static str);
    let spoil: [Spoiled; 4] = [
        ("damaged", |home| std::fs::write(home.path().join("kai.db"), vec![7; 40_000]).unwrap(), "backup"),
        ("the key is gone", |home| std::fs::remove_file(home.path().join("kai.key")).unwrap(), "key"),
        (
            "another home's key",
            |home| {
                let other = prepared();
                std::fs::copy(other.path().join("kai.key"), home.path().join("kai.key")).unwrap();
            },
            "key",
        ),
        ("half a key", |home| std::fs::write(home.path().join("kai.key"), "abc").unwrap(), "key"),
    ];
    for (state, into, word) in spoil {
        let home = prepared();
        into(&home);
        let done = home.run(&["doctor", "--json"]);
        let found = check(&done, "store");
        let told = format!("{} {}", found["says"], found["next"]);
        assert_eq!((done.code, &found["verdict"]), (3, &Value::from("broken")), "{state}: {done:?}");
        assert!(told.contains(word), "{state}: {told}");
    }
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
    #[cfg(feature = "foss")]
    says(
        &home,
        kai(home.path()).env_remove("DBUS_SESSION_BUS_ADDRESS").env("XDG_RUNTIME_DIR", "/nowhere"),
        "notifications",
        "cannot be read here",
        "start Kai inside the session",
    );
    #[cfg(feature = "foss")]
    says(
        &home,
        kai(home.path()).env("TERMUX_VERSION", "0.118.1"),
        "phone",
        "SMS programs are not here",
        "pkg install termux-api",
    );
}

#[cfg(feature = "foss")]
mod phones {
    use super::*;
    use crate::phone::Phone;
    use crate::sms::{ALICE, draft, ready};

    fn told(phone: &Phone, name: &str, what: &str, next: &str) {
        says(&phone.home, &mut phone.command(), name, what, next);
    }

    #[test]
    fn a_phone_in_every_state() {
        let phone = Phone::with_sms();
        told(&phone, "phone", "does not read its SMS", "sms_enabled true");

        let phone = ready();
        phone.program("termux-sms-list", r#"echo '{"API_ERROR": "Please grant the following permission to use this command: android.permission.READ_SMS"}'"#);
        assert_eq!(phone.run(&["sms", "poll"]).code, 1);
        told(&phone, "phone", "Kai cannot read its SMS", "SMS");

        let phone = ready();
        phone.program("termux-sms-list", "echo '[{\"_id\": '");
        assert_eq!(phone.run(&["sms", "poll"]).code, 1);
        told(&phone, "phone", "the last poll failed", "kai sms poll");

        // Taken to a desktop, where no phone is.
        let phone = ready();
        says(&phone.home, &mut kai(phone.home.path()), "phone", "no phone is connected", "Termux");
    }

    #[test]
    fn drafts_that_did_not_go_well() {
        let phone = ready();
        let id = draft(&phone, ALICE, "Hi");
        phone.program("termux-sms-send", "cat > /dev/null; echo no service >&2; exit 1");
        let daemon = phone.start();
        let cookie = daemon.sign_in();
        let page = daemon.get("/", &cookie);
        let tap = crate::sms::post_of(&page.text, &page.csrf());
        daemon.send("POST", &format!("/drafts/{id}/tap"), &[("Cookie", &cookie)], &tap);
        crate::kit::wait_for("the failure", || phone.run(&["drafts", "list"]).out.contains("FAILED"));
        told(&phone, "drafts", "could not be sent", &format!("kai drafts show {id}"));
    }
}
