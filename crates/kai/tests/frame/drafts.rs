//! Drafts in a real browser, besides sending them: folded to a line, edited where they stand, discarded and taken back;
//! on a phone, a tablet and a desktop, light and dark.

use serde_json::json;

use crate::browser::Browser;
use crate::page::check;
use crate::sms::{ALICE, draft, ready};

const SIZES: [(u32, u32); 3] = [(360, 740), (768, 1024), (1280, 800)];

#[test]
fn drafts_fold_are_edited_and_come_back_on_every_screen() {
    let browser = Browser::start();
    for (width, height) in SIZES {
        the_stack_is_one_line_and_remembers_it(&browser, width, height);
        a_draft_is_edited_where_it_stands(&browser, width, height);
        what_was_discarded_is_taken_back(&browser, width, height);
    }
}

/// Takes a picture in both themes and looks for what some eyes could not read.
fn seen(browser: &Browser, (width, height): (u32, u32), name: &str) {
    for dark in [true, false] {
        browser.look(width, height, dark);
        check(browser, name);
        browser.picture(&format!("{name}-{width}-{}", if dark { "dark" } else { "light" }));
    }
}

fn shown_cards(browser: &Browser) -> usize {
    let count = "return [...document.querySelectorAll('[data-testid=draft-card]')].filter((e) => e.checkVisibility()).length";
    usize::try_from(browser.run(count).as_u64().unwrap()).unwrap()
}

