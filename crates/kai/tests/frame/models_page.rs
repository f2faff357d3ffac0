//! `/settings/models` in a real browser: added, tested, put in order, removed and taken back.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::kit::{Home, kai};
use crate::provider::{Act, Provider};
use crate::tools_page::{at_every_size, open};

fn names(browser: &Browser) -> Value {
    browser.run("return [...document.querySelectorAll('[data-testid=model]')].map(e => e.dataset.model)")
}

fn until_names(browser: &Browser, expected: &Value) {
    let script = "return JSON.stringify([...document.querySelectorAll('[data-testid=model]')].map(e => e.dataset.model))";
    browser.until(
        &format!("the order {expected}"),
        &format!("{script} === '{expected}'").replacen("return ", "return (", 1).replace(" === ", ") === "),
    );
}

fn choose(browser: &Browser, preset: &str) {
    browser.run(&format!("document.querySelector('[data-preset=\"{preset}\"]').click()"));
    browser.until_seen("add-key");
}

/// Clicks a button in the row of a model.
fn act(browser: &Browser, model: &str, testid: &str) {
    browser
        .run(&format!("document.querySelector('[data-model=\"{model}\"] [data-testid={testid}]').click()"));
}

fn add(browser: &Browser, name: &str, provider: &Provider, key: &str) {
    choose(browser, "openai-compatible");
    for (field, text) in [("name", name), ("base_url", &provider.base_url), ("model", "m"), ("key", key)] {
        browser.type_into(&format!("add-{field}"), text);
    }
    browser.click("add-save");
    browser.until("it to be there", &format!("return !!document.querySelector('[data-model=\"{name}\"]')"));
    browser.until_live();
}

#[test]
fn a_model_is_added_tested_and_answers_and_its_key_is_never_seen_again() {
    let provider = Provider::start([
        Act::says("OK"),
        Act::status("401 Unauthorized", "application/json", r#"{"error":{"message":"<b>bad key</b>"}}"#),
    ]);
    let home = Home::new();
    home.run(&["settings", "set", "heartbeat_enabled", "false"]);
    let daemon = home.start();
    let browser = Browser::start();
    browser.look(1280, 800, false);
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/models");
    browser.until_says("None is set up");
    // Nothing was typed: the sentence says what is missing, and what was chosen stays.
    choose(&browser, "openai-compatible");
    browser.type_into("add-key", "sk-hidden-4711");
    browser.click("add-save");
    browser.until_says("needs its address");
    open(&browser, &daemon, "/settings/models");
    add(&browser, "mine", &provider, "sk-hidden-4711");
    let html = browser.run("return document.documentElement.outerHTML");
    assert!(!html.as_str().unwrap().contains("hidden-4711"), "the key is nowhere on the page");
    let held = browser
        .run("return [...document.querySelectorAll('input[type=password]')].map(e => e.value).join('')");
    assert_eq!(held, "", "nor in a field");
    assert!(browser.texts("model-unencrypted").is_empty(), "it stays on this machine");
    act(&browser, "mine", "model-test");
    browser.until_says("It works: it said “OK”");
    assert!(provider.asked()[0].head.contains("Bearer sk-hidden-4711"), "a real request with the key");
    act(&browser, "mine", "model-test");
    browser.until_says("It does not work.");
    let said = browser.texts("model-trial").join("");
    assert!(said.contains("key") && !said.contains("hidden"), "{said}");
    at_every_size(&browser, "models");
    // Changed where it stands; the key stays unless another address would get it.
    act(&browser, "mine", "model-change");
    browser.until_seen("models-key");
    assert_eq!(browser.run("return document.querySelector('[data-testid=models-key]').value"), "");
    browser.type_into("models-model", "2");
    browser.click("models-save");
    browser.until_says("m2 · http");
    assert_eq!(home.run(&["models", "list", "--json"]).json()[0]["has_key"], true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn progress_is_shown_while_a_model_is_asked_in_every_open_page() {
    let provider = Provider::start([Act::Hang]);
    let home = crate::ask::with_model(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/models");
    let first = browser.tab();
    browser.new_tab();
    open(&browser, &daemon, "/settings/models");
    act(&browser, "mine", "model-test");
    browser.until_says("Asking it for a word");
    browser.switch_to(&first);
    browser.until_says("Asking it for a word");
    provider.wait_for_requests(1);
    assert!(browser.texts("model-test").is_empty(), "it is not asked twice at once");
}

#[test]
fn a_model_that_others_can_listen_to_is_marked() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    for (name, address, marked) in [("safe", "https://192.0.2.1/v1", 0), ("open", "HTTP://192.0.2.1/v1", 1)] {
        open(&browser, &daemon, "/settings/models");
        choose(&browser, "openai-compatible");
        for (field, text) in [("name", name), ("base_url", address), ("model", "m")] {
            browser.type_into(&format!("add-{field}"), text);
        }
        browser.click("add-save");
        browser
            .until("it to be there", &format!("return !!document.querySelector('[data-model=\"{name}\"]')"));
        assert_eq!(browser.texts("model-unencrypted").len(), marked, "{name}");
    }
    browser.until_says("Leaves this machine unencrypted");
    browser.until_live();
    at_every_size(&browser, "unencrypted");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Gives a model a key, as the command does.
fn keyed(home: &Home, name: &str, provider: &Provider) {
    let file = home.path().join("key");
    std::fs::write(&file, "sk-hidden").unwrap();
    let address = ["--name", name, "--base-url", &provider.base_url, "--model", "m", "--key-stdin"];
    let mut add = kai(home.path());
    add.args(["models", "add", "openai-compatible"]).args(address);
    assert!(add.stdin(std::fs::File::open(&file).unwrap()).output().unwrap().status.success());
}

#[test]
fn the_order_is_changed_and_what_was_removed_comes_back_with_its_key() {
    let provider = Provider::start([Act::says("Yes.")]);
    let home = Home::new();
    home.run(&["settings", "set", "heartbeat_enabled", "false"]);
    let hostile = "<img src=x onerror=alert(1)>";
    for name in ["one", "two", hostile] {
        let address = ["--name", name, "--base-url", &provider.base_url, "--model", "m"];
        assert_eq!(home.run(&[&["models", "add", "openai-compatible"], &address[..]].concat()).code, 0);
    }
    keyed(&home, "one", &provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    open(&browser, &daemon, "/settings/models");
    assert_eq!(names(&browser), json!(["one", "two", hostile]));
    assert_eq!(browser.run("return document.querySelectorAll('main img').length"), 0, "text stays text");
    act(&browser, "two", "model-up");
    until_names(&browser, &json!(["two", "one", hostile]));
    act(&browser, "two", "model-down");
    act(&browser, "one", "model-remove");
    browser.until_seen("undo");
    until_names(&browser, &json!(["two", hostile]));
    assert_eq!(home.run(&["models", "list", "--json"]).json().as_array().unwrap().len(), 2, "really gone");
    browser.click("undo");
    browser.until("it to be back", "return document.querySelectorAll('[data-testid=model]').length === 3");
    let listed = home.run(&["models", "list", "--json"]).json();
    let order: Vec<&str> =
        listed.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(json!(order), names(&browser), "the command sees the same order");
    assert_eq!(listed[order.iter().position(|name| *name == "one").unwrap()]["has_key"], true, "{listed}");
    assert!(order.iter().position(|name| *name == "one") < Some(2), "where it stood: {order:?}");
    // A command moves the open page.
    home.run(&["models", "first", hostile]);
    browser.until(
        "the first",
        &format!("return document.querySelector('[data-testid=model]').dataset.model === {}", json!(hostile)),
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
