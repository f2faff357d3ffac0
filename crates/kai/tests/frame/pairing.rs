//! A phone is paired from the page, with a real browser, a real daemon and the simulated handset. All of them are in a
//! network of their own, so that no announcement leaves this machine.

use std::io::Write;
use std::sync::Arc;

use kai_assistant::clock::{Clock, SystemClock};
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
    its_messages_are_copied(&browser, &runtime, &phone);
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
    it_is_paired_on_a_terminal(&home, daemon, &phone);
}

/// The same on the command line, where a typed `y` is the tap.
fn it_is_paired_on_a_terminal(home: &Home, daemon: Daemon, phone: &Handset) {
    let address = phone.address().unwrap();
    let refused = home.type_at(&format!("phones pair {address}"), "n\n");
    assert!(refused.code == 1 && refused.out.contains("Nothing was paired."), "{refused:?}");
    // The key is right, and of the switches the first is wanted.
    let paired = home.type_at(&format!("phones pair {address}"), "y\ny\nn\nn\nn\nn\nn\n");
    assert!(paired.code == 0 && paired.out.contains("Pixel 8: connected"), "{paired:?}");
    assert!(paired.out.contains("on: read_sms"), "{paired:?}");
    assert_eq!(home.run(&["settings", "get", "sms_enabled"]).out, "true\n");
    it_is_managed(home);
    let daemon = without_a_daemon(home, daemon);
    let removed = home.type_at("phones remove mine", "\n");
    assert!(removed.out.contains("Its messages are deleted from Kai."), "{removed:?}");
    wait_for("the port to close", || open_to_others(&daemon).is_empty());
    let mut searching = home.terminal("phones pair");
    wait_for("the port to open", || !open_to_others(&daemon).is_empty());
    searching.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    wait_for("Ctrl-C to close it", || open_to_others(&daemon).is_empty());
    assert_ne!(searching.wait().unwrap().code(), Some(0));
}

/// Whatever can be changed about a phone, with a daemon that does it.
fn it_is_managed(home: &Home) {
    let said = |args: &[&str]| {
        let done = home.run(args);
        assert_eq!(done.code, 0, "{done:?}");
        done.out
    };
    let row = || home.run(&["phones", "list", "--json"]).json()[0].clone();
    let number = row()["id"].to_string();
    assert_eq!(
        said(&["phones", "rename", "Pixel 8", "Mine"]),
        format!("Phone {number} is now called Mine.\n")
    );
    assert_eq!(said(&["phones", "default", "mine"]), "New messages are sent from Mine.\n");
    assert_eq!(said(&["phones", "set", &number, "tell", "on"]), "Mine: tell = on\n");
    wait_for("it to connect anew", || row()["connected"] == true);
    wait_for("its messages", || said(&["sms", "search", "Message 7"]).contains("Message 7"));
    let polled = said(&["sms", "poll"]);
    assert!(polled.starts_with("Kai asked 1 paired phone; new messages arrive in a moment."), "{polled}");
    let status = said(&["status"]);
    assert!(status.contains("Mine: connected, 121 messages kept"), "{status}");
}

/// What was copied can be read while nothing runs, and for the rest Kai says what to do. Returns another daemon.
fn without_a_daemon(home: &Home, daemon: Daemon) -> Daemon {
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    let found = home.run(&["sms", "search", "Message 77", "--json"]).json();
    assert_eq!(found[0]["preview"], "Message 77", "{found}");
    let read = home.run(&["sms", "read", &found[0]["id"].to_string()]);
    assert!(read.code == 0 && read.out.starts_with("From +15550142"), "{read:?}");
    let list = home.run(&["sms", "list"]);
    assert!(list.code == 0 && list.out.contains("No messages are waiting"), "{list:?}");
    home.run(&["sms", "poll"]).refused(1, "Start Kai first: kai serve");
    let status = home.run(&["status"]).out;
    assert!(status.contains("Mine: not connected, 121 messages kept"), "{status}");
    assert!(home.run(&["phones", "list"]).out.contains("Mine: last seen"));
    home.start()
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
    // It asks again, while somebody looks at another page, and is welcome.
    browser.open(&format!("http://{}/settings/general", daemon.address));
    browser.until_live();
    work.request_pairing(&kai).unwrap();
    browser.until_seen("pairing-banner");
    browser.click("pairing-pair");
    browser.until_says("Choose what Kai can do with Work.");
    runtime.block_on(work.until(|work| (work.paired() == [kai.clone()]).then_some(())));
    browser.until_gone("pairing-banner");
    // Its owner thinks better of it.
    work.unpair(&kai);
    browser.until_seen("former-phone");
    browser.open(&format!("http://{}/settings/phones?open=unpair:3", daemon.address));
    browser.until_live();
    browser.click("phone-unpair-erase");
    browser.until_gone("former-phone");
    browser.until_gone("pair-stop");
}

/// Reading is turned on, and the page says how many messages are copied, without anybody touching it.
fn its_messages_are_copied(browser: &Browser, runtime: &tokio::runtime::Runtime, phone: &Handset) {
    let receive = |text: &str| runtime.block_on(phone.receive("+15550142", text, SystemClock.now()));
    for n in 0..120 {
        receive(&format!("Message {n}"));
    }
    browser.click("phone-read_sms");
    browser.until_says("Kai keeps 120 messages of this phone");
    receive("One more");
    browser.until_says("Kai keeps 121 messages of this phone");
    browser.until_says("Connected");
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
