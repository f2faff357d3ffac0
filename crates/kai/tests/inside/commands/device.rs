//! The tools that act on the machine, with stand-ins for its programs.

use std::sync::Arc;

use jiff::SignedDuration;
use kai_assistant::device::alarm::Next;
use kai_bridges::Environment;
use kai_bridges::desktop::XdgOpen;
use kai_bridges::termux::Termux;
use serde_json::{Value, json};

use super::kit::{Done, Home, Programs};
use crate::app::Role;
use crate::machine::Machine;

/// One line per call, the arguments between bars.
const NOTE: &str =
    r#"line=$(basename "$0"); for a in "$@"; do line="$line|$a"; done; echo "$line" >> "$DIR/log""#;

/// A home on a machine with some programs.
struct Phone {
    home: Home,
    programs: Programs,
}

impl Phone {
    fn with_opener() -> Self {
        let programs = Programs::new(&[("xdg-open", NOTE)]);
        let opener = XdgOpen::at(programs.path().join("xdg-open"), Environment::default());
        let machine = Machine { opener: Some(Arc::new(opener)), ..Machine::default() };
        Self { home: Home::on(machine, Role::Command), programs }
    }

    fn with_notifier(script: &str, role: Role) -> Self {
        let programs = Programs::new(&[("termux-notification", script)]);
        let notifier = Termux::in_folder(programs.path().to_owned());
        let machine = Machine { notifier: Some(Arc::new(notifier)), ..Machine::default() };
        Self { home: Home::on(machine, role), programs }
    }

    /// Whose programs are Termux's own.
    fn with_termux() -> Self {
        let names = ["termux-open-url", "termux-open", "termux-notification"];
        let programs = Programs::new(&names.map(|name| (name, NOTE)));
        let termux = Arc::new(Termux::in_folder(programs.path().to_owned()));
        let machine = Machine { opener: Some(termux.clone()), notifier: Some(termux), ..Machine::default() };
        Self { home: Home::on(machine, Role::Command), programs }
    }

    fn call(&self, tool: &str, arguments: &Value) -> Done {
        self.home.run(&["tools", "call", tool, &arguments.to_string()])
    }

    fn refused(&self, tool: &str, arguments: &Value, word: &str) {
        let done = self.call(tool, arguments);
        let said = done.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(done.code == 1 && said.contains(word), "{tool} {arguments}: {done:?}");
    }

    fn log(&self) -> String {
        self.programs.read("log")
    }

    /// What rings when a daemon starts now.
    fn rung(&self) -> Vec<String> {
        let before = self.log().lines().count();
        self.home.wait(async |app| app.ringer.as_ref().unwrap().ring_due(Next::START).await);
        self.log().lines().skip(before).map(str::to_owned).collect()
    }
}

#[test]
fn pages_and_allowed_files_are_opened_and_nothing_else() {
    let phone = Phone::with_opener();
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
        phone.refused("open_url", &json!({ "url": url }), "only http, https and file");
    }
    phone.refused("open_url", &json!({"url": "--help"}), "must be complete");
    phone.refused("open_url", &json!({}), "must be a string");
    assert_eq!(phone.log(), before, "nothing that was refused was opened");

    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("b.txt"), "hi").unwrap();
    let set = ["settings", "set", "open_url_folders", other.path().to_str().unwrap()];
    assert_eq!(phone.home.run(&set).code, 0);
    assert_eq!(
        phone.call("open_url", &json!({"url": format!("file://{}/b.txt", other.path().display())})).code,
        0
    );
    phone.refused("open_url", &at("files/a.html"), "no such file in the folders");
    phone
        .home
        .run(&["settings", "set", "open_url_folders", "../files"])
        .refused(2, "absolute paths of folders");
    phone.programs.write("xdg-open", "exit 3");
    phone.refused(
        "open_url",
        &json!({"url": "https://example.org"}),
        "could not be opened: xdg-open found no",
    );
}

#[test]
fn an_event_is_a_file_that_is_opened() {
    let phone = Phone::with_opener();
    let event = json!({
        "title": "Tea; with Ann\nATTENDEE:mailto:eve@example.org", "start_time": "2026-03-09T15:00",
        "location": "Café", "reminder_minutes": 15,
    });
    let made = phone.call("create_calendar_event", &event);
    assert_eq!(made.json()["opened"], true, "{made:?}");
    assert_eq!(made.json()["start"], "2026-03-09T15:00:00+00:00", "a time without offset is local");
    let file = made.json()["file"].as_str().unwrap().to_owned();
    assert_eq!(phone.log(), format!("xdg-open|{file}\n"));
    assert!(file.starts_with(phone.home.path().canonicalize().unwrap().join("files").to_str().unwrap()));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\r\nDTSTART:20260309T150000Z\r\nDTEND:20260309T160000Z\r\n"), "{text}");
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
    phone.programs.write("xdg-open", "exit 3");
    let unopened = phone.call(
        "create_calendar_event",
        &json!({"title": "Fair", "start_time": "2026-07-01", "all_day": true}),
    );
    assert_eq!((unopened.code, unopened.json()["opened"].clone()), (0, json!(false)), "{unopened:?}");
    assert_eq!(unopened.json()["end"], "2026-07-02");
}

