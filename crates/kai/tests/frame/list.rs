//! The list of chats and the search in a real browser: what needs a script, a layout or keys.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::kit::{Daemon, Home};
use crate::page::{check, look};

const ENTER: &str = "\u{e007}";
const ESC: &str = "\u{e00c}";
const DOWN: &str = "\u{e015}";

/// A home with many chats, of which the oldest has many messages.
fn with_chats() -> Home {
    let home = Home::new();
    let entry = |message: Value| json!({"message": message, "answered_by": null, "usage": null, "at": 0});
    let long = |n: usize| {
        let text = if n == 7 { "The rare word is zebra.".to_owned() } else { "word ".repeat(300) };
        [
            entry(json!({"role": "user", "text": format!("Question {n}")})),
            entry(json!({"role": "assistant", "text": text})),
        ]
    };
    let chat = |n: usize| {
        let entries: Vec<Value> = if n == 0 { (0..20).flat_map(long).collect() } else { vec![] };
        let at = 1_700_000_000_000_i64 + i64::try_from(n).unwrap() * 60_000;
        json!({"title": format!("chat {n}"), "kind": "chat", "created_at": at, "updated_at": at, "entries": entries})
    };
    let chats: Vec<Value> = (0..150).map(chat).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chats.json");
    let export = json!({"kai_export": 1, "sections": {"conversations": chats}});
    std::fs::write(&file, export.to_string()).unwrap();
    assert_eq!(home.run(&["import", file.to_str().unwrap(), "--yes"]).code, 0);
    home
}

