//! Reading notifications on a real desktop: notify-send posts, dunst shows, Kai overhears, on a bus of its own.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::{Daemon, Done, Home, kai, wait_for};
use crate::notify::Desktop;

/// A desktop, and a Kai that listens to it.
struct Scene {
    daemon: Option<Daemon>,
    home: Home,
    desktop: Desktop,
}

impl Scene {
    /// A new home on this desktop, whose dunst counts from the beginning.
    fn on(mut desktop: Desktop) -> Self {
        desktop.restart_dunst();
        let home = Home::new();
        // The key is a file before the bus comes in, so that this needs no keyring.
        home.run(&["status"]);
        let mut scene = Self { daemon: None, home, desktop };
        scene.start_kai();
        let on = scene.run(&["settings", "set", "notifications_enabled", "true"]);
        assert_eq!(on.code, 0, "{on:?}");
        scene.wait_until_listening();
        scene
    }

    fn start_kai(&mut self) {
        let mut command = kai(self.home.path());
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.desktop.bus.address);
        self.daemon = Some(Daemon::start(command.args(["serve", "--port", "0"])));
    }

    fn run(&self, args: &[&str]) -> Done {
        self.desktop.bus.run(&self.home, args)
    }

    fn json(&self, args: &[&str]) -> Value {
        let done = self.run(&[&["--json"], args].concat());
        assert_eq!(done.code, 0, "{done:?}");
        done.json()
    }

    fn status(&self) -> Value {
        self.json(&["status"])["notifications"].clone()
    }

    fn wait_until_listening(&self) {
        wait_for("Kai to listen", || self.status()["state"] == "listening");
    }

    /// Posts, and returns the desktop's number of it.
    fn post(&self, args: &[&str]) -> u32 {
        let mut command = Command::new("notify-send");
        command.arg("--print-id").args(args).env("DBUS_SESSION_BUS_ADDRESS", &self.desktop.bus.address);
        let done = command.stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().parse().unwrap()
    }

    /// What waits, as (app, title, preview).
    fn queue(&self) -> Vec<(String, String, String)> {
        let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
        let items = self.json(&["notifications", "list"]);
        let read = |item: &Value| (text(item, "app_label"), text(item, "title"), text(item, "preview"));
        items.as_array().unwrap().iter().map(read).collect()
    }

    fn wait_for(&self, title: &str) {
        wait_for(title, || self.queue().iter().any(|(_, other, _)| other == title));
    }

    fn titles(&self) -> Vec<String> {
        self.queue().into_iter().map(|(_, title, _)| title).collect()
    }
}

#[test]
fn what_other_apps_show_is_heard_as_the_person_allows() {
    let desktop = what_other_apps_show_is_heard_updated_read_searched_and_dismissed(Desktop::start());
    let desktop = what_gtk_and_the_portal_carry_is_heard_too(desktop);
    let desktop = the_switch_is_obeyed_at_once_and_off_is_no_gap(desktop);
    a_sender_that_is_gone_passes_neither_the_list_nor_the_limit(desktop);
}

#[test]
fn no_burst_no_restart_and_no_kill_loses_what_was_heard() {
    let desktop = a_burst_is_heard_whole_and_quickly(Desktop::start());
    let desktop = what_was_heard_survives_a_kill(desktop);
    a_restart_of_dunst_and_of_the_bus_are_survived(desktop);
}

