//! The page of paired phones, with simulated handsets over real connections on loopback.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::{DeviceId, Limits, Reach};
use kai_bridges::simulated::{Handset, HandsetSetup, OnPairing};
use serde_json::{Value, json};

use super::house::House;
use super::visitor::Visitor;
use crate::app::App;
use crate::commands::phones::grouped;
use crate::phones::drivers::Features;
use crate::phones::{Hub, Network};

pub(super) const PHONES: &str = "/settings/phones";
pub(super) const PIXEL: SourceId = SourceId(2);

/// Limits under which nobody has to wait before connecting again.
pub(super) fn quick() -> Limits {
    Limits {
        between_connections: Duration::ZERO,
        between_reports: Duration::ZERO,
        silence_of_7: Duration::from_millis(300),
        ..Limits::default()
    }
}

/// A hub whose port only this machine can reach, and which announces nothing.
pub(super) fn loopback(app: &App, limits: Limits) -> Hub {
    let reach = Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None };
    let network = Network { reach, limits, ..Network::default() };
    let (senders, sources) = (&app.door.senders, &app.messages.notifications);
    let (db, clock) = (app.db.clone(), Arc::clone(&app.clock));
    let drivers = Features::new(db.clone(), clock.clone(), Arc::clone(senders), Arc::clone(sources));
    Hub::new(db, clock, Arc::new(drivers), network)
}

pub(super) fn handset(house: &House, name: &str, pairing: OnPairing) -> Handset {
    house.wait(Handset::start(HandsetSetup { pairing, ..setup(house, name) })).unwrap()
}

/// A handset that keeps its port when it vanishes and appears.
pub(super) fn setup(house: &House, name: &str) -> HandsetSetup {
    let free = kai_stand_ins::port::free();
    let reach = Reach { address: Ipv4Addr::LOCALHOST.into(), ports: free..=free, announcements: None };
    HandsetSetup { reach, limits: quick(), ..HandsetSetup::local(name, house.clock.clone()).unwrap() }
}

/// So much time passes, and the network notices.
pub(super) fn pass(house: &House, seconds: i64) {
    house.clock.advance(SignedDuration::from_secs(seconds));
    house.app.messages.network.look();
}

/// Waits until the phone is connected, or until it is not.
pub(super) fn until_connected(house: &House, phone: SourceId, connected: bool) {
    let mut state = house.app.messages.network.watch();
    let is_so =
        house.wait(state.wait_for(|state| {
            state.links.get(&phone).is_some_and(|link| link.connected.is_some() == connected)
        }));
    drop(is_so.unwrap());
}

/// Turns one of the phone's switches on. Kai then announces more than before, so the phone has to connect anew.
fn turn_on(house: &House, switch: &str) {
    house.run("phones", &json!({"set": {"phone": "2", "switch": switch, "on": true}}));
    until_connected(house, PIXEL, false);
    pass(house, 60);
    until_connected(house, PIXEL, true);
}

/// Searches on the page and connects with the phone by its address.
pub(super) fn find(house: &House, page: &mut Visitor<'_>, phone: &Handset) {
    page.open(PHONES);
    page.press("pair-search");
    page.until_seen("pair-stop");
    page.fill("pair-address", &phone.address().unwrap().to_string());
    page.press("pair-connect");
    page.until_seen("pair-nearby");
    assert!(house.app.messages.network.watch().borrow().listening.is_some());
}

/// Pairs the phone from the page.
pub(super) fn pair(house: &House, page: &mut Visitor<'_>, phone: &Handset) {
    find(house, page, phone);
    page.press("pair-this");
    page.until_seen("pair-key");
    let key = house.wait(phone.shows_key());
    assert_eq!(page.texts("pair-key"), [grouped(&key)], "both show the same");
    page.press("pair-yes");
    page.until_seen("paired-phone");
}

/// The phone connects and asks to be paired; returns the key that it shows, and who Kai is to it.
fn asks(house: &House, phone: &Handset) -> (String, DeviceId) {
    let port = house.app.messages.network.watch().borrow().listening.unwrap().port;
    let kai = house.wait(phone.connect((Ipv4Addr::LOCALHOST, port).into())).unwrap().identity.id;
    phone.request_pairing(&kai).unwrap();
    (house.wait(phone.shows_key()), kai)
}

