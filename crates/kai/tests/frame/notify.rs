//! Notifications on a real desktop: dunst on a screen that nobody sees, on a session bus of its own.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::kit::{Daemon, Home, kai};

/// A screen that nobody sees, and dunst on it.
pub(crate) struct Desktop {
    screen: Child,
    #[cfg_attr(not(feature = "notifications"), expect(dead_code, reason = "for another dunst"))]
    display: String,
    dunst: Child,
    pub(crate) bus: Bus,
}

impl Desktop {
    pub(crate) fn start() -> Self {
        let bus = Bus::start();
        let mut screen = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut display = String::new();
        BufReader::new(screen.stdout.as_mut().unwrap()).read_line(&mut display).unwrap();
        let config = bus.home.path().join("dunstrc");
        std::fs::write(&config, "[global]\nmarkup = full\nhistory_length = 20\nnotification_limit = 10\n")
            .unwrap();
        let display = format!(":{}", display.trim());
        let dunst = dunst(&bus, &display);
        let desktop = Self { screen, display, dunst, bus };
        desktop.wait_for_dunst();
        desktop
    }

    fn wait_for_dunst(&self) {
        Desktop::wait("dunst to be there", || self.dunstctl(&["count", "displayed"]).is_some());
    }

    /// Ends dunst and starts another one, which counts its notifications from the beginning.
    #[cfg(feature = "notifications")]
    pub(crate) fn restart_dunst(&mut self) {
        drop(self.dunst.kill());
        self.dunst.wait().unwrap();
        self.dunst = dunst(&self.bus, &self.display);
        self.wait_for_dunst();
    }

    pub(crate) fn wait(what: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn dunstctl(&self, args: &[&str]) -> Option<String> {
        let mut command = Command::new("dunstctl");
        let done = command.args(args).env("DBUS_SESSION_BUS_ADDRESS", &self.bus.address).output().unwrap();
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap())
    }

    pub(crate) fn displayed(&self) -> usize {
        self.dunstctl(&["count", "displayed"]).unwrap().trim().parse().unwrap()
    }

    /// Everything that was ever shown, as (app, summary, body, time-out in µs).
    fn shown(&self) -> Vec<(String, String, String, i64)> {
        self.dunstctl(&["close-all"]).unwrap();
        Self::wait("all to be closed", || self.displayed() == 0);
        let history: Value = serde_json::from_str(&self.dunstctl(&["history"]).unwrap()).unwrap();
        let read = |note: &Value| {
            let text = |field: &str| note[field]["data"].as_str().unwrap().to_owned();
            (text("appname"), text("summary"), text("body"), note["timeout"]["data"].as_i64().unwrap())
        };
        history["data"][0].as_array().unwrap().iter().map(read).collect()
    }
}

fn dunst(bus: &Bus, display: &str) -> Child {
    Command::new("dunst")
        .arg("-conf")
        .arg(bus.home.path().join("dunstrc"))
        .env("DISPLAY", display)
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .env("HOME", bus.home.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in [&mut self.dunst, &mut self.screen] {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[test]
fn a_notification_reaches_the_desktop_and_its_markup_stays_text() {
    let (desktop, home) = (Desktop::start(), Home::new());
    // The key is a file before the bus comes in, so that this test needs no keyring.
    home.run(&["status"]);
    let words =
        json!({"title": "<i>Tea</i> & co", "message": "a <b>bold</b> & <a href=\"x\">link</a>\nline 2"});
    let sent = desktop.bus.run(&home, &["tools", "call", "send_notification", &words.to_string()]);
    assert_eq!(sent.code, 0, "{sent:?}");
    let shown = desktop.shown();
    assert_eq!(shown.len(), 1);
    let (app, summary, body, _) = &shown[0];
    assert_eq!((app.as_str(), summary.as_str()), ("Kai", "<i>Tea</i> & co"));
    assert_eq!(body, "a &lt;b&gt;bold&lt;/b&gt; &amp; &lt;a href=\"x\"&gt;link&lt;/a&gt;\nline 2");
}

#[test]
fn an_alarm_rings_on_the_desktop_and_stays() {
    let (desktop, home) = (Desktop::start(), Home::new());
    home.run(&["status"]);
    let mut command = kai(home.path());
    command.env("DBUS_SESSION_BUS_ADDRESS", &desktop.bus.address).env("LANG", "de_DE.UTF-8");
    let _daemon = Daemon::start(command.args(["serve", "--port", "0"]));
    let set = home.run(&["tools", "call", "set_alarm", r#"{"duration_seconds": 2}"#]);
    assert_eq!(set.code, 0, "{set:?}");
    let asked = Instant::now();
    Desktop::wait("the alarm", || desktop.displayed() == 1);
    let took = asked.elapsed();
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(10), "rang after {took:?}");
    std::thread::sleep(Duration::from_secs(1));
    let shown = desktop.shown();
    assert_eq!(shown.len(), 1, "{shown:?}");
    let (_, summary, body, expires) = &shown[0];
    assert_eq!((summary.as_str(), *expires), ("Wecker", 0));
    assert!(body.starts_with("Es ist ") && body.ends_with(" Uhr."), "{body}");
}

#[test]
fn a_bus_without_a_desktop_is_said() {
    let (bus, home) = (Bus::start(), Home::new());
    let refused = bus.run(&home, &["tools", "call", "send_notification", r#"{"message": "x"}"#]);
    assert!(refused.code == 1 && refused.out.contains("the desktop shows none now"), "{refused:?}");
}
