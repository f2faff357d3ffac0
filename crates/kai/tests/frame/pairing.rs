//! A phone is paired from the page, with a real browser, a real daemon and the simulated handset. All of them are in a
//! network of their own, so that no announcement leaves this machine.

use std::io::Write;
use std::sync::Arc;

use kai_assistant::clock::SystemClock;
use kai_bridges::simulated::{Handset, HandsetSetup, OnPairing};

use crate::browser::Browser;
use crate::kit::{Daemon, Home, wait_for};
use crate::page::{check, look};
use crate::paired::{in_own_network, open_to_others};

const NOTHING: [&str; 0] = [];

#[test]
fn a_phone_is_paired_in_the_browser_and_on_a_terminal() {
    in_own_network("pairing::inside");
}

#[test]
#[ignore = "only in a network of its own"]
fn inside() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let setup = HandsetSetup::local("Pixel 8", Arc::new(SystemClock)).unwrap();
    let setup = HandsetSetup { pairing: OnPairing::Accept, ..setup };
    let phone = runtime.block_on(Handset::start(setup)).unwrap();
    let home = Home::new();
    let daemon = home.start();
    assert_eq!(open_to_others(&daemon), NOTHING);
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.open(&format!("http://{}/settings/phones", daemon.address));
    browser.until_live();
    at_both_sizes(&browser, "phones-none");
    browser.click("pair-search");
    browser.until_seen("pair-address");
    assert_eq!(open_to_others(&daemon), ["tcp 1716", "udp 1716"]);
    browser.type_into("pair-address", &phone.address().unwrap().to_string());
    browser.click("pair-connect");
    browser.until_seen("pair-nearby");
    at_both_sizes(&browser, "phones-nearby");
    browser.click("pair-this");
    browser.until_seen("pair-key");
    let key = runtime.block_on(phone.shows_key());
    assert_eq!(browser.texts("pair-key"), [format!("{} {}", &key[..4], &key[4..])]);
    at_both_sizes(&browser, "phones-key");
    browser.click("pair-yes");
    browser.until_seen("phone-choose");
    browser.until_says("Connected");
    browser.click("phone-names");
    let on = "return document.querySelector('[data-testid=phone-names]').ariaChecked === 'true'";
    browser.until("names to be on", on);
    browser.click("pair-stop");
    browser.until_gone("pair-stop");
    at_both_sizes(&browser, "phones-paired");
    the_phone_asks(&browser, &daemon, &runtime, &phone);
    browser.open(&format!("http://{}/settings/phones?open=unpair:2", daemon.address));
    browser.until_live();
    at_both_sizes(&browser, "phones-unpair");
    browser.click("phone-unpair-erase");
    browser.until_seen("paired-none");
    browser.until_gone("pair-port");
    assert_eq!(open_to_others(&daemon), NOTHING, "nothing is paired, so nothing is open");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.leave();
    it_is_paired_on_a_terminal(&home, &daemon, &phone);
}

/// The same on the command line, where a typed `y` is the tap.
fn it_is_paired_on_a_terminal(home: &Home, daemon: &Daemon, phone: &Handset) {
    let address = phone.address().unwrap();
    let refused = home.type_at(&format!("phones pair {address}"), "n\n");
    assert!(refused.code == 1 && refused.out.contains("Nothing was paired."), "{refused:?}");
    // The key is right, and of the switches the first is wanted.
    let paired = home.type_at(&format!("phones pair {address}"), "y\ny\nn\nn\nn\nn\nn\n");
    assert!(paired.code == 0 && paired.out.contains("Pixel 8: connected"), "{paired:?}");
    assert!(paired.out.contains("on: read_sms"), "{paired:?}");
    assert_eq!(home.run(&["settings", "get", "sms_enabled"]).out, "true\n");
    let removed = home.type_at("phones remove pixel\\ 8", "\n");
    assert!(removed.out.contains("Its messages are deleted from Kai."), "{removed:?}");
    wait_for("the port to close", || open_to_others(daemon).is_empty());
    let mut searching = home.terminal("phones pair");
    wait_for("the port to open", || !open_to_others(daemon).is_empty());
    searching.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    wait_for("Ctrl-C to close it", || open_to_others(daemon).is_empty());
    assert_ne!(searching.wait().unwrap().code(), Some(0));
}

/// Another phone asks while somebody looks at the chat: the banner comes by itself.
fn the_phone_asks(browser: &Browser, daemon: &Daemon, runtime: &tokio::runtime::Runtime, phone: &Handset) {
    let setup = HandsetSetup::local("Work", Arc::new(SystemClock)).unwrap();
    let work = runtime.block_on(Handset::start(HandsetSetup { pairing: OnPairing::Wait, ..setup })).unwrap();
    browser.click("pair-search");
    browser.until_seen("pair-stop");
    let kai = phone.paired()[0].clone();
    let found = runtime.block_on(work.connect(([127, 0, 0, 1], 1716).into())).unwrap();
    assert_eq!(found.identity.id, kai, "the same Kai for every phone");
    browser.open(&format!("http://{}/", daemon.address));
    browser.until_live();
    work.request_pairing(&kai).unwrap();
    browser.until_seen("pairing-banner");
    at_both_sizes(browser, "phones-banner");
    browser.click("pairing-refuse");
    browser.until_gone("pairing-banner");
    assert!(work.paired().is_empty());
}

/// Looks at the page as a phone and as a desktop show it, light and dark.
fn at_both_sizes(browser: &Browser, name: &str) {
    for (width, height) in [(360, 740), (1280, 800)] {
        for dark in [true, false] {
            look(browser, width, height, dark);
            check(browser, &format!("{name} at {width}, dark: {dark}"));
            browser.picture(&format!("{name}-{width}{}", if dark { "-dark" } else { "" }));
        }
    }
}