#[test]
fn a_phone_is_paired_and_everything_is_off_until_it_is_turned_on() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Accept);
    let mut page = house.visitor(PHONES);
    assert!(page.has("paired-none") && !page.has("pair-port"), "nothing is open");
    assert!(!page.answer.text.contains("http-equiv=\"refresh\""));
    find(&house, &mut page, &phone);
    assert!(page.answer.text.contains("http-equiv=\"refresh\""), "who has no script sees the search go on");
    page.press("pair-stop");
    pair(&house, &mut page, &phone);
    page.until_gone("pair-stop");
    assert!(page.says("Pixel 8 is paired.") && page.says("Choose what Kai can do with Pixel 8."));
    assert!(page.says("It closes when no phone is paired."));
    let switches = ["read_sms", "send_sms", "notifications", "names", "composer", "tell"];
    for switch in switches.map(|switch| format!("phone-{switch}")) {
        assert!(!page.is_on(&switch), "{switch}");
    }
    page.press("phone-read_sms");
    page.until_on("phone-read_sms", true);
    assert_eq!(house.get_setting("sms_enabled"), "true");
    assert!(!page.has("phone-choose"), "something was chosen");
    page.press("phone-read_sms");
    page.until_on("phone-read_sms", false);
    page.press("phone-make-default");
    page.until_seen("phone-default");
}

#[test]
fn a_phone_is_renamed_and_unpaired() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Accept);
    let mut page = house.visitor(PHONES);
    pair(&house, &mut page, &phone);
    page.press("phone-rename-ask");
    page.fill("phone-name", " ");
    page.press("phone-rename");
    assert!(page.answer.status == 400 && page.says("visible characters"), "{}", page.answer.text);
    page.fill("phone-name", "Mine");
    page.press("phone-rename");
    assert_eq!(page.attributes("paired-phone", "aria-label"), ["Mine"]);
    page.open(PHONES);
    page.press("phone-unpair-ask");
    assert!(page.says("Unpair Mine?"));
    page.press("phone-unpair-keep");
    page.until_seen("former-phone");
    page.until_gone("pair-port");
    house.wait(phone.until(|phone| phone.paired().is_empty().then_some(())));
    page.open(PHONES);
    page.press("phone-unpair-ask");
    page.press("phone-unpair-erase");
    page.until_seen("paired-none");
}

#[test]
fn nothing_is_paired_without_a_yes_here() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Accept);
    let mut page = house.visitor(PHONES);
    find(&house, &mut page, &phone);
    page.press("pair-this");
    page.until_seen("pair-key");
    page.press("pair-no");
    page.until_text("pair-outcome", "You refused, so Pixel 8 wasn’t paired.");
    assert!(page.has("paired-none"));
    let refuses = handset(&house, "Work", OnPairing::Refuse);
    page.fill("pair-address", &refuses.address().unwrap().to_string());
    page.press("pair-connect");
    page.until_says("Work");
    let work = page.within(("id", &format!("nearby-{}", refuses.id())), "pair-this");
    page.press_at(work);
    page.until_text("pair-outcome", "Work refused the request, so it wasn’t paired.");
    page.fill("pair-address", "not an address");
    page.press("pair-connect");
    assert!(page.answer.status == 409 && page.says("That isn’t an address."), "{}", page.answer.text);
    assert_eq!(page.value("pair-address"), "not an address", "to be mended");
}

/// The banner is on every page, and an answer carries the key that was shown.
#[test]
fn a_phone_that_asks_is_seen_on_every_page() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Wait);
    let mut page = house.visitor(PHONES);
    page.press("pair-search");
    page.until_seen("pair-stop");
    let (key, _) = asks(&house, &phone);
    let mut chat = house.visitor("/");
    chat.until_seen("pairing-banner");
    let asked = format!("Pixel 8 wants to be paired. Does it show {}?", grouped(&key));
    for path in ["/", "/new", PHONES, "/settings/general", "/ledger"] {
        page.open(path);
        assert!(page.says(&asked), "{path}: {}", page.answer.text);
    }
    let wrong = page.post("/pairing", &format!("device={}&key=00000000&answer=pair", phone.id()));
    assert_eq!(wrong.status, 409, "{}", wrong.text);
    assert!(phone.paired().is_empty());
    chat.press("pairing-pair");
    assert_eq!(chat.path, PHONES);
    chat.until_seen("paired-phone");
    chat.until_gone("pairing-banner");
    assert!(chat.says("Choose what Kai can do with Pixel 8."));
}