fn what_other_apps_show_is_heard_updated_read_searched_and_dismissed(desktop: Desktop) -> Desktop {
    let scene = Scene::on(desktop);
    let id = scene.post(&[
        "-a",
        "Signal",
        "-h",
        "string:desktop-entry:org.signal.Signal",
        "-c",
        "im.received",
        "Alice",
        "<b>Dinner</b> at 8 &amp; then?",
    ]);
    scene.post(&["--transient", "Volume", "40"]);
    scene.post(&["-h", "int:value:40", "Copying", "40 %"]);
    scene.post(&["-a", "Kai", "Loop", "our own"]);
    scene.post(&["-h", "string:x-kdeconnect-source-device:phone", "Loop", "from the phone"]);
    scene.post(&["Backup", "is done"]);
    scene.wait_for("Backup");
    let queue = scene.queue();
    let expected = [("Signal", "Alice", "Dinner at 8 & then?"), ("notify-send", "Backup", "is done")];
    let expected = expected.map(|(app, title, text)| (app.to_owned(), title.to_owned(), text.to_owned()));
    assert_eq!(queue, expected, "what passes, goes on or goes in circles is left out");

    let listed = scene.json(&["notifications", "list"])[0].clone();
    let key = listed["id"].as_str().unwrap().to_owned();
    assert!(key.starts_with("dbus:") && key.ends_with(&format!(":{id}")), "{key}");
    assert_eq!(listed["package_name"], "org.signal.Signal");
    let whole = scene.json(&["notifications", "read", &key]);
    assert_eq!((&whole["category"], &whole["text"]), (&"msg".into(), &"Dinner at 8 & then?".into()));

    let same = scene.post(&["-r", &id.to_string(), "-a", "Signal", "Alice", "Dinner at 9"]);
    assert_eq!(same, id);
    wait_for("the update", || scene.queue().last().unwrap().2 == "Dinner at 9");
    assert_eq!(scene.titles(), ["Backup", "Alice"], "one record, at the end again");
    let found = scene.json(&["notifications", "search", "DINNER"]);
    assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &key.as_str().into()));

    let call = |tool: &str, arguments: &str| scene.run(&["tools", "call", tool, arguments]);
    let checked = call("check_notifications", "{}").json();
    assert_eq!((&checked["count"], &checked["untrusted"]), (&2.into(), &true.into()));
    let arguments = serde_json::json!({"id": key}).to_string();
    let refused = call("dismiss_notification", &arguments);
    assert!(refused.code == 1 && refused.out.contains("notifications_dismiss_enabled"), "{refused:?}");
    assert_eq!(scene.run(&["settings", "set", "notifications_dismiss_enabled", "true"]).code, 0);
    let shown = scene.desktop.displayed();
    let dismissed = call("dismiss_notification", &arguments);
    assert_eq!(dismissed.code, 0, "{dismissed:?}");
    wait_for("it to be gone", || scene.desktop.displayed() < shown);
    wait_for("Kai to know", || call("dismiss_notification", &arguments).out.contains("gone already"));
    scene.desktop
}

/// Calls with a dictionary, which dbus-send cannot write.
fn gdbus(scene: &Scene, name: &str, path: &str, member: &str, arguments: &[&str]) {
    let mut command = Command::new("gdbus");
    command.args(["call", "--session", "--dest", name, "--object-path", path, "--method"]);
    command.arg(format!("{name}.{member}")).args(arguments);
    // Nobody here owns these names, so the call fails; that it was made is overheard all the same.
    command.env("DBUS_SESSION_BUS_ADDRESS", &scene.desktop.bus.address).output().unwrap();
}

fn what_gtk_and_the_portal_carry_is_heard_too(desktop: Desktop) -> Desktop {
    let scene = Scene::on(desktop);
    let fields = "{'title': <'Backup'>, 'body': <'a < b'>}";
    let gtk = ("org.gtk.Notifications", "/org/gtk/Notifications");
    gdbus(&scene, gtk.0, gtk.1, "AddNotification", &["org.app.X", "done", fields]);
    scene.wait_for("Backup");
    let listed = scene.json(&["notifications", "list"])[0].clone();
    assert_eq!((&listed["id"], &listed["preview"]), (&"gtk:org.app.X:done".into(), &"a < b".into()));
    let portal = ("org.freedesktop.portal.Notification", "/org/freedesktop/portal/desktop");
    gdbus(&scene, portal.0, portal.1, "AddNotification", &["mail", "{'title': <'Mail'>, 'body': <'new'>}"]);
    scene.wait_for("Mail");
    let listed = scene.json(&["notifications", "list"])[1].clone();
    // Who called is asked at once, and gdbus may be gone already.
    assert!(listed["id"].as_str().unwrap().ends_with(":mail"), "{listed}");
    scene.desktop
}

