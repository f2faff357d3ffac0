//! The page of a Kai with a phone: SMS and notifications on `/settings/agent`, and cards that open something.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kai_assistant::db::DbError;
use kai_assistant::notifications::{Source, toggle};
use kai_assistant::phones::store::NewPhone;
use kai_assistant::phones::{self, SourceId};
use kai_bridges::simulated::Tray;
use kai_bridges::termux::Termux;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::agent::HOSTILE;
use super::german::assert_german;
use super::house::House;
use super::model::{Act, Model};
use crate::machine::Machine;
use crate::machine::messages::{Messages, PhoneParts};

pub(super) const ALICE: &str = "+15550100";
const AGENT: &str = "/settings/agent";
const LIST: &str =
    r#"case "$*" in *--help*) exit 1;; *'-t sent'*) echo '[]';; *) cat "$DIR/inbox.json";; esac"#;
/// Notes the number and, byte for byte, the text.
const SEND: &str = r#"text=$(cat; echo x); printf '%s|%s\n' "$2" "${text%x}" >> "$DIR/left""#;
const NOTE: &str = r#"echo "$@" >> "$DIR/noted""#;
const DENIED: &str = r#"case "$*" in *--help*) exit 1;; esac
echo '{"error": "Please grant the following permissions to use this command: android.permission.READ_SMS"}'"#;

/// Termux as far as Kai sees it: a folder of programs.
pub(super) struct Phone(TempDir);

impl Phone {
    /// One that has these programs, which note how they were called.
    fn new(programs: &[&str]) -> Self {
        let phone = Self(TempDir::new().unwrap());
        for name in programs {
            phone.program(name, NOTE);
        }
        phone
    }

    /// One with SMS, and nothing in its inbox.
    fn with_sms() -> Self {
        let phone = Self::new(&[]);
        phone.program("termux-sms-list", LIST);
        phone.program("termux-sms-send", SEND);
        phone.inbox(&[]);
        phone
    }

