//! `/settings/models`: added, tested, put in order, removed and taken back.

use serde_json::{Value, json};

use super::house::House;
use super::model::{Act, Model};
use super::visitor::Visitor;

const MODELS: &str = "/settings/models";

fn names<'a>(visitor: &'a Visitor<'_>) -> Vec<&'a str> {
    visitor.attributes("model", "data-model")
}

/// Fills in the form for a server and sends it.
fn add(visitor: &mut Visitor<'_>, fields: &[(&str, &str)]) {
    visitor.open(MODELS);
    let preset = visitor.page.having("data-preset", "openai-compatible")[0];
    visitor.press_at(preset);
    for (field, text) in fields {
        visitor.fill(&format!("add-{field}"), text);
    }
    visitor.press("add-save");
}

/// Presses a button in the row of a model.
fn act(visitor: &mut Visitor<'_>, model: &str, testid: &str) {
    visitor.press_at(visitor.within(("data-model", model), testid));
}

#[test]
fn a_model_is_added_tested_and_answers_and_its_key_is_never_seen_again() {
    let model = Model::start([
        Act::says("OK"),
        Act::status("401 Unauthorized", r#"{"error":{"message":"<b>bad key</b>"}}"#),
    ]);
    let house = House::new();
    let mut visitor = house.visitor(MODELS);
    assert!(visitor.says("No model is set up, so Kai can’t answer."));
    // Nothing was typed: the sentence says what is missing, and what was chosen stays.
    add(&mut visitor, &[("key", "sk-hidden-4711")]);
    assert!(visitor.says("Enter the server’s address") && visitor.has("add-key"));
    let typed = [("name", "mine"), ("base_url", &model.base_url), ("model", "m"), ("key", "sk-hidden-4711")];
    add(&mut visitor, &typed);
    assert_eq!(names(&visitor), ["mine"]);
    assert!(!visitor.answer.text.contains("hidden-4711"), "the key is nowhere on the page");
    assert!(!visitor.has("model-unencrypted"), "it stays on this machine");
    // It is tested at once.
    visitor.until_says("It works: it answered “OK”");
    assert!(
        model.asked()[0].head.to_lowercase().contains("bearer sk-hidden-4711"),
        "a real request with the key"
    );
    act(&mut visitor, "mine", "model-test");
    visitor.until_says("It doesn’t work.");
    let said = visitor.texts("model-trial").concat();
    assert!(said.contains("key") && !said.contains("hidden"), "{said}");
    let key = "/settings/models?open=model%3Amine#models-key";
    assert_eq!(visitor.attributes("remedy", "href"), [key], "what failed leads to its field");
    // Changed where it stands; the key stays unless another address would get it.
    act(&mut visitor, "mine", "model-change");
    assert_eq!(visitor.value("models-key"), "");
    visitor.fill("models-model", "m2");
    visitor.press("models-save");
    assert!(visitor.says("m2 · http"));
    assert_eq!(house.show("models_list")[0]["has_key"], true);
}

/// The service says which models it has; its key is typed once and shown nowhere.
#[test]
fn a_service_lists_its_models_and_the_chosen_one_is_added_and_tested() {
    let list = r#"{"data":[{"id":"small"},{"id":"text-embedding-1"},{"id":"large"}]}"#;
    let model = Model::start([Act::says("OK")]);
    model.lists(&Act::status("200 OK", list));
    let house = House::new();
    let mut visitor = house.visitor(MODELS);
    visitor.press_at(visitor.page.having("data-preset", "openai-compatible")[0]);
    visitor.fill("add-base_url", &model.base_url);
    visitor.fill("add-key", "sk-hidden-4711");
    visitor.press("add-list");
    visitor.until_says("The service offers 2 models.");
    assert_eq!(
        (visitor.value("add-model"), visitor.value("add-base_url")),
        ("large".into(), model.base_url.clone())
    );
    assert!(!visitor.answer.text.contains("hidden-4711") && visitor.value("add-key").is_empty());
    visitor.press("add-save");
    assert_eq!(names(&visitor), ["openai-compatible"]);
    visitor.until_says("It works: it answered “OK”");
    let asked = model.asked().remove(0);
    assert_eq!(asked.body["model"], "large");
    assert!(
        asked.head.to_lowercase().contains("bearer sk-hidden-4711"),
        "the key that was typed for the list"
    );
}

/// What was typed for one service is then not kept in the form of another. The script side is in `tests/frame`.
#[test]
fn each_service_has_a_form_of_its_own() {
    let house = House::new();
    let mut visitor = house.visitor(MODELS);
    for preset in ["openai", "anthropic"] {
        visitor.open(&format!("{MODELS}?open=preset:{preset}"));
        let own = visitor.page.having("id", &format!("add-form-{preset}"));
        let [own] = own.as_slice() else { panic!("{preset}: {}", visitor.answer.text) };
        assert!(visitor.page.holds(*own, visitor.first("add-key")), "{preset}");
    }
}

#[test]
fn a_service_that_refuses_its_key_says_so_beside_the_field() {
    let model = Model::start([Act::says("OK")]);
    model.lists(&Act::status("401 Unauthorized", "{}"));
    let house = House::new();
    let mut visitor = house.visitor(MODELS);
    visitor.press_at(visitor.page.having("data-preset", "openai-compatible")[0]);
    visitor.fill("add-base_url", &model.base_url);
    visitor.fill("add-key", "sk-wrong");
    visitor.press("add-list");
    visitor.until_says("doesn’t accept the API key");
    assert_eq!(visitor.attributes("remedy", "href"), ["#add-key"]);
    // The key that was held is for this address alone.
    visitor.fill("add-base_url", "http://127.0.0.1:9/v1");
    visitor.fill("add-model", "m");
    visitor.press("add-save");
    assert_eq!(house.show("models_list")[0]["has_key"], false);
}

#[test]
fn progress_is_shown_while_a_model_is_asked_in_every_open_page() {
    let model = Model::start([Act::Hang]);
    let house = House::with_model(&model);
    let (mut one, mut other) = (house.visitor(MODELS), house.visitor(MODELS));
    act(&mut one, "mine", "model-test");
    for visitor in [&mut one, &mut other] {
        visitor.until_says("Asking it for one word");
        assert!(!visitor.has("model-test"), "it is not asked twice at once");
    }
    model.wait_for_requests(1);
}

#[test]
fn a_model_that_others_can_listen_to_is_marked() {
    let house = House::new();
    let mut visitor = house.visitor(MODELS);
    for (name, address, marked) in [("safe", "https://192.0.2.1/v1", 0), ("open", "HTTP://192.0.2.1/v1", 1)] {
        add(&mut visitor, &[("name", name), ("base_url", address), ("model", "m")]);
        assert!(names(&visitor).contains(&name));
        assert_eq!(visitor.texts("model-unencrypted").len(), marked, "{name}");
    }
    assert!(visitor.says("Sends your chats unencrypted"));
}

#[test]
fn the_order_is_changed_and_what_was_removed_comes_back_with_its_key() {
    let model = Model::start([Act::says("Yes.")]);
    let house = House::new();
    let hostile = "<img src=x onerror=alert(1)>";
    for (name, key) in [("one", Some("sk-hidden")), ("two", None), (hostile, None)] {
        house.add_model(name, &model.base_url, key);
    }
    let mut visitor = house.visitor(MODELS);
    assert_eq!(names(&visitor), ["one", "two", hostile]);
    assert_eq!(visitor.page.tagged("img"), 0, "text stays text");
    act(&mut visitor, "two", "model-up");
    assert_eq!(names(&visitor), ["two", "one", hostile]);
    act(&mut visitor, "two", "model-down");
    assert_eq!(names(&visitor), ["one", "two", hostile]);
    let listed = || -> Vec<Value> { house.show("models_list").as_array().unwrap().clone() };
    let before = listed();
    act(&mut visitor, "one", "model-remove");
    assert_eq!(names(&visitor), ["two", hostile]);
    assert_eq!(listed().len(), 2, "really gone");
    visitor.press("undo");
    assert_eq!(names(&visitor), ["one", "two", hostile]);
    assert_eq!(listed(), before, "where it stood, with its key");
    assert_eq!(before[0]["has_key"], true);
    // A command moves the open page.
    house.run("models_first", &json!({ "name": hostile }));
    visitor.until("the first", |page, _| page.attribute(page.all("model")[0], "data-model") == Some(hostile));
}