fn a_burst_is_heard_whole_and_quickly(desktop: Desktop) -> Desktop {
    let scene = Scene::on(desktop);
    let began = Instant::now();
    // Five at a time: beyond ten, dunst lets some of them wait for ten seconds.
    let script = r#"for n in $(seq 100); do
        notify-send -h "string:desktop-entry:app$0.$((n % 4))" "Post $0 $n" text || exit 1
    done"#;
    let apps: Vec<_> = (0..5)
        .map(|app| {
            let mut command = Command::new("sh");
            command.args(["-c", script, &app.to_string()]);
            command.env("DBUS_SESSION_BUS_ADDRESS", &scene.desktop.bus.address).spawn().unwrap()
        })
        .collect();
    for mut app in apps {
        assert!(app.wait().unwrap().success());
    }
    let posted = began.elapsed();
    wait_for("all of them", || scene.status()["kept"] == 500);
    let heard = began.elapsed();
    assert!(heard < posted + Duration::from_secs(10), "posted in {posted:?}, heard after {heard:?}");
    let status = scene.status();
    assert_eq!((&status["queued"], &status["dropped"]), (&100.into(), &400.into()));
    let all = scene.json(&["notifications", "list", "--all"]);
    let mut titles: Vec<&str> =
        all.as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    titles.dedup();
    assert_eq!(titles.len(), 500);
    let cleared = scene.json(&["notifications", "clear"]);
    assert_eq!((cleared, scene.titles().len()), (serde_json::json!({"cleared": 100}), 0));
    scene.desktop
}

fn a_restart_of_dunst_and_of_the_bus_are_survived(desktop: Desktop) -> Desktop {
    let mut scene = Scene::on(desktop);
    let first = scene.post(&["Before", "x"]);
    scene.wait_for("Before");
    scene.desktop.restart_dunst();
    let second = scene.post(&["Between", "x"]);
    assert_eq!(first, second, "dunst counts from the beginning");
    scene.wait_for("Between");
    assert_eq!(scene.titles(), ["Before", "Between"], "the same number is not the same notification");
    assert_eq!(scene.status()["gaps"].as_array().unwrap().len(), 0, "everything was heard");

    scene.desktop.bus.restart();
    scene.desktop.restart_dunst();
    scene.wait_until_listening();
    let third = scene.post(&["After", "x"]);
    assert_eq!(first, third);
    scene.wait_for("After");
    assert_eq!(scene.titles(), ["Before", "Between", "After"]);
    let gaps = scene.status()["gaps"].clone();
    assert_eq!(gaps.as_array().unwrap().len(), 1, "{gaps}");
    assert!(gaps[0]["ended"].is_i64() && gaps[0]["why"].as_str().unwrap().contains("bus"), "{gaps}");
    scene.desktop
}

/// Epoch milliseconds.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn what_was_heard_survives_a_kill(desktop: Desktop) -> Desktop {
    let mut scene = Scene::on(desktop);
    let mut died = vec![];
    for round in 0..5 {
        for n in 0..10 {
            scene.post(&[&format!("Round {round} post {n}"), "x"]);
        }
        // The last one is there, so all before it were written.
        scene.wait_for(&format!("Round {round} post 9"));
        scene.daemon.take().unwrap().kill();
        died.push(now());
        scene.start_kai();
        scene.wait_until_listening();
        let titles = scene.titles();
        assert_eq!(titles.len(), (round + 1) * 10, "{titles:?}");
    }
    let gaps = scene.status()["gaps"].clone();
    assert_eq!(gaps.as_array().unwrap().len(), 5, "{gaps}");
    assert_eq!(gaps[0]["why"], "Kai was not running");
    for (gap, died) in gaps.as_array().unwrap().iter().zip(died) {
        let (began, ended) = (gap["began"].as_i64().unwrap(), gap["ended"].as_i64().unwrap());
        assert!(began <= died && died <= ended, "killed at {died}: {gap}");
    }
    let damage = scene.run(&["doctor"]);
    assert!(damage.out.contains("opens and is intact"), "{damage:?}");
    scene.desktop
}

