//! A page that is open for a while: what is being typed stays, and a page that nobody sees gives its connection back.

use serde_json::{Value, json};

use crate::ask::with_model;
use crate::browser::Browser;
use crate::kit::{Daemon, Home};
use crate::provider::{Act, Provider};
use crate::tools_page::open;

#[test]
fn an_open_page_keeps_what_is_typed_and_rests_when_nobody_looks() {
    let provider = Provider::start([Act::says("One.")]);
    let home = with_model(&provider);
    let other = ["--name", "other", "--base-url", provider.base_url.as_str(), "--model", "m"];
    assert_eq!(home.run(&[&["models", "add", "openai-compatible"], &other[..]].concat()).code, 0);
    assert_eq!(home.run(&["ask", "First"]).code, 0);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    the_newest_chat_gets_its_address_and_keeps_what_is_typed(&browser, &daemon);
    updates_take_nothing_out_of_a_form(&browser, &daemon, &home);
    a_key_for_one_service_is_not_in_the_form_of_another(&browser, &daemon);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    a_page_that_opens_out_of_sight_rests(&browser, &daemon);
    a_session_that_ended_meanwhile_leaves_nothing_in_sight(&browser, &home);
}

fn the_newest_chat_gets_its_address_and_keeps_what_is_typed(browser: &Browser, daemon: &Daemon) {
    open(browser, daemon, "/?q=tea");
    browser.run("window.stayed = true");
    browser.type_into("chat-input", "Half a thou");
    browser.run(
        "const picker = document.getElementById('model-picker'); picker.value = 'other';
         for (const kind of ['input', 'change']) picker.dispatchEvent(new Event(kind, { bubbles: true }))",
    );
    browser.until("the chat's own address", "return location.pathname === '/c/1'");
    browser.until_live();
    let left =
        "return [window.stayed ?? false, location.search, document.getElementById('chat-input').value]";
    assert_eq!(browser.run(left), json!([true, "?q=tea", "Half a thou"]));
}

/// Lets the page connect anew, as after a pause: then every part of it is sent again.
fn connect_anew(browser: &Browser) {
    browser.run(
        "document.activeElement.blur(); document.querySelector('.app').dataset.live = 'no'; window.kai.follow()",
    );
    browser.until_live();
}

fn updates_take_nothing_out_of_a_form(browser: &Browser, daemon: &Daemon, home: &Home) {
    open(browser, daemon, "/settings/general");
    let file = home.path().join("from.json");
    std::fs::write(&file, "{}").unwrap();
    browser.click("with-keys");
    for field in ["passphrase", "again"] {
        browser.type_into(field, "open sesame");
    }
    browser.type_into("import-file", file.to_str().unwrap());
    connect_anew(browser);
    let held = "const at = (id) => document.getElementById(id);
        return [at('passphrase').value, at('again').value, at('import-file').files.length]";
    assert_eq!(browser.run(held), json!(["open sesame", "open sesame", 1]));
    // Once the form was sent, what was typed is not kept. The file itself is not downloaded here.
    browser.run(
        "const { form } = document.getElementById('passphrase');
         form.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }))",
    );
    connect_anew(browser);
    assert_eq!(browser.run(held), json!(["", "", 1]));
    open(browser, daemon, "/ledger");
    let lines = "document.querySelectorAll('[data-testid=ledger-line]').length";
    let before = browser.run(&format!("return {lines}"));
    browser.click("ledger-filters");
    browser.type_into("ledger-text", "tea");
    browser.run("document.activeElement.blur()");
    home.remember("tea");
    browser.until("new records", &format!("return {lines} === {before} + 2"));
    assert_eq!(browser.run("return document.getElementById('ledger-text').value"), "tea");
}

fn a_key_for_one_service_is_not_in_the_form_of_another(browser: &Browser, daemon: &Daemon) {
    open(browser, daemon, "/settings/models?open=preset:openai");
    browser.type_into("add-key", "sk-of-one-service");
    browser.run("document.querySelector('[data-preset=anthropic]').click()");
    let other = "return document.querySelector('#add [name=preset]')?.value === 'anthropic'";
    browser.until("the form of the other service", other);
    assert_eq!(browser.run("return document.getElementById('add-key').value"), "");
}

/// Nobody sees the page until `shown` is true, `rests` ends its time until it rests, and its connections are known.
const STAGE: &str = "(() => {
    const later = window.setTimeout;
    window.setTimeout = (act, time, ...more) => {
        if (time !== 10000) return later(act, time, ...more);
        window.rests = act;
        return 0;
    };
    window.shown = false;
    Object.defineProperty(document, 'hidden', { get: () => !window.shown });
    window.connections = [];
    window.EventSource = class extends EventSource {
        constructor(address) {
            super(address);
            window.connections.push(this);
        }
    };
})()";

fn is_shown(browser: &Browser, shown: bool) {
    browser.run(&format!("window.shown = {shown}; document.dispatchEvent(new Event('visibilitychange'))"));
}

/// Whether each connection of the page so far is open (1) or closed (2).
fn connections(browser: &Browser) -> Value {
    browser.run("return window.connections.map((it) => it.readyState)")
}

/// As a tab does that is opened in the background: then it is never told that it is hidden.
fn a_page_that_opens_out_of_sight_rests(browser: &Browser, daemon: &Daemon) {
    browser.run_first(STAGE);
    open(browser, daemon, "/settings/general");
    assert_eq!(connections(browser), json!([1]));
    assert_eq!(browser.run("return typeof window.rests"), "function", "it rests after a while");
    browser.run("window.rests()");
    assert_eq!(connections(browser), json!([2]));
    is_shown(browser, true);
    let back = "return String(window.connections.map((it) => it.readyState)) === '2,1'";
    browser.until("it to come back", back);
}

fn a_session_that_ended_meanwhile_leaves_nothing_in_sight(browser: &Browser, home: &Home) {
    is_shown(browser, false);
    browser.run("window.rests()");
    assert_eq!(connections(browser), json!([2, 2]));
    assert_eq!(home.run(&["link", "--revoke-all"]).code, 0);
    is_shown(browser, true);
    browser.until_says("Sign in to Kai");
}