#[test]
fn chats_are_listed_named_found_and_searched_with_keys() {
    let home = with_chats();
    let daemon = home.start();
    let browser = Browser::start();
    look(&browser, 1280, 800, false);
    browser.enter(&daemon);
    the_list_goes_on_by_scrolling(&browser);
    a_chat_is_renamed_with_keys(&browser, &daemon);
    what_is_found_is_in_view(&browser, &daemon);
    keys_open_the_search_and_the_sheet(&browser, &daemon);
    a_deletion_can_be_undone_on_a_phone(&browser, &daemon);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn rows(browser: &Browser) -> Value {
    browser.run("return document.querySelectorAll('#chats li').length")
}

fn the_list_goes_on_by_scrolling(browser: &Browser) {
    assert_eq!(rows(browser), 60);
    let until = |more: usize| {
        browser
            .until("more chats", &format!("return document.querySelectorAll('#chats li').length === {more}"));
    };
    browser.run("document.querySelector('#side nav').scrollTop = 1e6");
    until(120);
    // With keys one comes to its end, too, and goes on with what came.
    browser.run("document.getElementById('list-older').focus()");
    until(150);
    browser.until(
        "the next chat",
        "return document.activeElement.closest('li')?.innerText.trim() === 'chat 29'",
    );
    assert_eq!(browser.texts("list-older"), [""; 0], "that is all");
}

fn a_chat_is_renamed_with_keys(browser: &Browser, daemon: &Daemon) {
    browser.open(&format!("http://{}/c/150", daemon.address));
    browser.until_live();
    let first = "document.querySelector('#chats li:first-child [data-testid=chat-options]')";
    browser.run(&format!("{first}.focus()"));
    browser.press(ENTER);
    browser.until_seen("chat-rename");
    assert_eq!(browser.run(&format!("return document.activeElement === {first}")), true, "the focus stays");
    check(browser, "an unfolded row");
    browser.run("document.querySelector('[data-testid=chat-rename]').focus()");
    browser.press(ENTER);
    browser.until("the field", "return document.activeElement.dataset.testid === 'chat-name'");
    browser.press("Green tea");
    browser.press(ENTER);
    browser
        .until("the name", "return document.querySelector('#chats .chat-title').innerText === 'Green tea'");
    browser.until("the title", "return document.getElementById('title').innerText === 'Green tea'");
    assert_eq!(browser.run("return document.title"), "Green tea · Kai");
    browser.until("the focus on its row", "return document.activeElement.innerText === 'Green tea'");
    // Esc leaves a name as it is.
    browser.run(&format!("{first}.click()"));
    browser.until_seen("chat-rename");
    browser.run("document.querySelector('[data-testid=chat-rename]').click()");
    browser.until("the field", "return document.activeElement.dataset.testid === 'chat-name'");
    browser.press("Other");
    browser.press(ESC);
    browser.until_gone("chat-name");
    browser
        .until("the name", "return document.querySelector('#chats .chat-title').innerText === 'Green tea'");
    // What is pinned comes first, which it does already; then it has a heading of its own.
    browser.run(&format!("{first}.click()"));
    browser.until_seen("chat-pin");
    browser.click("chat-pin");
    browser.until(
        "the pinned one",
        "return document.querySelector('#list-pinned li')?.innerText.trim() === 'Green tea'",
    );
}

/// The message that was found is in view and marked, in the middle of a chat of many screens.
fn what_is_found_is_in_view(browser: &Browser, daemon: &Daemon) {
    for (width, height) in [(1280, 800), (360, 740)] {
        look(browser, width, height, false);
        browser.open(&format!("http://{}/new?q=zebra", daemon.address));
        browser.until_seen("chat-snippet");
        assert_eq!(browser.texts("chat-snippet"), ["The rare word is zebra."]);
        browser.run("document.querySelector('#chats li a').click()");
        browser.until_live();
        browser.until(
            "the message to be in view",
            "const box = document.getElementById('hit')?.getBoundingClientRect(), main = document.getElementById('main').getBoundingClientRect();
             return !!box && box.top >= main.top && box.bottom <= main.bottom && CSS.highlights.get('found').size === 1",
        );
        assert_eq!(
            browser.run("return document.documentElement.scrollHeight"),
            height,
            "the page itself scrolls nowhere"
        );
        check(browser, "what was found");
    }
    look(browser, 1280, 800, false);
}

fn keys_open_the_search_and_the_sheet(browser: &Browser, daemon: &Daemon) {
    browser.open(&format!("http://{}/c/1", daemon.address));
    browser.until_live();
    browser.chord("\u{e009}", "k");
    browser.until("the search", "return document.activeElement.id === 'finder-input'");
    browser.press("zeb");
    browser.until("a hit", "return document.querySelectorAll('[role=option]').length === 1");
    browser.run("document.getElementById('finder-input').value = ''");
    browser.press("dark");
    browser.until("a setting", "return document.querySelector('[aria-selected=true]')?.getAttribute('href') === '/settings/general#look'");
    browser.press(ENTER);
    browser
        .until("that page", "return location.pathname === '/settings/general' && location.hash === '#look'");
    browser.until_live();
    // Without words it is a way to anywhere: down, up, and away.
    browser.chord("\u{e009}", "k");
    browser.until("places", "return document.querySelectorAll('[role=option]').length > 6");
    let first = browser.run("return document.querySelector('[aria-selected=true]').id");
    browser.press(DOWN);
    assert_ne!(browser.run("return document.querySelector('[aria-selected=true]').id"), first);
    browser.press(ESC);
    browser.until(
        "it to close",
        "return !document.getElementById('finder').open && document.activeElement.id !== 'finder-input'",
    );
    browser.press("?");
    browser.until("the sheet", "return document.getElementById('shortcuts').open");
    browser.press(ESC);
    browser.until("it to close", "return !document.getElementById('shortcuts').open");
    browser.chord("\u{e00a}", "n");
    browser.until("a new chat", "return location.pathname === '/new'");
    browser.until_live();
    // A question mark is a letter where one types.
    browser.until("the field", "return document.activeElement.id === 'chat-input'");
    browser.press("?");
    assert_eq!(
        browser.run(
            "return [document.getElementById('chat-input').value, document.getElementById('shortcuts').open]"
        ),
        json!(["?", false])
    );
}

fn a_deletion_can_be_undone_on_a_phone(browser: &Browser, daemon: &Daemon) {
    look(browser, 360, 740, false);
    browser.open(&format!("http://{}/c/1", daemon.address));
    browser.until_live();
    browser.run("document.getElementById('side').showPopover(); document.querySelector('#list-pinned [data-testid=chat-options]').click()");
    browser.until_seen("chat-delete");
    check(browser, "the list on a phone");
    browser.picture("list-phone");
    browser.click("chat-delete");
    browser.until_seen("undo");
    // Not behind the drawer: whoever looks there sees it.
    browser.until(
        "the offer to be on top",
        "const box = document.querySelector('[data-testid=undo]').getBoundingClientRect();
         return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.closest('button')?.dataset.testid === 'undo'",
    );
    check(browser, "an offer to undo");
    browser.click("undo");
    browser.until("it to be back", "return document.getElementById('title').innerText === 'Green tea'");
}
