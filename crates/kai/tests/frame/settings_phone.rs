//! The agent page with a phone: SMS and notifications as Termux has them, and the demo for all eyes.

use std::time::Duration;

use serde_json::json;

use crate::banners::use_model;
use crate::browser::Browser;
use crate::kit::{Daemon, Home, kai, wait_for};
use crate::page::check;
use crate::phone::Phone;
use crate::provider::{Act, Provider};
use crate::settings::{HOSTILE, RIGHT, offered};
use crate::sms::{ALICE, draft, ready};

const DENIED: &str = r#"case "$*" in *--help*) exit 1;; esac
echo '{"error": "Please grant the following permissions to use this command: android.permission.READ_SMS"}'"#;

fn get(phone: &Phone, key: &str) -> String {
    phone.run(&["settings", "get", key]).out.trim().to_owned()
}

/// What `termux-sms-list` is when it works.
fn allow(phone: &Phone) {
    phone.program("termux-sms-list", r#"case "$*" in *--help*) exit 1;; *) cat "$DIR/inbox.json";; esac"#);
}

#[test]
fn both_halves_of_sms_are_turned_alone_and_take_effect() {
    let provider = Provider::start(std::iter::repeat_n(Act::says("Yes."), 4));
    let phone = Phone::with_sms();
    use_model(&phone, &provider);
    phone.run(&["settings", "set", "heartbeat_enabled", "false"]);
    phone.inbox(&[(41, ALICE, "before")]);
    let daemon = phone.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    for (testid, on, key, check, send, reply) in [
        ("sms-read-toggle", true, "sms_enabled", true, false, false),
        ("sms-send-toggle", true, "sms_send_enabled", true, true, true),
        ("sms-read-toggle", false, "sms_enabled", false, true, false),
        ("sms-send-toggle", false, "sms_send_enabled", false, false, false),
    ] {
        browser.agent(&daemon);
        browser.turn(testid, on);
        assert_eq!(get(&phone, key), on.to_string());
        assert_eq!(phone.run(&["ask", "Hello"]).code, 0);
        let offered = offered(&provider);
        let has = |tool: &str| offered.iter().any(|offered| offered == tool);
        assert_eq!((has("check_sms"), has("send_sms"), has("reply_sms")), (check, send, reply), "{testid}");
    }
    browser.turn("sms-read-toggle", true);
    assert_eq!(phone.run(&["status", "--json"]).json()["sms"]["lastSeenId"], 41, "seeded at once");
    browser.until_text("sms-queued", "0 queued for the next heartbeat");
    browser.until_text("sms-status", "Last successful poll just now");
    // The slider's stops, with the keyboard.
    browser.run("document.querySelector('[data-testid=sms-interval]').focus()");
    browser.press(RIGHT);
    wait_for("the interval", || get(&phone, "sms_poll_interval") == "30");
    browser.run("document.querySelector('[data-testid=sms-interval]').value = 0");
    browser.press("\u{e011}");
    let stops = browser.run("return document.querySelector('[data-testid=sms-interval]').dataset.stops");
    assert_eq!(stops, "Never|5m|15m|30m|60m");
    browser.fine();
}

#[test]
fn a_denied_permission_leaves_it_off() {
    let phone = Phone::with_sms();
    phone.program("termux-sms-list", DENIED);
    let daemon = phone.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    browser.click("sms-read-toggle");
    browser.until_says("Reading SMS stays off.");
    browser.until_says("Permission not granted");
    browser.until_switched("sms-read-toggle", false);
    assert_eq!(get(&phone, "sms_enabled"), "false");
    assert!(browser.texts("sms-grant").is_empty() && browser.texts("sms-refresh").is_empty());
    check(&browser, "denied");
    // The same without a script: the page comes back with the sentence in its card.
    let cookie = phone.run(&["link"]).out.trim().split_once(&daemon.address).unwrap().1.to_owned();
    let cookie = daemon.get(&cookie, "").header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let csrf = daemon.get("/settings/agent", &cookie).csrf();
    let body = format!("csrf={csrf}&page=agent&card=sms&key=sms_enabled&value=true");
    let refused = daemon.send("POST", "/settings/set", &[("Cookie", &cookie)], &body);
    assert_eq!(refused.status, 409);
    let (_, card) = refused.text.split_once("data-testid=\"sms-card\"").unwrap();
    assert!(card.split_once("</section>").unwrap().0.contains("Reading SMS stays off."));
    browser.fine();
}

#[test]
fn polls_are_seen_as_they_happen_and_a_lost_permission_is_granted_again() {
    let phone = ready();
    let daemon = phone.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    browser.until_text("sms-queued", "0 queued for the next heartbeat");
    // Polled elsewhere, seen here.
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    phone.run(&["sms", "poll"]);
    browser.until_text("sms-queued", "1 queued for the next heartbeat");
    // A slow phone: the icon turns, and the page goes on.
    let slow = r#"case "$*" in *--help*) exit 1;; *) sleep 2; cat "$DIR/inbox.json";; esac"#;
    phone.program("termux-sms-list", slow);
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?"), (43, ALICE, "At eight?")]);
    let name = "return document.querySelector('[data-testid=sms-refresh]').ariaLabel";
    assert_eq!(browser.run(name), "Refresh now");
    browser.click("sms-refresh");
    let turns = "document.querySelector('form.turning [data-testid=sms-refresh]')";
    browser.until("it to turn", &format!("return !!{turns}"));
    let animation = browser.run(&format!("return {turns}.querySelector('svg').getAnimations().length"));
    assert_eq!(animation, 1);
    browser.until("it to stop", &format!("return !{turns}"));
    browser.until_text("sms-queued", "2 queued for the next heartbeat");
    // What a phone says is text.
    let failing = format!("case \"$*\" in *--help*) exit 1;; esac; echo '{HOSTILE}' >&2; exit 1");
    phone.program("termux-sms-list", &failing);
    browser.click("sms-refresh");
    browser.until_text("sms-status", "Last poll failed just now");
    assert!(browser.texts("sms-error")[0].contains(HOSTILE), "{:?}", browser.texts("sms-error"));
    let colour = "return getComputedStyle(document.querySelector('[data-testid=sms-error]')).color ===
                  getComputedStyle(document.querySelector('.told')).color";
    assert_eq!(browser.run(colour), true, "the colour of errors");
    check(&browser, "a failed poll");
    // Taken away, and given again.
    phone.program("termux-sms-list", DENIED);
    browser.click("sms-refresh");
    browser.until_seen("sms-grant");
    browser.until_text("sms-error", "Permission not granted");
    browser.until_switched("sms-read-toggle", true);
    browser.click("sms-grant");
    browser.until_says("SMS and Contacts");
    allow(&phone);
    browser.click("sms-grant");
    browser.until_gone("sms-grant");
    browser.until_text("sms-status", "Last successful poll just now");
    assert_eq!(get(&phone, "sms_enabled"), "true");
    // What was dropped is counted.
    let many: Vec<(i64, &str, &str)> = (41..150).map(|id| (id, ALICE, "more")).collect();
    phone.inbox(&many);
    (0..3).for_each(|_| drop(phone.run(&["sms", "poll"])));
    browser.until_text("sms-queued", "100 queued for the next heartbeat");
    browser.until_text("sms-dropped", "8 older messages were dropped");
    browser.fine();
}

#[test]
fn a_phone_that_does_not_let_us_send_is_said() {
    let phone = ready();
    let refusal = r#"cat > /dev/null; echo '{"error": "Please grant the following permissions: SEND_SMS"}'"#;
    phone.program("termux-sms-send", refusal);
    draft(&phone, ALICE, "Hi");
    let daemon = phone.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.click("draft-send");
    browser.until_seen("draft-retry");
    browser.agent(&daemon);
    browser.until_seen("sms-send-grant");
    browser.until_switched("sms-send-toggle", true);
    browser.click("sms-send-grant");
    browser.until_gone("sms-send-grant");
    browser.until_says("The phone asks when you tap Send the next time.");
    browser.fine();
}

#[cfg(feature = "foss")]
#[test]
fn notifications_wait_for_access_and_tell_how_they_stand() {
    let provider = Provider::start(std::iter::repeat_n(Act::says("Yes."), 3));
    let phone = Phone::new(&[]);
    use_model(&phone, &provider);
    phone.run(&["settings", "set", "heartbeat_enabled", "false"]);
    phone.program("termux-notification-list", r#"cat "$DIR/tray" 2> /dev/null || exit 0"#);
    let tray = |entries: &str| std::fs::write(phone.programs.path().join("tray"), entries).unwrap();
    let daemon = phone.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    assert!(browser.texts("sms-card").is_empty(), "this phone has none");
    browser.click("notifications-toggle");
    browser.until_text("notifications-status", "Waiting for access …");
    browser.until_seen("notifications-hint");
    browser.until_seen("notifications-access");
    browser.until_switched("notifications-toggle", false);
    assert_eq!(get(&phone, "notifications_enabled"), "false");
    check(&browser, "waiting");
    // Back without access: off, with a hint.
    browser.click("notifications-refresh");
    browser.until_gone("notifications-refresh");
    assert_eq!(browser.texts("notifications-hint").len(), 1);
    browser.click("notifications-toggle");
    browser.until_seen("notifications-refresh");
    tray("[]");
    browser.click("notifications-refresh");
    browser.until_switched("notifications-toggle", true);
    browser.until_text("notifications-status", "Listener active");
    assert!(browser.texts("notifications-hint").is_empty());
    assert_eq!(phone.run(&["ask", "Hello"]).code, 0);
    let has = |tool: &str| offered(&provider).iter().any(|offered| offered == tool);
    assert!(has("check_notifications") && !has("dismiss_notification"));
    browser.turn("notifications-dismiss-toggle", true);
    browser.turn("code-redaction-toggle", false);
    assert_eq!(get(&phone, "code_redaction_enabled"), "false");
    assert_eq!(phone.run(&["ask", "Hello"]).code, 0);
    assert!(has("dismiss_notification"));
    // Something arrives, and is cleared.
    let post = json!([{"key": "1", "packageName": "org.noisy", "title": HOSTILE, "content": HOSTILE}]);
    tray(&post.to_string());
    phone.run(&["notifications", "refresh"]);
    browser.until_text("notifications-queued", "1 queued for the next heartbeat");
    browser.click("notifications-manage");
    browser.until_seen("app-toggle");
    browser.turn("app-toggle", false);
    assert_eq!(get(&phone, "notifications_ignored"), "org.noisy");
    browser.type_into("app-ignored", "org.Other");
    browser.click("app-ignore");
    wait_for("the second", || get(&phone, "notifications_ignored") == "org.noisy,org.Other");
    browser.click("notifications-clear");
    browser.until_text("notifications-queued", "0 queued for the next heartbeat");
    // Access that is taken away later: it stays on, and says what is wrong.
    tray("");
    phone.run(&["notifications", "refresh"]);
    browser.until_text("notifications-status", "Listener inactive — check notification access");
    browser.until_seen("notifications-access");
    browser.until_seen("notifications-gaps");
    browser.until_switched("notifications-toggle", true);
    browser.turn("notifications-toggle", false);
    assert_eq!(get(&phone, "notifications_enabled"), "false");
    assert_eq!(phone.run(&["ask", "Hello"]).code, 0);
    assert!(!has("check_notifications"));
    browser.fine();
}

#[test]
fn the_agent_page_is_right_for_all_eyes_and_light() {
    let home = Home::new();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    let demo = home.path().join("demo");
    for (tool, arguments) in [
        ("memory_store", json!({"key": "Grandma’s birthday", "content": "March 12. She likes tulips."})),
        ("memory_store", json!({"key": "Tea", "content": "Green, and never after six."})),
        (
            "schedule_task",
            json!({"description": "Weekly review", "prompt": "Say what is open this week.", "cron": "0 9 * * 1"}),
        ),
    ] {
        let done = kai(&demo).args(["tools", "call", tool, &arguments.to_string()]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    let browser = Browser::start();
    browser.look(1280, 800, false);
    browser.enter(&daemon);
    browser.until_seen("heartbeat-banner");
    browser.agent(&daemon);
    browser.until_says("Reported something");
    let bytes = browser.run(
        "const parts = [location.href, document.querySelector('[rel=stylesheet]').href, document.scripts[0].src];
         return Promise.all(parts.map(p => fetch(p).then(r => r.arrayBuffer()))).then(b => b.reduce((n, b) => n + b.byteLength, 0))",
    );
    assert!(bytes.as_u64().unwrap() <= 64_000, "{bytes} bytes");
    for (name, width, height) in [("phone", 360, 740), ("tablet", 768, 900), ("desktop", 1280, 800)] {
        for (look, dark) in [("light", false), ("dark", true)] {
            browser.look(width, height, dark);
            std::thread::sleep(Duration::from_millis(300));
            check(&browser, &format!("agent on a {name}, {look}"));
            browser.picture(&format!("agent-{name}-{look}"));
        }
    }
    browser.fine();
}

#[test]
fn what_is_kept_of_a_source_that_is_off_is_erased_in_two_taps() {
    let phone = ready();
    phone.program("termux-notification-list", "echo '[]'");
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    phone.run(&["sms", "poll"]);
    let daemon = phone.start();
    phone.run(&["settings", "set", "notifications_enabled", "true"]);
    wait_for("the listener", || {
        phone.run(&["status", "--json"]).json()["notifications"]["state"] == "listening"
    });
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    assert!(browser.texts("sms-kept").is_empty() && browser.texts("notifications-kept").is_empty());
    for (card, toggle) in [("sms", "sms-read-toggle"), ("notifications", "notifications-toggle")] {
        browser.turn(toggle, false);
        browser.until_seen(&format!("{card}-kept"));
        browser.click(&format!("{card}-erase-ask"));
        browser.until_seen(&format!("{card}-erase"));
        check(&browser, "about to erase");
        browser.picture(&format!("erase-{card}"));
        browser.click(&format!("{card}-keep"));
        browser.until_gone(&format!("{card}-erase"));
        browser.click(&format!("{card}-erase-ask"));
        browser.until_seen(&format!("{card}-erase"));
        browser.click(&format!("{card}-erase"));
        browser.until_gone(&format!("{card}-kept"));
    }
    let status = phone.run(&["status", "--json"]).json();
    assert_eq!((&status["sms"]["queued"], &status["sms"]["lastSeenId"]), (&json!(0), &json!(null)));
    assert_eq!(status["notifications"]["lastSyncEpochMs"], json!(null), "{status}");
    browser.fine();
}
