//! The inbox in a real browser: keys, marks, looks.

use serde_json::json;

use crate::browser::Browser;
use crate::page::{check, look};
use crate::sms::{ALICE, ready};

const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";

/// Reads, searches, opens by keyboard, drafts a reply and dismisses, at every size and in both looks.
#[test]
fn the_inbox_is_lived_in_with_the_keyboard_and_looks_right() {
    let browser = Browser::start();
    let phone = ready();
    let long = format!("{} The code is 482913. {}", "A long story.".repeat(30), "x".repeat(300));
    let texts = ["before", "Dinner at 8?", "Bring wine", "And bread", "And cheese", long.as_str()];
    let mut inbox: Vec<(i64, &str, &str)> = (41..).zip(texts).map(|(id, text)| (id, ALICE, text)).collect();
    inbox.push((60, "A very long name of a shop that writes", "<b>Sale</b> \u{202e}001"));
    phone.inbox(&inbox);
    assert_eq!(phone.run(&["sms", "poll"]).code, 0);
    let daemon = phone.start();
    browser.enter(&daemon);
    browser.until_seen("inbox-count");
    browser.run("document.querySelector('[data-testid=inbox-link]').click()");
    browser
        .until("all messages", "return document.querySelectorAll('[data-testid=inbox-item]').length === 7");
    at_every_size(&browser);
    assert_eq!(browser.texts("inbox-group").len(), 2);
    // By keyboard: to the search and back to the list, down, and open.
    browser.press("/");
    browser.until("the search", "return document.activeElement.id === 'find'");
    browser.type_into("inbox-search", &format!("bread{ENTER}"));
    browser.until("one message", "return document.querySelectorAll('[data-testid=inbox-item]').length === 1 && location.search.includes('bread')");
    browser.until_live();
    browser.press(DOWN);
    browser.until("a focused message", "return document.activeElement.matches('[data-testid=inbox-item] a')");
    browser.press(ENTER);
    browser.until_seen("inbox-message");
    // It was in view, so it is read: the mark and its form go by themselves.
    browser.until("it to be read", "return !document.querySelector('form[data-opened]') && !!document.querySelector('[data-testid=inbox-text]')");
    for (width, dark) in [(360, false), (360, true), (768, true), (1280, false)] {
        look(&browser, width, 800, dark);
        check(&browser, &format!("a message at {width}"));
        browser.picture(&format!("inbox-message-{width}-{}", if dark { "dark" } else { "light" }));
    }
    browser.type_into("inbox-body", "Gladly");
    browser.click("inbox-reply");
    browser.until_seen("draft-card");
    browser.until_seen("inbox-drafted");
    assert_eq!(
        browser.run("return document.querySelector('#inbox-body').value"),
        json!(""),
        "the field is free again"
    );
    look(&browser, 360, 740, false);
    check(&browser, "a reply");
    browser.picture("inbox-reply");
    assert_eq!(phone.left(), "", "nothing was sent");
    browser.click("inbox-dismiss");
    browser.until("the list", "return location.pathname === '/inbox'");
    browser.until("one less", "return document.querySelectorAll('[data-testid=inbox-item]').length === 6");
    what_was_dismissed_in_the_list_comes_back(&browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.leave();
}

fn what_was_dismissed_in_the_list_comes_back(browser: &Browser) {
    // The answer meets its form as it was sent, whatever else the page hears first.
    browser.run("const it = document.querySelector('[data-testid=inbox-dismiss]'); it.form.dataset.keep = 'yes'; it.click()");
    browser.until_seen("inbox-undo");
    browser.until(
        "another one less",
        "return document.querySelectorAll('[data-testid=inbox-item]').length === 5",
    );
    for dark in [false, true] {
        look(browser, 360, 740, dark);
        check(browser, "a dismissal that can be undone");
        browser.picture(&format!("inbox-undo-{}", if dark { "dark" } else { "light" }));
    }
    browser.click("inbox-undo");
    browser.until("it back", "return document.querySelectorAll('[data-testid=inbox-item]').length === 6 && !document.querySelector('[data-testid=inbox-undo]')");
}

/// The list at every size and in both looks.
fn at_every_size(browser: &Browser) {
    for (width, height) in [(360, 740), (768, 1024), (1280, 800)] {
        for dark in [false, true] {
            look(browser, width, height, dark);
            check(browser, &format!("the inbox at {width}"));
            browser.picture(&format!("inbox-{width}-{}", if dark { "dark" } else { "light" }));
        }
    }
}