impl Scene {
    /// Posts while Kai stands still, so that every sender is gone before Kai can ask who it was.
    fn post_unheard(&self, posts: usize, args: &[&str]) {
        let signal = |signal: &str| {
            let pid = self.daemon.as_ref().unwrap().pid().to_string();
            assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        };
        signal("-STOP");
        for n in 0..posts {
            self.post(&[args, &[&format!("Post {n}"), "x"]].concat());
        }
        signal("-CONT");
    }

    /// Everything before this is heard when it is: one that names its desktop file is known, sender or not.
    fn mark(&self, title: &str) {
        self.post(&["-h", "string:desktop-entry:org.mark", title, "x"]);
        self.wait_for(title);
    }
}

/// Whoever posts and is gone is still who it was: the list holds, and so does the limit per app.
fn a_sender_that_is_gone_passes_neither_the_list_nor_the_limit(desktop: Desktop) -> Desktop {
    let scene = Scene::on(desktop);
    let packages = || {
        let all = scene.json(&["notifications", "list", "--all"]);
        let mut counts = std::collections::BTreeMap::new();
        for item in all.as_array().unwrap() {
            *counts.entry(item["package_name"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
        counts
    };
    // Seen once while it was there: under its own name it is found again.
    scene.post(&["-a", "Chatty", "First", "x"]);
    scene.wait_for("First");
    let program = packages().into_keys().next().unwrap();
    scene.post_unheard(60, &["-a", "Chatty"]);
    scene.mark("limit");
    assert_eq!(packages(), [(program.clone(), 50), ("org.mark".to_owned(), 1)].into(), "one app, one limit");

    assert_eq!(scene.run(&["settings", "set", "notifications_ignored", &program]).code, 0);
    scene.json(&["notifications", "clear"]);
    scene.post(&["-a", "Chatty", "Known", "x"]);
    scene.post_unheard(30, &["-a", "Chatty"]);
    scene.post_unheard(30, &["-a", "Never heard of"]);
    scene.mark("list");
    assert_eq!(scene.titles(), ["list"], "nothing of an app that is left alone");
    scene.desktop
}

fn the_switch_is_obeyed_at_once_and_off_is_no_gap(desktop: Desktop) -> Desktop {
    let scene = Scene::on(desktop);
    assert_eq!(scene.run(&["settings", "set", "notifications_ignored", "org.noisy"]).code, 0);
    scene.post(&["-h", "string:desktop-entry:org.noisy", "Ignored", "x"]);
    scene.post(&["Heard", "x"]);
    scene.wait_for("Heard");
    assert_eq!(scene.run(&["settings", "set", "notifications_enabled", "false"]).code, 0);
    scene.post(&["Unheard", "x"]);
    assert_eq!(scene.run(&["settings", "set", "notifications_enabled", "true"]).code, 0);
    scene.wait_until_listening();
    // Kai may still be letting go of the bus from before, so it is posted until it is heard. It is one notification.
    let id = scene.post(&["Again", "x"]).to_string();
    wait_for("Again", || {
        let is_heard = scene.titles().iter().any(|title| title == "Again");
        if !is_heard {
            scene.post(&["-r", &id, "Again", "x"]);
        }
        is_heard
    });
    assert_eq!(scene.titles(), ["Heard", "Again"]);
    let status = scene.status();
    assert_eq!((&status["gaps"], &status["bridge"]), (&serde_json::json!([]), &"desktop".into()));
    assert_eq!((&status["access"], &status["enabled"]), (&"granted".into(), &true.into()));
    let said = scene.run(&["status"]).out;
    assert!(said.contains("Listener active (bridge: desktop), 2 queued"), "{said}");
    let refreshed = scene.json(&["notifications", "refresh"]);
    assert_eq!(refreshed["state"], "listening");
    scene.desktop
}
