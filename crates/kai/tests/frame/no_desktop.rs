//! A machine without a desktop, and a session bus on which nobody offers anything.

use serde_json::Value;

use crate::bus::Bus;
use crate::kit::Home;

#[test]
fn without_a_desktop_what_is_missing_is_said() {
    without_a_bus_notifications_stay_off_and_say_why();
    let (bus, home) = (Bus::start(), Home::new());
    assert_eq!(bus.run(&home, &["settings", "list"]).code, 0);
    let status = bus.run(&home, &["status", "--json"]).json();
    assert_eq!(status["key"], "file", "a bus without a keyring means a key file");
    let refused = bus.run(&home, &["tools", "call", "send_notification", r#"{"message": "x"}"#]);
    assert!(refused.code == 1 && refused.out.contains("the desktop shows none now"), "{refused:?}");
    notifications_wait_for_a_bus_that_is_gone(bus, &home);
}

fn without_a_bus_notifications_stay_off_and_say_why() {
    let home = Home::new();
    let refused = home.run(&["settings", "set", "notifications_enabled", "true"]);
    refused.refused(1, "neither a desktop’s session bus nor Termux:API");
    let status = home.run(&["--json", "status"]).json()["notifications"].clone();
    assert_eq!((&status["supported"], &status["enabled"]), (&false.into(), &false.into()));
    let tools = home.run(&["--json", "tools", "list"]).json();
    let check = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "check_notifications").unwrap();
    assert_eq!(check["available"], false);
    let listed = home.run(&["notifications", "list"]);
    assert!(listed.code == 0 && listed.out.contains("neither a desktop’s session bus"), "{listed:?}");
    assert_eq!(home.run(&["--json", "notifications", "list"]).out, "[]\n");
}

fn notifications_wait_for_a_bus_that_is_gone(mut bus: Bus, home: &Home) {
    bus.stop();
    let waits = bus.run(home, &["settings", "set", "notifications_enabled", "true"]);
    waits.refused(1, "Kai is waiting for access to notifications.");
    let state = |bus: &Bus| bus.run(home, &["--json", "status"]).json()["notifications"].clone();
    assert_eq!((&state(&bus)["state"], &state(&bus)["enabled"]), (&"waiting".into(), &false.into()));
    let listed = |bus: &Bus| bus.run(home, &["notifications", "list"]).out;
    assert!(
        listed(&bus).starts_with("No notifications are waiting. Notifications: waiting for access"),
        "{}",
        listed(&bus)
    );
    let back = bus.run(home, &["--json", "notifications", "refresh"]).json();
    assert_eq!(back["state"], "off");
    assert!(back["hint"].as_str().unwrap().contains("session bus"), "{back}");
    assert!(
        listed(&bus).ends_with("To enable this: kai settings set notifications_enabled true\n"),
        "{}",
        listed(&bus)
    );
    bus.restart();
    let on = bus.run(home, &["settings", "set", "notifications_enabled", "true"]);
    assert_eq!(on.code, 0, "{on:?}");
    assert_eq!(state(&bus)["hint"], Value::Null);
    assert!(listed(&bus).contains("Kai reads them only while it is running"), "{}", listed(&bus));
}