#[test]
fn a_phone_that_asks_is_refused() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Wait);
    let mut page = house.visitor(PHONES);
    page.press("pair-search");
    page.until_seen("pair-stop");
    asks(&house, &phone);
    page.until_seen("pairing-banner");
    page.press("pairing-refuse");
    page.until_gone("pairing-banner");
    assert!(phone.paired().is_empty() && page.has("paired-none"));
}

/// What is open is said wherever somebody may look.
#[test]
fn an_open_port_is_said() {
    let house = House::with_phones();
    let says = |house: &House| house.show("status")["phones"]["says"].as_str().unwrap().to_owned();
    assert_eq!(says(&house), "none paired. No port is open");
    let mut page = house.visitor(PHONES);
    page.press("pair-search");
    page.until_seen("pair-port");
    let port = house.app.messages.network.watch().borrow().listening.unwrap().port;
    assert!(says(&house).contains(&format!("Port {port} is open")), "{}", says(&house));
    assert!(says(&house).contains("Stop searching"), "{}", says(&house));
    let checks = house.show("doctor").to_string();
    assert!(
        checks.contains(&format!("Port {port} is open on your local network, to any device")),
        "{checks}"
    );
    house.clock.advance(SignedDuration::from_mins(2));
    page.reload();
    assert!(page.says("found no phone") && page.says("A firewall"), "{}", page.answer.text);
    assert!(house.show("doctor").to_string().contains("found no phone"));
    page.press("pair-stop");
    page.until_gone("pair-port");
    assert_eq!(says(&house), "none paired. No port is open");
}

#[test]
fn the_page_of_phones_speaks_german() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Accept);
    let mut page = house.visitor(PHONES);
    pair(&house, &mut page, &phone);
    house.set("language", "de");
    page.until_says("Verbunden");
    for words in ["Gekoppelte Telefone", "SMS lesen", "Telefone suchen", "Pixel 8 ist gekoppelt."] {
        assert!(page.says(words), "{words}: {}", page.answer.text);
    }
}

/// Only the phone asked, and nobody answers it: the request ends, and Kai says so.
#[test]
fn a_phone_that_asks_in_vain_is_not_paired() {
    let house = House::with_phones_within(Limits { pairing: Duration::from_millis(50), ..quick() });
    let phone = handset(&house, "Pixel 8", OnPairing::Wait);
    let mut page = house.visitor(PHONES);
    page.press("pair-search");
    page.until_seen("pair-stop");
    asks(&house, &phone);
    page.until_seen("pairing-banner");
    pass(&house, 1);
    page.until_text(
        "pair-outcome",
        "Pixel 8 wasn’t paired because nobody answered within 30 seconds. Try again.",
    );
    assert!(!page.has("pairing-banner") && page.has("paired-none") && phone.paired().is_empty());
}

/// On a machine that is no phone itself, a paired one is enough for everything about SMS.
#[test]
fn a_paired_phone_alone_has_the_card_of_sms() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Accept);
    for text in ["Dinner at eight?", "Bring bread"] {
        house.wait(phone.receive("+15550142", text, house.app.clock.now()));
        house.clock.advance(SignedDuration::from_secs(1));
    }
    let mut page = house.visitor("/settings/agent");
    assert!(!page.has("sms-card"), "there is no phone at all");
    pair(&house, &mut page, &phone);
    page.open("/settings/agent");
    assert!(page.has("sms-card") && !page.has("sms-phone"));
    page.press("sms-read-toggle");
    assert!(page.answer.status == 409 && page.says("of any paired phone"), "{}", page.answer.text);
    house.clock.advance(SignedDuration::from_secs(1));
    turn_on(&house, "read_sms");
    page.open("/settings/agent");
    page.until_text("sms-phone", "Pixel 8: Connected · Kai keeps 2 messages of this phone");
    assert_eq!(page.texts("sms-queued"), ["0 queued for the next heartbeat"], "what was there is no news");
    house.clock.advance(SignedDuration::from_secs(1));
    house.wait(phone.receive("+15550142", "At nine instead", house.app.clock.now()));
    page.until_text("sms-phone", "Pixel 8: Connected · Kai keeps 3 messages of this phone");
    page.until_text("sms-queued", "1 queued for the next heartbeat");
    page.press("sms-refresh");
    assert_eq!(page.answer.status, 200);
    assert_eq!(page.texts("sms-error"), [""; 0]);
    what_commands_say(&house);
    turn_on(&house, "notifications");
    page.open("/settings/agent");
    page.until_text("notifications-phone", "Pixel 8: Listener active");
    house.wait(phone.vanish());
    page.until_text("sms-phone", "Pixel 8: Not connected · Kai keeps 3 messages of this phone");
    let refused = house.try_to("sms", &json!("poll")).unwrap_err().to_string();
    assert!(refused.starts_with("The phone is not connected."), "{refused}");
    page.until_text(
        "notifications-phone",
        "Pixel 8: The phone is not connected. Open KDE Connect on it, in the same network as this machine.",
    );
    let unnamed = page.answer.text.contains(">The phone is not connected");
    assert!(!unnamed && !page.has("notifications-status"), "it is said once, beside its name");
    house.set("language", "de");
    page.until_text(
        "sms-phone",
        "Pixel 8: Nicht verbunden · Kai hat 3 Nachrichten dieses Telefons gespeichert",
    );
}

