//! The tools that act on the machine, with a folder of stand-ins first on `PATH`.

use std::time::Duration;

use serde_json::json;

use crate::browser::Browser;
use crate::kit::{Done, Home, kai, wait_for};
use crate::phone::{NOTE, Phone};

impl Phone {
    fn call(&self, tool: &str, arguments: &serde_json::Value) -> Done {
        self.command().args(["tools", "call", tool, &arguments.to_string()]).output().unwrap().into()
    }

    fn refused(&self, tool: &str, arguments: &serde_json::Value, word: &str) {
        let done = self.call(tool, arguments);
        let said = done.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(done.code == 1 && said.contains(word), "{tool} {arguments}: {done:?}");
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.programs.path().join("log")).unwrap_or_default()
    }

    /// Waits until something was noted.
    fn wait_for(&self, word: &str) -> String {
        wait_for(word, || self.log().contains(word));
        self.log()
    }
}

#[test]
fn in_termux_its_own_programs_are_used() {
    let phone = Phone::new(&["termux-open-url", "termux-open", "termux-notification", "xdg-open"]);
    assert_eq!(phone.call("open_url", &json!({"url": "https://example.org"})).code, 0);
    assert_eq!(
        phone.call("create_calendar_event", &json!({"title": "x", "start_time": "2026-03-09T15:00Z"})).code,
        0
    );
    assert_eq!(phone.call("send_notification", &json!({"message": "$(id) <b>"})).code, 0);
    let log = phone.log();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], "termux-open-url|https://example.org/");
    assert!(lines[1].starts_with("termux-open|/") && lines[1].contains("/files/event-"), "{log}");
    assert_eq!(lines[2..], ["termux-notification|-t|Kai|-c|$(id) <b>"]);
    phone.program("termux-notification", r#"echo '{"error": "Please grant the permission"}'"#);
    phone.refused("send_notification", &json!({"message": "x"}), "Please grant the permission");
    phone.refused("send_notification", &json!({"message": " "}), "must not be empty");
    phone.refused("send_notification", &json!({"title": "x"}), "must be a string");
}

#[test]
fn an_alarm_does_not_ring_twice_though_its_ring_kills_the_daemon() {
    let phone = Phone::new(&[]);
    phone.program("termux-notification", &format!("{NOTE}; kill -9 $PPID"));
    let daemon = phone.start();
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"})).code, 0);
    phone.wait_for("Tea");
    drop(daemon);
    phone.program("termux-notification", NOTE);
    let daemon = phone.start();
    // Whatever was left to ring would ring before this one.
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Cake"})).code, 0);
    let log = phone.wait_for("Cake");
    assert_eq!(log.matches("Tea").count(), 1, "{log}");
    assert_eq!(daemon.stop("-TERM").0, Some(0), "it had nothing left to ring");
}

/// Stopping Kai while a slow phone shows an alarm: it is waited for, and the alarm rings once.
#[test]
fn an_alarm_that_rings_when_kai_stops_is_not_lost() {
    let phone = Phone::new(&[]);
    let slow = format!("touch \"$DIR/rings\"; while [ ! -e \"$DIR/go\" ]; do sleep 0.05; done; {NOTE}");
    phone.program("termux-notification", &slow);
    let daemon = phone.start();
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"})).code, 0);
    let file = |name: &str| phone.programs.path().join(name);
    wait_for("the ring to begin", || file("rings").exists());
    let go = file("go");
    let later = std::thread::spawn(move || {
        // Longer than anything else is waited for at a stop.
        std::thread::sleep(Duration::from_secs(2));
        std::fs::write(go, "").unwrap();
    });
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    later.join().unwrap();
    assert!(phone.log().contains("Tea"), "{}", phone.log());
    let _again = phone.start();
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Cake"})).code, 0);
    let log = phone.wait_for("Cake");
    assert_eq!(log.matches("Tea").count(), 1, "{log}");
}

#[test]
fn alarms_are_listed_and_cancelled_by_command_and_on_the_page() {
    let phone = Phone::new(&["termux-notification"]);
    let run = |args: &[&str]| Done::from(phone.command().args(args).output().unwrap());
    assert!(run(&["alarms", "list"]).out.contains("No alarms."));
    let daemon = phone.start();
    for (seconds, label) in [(7_200, "Cake <b>"), (3_600, "Tea"), (80_000, "")] {
        assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": seconds, "label": label})).code, 0);
    }
    let labels = || -> Vec<String> {
        let rows = run(&["alarms", "list", "--json"]).json();
        rows.as_array().unwrap().iter().map(|row| row["label"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(labels(), ["Tea", "Cake <b>", ""], "the next first");
    let listed = run(&["alarms", "list"]).out;
    assert!(listed.contains("Tea: rings at 20") && listed.contains("Alarm: rings at"), "{listed}");
    assert_eq!(run(&["alarms", "cancel", "2", "--json"]).json(), json!({"id": 2, "cancelled": true}));
    run(&["alarms", "cancel", "2"]).refused(1, "no alarm number 2. It may have rung already");
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    browser.until("two alarms", "return document.querySelectorAll('[data-testid=alarm]').length === 2");
    assert!(browser.texts("alarm")[0].contains("Cake <b>"), "{:?}", browser.texts("alarm"));
    browser.picture("alarms");
    browser.click("alarm-cancel");
    browser.until("one alarm", "return document.querySelectorAll('[data-testid=alarm]').length === 1");
    assert_eq!(labels(), [""]);
    browser.click("undo");
    browser.until("it to be back", "return document.querySelectorAll('[data-testid=alarm]').length === 2");
    assert_eq!(labels(), ["Cake <b>", ""]);
    drop(daemon);
    assert_eq!(run(&["alarms", "cancel", "1"]).out, "Cancelled alarm 1.\n", "without a daemon too");
    assert_eq!(labels(), [""]);
}

/// Programs that Kai starts find what they need in their environment, and no key.
#[test]
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
}

/// The demo is started from the page as a process of its own, and has no use for the keys of models.
#[cfg(target_os = "linux")]
#[test]
fn the_demo_sees_nothing_of_kais_keys() {
    let home = Home::new();
    let mut command = kai(home.path());
    let daemon = crate::kit::Daemon::start(
        command.env("OPENAI_API_KEY", "sk-very-secret").args(["serve", "--port", "0"]),
    );
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/", &cookie).csrf();
    let started = daemon.send("POST", "/demo", &[("Cookie", &cookie)], &format!("csrf={csrf}"));
    assert!(started.text.contains("It is ready"), "{}", started.text);
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
