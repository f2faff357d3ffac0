//! Notifications on a real desktop: dunst on a screen that nobody sees, on a session bus of its own.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::bus::Bus;
use crate::kit::{Answer, Daemon, Home, kai, wait_for};
use crate::phone::Phone;
use crate::provider::{Act, Provider};

/// A screen that nobody sees, and dunst on it.
pub(crate) struct Desktop {
    screen: Child,
    pub(crate) display: String,
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
        wait_for("dunst to be there", || self.dunstctl(&["count", "displayed"]).is_some());
    }

    /// Ends dunst and starts another one, which counts its notifications from the beginning.
    pub(crate) fn restart_dunst(&mut self) {
        drop(self.dunst.kill());
        self.dunst.wait().unwrap();
        // Until the bus has noticed, its name is taken, and the next one would give up.
        wait_for("dunst to be gone", || self.dunstctl(&["count", "displayed"]).is_none());
        self.dunst = dunst(&self.bus, &self.display);
        self.wait_for_dunst();
    }

    pub(crate) fn dunstctl(&self, args: &[&str]) -> Option<String> {
        let mut command = Command::new("dunstctl");
        let done = command.args(args).env("DBUS_SESSION_BUS_ADDRESS", &self.bus.address).output().unwrap();
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap())
    }

    pub(crate) fn displayed(&self) -> usize {
        self.dunstctl(&["count", "displayed"]).unwrap().trim().parse().unwrap()
    }

    /// Everything that was shown since dunst was started, as (app, summary, body, time-out in µs).
    fn shown(&self) -> Vec<(String, String, String, i64)> {
        self.dunstctl(&["close-all"]).unwrap();
        wait_for("all to be closed", || self.displayed() == 0);
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
fn what_kai_shows_on_the_desktop_is_text_stays_and_can_be_tapped() {
    let mut desktop = Desktop::start();
    a_notification_reaches_the_desktop_and_its_markup_stays_text(&desktop);
    desktop.restart_dunst();
    an_alarm_rings_on_the_desktop_and_stays(&desktop);
    desktop.restart_dunst();
    a_tap_on_a_report_opens_its_conversation_signed_in(&desktop);
    desktop.restart_dunst();
    a_tap_without_a_browser_is_only_logged(&desktop);
}

fn a_notification_reaches_the_desktop_and_its_markup_stays_text(desktop: &Desktop) {
    let home = Home::new();
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

fn an_alarm_rings_on_the_desktop_and_stays(desktop: &Desktop) {
    let home = Home::new();
    home.run(&["status"]);
    let mut command = kai(home.path());
    command.env("DBUS_SESSION_BUS_ADDRESS", &desktop.bus.address).env("LANG", "de_DE.UTF-8");
    let _daemon = Daemon::start(command.args(["serve", "--port", "0"]));
    let set = home.run(&["tools", "call", "set_alarm", r#"{"duration_seconds": 2}"#]);
    assert_eq!(set.code, 0, "{set:?}");
    let asked = Instant::now();
    wait_for("the alarm", || desktop.displayed() == 1);
    let took = asked.elapsed();
    assert!(took > Duration::from_secs(1), "rang after {took:?}");
    let shown = desktop.shown();
    assert_eq!(shown.len(), 1, "{shown:?}");
    let (_, summary, body, expires) = &shown[0];
    assert_eq!((summary.as_str(), *expires), ("Wecker", 0));
    assert!(body.starts_with("Es ist ") && body.ends_with(" Uhr."), "{body}");
}

/// The addresses that a stand-in opener was given, each after the activation token that came with it.
const OPENER: &str = r#"echo "$XDG_ACTIVATION_TOKEN|$1" >> "$LOG""#;

/// A home with a model, which has just reported this.
fn having_reported(said: &str) -> Phone {
    let provider = Provider::start([Act::says(said)]);
    let phone = Phone::new(&[]);
    let address = ["--base-url", &provider.base_url, "--model", "m"];
    assert_eq!(phone.home.run(&[&["models", "add", "openai-compatible"], &address[..]].concat()).code, 0);
    // A daemon's own heartbeat would ask too, depending on the hour.
    assert_eq!(phone.home.run(&["settings", "set", "heartbeat_enabled", "false"]).code, 0);
    assert_eq!(phone.home.run(&["heartbeat", "run", "--force"]).code, 0);
    phone
}

/// The path of the address that was opened last.
fn opened(phone: &Phone, daemon: &Daemon) -> String {
    let log = phone.log();
    log.trim_end().rsplit_once(&format!("http://{}", daemon.address)).unwrap().1.to_owned()
}

/// A request by another user of this machine; `None` where we are not allowed to be one.
fn by_another_user(daemon: &Daemon, path: &str) -> Option<Answer> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let (host, port) = daemon.address.split_once(':').unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    let script = format!("exec 3<>/dev/tcp/{host}/{port}; printf '%s' \"$0\" >&3; cat <&3");
    let answer = Command::new("bash").args(["-c", &script, &request]).uid(65_534).output().unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    Some(Answer { status, text })
}

fn a_tap_on_a_report_opens_its_conversation_signed_in(desktop: &Desktop) {
    let phone =
        having_reported("**Alice** asks about [dinner](https://a.example/x):\n\n- at *8*\n- or later");
    phone.program("xdg-open", OPENER);
    let mut command = phone.command();
    command.env_remove("TERMUX_VERSION").env("DBUS_SESSION_BUS_ADDRESS", &desktop.bus.address);
    let daemon = Daemon::start(command.args(["serve", "--port", "0"]));
    wait_for("the report", || desktop.displayed() == 1);
    assert_eq!(phone.log(), "", "nothing is opened before somebody taps");
    desktop.dunstctl(&["action"]).unwrap();
    wait_for("the page to be opened", || phone.log().contains("/login?token="));
    let path = opened(&phone, &daemon);
    // Whoever reads the arguments of programs has the link, and cannot use it, nor use it up.
    if let Some(refused) = by_another_user(&daemon, &path) {
        assert_eq!(refused.status, 403, "{}", refused.text);
        assert!(refused.text.contains("Only the user who runs Kai"), "{}", refused.text);
        assert_eq!(refused.header("set-cookie"), None);
    }
    let answer = daemon.get(&path, "");
    assert_eq!(answer.status, 303, "{}", answer.text);
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let there = answer.header("location").unwrap().to_owned();
    let id = phone.home.run(&["status", "--json"]).json()["heartbeat"]["report"].clone();
    assert_eq!(there, format!("/c/{id}"));
    let page = daemon.get(&there, &cookie);
    assert!(page.status == 200 && page.text.contains("asks about"), "{}", page.text);
    assert_eq!(daemon.get(&path, "").status, 403, "it works once");
    // Who is signed in already gets there too, and no second session.
    assert_eq!(phone.command().args(["open", "heartbeat"]).status().unwrap().code(), Some(0));
    let path = opened(&phone, &daemon);
    let again = daemon.get(&path, &cookie);
    assert_eq!(
        (again.status, again.header("location"), again.header("set-cookie")),
        (303, Some(&*there), None)
    );
    assert_eq!(daemon.get(&path, "").status, 403, "used by the visit");
    let shown = desktop.shown();
    assert_eq!(shown.len(), 1, "{shown:?}");
    let (_, summary, body, _) = &shown[0];
    assert_eq!(summary, "Heartbeat has something to report");
    assert_eq!(body, "Alice asks about dinner:\nat 8\nor later");
}

fn a_tap_without_a_browser_is_only_logged(desktop: &Desktop) {
    let phone = having_reported("Alice asks.");
    phone.program("xdg-open", "exit 3");
    let mut command = phone.command();
    command.env_remove("TERMUX_VERSION").env("DBUS_SESSION_BUS_ADDRESS", &desktop.bus.address);
    let daemon = Daemon::start(command.args(["serve", "--port", "0"]));
    wait_for("the report", || desktop.displayed() == 1);
    desktop.dunstctl(&["action"]).unwrap();
    phone.home.run(&["open"]).refused(1, "The browser could not be opened");
    assert_eq!(daemon.get("/login", "").status, 403, "it lives on");
    drop(daemon);
    phone.home.run(&["open", "heartbeat"]).refused(1, "Kai is not running, so there is no page to open.");
}

/// On a phone the tap runs Kai's own command, long after the notification was shown: the link is made at that moment.
pub(crate) fn a_tap_on_the_phone_opens_the_report_and_the_draft(browser: &Browser) {
    use crate::banners::use_model;
    use crate::phone::NOTE;
    use crate::sms::{ALICE, draft, ready};

    let provider = Provider::start([
        Act::calls("send_sms", &json!({"to": "+15550177", "body": "At eight, then."})),
        Act::says("HEARTBEAT_OK"),
        Act::says("**Alice** [asks](https://a.example/)."),
    ]);
    let phone = ready();
    use_model(&phone, &provider);
    phone.program("termux-notification", NOTE);
    phone.program("termux-open-url", NOTE);
    draft(&phone, ALICE, "Watched while it was made");
    let tapped = |word: &str| {
        wait_for(word, || phone.log().contains(word));
        let log = phone.log();
        let line = log.lines().find(|line| line.contains(word)).unwrap();
        let action = line.split_once("|--action|").unwrap().1;
        // As Termux runs it: nothing of our environment.
        let ran = Command::new("dash").args(["-c", action]).env_clear().output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        line.split_once("|-i|").unwrap().0.to_owned()
    };

    assert_eq!(phone.run(&["heartbeat", "run", "--force"]).out, "Nothing needs your attention.\n");
    let daemon = phone.start();
    let told = tapped("kai-drafts");
    assert_eq!(told, "termux-notification|-t|A draft is waiting for you|-c|To +15550177: At eight, then.");
    let path = opened(&phone, &daemon);
    browser.look(360, 640, false);
    browser.open(&format!("http://{}{path}", daemon.address));
    browser.until_live();
    assert_eq!(browser.run("return location.pathname + location.hash"), "/#draft-2");
    let unfolded = "return [...document.querySelectorAll('.fold')].map((e) => e.open)";
    assert_eq!(browser.run(unfolded), json!([false, true]), "the draft that was told of");
    browser.picture("draft-from-notification");
    // The page is left before its daemon ends.
    browser.open("about:blank");
    drop(daemon);

    assert_eq!(phone.run(&["heartbeat", "run", "--force"]).out, "**Alice** [asks](https://a.example/).\n");
    let daemon = phone.start();
    let told = tapped("kai-heartbeat");
    assert_eq!(told, "termux-notification|-t|Heartbeat has something to report|-c|Alice asks.");
    let location = daemon.get(&opened(&phone, &daemon), "").header("location").unwrap().to_owned();
    assert!(location.starts_with("/c/"), "{location}");
}