/// The phone is connected, and has told three messages, the last of them as news.
fn what_commands_say(house: &House) {
    let polled = house.run("sms", &json!("poll"));
    assert_eq!(
        (&polled["phones_asked"], &polled["fresh"], &polled["queued"]),
        (&json!(1), &json!(0), &json!(1))
    );
    let listed = house.run("sms", &json!("list"));
    assert_eq!((&listed[0]["preview"], listed.as_array().unwrap().len()), (&json!("At nine instead"), 1));
    let found = house.run("sms", &json!({"search": {"text": "bread"}}));
    let read = house.run("sms", &json!({"read": {"id": found[0]["id"]}}));
    assert_eq!((&read["body"], &read["from"]), (&json!("Bring bread"), &json!("+15550142")));
    let status = house.show("status")["sms"].clone();
    let source = |field: &str| status["sources"][0][field].clone();
    assert_eq!(
        (source("source"), source("name"), source("bridge")),
        (json!(2), json!("Pixel 8"), json!("phone"))
    );
    assert_eq!((source("messages"), source("progress"), source("queued")), (json!(3), json!(1000), json!(1)));
    assert_eq!(
        (source("connected"), source("lastError"), source("access")),
        (json!(true), Value::Null, json!("granted"))
    );
    assert_eq!(
        (&status["supported"], &status["bridge"], &status["queued"]),
        (&json!(true), &json!("phone"), &json!(1))
    );
    assert_eq!(
        (&status["lastSeenId"], &status["lastSyncEpochMs"]),
        (&listed[0]["id"], &source("lastSyncEpochMs"))
    );
}

/// How far the copy is stands on the page, and moves by itself.
#[test]
fn the_progress_of_copying_moves_by_itself() {
    let house = House::with_phones();
    let phone = handset(&house, "Pixel 8", OnPairing::Accept);
    let mut page = house.visitor(PHONES);
    pair(&house, &mut page, &phone);
    let (now, day) = (house.app.clock.now().as_millisecond(), 24 * 60 * 60 * 1_000);
    let copied = |days: i64, messages: i64| {
        let from = now - days * day;
        let sql = format!(
            "INSERT OR REPLACE INTO sms_threads VALUES (2, 1, {from}, {now}, 0, 0);
             INSERT OR REPLACE INTO sms_phones VALUES (2, {messages}, {now}, NULL)"
        );
        house
            .app
            .db
            .write_now(|tx| tx.execute_batch(&sql).map_err(kai_assistant::db::DbError::from))
            .unwrap();
    };
    for (days, messages, shown) in [(73, 400, "400"), (146, 1_200, "1,200")] {
        copied(days, messages);
        page.until_text("phone-archive", &format!("Copying messages: {shown} so far"));
        let listed = house.run("phones", &json!("list"))[0]["archive"].clone();
        assert_eq!(
            (&listed["progress"], &listed["messages"]),
            (&json!(days * 1_000 / 365), &json!(messages))
        );
    }
    copied(366, 2_000);
    page.until_text("phone-archive", "Kai keeps 2,000 messages of this phone");
}
