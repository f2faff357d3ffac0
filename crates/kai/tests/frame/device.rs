//! The tools that act on the machine, with a folder of stand-ins first on `PATH`.

use std::time::{Duration, Instant};

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
fn pages_and_allowed_files_are_opened_and_nothing_else() {
    let phone = Phone::new(&["xdg-open"]);
    let opened = phone.call("open_url", &json!({"url": "https://example.org/?q=a b&c=$(id)"}));
    assert_eq!(opened.json()["opened"], "https://example.org/?q=a%20b&c=$(id)", "{opened:?}");
    assert_eq!(phone.log(), "xdg-open|https://example.org/?q=a%20b&c=$(id)\n");

    let home = phone.home.path().canonicalize().unwrap();
    std::fs::create_dir_all(home.join("files")).unwrap();
    std::fs::write(home.join("files/a.html"), "hi").unwrap();
    std::os::unix::fs::symlink(home.join("kai.key"), home.join("files/link.html")).unwrap();
    let at = |name: &str| json!({"url": format!("file://{}/{name}", home.display())});
    assert_eq!(phone.call("open_url", &at("files/a.html")).code, 0);
    assert!(phone.log().ends_with(&format!("xdg-open|{}/files/a.html\n", home.display())));
    let before = phone.log();
    for name in ["kai.key", "files/../kai.key", "files/%2e%2e/kai.key", "files/link.html", "files/none"] {
        phone.refused("open_url", &at(name), "no such file in the folders");
    }
    for url in ["tel:1", "sms:1", "intent:x", "javascript:alert(1)", "data:,x", "mailto:a@b.c", "about:blank"]
    {
        phone.refused("open_url", &json!({ "url": url }), "Only http, https and file");
    }
    phone.refused("open_url", &json!({"url": "--help"}), "must be complete");
    phone.refused("open_url", &json!({}), "must be a string");
    assert_eq!(phone.log(), before, "nothing that was refused was opened");

    let other = Home::new();
    std::fs::write(other.path().join("b.txt"), "hi").unwrap();
    let set = ["settings", "set", "open_url_folders", other.path().to_str().unwrap()];
    assert_eq!(phone.home.run(&set).code, 0);
    assert_eq!(
        phone.call("open_url", &json!({"url": format!("file://{}/b.txt", other.path().display())})).code,
        0
    );
    phone.refused("open_url", &at("files/a.html"), "no such file in the folders");
    phone.home.run(&["settings", "set", "open_url_folders", "../files"]).refused(2, "absolute folders");
    phone.program("xdg-open", "exit 3");
    phone.refused(
        "open_url",
        &json!({"url": "https://example.org"}),
        "could not be opened: xdg-open found no",
    );
}

#[test]
fn an_event_is_a_file_that_is_opened() {
    let phone = Phone::new(&["xdg-open"]);
    let event = json!({
        "title": "Tea; with Ann\nATTENDEE:mailto:eve@example.org", "start_time": "2026-03-09T15:00",
        "location": "Café", "reminder_minutes": 15,
    });
    let made = phone.call("create_calendar_event", &event);
    assert_eq!(made.json()["opened"], true, "{made:?}");
    assert_eq!(made.json()["start"], "2026-03-09T15:00:00+01:00", "a time without offset is local");
    let file = made.json()["file"].as_str().unwrap().to_owned();
    assert_eq!(phone.log(), format!("xdg-open|{file}\n"));
    assert!(file.starts_with(phone.home.path().canonicalize().unwrap().join("files").to_str().unwrap()));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\r\nDTSTART:20260309T140000Z\r\nDTEND:20260309T150000Z\r\n"), "{text}");
    assert!(text.contains("TRIGGER:-PT15M") && !text.contains("\nATTENDEE"), "{text}");
    let private = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).unwrap());
    assert_eq!(private & 0o777, 0o600);
    for (changed, value, word) in [
        ("end_time", json!("2026-03-09T15:00"), "after the start_time"),
        ("start_time", json!("soon"), "must be a date and time"),
        ("start_time", json!(null), "must be a string"),
        ("reminder_minutes", json!(-1), "from 0 to 40320"),
        ("all_day", json!("perhaps"), "true or false"),
        ("title", json!(""), "must not be empty"),
    ] {
        let mut bad = event.clone();
        bad[changed] = value;
        phone.refused("create_calendar_event", &bad, word);
    }
    assert_eq!(std::fs::read_dir(phone.home.path().join("files")).unwrap().count(), 1);
    phone.program("xdg-open", "exit 3");
    let unopened = phone.call(
        "create_calendar_event",
        &json!({"title": "Fair", "start_time": "2026-07-01", "all_day": true}),
    );
    assert_eq!((unopened.code, unopened.json()["opened"].clone()), (0, json!(false)), "{unopened:?}");
    assert_eq!(unopened.json()["end"], "2026-07-02");
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
fn what_the_machine_lacks_is_said_and_not_offered() {
    let (home, empty) = (Home::new(), Home::new());
    let run =
        |args: &[&str]| Done::from(kai(home.path()).env("PATH", empty.path()).args(args).output().unwrap());
    let rows = run(&["tools", "list", "--json"]).json();
    for (name, enabled, available, word) in [
        ("open_url", true, false, "xdg-utils"),
        ("send_notification", true, false, "Termux:API"),
        ("create_calendar_event", true, true, ""),
        ("set_alarm", true, false, "kai serve"),
        ("shell_command", false, false, "is off"),
    ] {
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        assert_eq!((&row["enabled"], &row["available"]), (&json!(enabled), &json!(available)), "{row}");
        assert!(row["why_not"].as_str().unwrap_or_default().contains(word), "{row}");
        if !available {
            assert!(run(&["tools", "call", name, "{}"]).json()["error"].as_str().unwrap().contains(word));
        }
    }
}

