//! What can be wrong with a paired phone, as `kai doctor` and the page say it: each with its next step. The handsets are
//! simulated, the connections real; only the silence of a minute is written into the store.

use std::sync::Arc;

use jiff::SignedDuration;
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::DbError;
use kai_bridges::kdeconnect::{Event, Protocol};
use kai_bridges::simulated::{Handset, HandsetSetup, OnPairing};

use super::house::House;
use super::phones::{PHONES, PIXEL, find, pair, pass, setup, until_connected};

/// What doctor is to say, the verdict, and a word of the next step.
fn says(house: &House, words: &str, verdict: &str, next: &str) {
    let checks = house.show("doctor");
    let all = checks.as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|check| check["says"].as_str().is_some_and(|says| says.contains(words)));
    let found = found.unwrap_or_else(|| panic!("{words}: {checks}"));
    assert_eq!(
        (found["name"].as_str(), found["verdict"].as_str()),
        (Some("phones"), Some(verdict)),
        "{found}"
    );
    assert!(found["next"].as_str().is_some_and(|step| step.contains(next)), "{next}: {found}");
    let page = house.visitor(PHONES);
    assert!(page.says(words) && page.says(next), "{words}: {}", page.answer.text);
}

/// A paired phone that was connected, how it was made, and the house.
fn paired() -> (House, Handset, HandsetSetup) {
    let house = House::with_phones();
    let made = HandsetSetup { pairing: OnPairing::Accept, ..setup(&house, "Pixel 8") };
    let (reach, credentials) = (made.reach.clone(), made.credentials.clone());
    let phone = house.wait(Handset::start(made)).unwrap();
    let mut page = house.visitor(PHONES);
    pair(&house, &mut page, &phone);
    until_connected(&house, PIXEL, true);
    let again = HandsetSetup { reach, credentials, ..setup(&house, "Pixel 8") };
    (house, phone, again)
}

#[test]
fn a_phone_that_is_silent() {
    let (house, phone, _) = paired();
    house.wait(phone.vanish());
    until_connected(&house, PIXEL, false);
    assert!(!house.show("doctor").to_string().contains("battery"), "it may come back in a moment");
    pass(&house, 15 * 60);
    says(&house, "The phone isn’t connected.", "note", "battery optimisation");
}

/// A phone whose plugin is off, or whose permission is missing, does not say so: it does not answer.
#[test]
fn a_phone_whose_plugin_is_off_or_whose_permission_is_missing() {
    let (house, _phone, _) = paired();
    let silent = "INSERT INTO sms_phones (source, last_error) VALUES (2, 'It did not answer.')";
    house.app.db.write_now(|tx| tx.execute_batch(silent).map_err(DbError::from)).unwrap();
    says(
        &house,
        "didn’t answer when Kai asked for its messages",
        "note",
        "turn on the SMS plugin and grant the permissions",
    );
}

#[test]
fn a_phone_with_another_certificate() {
    let (house, phone, _) = paired();
    house.wait(phone.vanish());
    until_connected(&house, PIXEL, false);
    // It has the same id, which follows from its name, and made a new certificate.
    let reset = setup(&house, "Pixel 8");
    comes_back(&house, reset);
    says(
        &house,
        "a different certificate than when it was paired",
        "broken",
        "unpair it here and pair it again",
    );
}

#[test]
fn a_phone_with_an_older_protocol() {
    let (house, phone, again) = paired();
    house.wait(phone.vanish());
    until_connected(&house, PIXEL, false);
    comes_back(&house, HandsetSetup { protocol: Protocol::V7, ..again });
    says(&house, "an older version of the protocol", "broken", "Update KDE Connect");
}

/// Somebody with the phone's id connects, and is refused.
fn comes_back(house: &House, setup: HandsetSetup) {
    let phone = house.wait(Handset::start(setup)).unwrap();
    let mut state = house.app.messages.network.watch();
    let port = state.borrow().listening.unwrap().port;
    let refused = house.wait(phone.connect(([127, 0, 0, 1], port).into()));
    assert!(refused.is_err(), "{refused:?}");
    let noted = house.wait(state.wait_for(|state| state.links[&PIXEL].trouble.is_some()));
    drop(noted.unwrap());
}

#[test]
fn a_phone_whose_clock_is_wrong() {
    let house = House::with_phones();
    let ahead: Arc<dyn Clock> = Arc::new(ManualClock::at(house.clock.now() + SignedDuration::from_mins(31)));
    let made = HandsetSetup { clock: ahead, pairing: OnPairing::Wait, ..setup(&house, "Pixel 8") };
    let phone = house.wait(Handset::start(made)).unwrap();
    let mut page = house.visitor(PHONES);
    find(&house, &mut page, &phone);
    let linked = |event| match event {
        Event::Linked(device) => Some(device.identity.id),
        _ => None,
    };
    let kai = house.wait(phone.until(|phone| phone.events().into_iter().find_map(linked)));
    phone.request_pairing(&kai).unwrap();
    page.until_seen("pair-outcome");
    assert!(page.says("its clock and this computer’s differ"), "{}", page.answer.text);
    says(&house, "differ by more than 30 minutes", "note", "automatic date and time");
}

/// A phone that ended the pairing is no longer paired, and can be paired again.
#[test]
fn a_phone_that_ended_the_pairing() {
    let (house, phone, _) = paired();
    let kai = phone.paired().remove(0);
    phone.unpair(&kai);
    let mut page = house.visitor(PHONES);
    page.until_seen("former-phone");
    assert!(page.says("No longer paired."), "{}", page.answer.text);
    assert!(page.has("pair-search"), "{}", page.answer.text);
}
