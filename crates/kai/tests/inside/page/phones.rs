//! The page of paired phones, with simulated handsets over real connections on loopback.

use std::net::Ipv4Addr;
use std::sync::Arc;

use kai_bridges::kdeconnect::{DeviceId, Reach};
use kai_bridges::simulated::{Handset, HandsetSetup, OnPairing};

use super::house::House;
use super::visitor::Visitor;
use crate::app::App;
use crate::commands::phones::grouped;
use crate::phones::drivers::Features;
use crate::phones::{Hub, Network};

const PHONES: &str = "/settings/phones";

/// A hub whose port only this machine can reach, and which announces nothing.
pub(super) fn loopback(app: &App) -> Hub {
    let reach = Reach { address: Ipv4Addr::LOCALHOST.into(), ports: 0..=0, announcements: None };
    let network = Network { reach, ..Network::default() };
    let (senders, sources) = (&app.messages.phone.door.senders, &app.messages.notifications);
    let (db, clock) = (app.db.clone(), Arc::clone(&app.clock));
    let drivers = Features::new(db.clone(), clock.clone(), Arc::clone(senders), Arc::clone(sources));
    Hub::new(db, clock, Arc::new(drivers), network)
}

fn handset(house: &House, name: &str, pairing: OnPairing) -> Handset {
    let setup = HandsetSetup { pairing, ..HandsetSetup::local(name, house.clock.clone()).unwrap() };
    house.wait(Handset::start(setup)).unwrap()
}

/// Searches on the page and connects with the phone by its address.
fn find(house: &House, page: &mut Visitor<'_>, phone: &Handset) {
    page.open(PHONES);
    page.press("pair-search");
    page.until_seen("pair-stop");
    page.fill("pair-address", &phone.address().unwrap().to_string());
    page.press("pair-connect");
    page.until_seen("pair-nearby");
    assert!(house.app.messages.network.watch().borrow().listening.is_some());
}

/// Pairs the phone from the page.
fn pair(house: &House, page: &mut Visitor<'_>, phone: &Handset) {
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
    pair(&house, &mut page, &phone);
    assert!(page.answer.text.contains("http-equiv=\"refresh\""), "who has no script sees the search go on");
    page.press("pair-stop");
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
    page.press("pair-stop");
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
    assert!(checks.contains(&format!("port {port} is open")), "{checks}");
    house.clock.advance(jiff::SignedDuration::from_mins(2));
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
    for words in ["Gekoppelte Telefone", "SMS lesen", "Suche beenden", "Pixel 8 ist gekoppelt."] {
        assert!(page.says(words), "{words}: {}", page.answer.text);
    }
}
