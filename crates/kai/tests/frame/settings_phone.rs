//! The agent page with a phone, as eyes see it.

use crate::browser::Browser;
use crate::page::check;
use crate::phone::NOTE;
use crate::settings::HOSTILE;
use crate::sms::{ALICE, ready};
use crate::tools_page::open;

const DENIED: &str = r#"case "$*" in *--help*) exit 1;; esac
echo '{"error": "Please grant the following permissions to use this command: android.permission.READ_SMS"}'"#;

/// A slow phone: the icon turns, and the page goes on.
pub(crate) fn a_poll_turns_its_icon_until_the_phone_has_answered(browser: &Browser) {
    let phone = ready();
    phone.program("termux-notification-list", "exit 0");
    phone.program("termux-notification", NOTE);
    let daemon = phone.start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    // It answers when it is told to.
    let slow = r#"case "$*" in *--help*) exit 1;; *) while [ ! -e "$DIR/go" ]; do sleep 0.02; done; cat "$DIR/inbox.json";; esac"#;
    phone.program("termux-sms-list", slow);
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    browser.click("sms-refresh");
    let turns = "document.querySelector('form.turning [data-testid=sms-refresh]')";
    browser.until("it to turn", &format!("return !!{turns}"));
    let animation = browser.run(&format!("return {turns}.querySelector('svg').getAnimations().length"));
    assert_eq!(animation, 1);
    std::fs::write(phone.programs.path().join("go"), "").unwrap();
    browser.until("it to stop", &format!("return !{turns}"));
    browser.until_text("sms-queued", "1 queued for the next heartbeat");
    let failing = format!("case \"$*\" in *--help*) exit 1;; esac; echo '{HOSTILE}' >&2; exit 1");
    phone.program("termux-sms-list", &failing);
    browser.click("sms-refresh");
    browser.until_text("sms-status", "Last poll failed just now");
    let colour = "return getComputedStyle(document.querySelector('[data-testid=sms-error]')).color ===
                  getComputedStyle(document.querySelector('.told')).color";
    assert_eq!(browser.run(colour), true, "the colour of errors");
    check(browser, "a failed poll");
    phone.program("termux-sms-list", DENIED);
    browser.click("sms-refresh");
    browser.until_seen("sms-grant");
    check(browser, "a lost permission");
    browser.click("notifications-toggle");
    browser.until_text("notifications-status", "Waiting for access…");
    check(browser, "waiting for access");
    // What is kept of a source that is off is erased in two taps.
    browser.click("sms-read-toggle");
    browser.until_switched("sms-read-toggle", false);
    browser.click("sms-erase-ask");
    browser.until_seen("sms-erase");
    check(browser, "about to erase");
    browser.picture("erase-sms");
    // What only Termux says.
    open(browser, &daemon, "/settings/phones");
    let mut abilities = browser.texts("ability").into_iter();
    assert!(abilities.any(|row| row.starts_with("Show you notifications") && row.contains("Ready")));
    open(browser, &daemon, "/settings/general");
    browser.until_says("READ_SMS");
    browser.fine();
    browser.leave();
}
