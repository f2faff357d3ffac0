//! The environment of a process: what Kai takes from its caller's, and what it hands on.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::ask::piped;
use crate::kit::{Daemon, Done, Home, kai};
use crate::phone::{NOTE, Phone};

#[test]
fn the_environment_is_heard_and_its_keys_are_never_shown_or_handed_on() {
    keys_of_the_environment_are_found_and_never_shown();
    programs_see_nothing_of_kais_keys();
    #[cfg(target_os = "linux")]
    the_demo_sees_nothing_of_kais_keys();
    doctor_says_what_is_wrong_with_it();
}

fn keys_of_the_environment_are_found_and_never_shown() {
    let home = Home::new();
    let run = |args: &[&str]| {
        Done::from(kai(home.path()).env("GEMINI_API_KEY", "very-secret").args(args).output().unwrap())
    };
    let listed = run(&["models", "list", "--json"]);
    assert!(!listed.out.contains("very-secret"), "{listed:?}");
    let daemon = home.start();
    assert_eq!(
        run(&["models", "list", "--json"]),
        listed,
        "the caller's environment counts, not the daemon's"
    );
    drop(daemon);
    let gemini = &listed.json()[0];
    assert_eq!((gemini["name"].as_str(), gemini["origin"].as_str()), (Some("gemini"), Some("environment")));
    assert_eq!(gemini["ready"], true, "{gemini}");
    assert_eq!(run(&["status", "--json"]).json()["model"]["name"], "gemini", "it would answer");
    piped(&home, &["models", "add", "openai", "--key-stdin"], "sk-hidden-key\n");
    for shown in [
        home.run(&["models", "list", "--json"]),
        home.run(&["status", "--json"]),
        home.run(&["doctor", "--json"]),
    ] {
        assert!(!shown.out.contains("sk-hidden-key"), "{shown:?}");
    }
}

/// Programs that Kai starts find what they need in their environment, and no key.
fn programs_see_nothing_of_kais_keys() {
    let phone = Phone::new(&[]);
    for (name, tool, arguments) in [
        ("xdg-open", "open_url", json!({"url": "https://example.org/"})),
        ("termux-notification", "send_notification", json!({"title": "a", "message": "b"})),
    ] {
        phone.program(name, "env > \"$LOG.new\"; mv \"$LOG.new\" \"$LOG\"");
        let mut command = phone.command();
        command.env("OPENAI_API_KEY", "sk-very-secret").env("GITHUB_TOKEN", "hidden").env("DISPLAY", ":7");
        let done: Done =
            command.args(["tools", "call", tool, &arguments.to_string()]).output().unwrap().into();
        assert_eq!(done.code, 0, "{done:?}");
        let seen = phone.wait_for("PATH=");
        assert!(seen.contains("LANG=en_GB.UTF-8") && seen.contains("DISPLAY=:7"), "{name}: {seen}");
        for secret in ["sk-very-secret", "hidden", "KAI_HOME"] {
            assert!(!seen.contains(secret), "{name} sees {secret}: {seen}");
        }
        std::fs::remove_file(phone.programs.path().join("log")).unwrap();
    }
    phone.program("termux-open-url", NOTE);
    phone.call("open_url", &json!({"url": "https://example.org"}));
    let opened = phone.wait_for("https://example.org/");
    assert_eq!(opened, "termux-open-url|https://example.org/\n", "in Termux its own programs come first");
}

/// The demo is started from the page as a process of its own, and has no use for the keys of models.
#[cfg(target_os = "linux")]
fn the_demo_sees_nothing_of_kais_keys() {
    let home = Home::new();
    let mut command = kai(home.path());
    let daemon =
        Daemon::start(command.env("OPENAI_API_KEY", "sk-very-secret").args(["serve", "--port", "0"]));
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/new", &cookie).csrf();
    let started = daemon.send("POST", "/demo", &[("Cookie", &cookie)], &format!("csrf={csrf}"));
    assert!(started.text.contains("location: /demo/login?token="), "{}", started.text);
    let status = home.run(&["status", "--demo", "--json"]).json();
    let pid = status["daemon"]["pid"].as_u64().unwrap();
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return crate::refusals::skipped("looking into another process needs root");
    };
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(environment.contains("PATH="), "{environment}");
    assert!(!environment.contains("sk-very-secret"), "{environment}");
    home.run(&["stop", "--demo"]);
}

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

fn doctor_says_what_is_wrong_with_it() {
    let home = Home::new();
    says(&home, kai(home.path()).env("TZ", "Nowhere/Atall"), "time zone", "unknown", "Set TZ");
    says(
        &home,
        kai(home.path()).env_remove("DBUS_SESSION_BUS_ADDRESS").env("XDG_RUNTIME_DIR", "/nowhere"),
        "notifications",
        "cannot be read on this machine",
        "start Kai inside your session",
    );
    says(
        &home,
        kai(home.path()).env("TERMUX_VERSION", "0.118.1"),
        "phone",
        "SMS programs are not installed",
        "pkg install termux-api",
    );
}
