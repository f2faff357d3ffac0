//! The chat: said, answered, failed and tried again, found, deleted and taken back.

use kai_assistant::agent::conversation::Which;
use serde_json::{Value, json};

use super::document::Document;
use super::house::House;
use super::model::{Act, Model};
use super::visitor::Visitor;
use crate::call::Call;

fn say(visitor: &mut Visitor<'_>, text: &str) {
    visitor.fill("chat-input", text);
    visitor.press("chat-send");
}

fn until_answered(visitor: &mut Visitor<'_>, count: usize) {
    visitor.until("an answer", |page, _| page.having("class", "foot quiet").len() == count);
}

fn titles(visitor: &Visitor<'_>) -> Vec<String> {
    visitor.texts("chat-title").into_iter().map(str::to_owned).collect()
}

#[test]
fn what_failed_says_why_and_can_be_tried_again_and_what_was_done_is_folded() {
    let model = Model::start([
        Act::status("401 Unauthorized", r#"{"error":{"message":"bad key"}}"#),
        Act::calls("get_local_time", &json!({})),
        Act::says("One."),
        Act::says("Two."),
    ]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "Go");
    visitor.until_seen("chat-error");
    let said = visitor.texts("chat-error").concat();
    assert!(said.contains("The service doesn’t accept the API key of mine."), "{said}");
    let key = "/settings/models?open=model%3Amine#models-key";
    assert_eq!(visitor.attributes("remedy", "href"), [key], "the error leads to the field that mends it");
    visitor.press("chat-again");
    until_answered(&mut visitor, 1);
    assert_eq!(visitor.texts("message-assistant"), ["One."]);
    assert_eq!(visitor.texts("what-kai-did-summary"), ["What Kai did (1)"]);
    assert_eq!(visitor.page.attribute(visitor.first("what-kai-did"), "open"), None, "closed");
    assert!(visitor.texts("what-kai-did")[0].contains("timezone"));
    visitor.press("chat-again");
    visitor.until("another answer", |page, text| {
        text.contains("Two.") && !page.having("class", "foot quiet").is_empty()
    });
    assert_eq!(visitor.texts("message-assistant"), ["Two."]);
    assert_eq!(visitor.texts("message-user"), ["Go"], "it was not said twice");
    let last = model.asked().pop().unwrap().body["messages"].clone();
    assert_eq!(last.as_array().unwrap().len(), 2, "the answer that is replaced is not told: {last}");
}

#[test]
fn without_a_model_the_page_says_what_to_do_and_keeps_what_was_typed() {
    let house = House::new();
    let mut visitor = house.visitor("/new");
    assert!(visitor.has("set-up-model") && !visitor.says("kai models"), "the page has a button for it");
    assert_eq!(visitor.has("try-demo"), cfg!(feature = "foss"));
    say(&mut visitor, "Hello?");
    assert!(visitor.answer.status == 409 && visitor.says("No model is set up. Set one up first."));
    assert_eq!(visitor.attributes("remedy", "href"), ["/settings/models"]);
    assert!(!visitor.says("kai models"), "a page names no command");
    assert_eq!(visitor.value("chat-input"), "Hello?");
    assert!(!visitor.has("message-user"));
}

#[test]
fn a_model_without_its_key_leads_to_the_page_that_asks_for_it() {
    let house = House::new();
    house.run("models_add", &json!({"preset": "openai"}));
    let mut visitor = house.visitor("/");
    assert!(visitor.says("openai has no API key.") && visitor.has("set-up-model"));
    say(&mut visitor, "Hello?");
    assert!(visitor.answer.status == 409 && visitor.says("openai has no API key. Enter one first."));
    let key = "/settings/models?open=model%3Aopenai#models-key";
    assert_eq!(visitor.attributes("remedy", "href"), [key]);
    visitor.open("/");
    visitor.fill("chat-input", "Hello?");
    let answer = visitor.press_live("chat-send");
    let link = json!({"href": key, "text": "Change the API key"});
    assert_eq!(answer["remedy"], link, "the script links to it too: {answer}");
    visitor.open("/settings/models");
    assert_eq!(visitor.texts("model-why-not"), ["openai has no API key. Enter one first."]);
    visitor.open("/settings/agent");
    let trouble = visitor.texts("heartbeat-trouble").concat();
    assert_eq!(trouble, "No model is set up, so heartbeats can’t run. Open model settings");
    for path in ["/", "/settings/models", "/settings/agent"] {
        visitor.open(path);
        assert!(!visitor.says("kai models"), "{path} names no command");
    }
}

/// As the page of models promises: if the first model can't answer, the next one is asked.
#[test]
fn after_a_wrong_key_the_next_model_answers_and_the_chat_says_so() {
    let wrong = Model::start([Act::status("401 Unauthorized", r#"{"error":{"message":"bad key"}}"#)]);
    let right = Model::start([Act::says("Here I am.")]);
    let house = House::new();
    house.add_model("first", &wrong.base_url, Some("sk-old"));
    house.add_model("second", &right.base_url, None);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "Anybody?");
    until_answered(&mut visitor, 1);
    assert_eq!(visitor.texts("message-assistant"), ["Here I am."]);
    let told = visitor.texts("chat-instead").concat();
    assert!(told.starts_with("first couldn’t answer, so Kai asked second."), "{told}");
    assert!(told.contains("The service doesn’t accept the API key of first."), "{told}");
    let key = "/settings/models?open=model%3Afirst#models-key";
    assert_eq!(visitor.attributes("remedy", "href"), [key]);
    assert_eq!((wrong.asked().len(), right.asked().len()), (1, 1));
    visitor.open(key);
    assert!(visitor.has("models-key"), "the link leads to the field");
    visitor.open("/ledger");
    assert!(visitor.says("first") && visitor.says("second"), "both requests left");
}

#[test]
fn the_chat_speaks_german_and_what_is_written_goes_its_own_way() {
    let model = Model::start([
        Act::calls("get_local_time", &json!({})),
        Act::says("- שלום\n\n> مرحبا\n\nHallo."),
        Act::status("401 Unauthorized", r#"{"error":{"message":"bad key"}}"#),
    ]);
    let house = House::with_model(&model);
    house.set("language", "de");
    let mut visitor = house.visitor("/");
    for expected in
        ["Was kann ich für Sie tun?", "mine antwortet Ihnen.", "Noch keine Chats.", "Einstellungen"]
    {
        assert!(visitor.says(expected), "{expected}");
    }
    assert_eq!(visitor.attributes("chat-input", "placeholder"), ["Nachricht an Kai"]);
    say(&mut visitor, "مرحبا");
    until_answered(&mut visitor, 1);
    assert!(visitor.says("Beantwortet von mine") && visitor.says("Neu antworten"));
    assert_eq!(visitor.texts("what-kai-did-summary"), ["Was Kai getan hat (1)"]);
    for written in ["message-user", "message-assistant"] {
        assert_eq!(visitor.attributes(written, "dir"), ["auto"], "{written}");
    }
    visitor.reload();
    let html = &visitor.answer.text;
    for block in
        ["<ul dir=\"auto\">", "<blockquote dir=\"auto\">", "data-testid=\"chat-title\" dir=\"auto\">"]
    {
        assert!(html.contains(block), "{block} in {html}");
    }
    visitor.press("chat-menu-delete");
    assert!(visitor.says("„مرحبا“ gelöscht."), "{}", visitor.answer.text);
    say(&mut visitor, "Los");
    visitor.until_seen("chat-error");
    assert!(visitor.says("Erneut versuchen"));
    assert!(visitor.says("Der Anbieter nimmt den API-Schlüssel von mine nicht an."));
    assert_eq!(visitor.texts("remedy"), ["API-Schlüssel ändern"]);
}

#[test]
fn conversations_are_found_deleted_and_taken_back() {
    let model = Model::start([Act::says("Um neun."), Act::says("At sea.")]);
    let house = House::with_model(&model);
    for said in ["Wann öffnet der Teeladen?", "Where are ships?"] {
        house.ask(said);
    }
    let mut visitor = house.visitor("/");
    assert_eq!(titles(&visitor), ["Where are ships?", "Wann öffnet der Teeladen?"]);
    visitor.open("/c/2?q=neun");
    assert_eq!(titles(&visitor), ["Wann öffnet der Teeladen?"]);
    visitor.open("/c/1");
    visitor.press_at(visitor.within(("id", "chat-1"), "chat-options"));
    visitor.press("chat-delete");
    assert_eq!(visitor.path, "/");
    assert!(visitor.answer.text.contains("<title>Where are ships?"), "the other one");
    let listed = || -> Vec<Value> { house.show("chats_list").as_array().unwrap().clone() };
    assert_eq!(listed().len(), 1, "really gone");
    visitor.press("undo");
    assert!(visitor.says("Um neun.") && !visitor.has("undo-bar"));
    assert!(titles(&visitor).contains(&"Wann öffnet der Teeladen?".to_owned()));
    // Said elsewhere, seen here.
    let chat = visitor.path.rsplit_once('/').unwrap().1.parse::<i64>().unwrap();
    let mut open = visitor.follow();
    house.run("ask", &json!({"text": "And now?", "chat": {"id": chat}}));
    while Document::new(&open.html()).having("class", "foot quiet").len() < 2 {
        assert!(open.next());
    }
    let page = Document::new(&open.html());
    assert_eq!(page.text_of(page.all("message-user")[1]), "And now?");
    // Signed out elsewhere, signed out here.
    house.show("revoke_links");
    while open.next() {}
    assert!(open.gone);
    visitor.reload();
    assert!(visitor.says("Sign in to Kai"));
}

#[test]
fn what_a_command_asks_is_waited_for_here_too() {
    let model = Model::start([Act::says("One."), Act::Hang]);
    let house = House::with_model(&model);
    house.ask("First");
    let mut visitor = house.visitor("/");
    let asking = house.begin(Call::Ask { text: "Second".to_owned(), chat: Which::Newest, files: vec![] });
    visitor.until_seen("waiting-chip");
    assert_eq!(visitor.texts("message-user"), ["First", "Second"]);
    assert!(!visitor.has("chat-stop") && !visitor.has("chat-error"));
    asking.abort();
    visitor.until_says("Kai didn’t answer this message.");
    assert!(!visitor.has("waiting-chip"));
}

#[test]
fn without_a_script_every_form_still_works() {
    let model = Model::start([Act::says("Hello there.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    let said = visitor.post("/say", "text=Hi%0D%0Ayou");
    assert_eq!((said.status, said.header("location")), (303, Some("/c/1")));
    visitor.open("/c/1");
    visitor.until_says("Answered by mine");
    assert!(visitor.says("Hello there.") && visitor.answer.text.contains(">Hi\nyou<"));
    for (path, status) in [("/c/7", 404), ("/c/x", 400)] {
        assert_eq!(house.get(path, &visitor.cookie).status, status, "{path}");
    }
    assert_eq!(visitor.post("/c/1/say", "text=+").status, 409, "nothing was said");
    assert_eq!(visitor.post("/click", "question=made-up&answer=allow").status, 409);
    let deleted = visitor.post("/c/1/delete", "a=b");
    assert_eq!((deleted.status, deleted.header("location")), (303, Some("/")));
    let restored = visitor.post("/undo", "number=1&act=restore");
    assert_eq!((restored.status, restored.header("location")), (303, Some("/c/2")));
    assert_eq!(house.get("/events", "").status, 401, "nobody is told anything without a session");
}

/// A report comes while Kai answers in the heartbeat's conversation: the answer goes on, and the report stands after it.
#[test]
fn a_report_does_not_get_in_the_way_of_an_answer() {
    let pieces = ["The rain", " of last night."];
    let model = Model::start([
        Act::says("The roof leaks."),
        Act::says_in_steps(&pieces),
        Act::says("The cellar is wet."),
        Act::says("The storm."),
    ]);
    let house = House::with_model(&model);
    let beat = || house.run("heartbeat_run", &json!({"force": true}))["report"].clone();
    assert_eq!(beat(), "The roof leaks.");
    let id = house.show("status")["heartbeat"]["report"].as_i64().unwrap();
    let mut visitor = house.visitor(&format!("/c/{id}"));
    say(&mut visitor, "Why?");
    let coming = |page: &Document| {
        let coming = page.having("class", "answer coming");
        coming.first().map(|at| page.text_of(*at).to_owned())
    };
    visitor.until("the beginning", |page, _| coming(page).as_deref() == Some("The rain"));
    assert_eq!(beat(), "The cellar is wet.");
    // The run is settled, and the page still shows the answer that comes, and nothing that looks like one.
    visitor.reload();
    assert_eq!(coming(&visitor.page).as_deref(), Some("The rain"));
    assert!(visitor.has("chat-stop"));
    assert_eq!(visitor.texts("message-assistant"), ["The roof leaks.", "The rain"]);
    model.go_on(pieces.len());
    until_answered(&mut visitor, 3);
    let said = ["The roof leaks.", "The rain of last night.", "The cellar is wet."];
    assert_eq!(visitor.texts("message-assistant"), said);
    visitor.press("chat-again");
    visitor.until("the other answer", |page, text| text.contains("The storm.") && coming(page).is_none());
    assert_eq!(visitor.texts("message-assistant"), ["The roof leaks.", "The cellar is wet.", "The storm."]);
}