#[test]
fn an_alarm_rings_on_time_and_once() {
    let phone = Phone::new(&["termux-notification"]);
    phone.refused("set_alarm", &json!({"duration_seconds": 1}), "none runs. Start it: kai serve");
    let daemon = phone.start();
    phone.refused("set_alarm", &json!({"hour": 7}), "both hour and minutes");
    phone.refused("set_alarm", &json!({"hour": 24, "minutes": 0}), "from 0 to 23");
    phone.refused("set_alarm", &json!({"duration_seconds": 0}), "from 1 to 86400");
    phone.refused("set_alarm", &json!({"hour": 7, "minutes": 0, "duration_seconds": 5}), "but not both");
    phone.refused("set_alarm", &json!({"duration_seconds": "soon"}), "must be an integer");
    let far = phone.call("set_alarm", &json!({"duration_seconds": 86_400}));
    assert_eq!(far.code, 0, "{far:?}");
    for seconds in [2, 1] {
        let label = format!("Tea {seconds}");
        let set = phone.call("set_alarm", &json!({"duration_seconds": seconds, "label": label}));
        let asked = Instant::now();
        assert_eq!(set.code, 0, "{set:?}");
        let log = phone.wait_for(&label);
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(seconds + 10), "rang after {took:?}");
        assert!(log.contains(&format!("-t|{label}|-c|It is ")) && log.contains("--priority|max"), "{log}");
    }
    assert_eq!(daemon.stop("-TERM").0, Some(0), "the daemon does not wait for an alarm that is far away");
    drop(phone.start());
    assert_eq!(phone.log().lines().count(), 2, "{}", phone.log());
}

#[test]
fn an_alarm_missed_while_nobody_was_there_rings_once_at_the_next_start() {
    let phone = Phone::new(&["termux-notification"]);
    let mut daemon = phone.start();
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"})).code, 0);
    daemon.kill();
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(phone.log(), "");
    let mut daemon = phone.start();
    let log = phone.wait_for("Tea");
    assert!(log.contains("This alarm was due at 20"), "{log}");
    daemon.kill();
    let _again = phone.start();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(phone.log().lines().count(), 1, "{}", phone.log());
}

#[test]
fn an_alarm_does_not_ring_twice_though_its_ring_kills_the_daemon() {
    let phone = Phone::new(&[]);
    phone.program("termux-notification", &format!("{NOTE}; kill -9 $PPID"));
    let daemon = phone.start();
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"})).code, 0);
    phone.wait_for("Tea");
    drop(daemon);
    let daemon = phone.start();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(phone.log().lines().count(), 1, "{}", phone.log());
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
fn an_alarm_that_nobody_could_show_is_tried_again() {
    let phone = Phone::new(&[]);
    let flaky = format!("if [ -e \"$LOG.ready\" ]; then {NOTE}; else touch \"$LOG.ready\"; exit 1; fi");
    phone.program("termux-notification", &flaky);
    let _daemon = phone.start();
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"})).code, 0);
    let log = phone.wait_for("Tea");
    assert!(log.contains("This alarm was due at"), "{log}");
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
#[cfg(all(target_os = "linux", feature = "foss"))]
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
