//! The composer and the turn in a real browser: Esc, what waits, what is edited, which model answers, and what is seen
//! when Kai does not run.

use serde_json::json;

use crate::ask::with_model;
use crate::browser::Browser;
use crate::kit::{Daemon, Home, kai};
use crate::page::{ENTER, check, look, say, until_answered};
use crate::provider::{Act, Provider};

const ESC: &str = "\u{e00c}";

#[test]
fn answers_are_stopped_continued_queued_and_edited() {
    let browser = Browser::start();
    let steps = Act::says_in_steps(&["One, ", "tw", "never"]);
    let slow = || Act::says_in_steps(&["Slow", "ly."]);
    let provider = Provider::start([
        steps,
        Act::says("two, three."),
        slow(),
        Act::says("Queued answer."),
        Act::says("Edited answer."),
    ]);
    let home = with_model(&provider);
    let daemon = home.start();
    look(&browser, 1280, 800, false);
    browser.enter(&daemon);
    esc_stops_and_the_answer_goes_on(&browser, &provider);
    what_is_typed_meanwhile_is_sent_once(&browser, &daemon, &provider);
    the_last_message_is_edited_in_its_place(&browser);
    every_look(&browser, "composer");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn every_look(browser: &Browser, name: &str) {
    for (width, height) in [(360, 740), (1280, 800)] {
        for dark in [false, true] {
            look(browser, width, height, dark);
            check(browser, &format!("{name} at {width}, dark: {dark}"));
            browser.picture(&format!("{name}-{width}-{}", if dark { "dark" } else { "light" }));
        }
    }
    look(browser, 1280, 800, false);
}

fn esc_stops_and_the_answer_goes_on(browser: &Browser, provider: &Provider) {
    say(browser, "Count");
    provider.go_on(1);
    browser.until("the second", "return document.querySelector('.coming')?.innerText.includes('tw')");
    // Esc belongs to what is open.
    browser.click("chat-menu");
    browser.press(ESC);
    browser.until("the menu to close", "return !document.querySelector(':popover-open')");
    assert_eq!(browser.texts("chat-stop").len(), 1, "it is still answering");
    browser.run("document.getElementById('q').focus()");
    browser.press(ESC);
    browser.run("document.getElementById('chat-input').focus()");
    assert_eq!(browser.texts("chat-stop").len(), 1, "nor does Esc in another field stop it");
    browser.press(ESC);
    browser.until_seen("chat-continue");
    // The rest of what was stopped reaches nobody any more.
    provider.go_on(2);
    let red = "const danger = getComputedStyle(document.getElementById('toast')).color;
        const box = document.querySelector('[data-testid=chat-stopped]');
        return [box, ...box.querySelectorAll('*')].some((it) => {
            const { color, borderLeftColor, borderLeftStyle } = getComputedStyle(it);
            return color === danger || (borderLeftStyle !== 'none' && borderLeftColor === danger);
        })";
    assert_eq!(browser.run(red), false, "a stop is no failure");
    assert!(browser.texts("chat-error").is_empty() && browser.texts("chat-again") == ["Try again"]);
    every_look(browser, "stopped");
    browser.click("chat-continue");
    until_answered(browser, 1);
    assert_eq!(browser.texts("message-assistant"), ["One, two, three."]);
}

fn what_is_typed_meanwhile_is_sent_once(browser: &Browser, daemon: &Daemon, provider: &Provider) {
    say(browser, "Slowly");
    browser.until("the beginning", "return document.querySelector('.coming')?.innerText === 'Slow'");
    say(browser, "And then?");
    browser.until_seen("queued");
    assert_eq!(browser.texts("queued-text"), ["And then?"]);
    assert_eq!(browser.run("return document.getElementById('chat-input').value"), "");
    let first = browser.tab();
    let second = browser.new_tab();
    browser.open(&format!("http://{}/c/1", daemon.address));
    browser.until_live();
    assert_eq!(browser.texts("queued-text"), ["And then?"], "another page has it, too");
    browser.click("queued-edit");
    browser.until(
        "the field to have the focus",
        "return document.activeElement.dataset.testid === 'queued-field'",
    );
    browser.press(" Tell me.");
    browser.press(ESC);
    browser.until_gone("queued-field");
    assert_eq!(browser.texts("queued-text"), ["And then?"], "Esc gives editing up, and stops nothing");
    browser.click("queued-edit");
    browser.until(
        "the field to have the focus",
        "return document.activeElement.dataset.testid === 'queued-field'",
    );
    browser.press(" Tell me.");
    browser.press(ENTER);
    browser.until(
        "the new words",
        "return document.querySelector('[data-testid=queued-text]')?.innerText === 'And then? Tell me.'",
    );
    every_look(browser, "queued");
    provider.go_on(2);
    until_answered(browser, 3);
    assert_eq!(browser.texts("message-user"), ["Count", "Slowly", "And then? Tell me."]);
    assert!(browser.texts("queued").is_empty());
    browser.switch_to(&first);
    until_answered(browser, 3);
    assert_eq!(browser.texts("message-user"), ["Count", "Slowly", "And then? Tell me."]);
    assert_eq!(provider.asked().len(), 4, "two pages, one message");
    browser.switch_to(&second);
}

fn the_last_message_is_edited_in_its_place(browser: &Browser) {
    browser.click("rewrite-open");
    browser.until(
        "the field to have the focus",
        "return document.activeElement.dataset.testid === 'rewrite-text'",
    );
    let seen = "return document.querySelectorAll('[data-testid=message-user]')[2].checkVisibility()";
    assert_eq!(browser.run(seen), false, "the form is in its place");
    every_look(browser, "editing");
    browser.press(" Nonsense.");
    browser.press(ESC);
    browser.until("it to fold", "return !document.querySelector('.rewriting').open");
    assert_eq!(
        browser.run("return document.querySelector('[data-testid=rewrite-text]').value"),
        "And then? Tell me."
    );
    assert_eq!(browser.run(seen), true);
    browser.press(ENTER);
    browser.until(
        "the field to have the focus",
        "return document.activeElement.dataset.testid === 'rewrite-text'",
    );
    browser.press(" Please.");
    browser.press(ENTER);
    browser.until_says("Edited answer.");
    until_answered(browser, 3);
    assert_eq!(browser.texts("message-user"), ["Count", "Slowly", "And then? Tell me. Please."]);
    assert!(!browser.texts("message-assistant").contains(&"Queued answer.".to_owned()));
}

#[test]
fn models_are_chosen_and_everything_can_be_hit() {
    let browser = Browser::start();
    let long =
        format!("{}\n\n```sh\nls\n```\n\n[link](https://example.org/)\n\n", "A line of text.\n\n".repeat(30));
    let (one, two) = (
        Provider::start([Act::says("One.")]),
        Provider::start([Act::calls("get_local_time", &json!({})), Act::says(&long.repeat(2))]),
    );
    let home = with_model(&one);
    add(&home, "other", &two.base_url);
    let daemon = home.start();
    browser.enter(&daemon);
    say(&browser, "Who?");
    until_answered(&browser, 1);
    let options = "return [...document.querySelectorAll('#model-picker option')].map(o => o.innerText)";
    let named =
        json!(["Automatic (mine · on this computer)", "mine · on this computer", "other · on this computer"]);
    assert_eq!(browser.run(options), named);
    browser.run("const picker = document.getElementById('model-picker'); picker.value = 'other';
        picker.dispatchEvent(new Event('input', { bubbles: true })); picker.dispatchEvent(new Event('change', { bubbles: true }))");
    let kept = "return [...document.querySelectorAll('#model-picker option')].find(o => o.defaultSelected)?.value === 'other'";
    browser.until("the choice to be kept", kept);
    browser.click("chat-again");
    browser.until_says("Answered by other");
    until_answered(&browser, 1);
    assert_eq!(browser.texts("message-user"), ["Who?"]);
    words_before_calls(&browser);
    targets_are_large_and_free(&browser);
    every_look(&browser, "models");
    a_new_chat_can_have_another_model(&browser, &daemon);
    the_page_is_light(&browser, &daemon);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn add(home: &Home, name: &str, base_url: &str) {
    let added =
        ["models", "add", "openai-compatible", "--name", name, "--base-url", base_url, "--model", "m"];
    assert_eq!(home.run(&added).code, 0);
}

fn words_before_calls(browser: &Browser) {
    browser.click("what-kai-did-summary");
    browser.until("it to unfold", "return document.querySelector('.did').open");
    assert_eq!(browser.texts("did"), ["Checked the time."]);
    let call = "return document.querySelector('.exact pre').checkVisibility()";
    assert_eq!(browser.run(call), false, "the exact call is one tap away");
    browser.run("document.querySelector('.exact summary').click()");
    browser.until("the exact call", call);
    browser.click("cost-open");
    browser.until("what it cost", "return document.querySelector('.cost').innerText.includes('Tokens: ')");
}

/// What can be tapped is large enough, and the button that leads to the end covers none of it, wherever the page is.
fn targets_are_large_and_free(browser: &Browser) {
    look(browser, 360, 740, false);
    let small = "return [...document.querySelectorAll('[data-copy], [data-testid=chat-again], [data-testid=rewrite-open], #composer button, #model-picker')]
        .filter((it) => it.checkVisibility()).map((it) => [it, it.getBoundingClientRect()])
        .filter(([, box]) => box.height < 40 || box.width < 40).map(([it, box]) => `${it.outerHTML.slice(0, 60)} ${box.width} ${box.height}`)";
    assert_eq!(browser.run(small), json!([]));
    let covered = "const main = document.getElementById('main'), end = document.getElementById('to-end');
        const wrong = [];
        let shown = 0;
        for (let at = 0; at < main.scrollHeight; at += 60) {
            main.scrollTop = at;
            main.dispatchEvent(new Event('scroll'));
            if (end.hidden) continue;
            shown += 1;
            const box = end.getBoundingClientRect();
            for (const it of document.querySelectorAll('a, button, summary, select, textarea')) {
                if (it === end || !it.checkVisibility()) continue;
                const other = it.getBoundingClientRect();
                // What is scrolled away below the messages' edge is not under it either.
                if (main.contains(it) && other.top >= main.getBoundingClientRect().bottom) continue;
                if (other.left < box.right && box.left < other.right && other.top < box.bottom && box.top < other.bottom) wrong.push(it.outerHTML.slice(0, 60));
            }
        }
        return [shown > 5, wrong]";
    assert_eq!(browser.run(covered), json!([true, []]));
    browser.run("document.getElementById('main').scrollTop = 0");
    browser.until("the button", "return !document.getElementById('to-end').hidden");
    browser.click("to-end");
    browser.until("the end", "return document.getElementById('to-end').hidden");
}

fn a_new_chat_can_have_another_model(browser: &Browser, daemon: &Daemon) {
    browser.open(&format!("http://{}/new", daemon.address));
    browser.until_live();
    browser.run(
        "const picker = document.getElementById('model-picker'); picker.value = 'other';
        picker.dispatchEvent(new Event('change', { bubbles: true }))",
    );
    say(browser, "Hello");
    until_answered(browser, 1);
    browser.until_says("Answered by other");
    assert_eq!(browser.run("return document.getElementById('model-picker').value"), "other");
}

/// What a browser receives for the first page, counted as it is sent.
fn the_page_is_light(browser: &Browser, daemon: &Daemon) {
    browser.open(&format!("http://{}/new", daemon.address));
    browser.until_live();
    let weighs = "const parts = [location.href, document.querySelector('[rel=stylesheet]').href, ...[...document.scripts].map((it) => it.src)];
        return Promise.all(parts.map(async (part) => {
            await (await fetch(part, { cache: 'no-store' })).arrayBuffer();
            return performance.getEntriesByName(part).at(-1).encodedBodySize;
        })).then((sizes) => [sizes.every((size) => size > 0), sizes.reduce((sum, size) => sum + size, 0)])";
    let weighed = browser.run(weighs);
    assert_eq!(weighed[0], true, "{weighed}");
    assert!(weighed[1].as_u64().unwrap() <= 70 * 1024, "{weighed}");
}

/// The page is still open, or is opened, while nobody serves it.
#[test]
fn a_browser_says_when_kai_is_not_running() {
    let browser = Browser::start();
    let home = Home::new();
    let daemon = home.start();
    let port = daemon.address.rsplit_once(':').unwrap().1.to_owned();
    let page = format!("http://{}/", daemon.address);
    browser.enter(&daemon);
    browser.run(
        "navigator.serviceWorker.ready.then(() => caches.open('kai')).then((kept) => kept.keys())
        .then((keys) => { window.kept = keys.map((key) => new URL(key.url).pathname); })",
    );
    browser.until(
        "the page to be kept",
        "return window.kept?.length === 3 && !!navigator.serviceWorker.controller",
    );
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    browser.open(&page);
    browser.until_says("Kai isn’t running");
    let looks = browser.run("return [document.styleSheets.length, document.querySelector('.mark').getBoundingClientRect().width, document.body.innerText.includes('csrf')]");
    assert_eq!(looks, json!([2, 64, false]), "with its style, and with nothing private");
    for (width, dark) in [(360, true), (1280, false)] {
        look(&browser, width, 740, dark);
        check(&browser, &format!("offline at {width}"));
        browser.picture(&format!("offline-{width}"));
    }
    let _again = Daemon::start(kai(home.path()).args(["serve", "--port", &port]));
    browser.run("[...document.links].at(-1).click()");
    browser.until_live();
}
