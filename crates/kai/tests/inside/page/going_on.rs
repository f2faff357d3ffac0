//! What goes on in a chat: an answer that was stopped, a message that waits or is edited, another model, and what Kai did.

use kai_assistant::agent::conversation::ConversationId;
use kai_assistant::agent::queued;
use kai_assistant::db::DbError;
use kai_assistant::untrusted::Attached;
use serde_json::json;

use super::document::Document;
use super::house::House;
use super::model::{Act, Model};
use super::visitor::Visitor;

fn say(visitor: &mut Visitor<'_>, text: &str) {
    visitor.fill("chat-input", text);
    visitor.press("chat-send");
}

fn until_answered(visitor: &mut Visitor<'_>, count: usize) {
    visitor.until("an answer", |page, _| {
        page.all("chat-copy").len() == count && page.all("chat-stop").is_empty()
    });
}

fn until_coming(visitor: &mut Visitor<'_>, expected: &str) {
    visitor.until(expected, |page: &Document, _| {
        page.having("class", "answer coming").first().is_some_and(|at| page.text_of(*at) == expected)
    });
}

/// What the model was asked last, without the prompt: who says it, and what.
fn asked(model: &Model) -> Vec<(String, String)> {
    let messages = model.asked().pop().unwrap().body["messages"].clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let all = messages.as_array().unwrap().iter().skip(1);
    all.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

fn pair(who: &str, what: &str) -> (String, String) {
    (who.to_owned(), what.to_owned())
}

#[test]
fn a_stopped_answer_is_no_failure_and_goes_on_where_it_ended() {
    let model = Model::start([
        Act::says_in_steps(&["One, ", "tw", "never"]),
        Act::says("two, three."),
        Act::says("Four."),
    ]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "Count");
    model.go_on(1);
    until_coming(&mut visitor, "One, tw");
    assert!(!visitor.has("rewrite"), "a message that is being answered cannot be edited");
    visitor.press("chat-stop");
    visitor.until_seen("chat-continue");
    assert!(visitor.says("You stopped this answer.") && !visitor.has("chat-error"), "it is no error");
    assert!(visitor.has("chat-again") && visitor.texts("message-assistant") == ["One, tw"]);
    visitor.press("chat-continue");
    until_answered(&mut visitor, 1);
    assert_eq!(visitor.texts("message-assistant"), ["One, two, three."], "one answer");
    assert!(!visitor.has("chat-stopped") && !visitor.has("chat-continue"));
    let told = asked(&model);
    assert_eq!(told[..2], [pair("user", "Count"), pair("assistant", "One, ")], "{told:?}");
    assert!(told.len() == 3 && told[2].1.contains("Continue exactly where it ends"), "{told:?}");
    say(&mut visitor, "More");
    until_answered(&mut visitor, 2);
    let whole = [pair("user", "Count"), pair("assistant", "One, two, three."), pair("user", "More")];
    assert_eq!(asked(&model), whole, "what asked it to go on is not part of the chat");
    let late = visitor.post("/c/1/continue", "");
    assert!(late.status == 409 && late.text.contains("This chat has changed"), "{}", late.text);
}

#[test]
fn what_is_sent_during_an_answer_waits_and_is_sent_once() {
    let model = Model::start([Act::says_in_steps(&["One", "."]), Act::says("Two."), Act::says("Three.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "A");
    until_coming(&mut visitor, "One");
    assert_eq!(visitor.attributes("chat-send", "title"), ["Send after this answer"]);
    for text in ["B", "C", "D"] {
        say(&mut visitor, text);
    }
    assert_eq!(visitor.texts("queued-text"), ["B", "C", "D"]);
    assert_eq!(visitor.texts("message-user"), ["A"], "not said yet");
    let mut other = house.visitor("/c/1");
    assert_eq!(other.texts("queued-text"), ["B", "C", "D"], "another page shows them");
    other.press_at(other.page.all("queued-remove")[1]);
    other.press("queued-edit");
    visitor.until_seen("queued-field");
    visitor.fill("queued-field", "B, <b>please</b>");
    visitor.press("queued-save");
    assert_eq!(visitor.texts("queued-text"), ["B, <b>please</b>", "D"]);
    let (mut one, mut two) = (visitor.follow(), other.follow());
    model.go_on(2);
    for open in [&mut one, &mut two] {
        while Document::new(&open.html()).all("chat-copy").len() < 3 {
            assert!(open.next(), "{}", open.html());
        }
    }
    until_answered(&mut visitor, 3);
    assert_eq!(visitor.texts("message-user"), ["A", "B, <b>please</b>", "D"]);
    assert_eq!(visitor.texts("message-assistant"), ["One.", "Two.", "Three."]);
    assert!(!visitor.has("queued"));
    assert_eq!(model.asked().len(), 3, "each once");
    let late = visitor.post("/c/1/queued", "number=1&act=edit");
    assert!(late.status == 409 && late.text.contains("already sent or removed"), "{}", late.text);
    assert_eq!(visitor.post("/c/1/queued", "number=1&act=dance").status, 400);
}

#[test]
fn a_stop_sends_nothing_and_loses_nothing() {
    let model = Model::start([Act::Hang, Act::says("Two.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "A");
    visitor.until_seen("chat-stop");
    say(&mut visitor, "B");
    assert!(visitor.says("Queued. Kai sends this after its answer.") && !visitor.has("queued-send"));
    model.wait_for_requests(1);
    visitor.press("chat-stop");
    visitor.until_seen("queued-send");
    assert!(visitor.says("Not sent yet.") && visitor.has("chat-stopped"));
    assert!(!visitor.has("chat-continue"), "nothing was said that could go on");
    assert_eq!(model.asked().len(), 1, "it was not sent by itself");
    visitor.press_at(visitor.within(("id", "chat-1"), "chat-options"));
    visitor.press("chat-delete");
    visitor.press("undo");
    assert_eq!(visitor.texts("queued-text"), ["B"], "it comes back with its chat");
    visitor.press("queued-send");
    visitor.until("the answer", |_, text| text.contains("Two."));
    assert_eq!(visitor.texts("message-user"), ["A", "B"]);
    assert!(!visitor.has("queued"));
}

#[test]
fn what_is_being_edited_waits_for_the_person() {
    let model = Model::start([Act::says_in_steps(&["One", "."]), Act::says("Two.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "A");
    until_coming(&mut visitor, "One");
    say(&mut visitor, "B");
    visitor.press("queued-edit");
    assert_eq!(visitor.value("queued-field"), "B");
    model.go_on(2);
    until_answered(&mut visitor, 1);
    assert!(visitor.has("queued-field") && model.asked().len() == 1, "half a message is not sent");
    visitor.fill("queued-field", " ");
    visitor.press("queued-save");
    assert!(visitor.answer.status == 409 && visitor.says("The message is empty."));
    visitor.open("/c/1");
    visitor.press("queued-cancel");
    until_answered(&mut visitor, 2);
    assert_eq!(visitor.texts("message-user"), ["A", "B"], "as it was, once it is let go");
}

/// Kai died after the answer and before it sent what was queued.
#[test]
fn nothing_is_sent_by_editing_or_removing_another_message() {
    let model = Model::start([Act::says("One."), Act::says("Three.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "A");
    until_answered(&mut visitor, 1);
    let queue = |tx: &rusqlite::Transaction<'_>| {
        ["B", "C"].iter().try_for_each(|text| queued::add(tx, ConversationId(1), text, &[]))
    };
    house.app.db.write_now(queue).unwrap_or_else(|error: DbError| panic!("{error}"));
    visitor.open("/c/1");
    visitor.press("queued-edit");
    visitor.press("queued-cancel");
    let second = queued_number(&visitor, 1);
    visitor.press("queued-remove");
    assert_eq!(visitor.texts("queued-text"), ["C"]);
    assert_eq!(model.asked().len(), 1, "only a tap on Send sends");
    let stale = visitor.post("/c/1/queued", "number=1&act=send");
    assert!(
        stale.status == 409 && model.asked().len() == 1,
        "the one that was meant is gone: {}",
        stale.text
    );
    let sent = visitor.post("/c/1/queued", &format!("number={second}&act=send"));
    assert!(sent.status < 400, "{}", sent.text);
    until_answered(&mut visitor, 2);
    assert_eq!(visitor.texts("message-user"), ["A", "C"]);
}

fn queued_number(visitor: &Visitor<'_>, at: usize) -> String {
    let all = visitor.page.having("name", "number");
    visitor.page.attribute(all[at], "value").unwrap().to_owned()
}

/// A command answers in the chat, and the page does not interrupt it.
#[test]
fn what_is_sent_while_a_command_answers_waits_as_well() {
    let model = Model::start([Act::says("One."), Act::says_in_steps(&["Two", "."]), Act::says("Three.")]);
    let house = House::with_model(&model);
    house.ask("First");
    let mut visitor = house.visitor("/");
    let which = kai_assistant::agent::conversation::Which::Newest;
    let asking =
        house.begin(crate::call::Call::Ask { text: "Second".to_owned(), chat: which, files: vec![] });
    visitor.until_seen("waiting-chip");
    say(&mut visitor, "Third");
    assert_eq!(visitor.texts("queued-text"), ["Third"]);
    model.go_on(2);
    until_answered(&mut visitor, 3);
    assert_eq!(visitor.texts("message-user"), ["First", "Second", "Third"]);
    assert!(asking.is_finished());
}

#[test]
fn the_last_message_is_edited_in_its_place_and_the_ledger_forgets_nothing() {
    let model = Model::start([Act::says("Coffee."), Act::says("Green."), Act::says("Black.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "Which tee?");
    until_answered(&mut visitor, 1);
    let mut other = house.visitor("/c/1");
    visitor.fill("rewrite-text", "Which tea?\nOnly one.");
    visitor.press("rewrite-send");
    visitor
        .until("the other answer", |page, text| text.contains("Green.") && page.all("chat-stop").is_empty());
    assert_eq!(visitor.texts("message-user"), ["Which tea?\nOnly one."]);
    assert_eq!(visitor.texts("message-assistant"), ["Green."]);
    let listed = visitor.text_of_children("conversation-list").concat();
    assert!(
        listed.contains("Which tea? Only one.") && !listed.contains("tee"),
        "the title follows: {listed}"
    );
    assert_eq!(
        asked(&model),
        [pair("user", "Which tea?\nOnly one.")],
        "the model is not told what it replaced"
    );
    other.fill("rewrite-text", "Which shirt?");
    other.press("rewrite-send");
    assert!(other.answer.status == 409 && other.says("This chat has changed"), "{}", other.answer.text);
    let call = json!({"sections": ["conversations"], "passphrase": null, "from": null});
    let export = house.run("export", &call).to_string();
    assert!(export.contains("Which tea?") && !export.contains("Which tee?"), "{export}");
    assert_eq!(house.run("ledger", &json!("verify"))["whole"], true);
    visitor.open("/ledger");
    let requests = visitor.attributes("ledger-line", "data-kind");
    assert_eq!(requests.iter().filter(|kind| **kind == "request").count(), 2, "both were sent");
    visitor.open("/c/1");
    visitor.fill("rewrite-text", "  ");
    visitor.press("rewrite-send");
    assert!(visitor.answer.status == 409 && visitor.says("The message is empty."));
}

#[test]
fn what_was_attached_stays_when_the_words_are_edited() {
    let model = Model::start([Act::says("A."), Act::says("B.")]);
    let house = House::with_model(&model);
    house.ask(&Attached::to("Sum it up.", "A long file."));
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.value("rewrite-text"), "Sum it up.");
    visitor.fill("rewrite-text", "Translate it.");
    visitor.press("rewrite-send");
    visitor.until_says("B.");
    assert_eq!(asked(&model), [pair("user", &Attached::to("Translate it.", "A long file."))]);
    assert_eq!(visitor.attributes("taint", "data-level"), ["web"]);
}

#[test]
fn a_chat_has_a_model_of_its_own() {
    let (mine, other) = (Model::start([Act::says("Mine.")]), Model::start([Act::says("Other.")]));
    let house = House::with_model(&mine);
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.texts("model-only"), ["mine · on this computer"], "nothing to choose");
    house.add_model("other", &other.base_url, None);
    house.add_model("far", "https://models.example/v1", Some("k"));
    visitor.reload();
    let options = visitor.text_of_children("model-picker");
    let expected =
        ["Automatic (mine · on this computer)", "mine · on this computer", "other · on this computer", "far"];
    assert_eq!(options, expected);
    say(&mut visitor, "Who?");
    until_answered(&mut visitor, 1);
    assert_eq!(visitor.texts("message-assistant"), ["Mine."]);
    assert_eq!(visitor.post("/c/1/model", "model=other").status, 303);
    visitor.reload();
    assert_eq!(visitor.value("model-picker"), "other");
    visitor.press("chat-again");
    visitor.until("the other's answer", |page, text| {
        text.contains("Other.") && page.all("chat-stop").is_empty()
    });
    assert!(visitor.says("Answered by other"));
    assert_eq!(house.run("ask", &json!({"text": "And here?", "chat": {"id": 1}}))["text"], "Other.");
    visitor.open("/new");
    visitor.page.fill(visitor.first("model-picker"), "other");
    say(&mut visitor, "A new one");
    until_answered(&mut visitor, 1);
    assert_eq!(
        (visitor.texts("message-assistant"), visitor.value("model-picker")),
        (vec!["Other."], "other".to_owned())
    );
    house.run("models_remove", &json!({"name": "other"}));
    say(&mut visitor, "Still there?");
    assert!(
        visitor.answer.status == 409
            && visitor.says("other, which you chose for this chat, isn’t available.")
    );
    assert_eq!(visitor.value("chat-input"), "Still there?");
    assert!(visitor.text_of_children("model-picker").contains(&"other (not available)".to_owned()));
    assert_eq!(mine.asked().len(), 1, "nobody else is asked in its place");
    visitor.post("/c/2/model", "model=");
    visitor.open("/c/2");
    say(&mut visitor, "Again");
    until_answered(&mut visitor, 2);
    assert_eq!(visitor.texts("message-assistant")[1], "Mine.");
    assert_eq!(visitor.post("/c/9/model", "model=mine").status, 409, "there is no such chat");
}

#[test]
fn what_kai_did_and_what_it_cost_are_said_in_words() {
    let model = Model::start([
        Act::calls("get_local_time", &json!({})),
        Act::calls("made_up", &json!({"a": "<b>"})),
        Act::says("Noon."),
    ]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor("/");
    say(&mut visitor, "What time is it?");
    until_answered(&mut visitor, 1);
    let did = visitor.texts("did");
    assert_eq!(did[0], "Checked the time.");
    assert_eq!(did[1], "“made_up” didn’t work: There is no tool called made_up.");
    let exact = visitor.texts("did-exact");
    assert!(exact[0].contains("get_local_time") && exact[0].contains("timezone"), "{exact:?}");
    assert!(exact[1].contains("{\"a\":\"<b>\"}"), "{exact:?}");
    assert!(visitor.attributes("did-exact", "open").is_empty(), "one tap away");
    let cost = visitor.texts("cost");
    assert_eq!(cost, ["DetailsTokens: 11 read, 7 written · Time: 0 ms"]);
    house.set("language", "de");
    visitor.reload();
    assert_eq!(visitor.texts("did")[0], "Die Uhrzeit abgefragt.");
    assert_eq!(visitor.texts("cost"), ["DetailsTokens: 11 gelesen, 7 geschrieben · Dauer: 0 ms"]);
}

#[test]
fn suggestions_fit_what_is_connected() {
    let model = Model::start([Act::says("x")]);
    let house = House::new();
    let mut visitor = house.visitor("/");
    assert!(!visitor.has("idea"), "without a model nobody could answer them");
    house.use_model(&model);
    visitor.reload();
    let news = "What’s in the news today?";
    assert!(visitor.texts("idea").contains(&news), "{:?}", visitor.texts("idea"));
    assert!(!visitor.says("Did anything need an answer today?"));
    house.set("tool_enabled_web_search", "false");
    visitor.reload();
    assert!(!visitor.says(news));
    for (setting, idea) in [
        ("memory_enabled", "Remember that I like green tea"),
        ("scheduling_enabled", "Remind me tomorrow at 9 to water the plants"),
    ] {
        house.set(setting, "false");
        visitor.reload();
        assert!(!visitor.says(idea), "{setting}");
    }
}