fn the_stack_is_one_line_and_remembers_it(browser: &Browser, width: u32, height: u32) {
    let phone = ready();
    for n in 0..4 {
        draft(&phone, ALICE, &format!("I can come at {n}, and I will bring the salad."));
    }
    let daemon = phone.start();
    browser.look(width, height, false);
    browser.enter(&daemon);
    let again = || {
        browser.open(&format!("http://{}/new", daemon.address));
        browser.until_live();
    };
    assert_eq!((browser.texts("draft-count"), shown_cards(browser)), (vec!["3 more drafts".to_owned()], 1));
    let share = browser.run("return document.getElementById('banners').offsetHeight / innerHeight");
    assert!(share.as_f64().unwrap() < 0.45, "{share} of {width}x{height}");
    seen(browser, (width, height), "stack");
    browser.click("draft-count");
    assert_eq!(shown_cards(browser), 4);
    seen(browser, (width, height), "stack-open");
    again();
    assert_eq!(shown_cards(browser), 4, "another chat, as it was left");
    let expanded = "return document.querySelector('[data-testid=draft-count]').ariaExpanded";
    assert_eq!(browser.run(expanded), "true");
    browser.click("draft-count");
    again();
    assert_eq!((shown_cards(browser), browser.run(expanded)), (1, json!("false")));
    if width >= 600 {
        // A draft that was folded where there is room stays folded too.
        browser.click("draft-fold");
        again();
        assert_eq!(browser.run("return document.querySelector('.fold').open"), false);
        assert!(
            browser.texts("draft-fold")[0].contains("I can come at 0"),
            "{:?}",
            browser.texts("draft-fold")
        );
        seen(browser, (width, height), "stack-folded");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.open("about:blank");
}

fn a_draft_is_edited_where_it_stands(browser: &Browser, width: u32, height: u32) {
    let phone = ready();
    let id = draft(&phone, ALICE, "See you at 8").to_string();
    let daemon = phone.start();
    browser.look(width, height, false);
    browser.enter(&daemon);
    browser.click("draft-edit");
    let focused = "return document.activeElement.dataset.testid";
    browser.until("the text", &format!("{focused} === 'draft-edit-body'"));
    seen(browser, (width, height), "edit");
    browser.type_into("draft-edit-body", ", and bring salad");
    // What comes in meanwhile takes nothing away that was typed.
    draft(&phone, "+15550199", "Another");
    browser.until("the other", "return document.querySelectorAll('[data-testid=draft-card]').length === 2");
    let typed = "return document.querySelector('[data-testid=draft-edit-body]').value";
    assert_eq!(browser.run(typed), "See you at 8, and bring salad");
    browser.click("draft-save");
    browser.until_gone("draft-edit-form");
    browser.until("the edited text", "return document.querySelector('[data-testid=draft-body]')?.innerText === 'See you at 8, and bring salad'");
    assert_eq!(browser.run("return location.search"), "");
    browser.until("the way back", &format!("{focused} === 'draft-edit'"));
    // Changed elsewhere while it is edited here: it is said, and what was typed stays.
    browser.click("draft-edit");
    browser.until_seen("draft-edit-form");
    browser.type_into("draft-edit-body", " and wine");
    assert_eq!(phone.run(&["drafts", "edit", &id, "--text", "See you at 9"]).code, 0);
    browser.click("draft-save");
    browser.until_says("changed elsewhere while you were editing it");
    assert_eq!(browser.run(typed), "See you at 8, and bring salad and wine");
    seen(browser, (width, height), "edit-refused");
    browser.click("draft-edit-cancel");
    browser.until_gone("draft-edit-form");
    browser.until(
        "the other text",
        "return document.querySelector('[data-testid=draft-body]')?.innerText === 'See you at 9'",
    );
    // To a stranger: the warning is there before anybody taps.
    browser.click("draft-edit");
    browser.until_seen("draft-edit-to");
    browser.run("document.querySelector('[data-testid=draft-edit-to]').value = ''");
    browser.type_into("draft-edit-to", "+1 555 0177");
    browser.click("draft-save");
    browser.until_seen("draft-unknown-recipient");
    seen(browser, (width, height), "edited");
    assert_eq!(phone.left(), "");
    browser.click("draft-send");
    browser.until_says("Sent to +15550177");
    assert_eq!(phone.left(), "+15550177|See you at 9\n");
    seen(browser, (width, height), "sent-to");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.open("about:blank");
}

fn what_was_discarded_is_taken_back(browser: &Browser, width: u32, height: u32) {
    let phone = ready();
    for n in 0..3 {
        draft(&phone, ALICE, &format!("Text {n}"));
    }
    let daemon = phone.start();
    browser.look(width, height, false);
    browser.enter(&daemon);
    let count = || phone.run(&["drafts", "list", "--json"]).json().as_array().unwrap().len();
    for (button, left) in [("draft-discard", 2), ("draft-discard-all", 0)] {
        // The offer is taken in the moment in which it comes, however slow everything else is.
        browser.run(
            "window.offered = null;
             new MutationObserver((_, watch) => {
                 const undo = document.querySelector('[data-testid=draft-undo]');
                 if (!undo) return;
                 watch.disconnect();
                 const box = document.getElementById('banners').getBoundingClientRect(), it = undo.getBoundingClientRect();
                 window.offered = [undo.closest('.card').innerText, it.top >= box.top && it.bottom <= box.bottom,
                     document.querySelectorAll('[data-testid=draft-card]').length];
                 undo.click();
             }).observe(document.getElementById('banners'), { subtree: true, childList: true })",
        );
        browser.click(button);
        browser.until("the offer", "return !!window.offered");
        let offered = browser.run("return window.offered");
        assert_eq!((&offered[1], &offered[2]), (&json!(true), &json!(left)), "{button}: {offered}");
        browser
            .until("all again", "return document.querySelectorAll('[data-testid=draft-card]').length === 3");
        assert_eq!(count(), 3);
    }
    browser.click("draft-discard-all");
    browser.until_seen("draft-undo");
    browser.picture(&format!("undo-{width}"));
    assert_eq!(count(), 0);
    // Nobody takes it back: the offer goes by itself.
    browser.until_gone("draft-undo");
    assert_eq!((count(), phone.left().as_str()), (0, ""));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.open("about:blank");
}