#[test]
fn what_the_machine_lacks_is_said_and_not_offered() {
    let home = Home::new();
    let run = |words: &[&str]| home.run(words);
    let rows = run(&["tools", "list", "--json"]).json();
    for (name, enabled, available, word) in [
        ("open_url", true, false, "xdg-utils"),
        ("send_notification", true, false, "Termux:API"),
        ("create_calendar_event", true, true, ""),
        ("set_alarm", true, false, "Start it first."),
        ("shell_command", false, false, "can’t set one up here"),
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
    let phone = Phone::with_notifier(NOTE, Role::Command);
    phone.refused("set_alarm", &json!({"duration_seconds": 1}), "can’t ring alarms. Start it first.");
    let phone = Phone::with_notifier(NOTE, Role::Daemon);
    phone.refused("set_alarm", &json!({"hour": 7}), "both hour and minutes");
    phone.refused("set_alarm", &json!({"hour": 24, "minutes": 0}), "from 0 to 23");
    phone.refused("set_alarm", &json!({"duration_seconds": 0}), "from 1 to 86400");
    phone.refused("set_alarm", &json!({"hour": 7, "minutes": 0, "duration_seconds": 5}), "but not both");
    phone.refused("set_alarm", &json!({"duration_seconds": "soon"}), "must be an integer");
    for (seconds, label) in [(86_400, "far"), (20, "Tea 20"), (10, "Tea 10")] {
        let set = phone.call("set_alarm", &json!({"duration_seconds": seconds, "label": label}));
        assert_eq!(set.code, 0, "{set:?}");
    }
    assert_eq!(phone.rung(), Vec::<String>::new(), "none is due");
    for label in ["Tea 10", "Tea 20"] {
        phone.home.clock.advance(SignedDuration::from_secs(10));
        let rung = phone.rung();
        assert!(rung[0].contains(&format!("-t|{label}|-c|It is ")), "{rung:?}");
        assert!(rung.len() == 1 && rung[0].contains("--priority|max"), "{rung:?}");
        assert_eq!(phone.rung(), Vec::<String>::new(), "once");
    }
}

#[test]
fn an_alarm_missed_while_nobody_was_there_rings_once_at_the_next_start() {
    let phone = Phone::with_notifier(NOTE, Role::Daemon);
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"})).code, 0);
    phone.home.clock.advance(SignedDuration::from_secs(7));
    let rung = phone.rung();
    assert!(rung.len() == 1 && rung[0].contains("Tea|-c|This alarm was due at 20"), "{rung:?}");
    assert_eq!(phone.rung(), Vec::<String>::new());
}

#[test]
fn an_alarm_that_nobody_could_show_is_tried_again() {
    let flaky = format!("if [ -e \"$DIR/ready\" ]; then {NOTE}; else touch \"$DIR/ready\"; exit 1; fi");
    let phone = Phone::with_notifier(&flaky, Role::Daemon);
    assert_eq!(phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"})).code, 0);
    phone.home.clock.advance(SignedDuration::from_secs(1));
    assert_eq!(phone.rung(), Vec::<String>::new());
    phone.home.clock.advance(SignedDuration::from_secs(10));
    let rung = phone.rung();
    assert!(rung.len() == 1 && rung[0].contains("Tea|-c|This alarm was due at"), "{rung:?}");
}

#[test]
fn in_termux_its_own_programs_are_used() {
    let phone = Phone::with_termux();
    let event = json!({"title": "x", "start_time": "2026-03-09T15:00Z"});
    for (tool, arguments) in [
        ("open_url", json!({"url": "https://example.org"})),
        ("create_calendar_event", event),
        ("send_notification", json!({"message": "$(id) <b>"})),
    ] {
        let done = phone.call(tool, &arguments);
        assert_eq!(done.code, 0, "{tool}: {done:?}");
    }
    let log = phone.log();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], "termux-open-url|https://example.org/");
    assert!(lines[1].starts_with("termux-open|/") && lines[1].contains("/files/event-"), "{log}");
    assert_eq!(lines[2..], ["termux-notification|-t|Kai|-c|$(id) <b>"]);
    phone.programs.write("termux-notification", r#"echo '{"error": "Please grant the permission"}'"#);
    phone.refused("send_notification", &json!({"message": "x"}), "Please grant the permission");
    phone.refused("send_notification", &json!({"message": " "}), "must not be empty");
    phone.refused("send_notification", &json!({"title": "x"}), "must be a string");
}

#[test]
fn alarms_are_listed_and_cancelled() {
    let phone = Phone::with_notifier(NOTE, Role::Daemon);
    let run = |words: &[&str]| phone.home.run(words);
    let none = run(&["alarms", "list"]);
    assert!(none.out.contains("No alarms set."), "{none:?}");
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
    assert_eq!(labels(), ["Cake <b>", ""]);
    assert_eq!(run(&["alarms", "cancel", "1"]).out, "Cancelled alarm 1.\n");
    assert_eq!(labels(), [""]);
}
