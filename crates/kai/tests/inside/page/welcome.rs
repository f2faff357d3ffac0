//! `/welcome`: from an empty home to the first answer, skipped or done, and remembered.

use super::house::House;
use super::model::{Act, Model};

#[test]
fn an_empty_home_begins_with_the_welcome_until_it_is_skipped() {
    let house = House::empty();
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.path, "/welcome");
    assert!(visitor.says("Welcome to Kai") && visitor.says("it stays here"), "what leaves is said");
    visitor.press("welcome-next");
    assert_eq!(visitor.path, "/welcome?step=phone");
    assert!(visitor.says("goes on to your model") && visitor.has("connect-card"));
    visitor.press("welcome-next");
    assert!(visitor.says("Kai reads nothing until you turn it on here."));
    assert!(!visitor.has("welcome-next"), "it is the last step");
    visitor.open("/");
    assert_eq!(visitor.path, "/welcome", "it was not skipped yet");
    visitor.press("welcome-done");
    assert!(visitor.path == "/" && visitor.says("No model is set up yet"));
    let mut later = house.visitor("/");
    assert_eq!(later.path, "/", "that is remembered");
    later.open("/settings/general");
    later.press("welcome-again");
    assert_eq!(later.path, "/welcome");
    assert_eq!(house.get("/welcome", "").status, 401, "not without a session");
    house.set("language", "de");
    later.reload();
    assert!(later.says("Willkommen bei Kai") && later.says("Überspringen"));
}

/// Four presses: the service, its form, the chat, the first question.
#[test]
fn a_model_is_added_tested_and_answers_in_a_few_steps() {
    let model = Model::start([Act::says("OK"), Act::says("It is Tuesday.")]);
    let house = House::empty();
    let mut visitor = house.visitor("/");
    visitor.press_at(visitor.page.having("data-preset", "openai-compatible")[0]);
    assert!(visitor.path.starts_with("/welcome?"), "{}", visitor.path);
    visitor.fill("add-base_url", &model.base_url);
    visitor.fill("add-model", "m");
    visitor.press("add-save");
    assert_eq!(visitor.path, "/welcome");
    visitor.until_says("It works: it answered “OK”");
    assert_eq!(visitor.texts("welcome-done"), ["Start chatting"]);
    visitor.press("welcome-done");
    visitor.fill("chat-input", "What day is it?");
    visitor.press("chat-send");
    visitor.until_says("It is Tuesday.");
}

#[test]
fn what_is_wrong_with_a_model_is_said_on_the_welcome_too() {
    let house = House::empty();
    let mut visitor = house.visitor("/welcome");
    visitor.press_at(visitor.page.having("data-preset", "openai-compatible")[0]);
    visitor.press("add-save");
    assert!(visitor.says("Enter the server’s address") && visitor.says("Welcome to Kai"));
}