    /// Written by another process, so that no fork of a neighbouring test holds it open when it is started.
    pub(super) fn program(&self, name: &str, script: &str) {
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(self.0.path().join(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let text = format!("#!/bin/sh\nDIR='{}'\n{script}\n", self.0.path().display());
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }

    pub(super) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    /// What lies in the inbox: id, sender, text; received in that order, a second apart.
    pub(super) fn inbox(&self, messages: &[(i64, &str, &str)]) {
        let row = |(n, (id, from, text)): (usize, &(i64, &str, &str))| {
            json!({"_id": id, "type": "inbox", "read": false, "address": from, "number": from, "threadid": 1,
                   "received": format!("2026-03-09 12:{:02}:{:02}", n / 60, n % 60), "body": text})
        };
        let rows: Vec<Value> = messages.iter().enumerate().map(row).collect();
        self.file("inbox.json", &Value::from(rows).to_string());
    }

    /// What `termux-sms-send` was given: `number|text` and a line end each.
    pub(super) fn left(&self) -> String {
        std::fs::read_to_string(self.0.path().join("left")).unwrap_or_default()
    }

    /// A house on this phone, with whatever programs it has.
    pub(super) fn house(&self) -> House {
        House::on(|clock| {
            let termux = Arc::new(Termux::in_folder(self.0.path().to_owned()).with_clock(clock));
            let has = |program: &str| self.0.path().join(program).is_file();
            Machine {
                opener: has("termux-open-url").then(|| termux.clone() as _),
                notifier: has("termux-notification").then(|| termux.clone() as _),
                messages: Messages {
                    notifications: has("termux-notification-list")
                        .then(|| Arc::new(Source::new(Arc::clone(&termux) as _))),
                    phone: has("termux-sms-list").then(|| PhoneParts {
                        bridge: "termux",
                        reader: termux.clone(),
                        sender: termux.clone(),
                    }),
                    ..Messages::default()
                },
                ..Machine::default()
            }
        })
    }
}

/// A phone that reads and drafts, with one message that was there before.
pub(super) fn ready() -> (Phone, House) {
    let phone = Phone::with_sms();
    let house = turned_on(&phone);
    (phone, house)
}

#[test]
fn with_sms_kai_suggests_to_look_after_them() {
    let (_phone, house) = ready();
    house.use_model(&Model::start([Act::says("x")]));
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.texts("idea")[0], "Did anything need an answer today?");
    house.set("language", "de");
    visitor.reload();
    assert_eq!(visitor.texts("idea")[0], "Muss ich heute noch etwas beantworten?");
    house.set("sms_enabled", "false");
    visitor.reload();
    assert!(!visitor.says("Muss ich heute noch etwas beantworten?"));
}

fn turned_on(phone: &Phone) -> House {
    phone.inbox(&[(41, ALICE, "before")]);
    let house = phone.house();
    house.set("sms_enabled", "true");
    house.set("sms_send_enabled", "true");
    house
}

pub(super) fn poll(house: &House) {
    house.run("sms", &json!("poll"));
}

pub(super) fn draft(house: &House, to: &str, body: &str) -> i64 {
    house.tool("send_sms", &json!({"to": to, "body": body}))["draft_id"].as_i64().unwrap()
}

#[test]
fn both_halves_of_sms_are_turned_alone_and_take_effect() {
    let model = Model::start([Act::says("Yes.")]);
    let phone = Phone::with_sms();
    phone.inbox(&[(41, ALICE, "before")]);
    let house = phone.house();
    house.use_model(&model);
    let mut visitor = house.visitor(AGENT);
    for (testid, on, key, check, send, reply) in [
        ("sms-read-toggle", true, "sms_enabled", true, false, false),
        ("sms-send-toggle", true, "sms_send_enabled", true, true, true),
        ("sms-read-toggle", false, "sms_enabled", false, true, false),
        ("sms-send-toggle", false, "sms_send_enabled", false, false, false),
    ] {
        visitor.press(testid);
        visitor.until_on(testid, on);
        assert_eq!(house.get_setting(key), on.to_string());
        house.ask("Hello");
        let offered = model.offered();
        let has = |tool: &str| offered.iter().any(|offered| offered == tool);
        assert_eq!((has("check_sms"), has("send_sms"), has("reply_sms")), (check, send, reply), "{testid}");
    }
    visitor.press("sms-read-toggle");
    visitor.until_on("sms-read-toggle", true);
    assert_eq!(house.show("status")["sms"]["lastSeenId"], 41, "seeded at once");
    assert_eq!(visitor.texts("sms-queued"), ["0 queued for the next heartbeat"]);
    assert_eq!(visitor.texts("sms-status"), ["Last successful poll just now"]);
    assert_eq!(visitor.attributes("sms-interval", "data-stops"), ["Never|5m|15m|30m|60m"]);
    assert_eq!(visitor.post("/settings/set", "page=agent&card=sms&key=sms_poll_interval&stop=3").status, 303);
    assert_eq!(house.get_setting("sms_poll_interval"), "30");
}

#[test]
fn a_denied_permission_leaves_it_off() {
    let phone = Phone::with_sms();
    phone.program("termux-sms-list", DENIED);
    let house = phone.house();
    let mut visitor = house.visitor(AGENT);
    visitor.press("sms-read-toggle");
    // The page comes back with the sentence in its card.
    assert_eq!(visitor.answer.status, 409);
    let card = visitor.texts("sms-card")[0];
    assert!(card.contains("Reading SMS stays off.") && card.contains("Permission not granted"), "{card}");
    assert!(!visitor.is_on("sms-read-toggle"));
    assert_eq!(house.get_setting("sms_enabled"), "false");
    assert!(!visitor.has("sms-grant") && !visitor.has("sms-refresh"));
}

#[test]
fn polls_are_seen_as_they_happen_and_a_lost_permission_is_granted_again() {
    let (phone, house) = ready();
    let mut visitor = house.visitor(AGENT);
    assert_eq!(visitor.texts("sms-queued"), ["0 queued for the next heartbeat"]);
    // Polled elsewhere, seen here.
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    poll(&house);
    visitor.until_text("sms-queued", "1 queued for the next heartbeat");
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?"), (43, ALICE, "At eight?")]);
    assert_eq!(visitor.attributes("sms-refresh", "aria-label"), ["Refresh now"]);
    visitor.press("sms-refresh");
    visitor.until_text("sms-queued", "2 queued for the next heartbeat");
    // What a phone says is text.
    let failing = format!("case \"$*\" in *--help*) exit 1;; esac; echo '{HOSTILE}' >&2; exit 1");
    phone.program("termux-sms-list", &failing);
    visitor.press("sms-refresh");
    visitor.until_text("sms-status", "Last poll failed just now");
    assert!(visitor.texts("sms-error")[0].contains(HOSTILE), "{:?}", visitor.texts("sms-error"));
    assert_eq!(visitor.page.tagged("img"), 0);
    // Taken away, and given again.
    phone.program("termux-sms-list", DENIED);
    visitor.press("sms-refresh");
    visitor.until_seen("sms-grant");
    assert_eq!(visitor.texts("sms-error"), ["Permission not granted"]);
    let phones = house.visitor("/settings/phones");
    assert!(phones.attributes("remedy", "href").contains(&"/settings/agent#sms"), "{}", phones.answer.text);
    assert!(visitor.is_on("sms-read-toggle"));
    visitor.press("sms-grant");
    assert!(visitor.says("SMS and Contacts"));
    phone.program("termux-sms-list", LIST);
    visitor.open(AGENT);
    visitor.press("sms-grant");
    visitor.until_gone("sms-grant");
    assert_eq!(visitor.texts("sms-status"), ["Last successful poll just now"]);
    assert_eq!(house.get_setting("sms_enabled"), "true");
    // What was dropped is counted.
    let many: Vec<(i64, &str, &str)> = (41..150).map(|id| (id, ALICE, "more")).collect();
    phone.inbox(&many);
    (0..3).for_each(|_| poll(&house));
    visitor.reload();
    assert_eq!(visitor.texts("sms-queued"), ["100 queued for the next heartbeat"]);
    assert_eq!(visitor.texts("sms-dropped"), ["8 older messages were dropped because the queue was full"]);
}

#[test]
fn a_phone_that_does_not_let_us_send_is_said() {
    let (phone, house) = ready();
    let refusal = r#"cat > /dev/null; echo '{"error": "Please grant the following permissions: SEND_SMS"}'"#;
    phone.program("termux-sms-send", refusal);
    draft(&house, ALICE, "Hi");
    let mut visitor = house.visitor("/");
    visitor.press("draft-send");
    visitor.until_seen("draft-retry");
    visitor.open(AGENT);
    assert!(visitor.has("sms-send-grant") && visitor.is_on("sms-send-toggle"));
    let said = visitor.press_live("sms-send-grant");
    assert!(
        said["said"]
            .as_str()
            .unwrap()
            .contains("Your phone will ask for permission the next time you tap Send."),
        "{said}"
    );
    assert!(!visitor.has("sms-send-grant"));
}

#[test]
fn what_is_kept_of_a_source_that_is_off_is_erased_in_two_taps() {
    let phone = Phone::with_sms();
    phone.program("termux-notification-list", "echo '[]'");
    let house = turned_on(&phone);
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    poll(&house);
    house.set("notifications_enabled", "true");
    let mut visitor = house.visitor(AGENT);
    visitor.until_text("notifications-status", "Listener active");
    assert!(!visitor.has("sms-kept") && !visitor.has("notifications-kept"));
    for (card, toggle) in [("sms", "sms-read-toggle"), ("notifications", "notifications-toggle")] {
        visitor.press(toggle);
        visitor.until_seen(&format!("{card}-kept"));
        visitor.press(&format!("{card}-erase-ask"));
        visitor.press(&format!("{card}-keep"));
        assert!(!visitor.has(&format!("{card}-erase")));
        visitor.press(&format!("{card}-erase-ask"));
        visitor.press(&format!("{card}-erase"));
        visitor.until_gone(&format!("{card}-kept"));
    }
    let status = house.show("status");
    assert_eq!((&status["sms"]["queued"], &status["sms"]["lastSeenId"]), (&json!(0), &json!(null)));
    assert_eq!(status["notifications"]["lastSyncEpochMs"], json!(null), "{status}");
}

#[test]
fn notifications_wait_for_access_and_tell_how_they_stand() {
    let model = Model::start([Act::says("Yes.")]);
    let phone = Phone::new(&[]);
    phone.program("termux-notification-list", r#"cat "$DIR/tray" 2> /dev/null || exit 0"#);
    let house = phone.house();
    house.use_model(&model);
    let mut visitor = house.visitor(AGENT);
    assert!(!visitor.has("sms-card"), "this phone has none");
    visitor.press("notifications-toggle");
    visitor.until_text("notifications-status", "Waiting for access…");
    assert!(visitor.has("notifications-hint") && visitor.has("notifications-access"));
    assert!(!visitor.is_on("notifications-toggle"));
    assert_eq!(house.get_setting("notifications_enabled"), "false");
    // Back without access: off, with a hint.
    visitor.press("notifications-refresh");
    visitor.until_gone("notifications-refresh");
    assert_eq!(visitor.texts("notifications-hint").len(), 1);
    visitor.press("notifications-toggle");
    visitor.until_seen("notifications-refresh");
    phone.file("tray", "[]");
    visitor.press("notifications-refresh");
    visitor.until_on("notifications-toggle", true);
    visitor.until_text("notifications-status", "Listener active");
    assert!(!visitor.has("notifications-hint"));
    let has = |tool: &str| {
        house.ask("Hello");
        model.offered().iter().any(|offered| offered == tool)
    };
    assert!(has("check_notifications") && !has("dismiss_notification"));
    visitor.press("notifications-dismiss-toggle");
    visitor.press("code-redaction-toggle");
    assert_eq!(house.get_setting("code_redaction_enabled"), "false");
    assert!(has("dismiss_notification"));
    // Something arrives, and is cleared.
    let post = json!([{"key": "1", "packageName": "org.noisy", "title": HOSTILE, "content": HOSTILE}]);
    phone.file("tray", &post.to_string());
    house.run("notifications", &json!("refresh"));
    visitor.until_text("notifications-queued", "1 queued for the next heartbeat");
    visitor.press("notifications-manage");
    visitor.press("app-toggle");
    assert_eq!(house.get_setting("notifications_ignored"), "org.noisy");
    visitor.fill("app-ignored", "org.Other");
    visitor.press("app-ignore");
    assert_eq!(house.get_setting("notifications_ignored"), "org.noisy,org.Other");
    visitor.press("notifications-clear");
    visitor.until_text("notifications-queued", "0 queued for the next heartbeat");
    // Access that is taken away later: it stays on, and says what is wrong.
    phone.file("tray", "");
    house.run("notifications", &json!("refresh"));
    visitor.until_text("notifications-status", "Listener inactive — check notification access");
    assert!(visitor.has("notifications-access") && visitor.has("notifications-gaps"));
    assert!(visitor.is_on("notifications-toggle"));
    visitor.press("notifications-toggle");
    assert_eq!(house.get_setting("notifications_enabled"), "false");
    assert!(!has("check_notifications"));
}

/// Pairs a phone whose notifications are read.
fn pair(house: &House, name: &str) -> SourceId {
    let (name, now) = (name.to_owned(), house.app.clock.now());
    let new = NewPhone { device: name.clone(), name, certificate: vec![1], protocol: 8 };
    let paired = house.app.db.write_now(|tx| {
        let phone = phones::store::pair(tx, &new, now)?.source;
        toggle::switch_phone(tx, phone, true, now)?;
        Ok::<_, DbError>(phone)
    });
    house.app.messages.notifications.changed();
    paired.unwrap()
}

#[test]
fn a_paired_phones_notifications_come_in_without_any_of_this_machine() {
    let house = House::new();
    assert!(!house.visitor(AGENT).has("notifications-card"), "nobody reports any");
    let pixel = pair(&house, "Pixel");
    let mut visitor = house.visitor(AGENT);
    visitor.until_text("notifications-phone", "Pixel: Listener inactive — check notification access");
    assert!(!visitor.has("notifications-access"), "this machine has nothing to give access to");
    let tray = Arc::new(Tray::default());
    house.app.messages.notifications.add(Arc::new(Source::of(pixel, Arc::clone(&tray) as _)));
    visitor.until_text("notifications-phone", "Pixel: Listener active");
    let key = tray.post("Signal", HOSTILE, HOSTILE);
    visitor.until_text("notifications-queued", "1 queued for the next heartbeat");
    let id = format!("p{}:{}", pixel.0, key.as_str());
    let listed = house.tool("check_notifications", &json!({}));
    assert_eq!(listed["notifications"][0]["id"], json!(id), "{listed}");
    house.set("notifications_dismiss_enabled", "true");
    house.tool("dismiss_notification", &json!({"id": id}));
    let gone = || house.tool("dismiss_notification", &json!({"id": id}))["message"] == "It was gone already.";
    assert!((0..1_000).any(|_| gone()), "the phone took it away by its own key");
    assert!(house.app.messages.notifications.remove(pixel));
    visitor.until_text("notifications-phone", "Pixel: Listener inactive — check notification access");
}

#[test]
fn the_phones_page_says_what_is_connected_and_ready() {
    let phone = Phone::with_sms();
    phone.program("termux-open-url", NOTE);
    let house = phone.house();
    let mut visitor = house.visitor("/settings/phones");
    assert!(visitor.texts("phone-bridge")[0].contains("Termux"), "{:?}", visitor.texts("phone-bridge"));
    let row = |text: &str| text.starts_with("Read SMS") && text.contains("Off");
    assert!(visitor.texts("ability").into_iter().any(row), "{:?}", visitor.texts("ability"));
    house.set("sms_send_enabled", "true");
    visitor.until("sending to be ready", |page, _| {
        let mut abilities = page.all("ability").into_iter().map(|at| page.text_of(at));
        abilities.any(|text| text.starts_with("Send SMS") && text.contains("Ready"))
    });
}

#[test]
fn an_address_becomes_a_card_and_nothing_opens_on_the_machine() {
    let phone = Phone::new(&["termux-open-url", "termux-open", "xdg-open"]);
    let url = json!({"url": "https://example.org/?a=1&b=2"});
    let model = Model::start([Act::calls("open_url", &url), Act::says("There it is.")]);
    let house = phone.house();
    house.use_model(&model);
    let mut visitor = house.visitor("/");
    visitor.fill("chat-input", "Open example.org");
    visitor.press("chat-send");
    visitor.until_says("Answered by");
    let card = visitor.first("open-card");
    let of = |name: &str| visitor.page.attribute(card, name);
    assert_eq!(of("href"), Some("https://example.org/?a=1&b=2"));
    assert_eq!((of("target"), of("rel")), (Some("_blank"), Some("noopener noreferrer")));
    assert!(!phone.0.path().join("noted").exists(), "the browser may be on another machine");
}

#[test]
fn who_saw_a_message_is_answered_on_the_page() {
    let model = Model::start([Act::calls("check_sms", &json!({})), Act::says("Alice asks about dinner.")]);
    let (phone, house) = ready();
    house.use_model(&model);
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    poll(&house);
    house.ask("any new messages?");
    let saw = house.run("ledger", &json!({"who": {"id": "42"}})).as_array().unwrap().len();
    let mut visitor = house.visitor("/ledger?who=42");
    let kinds = visitor.attributes("ledger-line", "data-kind");
    assert!(saw > 0 && kinds == vec!["request"; saw], "{saw} {kinds:?}");
    visitor.open("/ledger?who=999999");
    assert_eq!(visitor.texts("ledger-none"), ["No request contained it."]);
}

#[test]
fn alarms_are_seen_cancelled_and_taken_back() {
    let phone = Phone::new(&["termux-notification"]);
    let house = phone.house();
    for (seconds, label) in [(7_200, "Cake <b>"), (80_000, "")] {
        house.tool("set_alarm", &json!({"duration_seconds": seconds, "label": label}));
    }
    let labels = || -> Vec<String> {
        let rows = house.show("alarms_list");
        rows.as_array().unwrap().iter().map(|row| row["label"].as_str().unwrap().to_owned()).collect()
    };
    let mut visitor = house.visitor(AGENT);
    let seen = visitor.texts("alarm");
    assert!(seen.len() == 2 && seen[0].contains("Cake <b>"), "{seen:?}");
    visitor.press("alarm-cancel");
    assert_eq!(visitor.texts("alarm").len(), 1, "it is gone from the page");
    assert_eq!(labels(), [""], "and for commands");
    visitor.press("undo");
    assert_eq!(visitor.texts("alarm").len(), 2, "it is back");
    assert_eq!(labels(), ["Cake <b>", ""]);
    // Cancelled elsewhere, gone from an open page.
    house.run("alarms_cancel", &json!({"id": 1}));
    visitor.until("one alarm", |page, _| page.all("alarm").len() == 1);
}

#[test]
fn what_the_phone_refuses_is_said_in_german() {
    let (phone, house) = ready();
    house.set("language", "de");
    phone.program("termux-sms-send", "echo no such thing >&2; exit 1");
    draft(&house, ALICE, "Hi");
    let mut visitor = house.visitor("/");
    visitor.press("draft-send");
    visitor.until_seen("draft-retry");
    let card = visitor.texts("draft-card");
    assert_german(&card, "nicht gesendet: termux-sms-send ist fehlgeschlagen: no such thing");
    let kept = house.run("drafts", &json!("list"))[0]["reason"].clone();
    assert_eq!(kept, "termux-sms-send failed: no such thing", "commands speak English");
    // An older Kai kept the plain sentence.
    let old = "UPDATE drafts SET reason = 'It was found.', status = 'SENT'";
    house.app.db.write_now(|tx| Ok::<_, DbError>(tx.execute(old, [])?)).unwrap();
    visitor.reload();
    assert!(visitor.says("an das Telefon übergeben. It was found."));
    // Reading is refused too.
    phone.program("termux-sms-list", DENIED);
    assert!(house.try_to("sms", &json!("poll")).is_err());
    visitor.open(AGENT);
    visitor.until_text("sms-error", "Berechtigung nicht erteilt");
    visitor.open("/settings/phones");
    let lacks = "Erlauben Sie Termux:API den Zugriff auf SMS und Kontakte: Android-Einstellungen → Apps";
    visitor.until_says(lacks);
}

#[test]
fn a_gap_is_told_in_german_with_german_times() {
    let phone = Phone::new(&[]);
    phone.program("termux-notification-list", r#"cat "$DIR/tray""#);
    phone.file("tray", "[]");
    let house = phone.house();
    house.set("language", "de");
    house.set("notifications_enabled", "true");
    let mut visitor = house.visitor(AGENT);
    visitor.until_text("notifications-status", "Empfang aktiv");
    phone.file("tray", "");
    house.run("notifications", &json!("refresh"));
    visitor.until_seen("notifications-gaps");
    let gaps = visitor.texts("notifications-gaps");
    assert_german(
        &gaps,
        "15.1., 08:00 – jetzt: Termux:API hat nicht geantwortet; vielleicht ist sein Empfang",
    );
    let status = house.show("status");
    let why = "Termux:API gave no answer; its listener may not be ready yet.";
    assert_eq!(
        (&status["notifications"]["lastError"], &status["notifications"]["gaps"][0]["why"]),
        (&json!(why), &json!(why))
    );
}

#[test]
fn names_are_turned_on_and_off_beside_sms() {
    let (phone, house) = ready();
    phone.program("termux-contact-list", r#"echo '{"error": "Please grant the following permission: X"}'"#);
    draft(&house, ALICE, "Hi");
    let mut visitor = house.visitor(AGENT);
    assert!(visitor.says("Show contact names") && visitor.says("stand beside numbers"));
    visitor.press("contact-names-toggle");
    visitor.open(AGENT);
    let said = visitor.texts("contact-names-error")[0].to_owned();
    assert!(said.contains("couldn’t read the phone’s contacts") && said.contains("use Contacts"), "{said}");
    visitor.press("contact-names-toggle");
    visitor.open(AGENT);
    assert!(!visitor.has("contact-names-error"));
    phone.program("termux-contact-list", &format!(r#"echo '[{{"name": "Lena", "number": "{ALICE}"}}]'"#));
    visitor.press("contact-names-toggle");
    visitor.open("/");
    assert_eq!(visitor.texts("draft-to"), ["Lena · +15550100"]);
    house.set("language", "de");
    visitor.open(AGENT);
    assert!(visitor.says("Kontaktnamen zeigen"));
    visitor.press("contact-names-toggle");
    visitor.open("/");
    assert_eq!(visitor.texts("draft-to"), ["+15550100"]);
}
