//! The demo, capability by capability: what its script drafts leaves by a tap, and stays inside of the process.

use kai_assistant::source::SourceId;
use kai_words::Lang;
use serde_json::{Value, json};

use super::house::House;
use super::phones::until_connected;
use super::visitor::Visitor;
use crate::machine::messages::Simulated;

const WORK: SourceId = SourceId(2);

fn demo() -> (House, Simulated) {
    let house = House::demo();
    let simulated = house.app.messages.demo.clone().unwrap();
    until_connected(&house, WORK, true);
    (house, simulated)
}

/// What the script answers in a new chat.
fn asked(house: &House, text: &str) -> String {
    house.ask(text)["text"].as_str().unwrap().to_owned()
}

/// The text of the group of the inbox that holds these words.
fn group(page: &mut Visitor<'_>, words: &str) -> String {
    page.until_says(words);
    let found = page.texts("inbox-group").into_iter().find(|group| group.contains(words));
    found.unwrap_or_else(|| panic!("no {words}: {:?}", page.texts("inbox-group"))).to_owned()
}

/// Taps Send on the draft to this address, which says that it leaves so.
fn tap(house: &House, to: &str, by: &str) {
    let drafts = house.run("drafts", &json!("list"));
    let draft = drafts.as_array().unwrap().iter().find(|draft| draft["to"] == to);
    let draft = draft.unwrap_or_else(|| panic!("no draft to {to}: {drafts}"));
    let id = draft["id"].to_string();
    assert_eq!(draft["status"], "PENDING", "{draft}");
    let mut page = house.visitor("/");
    let card = page.page.having("data-draft", &id)[0];
    assert!(page.page.text_of(card).contains(by), "{}", page.page.text_of(card));
    let send = page.within(("data-draft", &id), "draft-send");
    page.press_at(send);
    page.until("it is sent", |page, _| {
        page.having("data-draft", &id).iter().any(|at| page.attribute(*at, "data-status") == Some("SENT"))
    });
}

#[test]
fn each_phone_is_answered_by_itself() {
    let (house, simulated) = demo();
    let mut inbox = house.visitor("/inbox");
    let work = group(&mut inbox, "Can we move tomorrow");
    assert!(work.contains("Work phone") && work.contains("Priya Nair"), "with the name of a contact: {work}");
    let dinner = group(&mut inbox, "Are you free for dinner");
    assert!(dinner.contains("Private phone") && !dinner.contains("Work phone"), "{dinner}");

    for idea in ["Answer the dinner message", "Answer Priya at work"] {
        assert!(asked(&house, idea).contains("waits for your tap"), "{idea}");
    }
    assert_eq!(
        (simulated.phone.sent_count(), simulated.work.sent().len()),
        (0, 0),
        "nothing leaves by itself"
    );
    tap(&house, "+15550166", "Work phone");
    assert_eq!((simulated.phone.sent_count(), simulated.work.sent().len()), (0, 1));
    assert_eq!(simulated.work.sent()[0].to, ["+15550166"]);
    tap(&house, "+15550123", "Private phone");
    assert_eq!((simulated.phone.sent_count(), simulated.work.sent().len()), (1, 1));
    assert_eq!(simulated.phone.sent()[0].to, "+15550123");
}

#[test]
fn the_phones_page_shows_both_and_what_they_may_do() {
    let (house, _) = demo();
    let mut page = house.visitor("/settings/phones");
    assert!(page.says("Private phone, simulated") && page.says("Both phones are simulated"));
    assert_eq!(page.texts("paired-phone").len(), 1);
    assert_eq!(page.texts("phone-state"), ["Connected"]);
    for (switch, on) in
        [("read_sms", true), ("send_sms", true), ("names", true), ("notifications", false), ("tell", false)]
    {
        assert_eq!(page.is_on(&format!("phone-{switch}")), on, "{switch}");
    }
    assert!(!page.has("pair-search") && !page.has("phone-trouble"), "nothing is searched for");
    // What is turned off for it is off: its drafts wait in vain.
    assert!(asked(&house, "Answer Priya at work").contains("waits for your tap"));
    page.press("phone-send_sms");
    let refused = house.try_to("phones", &json!({"search": {"on": true}})).unwrap_err();
    assert_eq!(refused.message.to_string(), Lang::ENGLISH.lacks_in_demo());
}

#[test]
fn a_mail_is_read_without_its_code_and_answered_by_a_tap() {
    let (house, simulated) = demo();
    let mut page = house.visitor("/inbox");
    assert!(group(&mut page, "Our three photos").contains("Mia Lindqvist"));
    assert!(group(&mut page, "Your sign-in code").contains("604 211"), "the user sees the code");
    group(&mut page, "Five routes for the long weekend");
    let new = asked(&house, "Is there new mail?");
    assert!(new.contains("[code]") && !new.contains("604"), "{new}");
    assert!(new.contains("Mia Lindqvist") && !new.contains("Night Train"), "newsletters are counted: {new}");
    let code = asked(&house, "What code did the bank send?");
    assert!(code.contains("> Your one-time code is [code].") && !code.contains("604"), "{code}");
    let read = asked(&house, "What did Mia write by mail?");
    assert!(read.contains("> The print shop needs our photos by Thursday."), "{read}");

    assert!(asked(&house, "Answer Mia").contains("waits for your tap"));
    assert_eq!(simulated.mailbox.sent(), [], "nothing leaves by itself");
    tap(&house, "mia@example.com", "you@example.org");
    let sent = simulated.mailbox.sent();
    assert_eq!((sent.len(), sent[0].to.as_slice()), (1, &["mia@example.com".to_owned()][..]));
    assert_eq!(sent[0].envelope.subject, "Re: Our three photos");
    house.wait(crate::daemon::mail::look(&house.app));
    assert_eq!(simulated.mailbox.sent().len(), 1, "its copy is the same mail");

    page.open("/settings/agent");
    assert!(page.says("you@example.org") && page.says("This account is simulated"));
    assert!(!page.has("email-add"), "no other account can be added");
    let refused = house.try_to("email", &json!({"add": {"address": "me@example.com", "password": "x"}}));
    assert!(refused.unwrap_err().message.to_string().contains("everything here is simulated"));
}

#[test]
fn a_server_is_asked_and_changes_something_only_after_a_yes() {
    let (house, simulated) = demo();
    assert!(asked(&house, "What will the weather be?").contains("dry until noon, then rain"));
    assert_eq!(asked(&house, "Warn me if it rains"), "Then I leave it.", "a command cannot say yes");
    assert_eq!(simulated.weather.alerts(), Vec::<String>::new());
    for (button, alerts) in [("click-deny", 0), ("click-allow", 1)] {
        let mut page = house.visitor("/");
        page.fill("chat-input", "Warn me if it rains");
        page.press("chat-send");
        page.until_seen("click-card");
        assert_eq!(simulated.weather.alerts().len(), 0, "it waits for the answer");
        page.press(button);
        page.until_says(if alerts == 0 { "Then I leave it." } else { "The weather server will warn you." });
        assert_eq!(simulated.weather.alerts().len(), alerts);
    }
    let mut page = house.visitor("/settings/mcp");
    assert!(page.says("simulated weather") && page.says("This server is simulated."));
    page.press("mcp-tools");
    assert_eq!(page.attributes("mcp-tool", "data-tool"), ["forecast", "set_rain_alert"]);
    assert!(!page.has("mcp-add-save"), "no other server can be added");
    page.open("/ledger");
    assert!(page.says("weather"));
}

#[test]
fn the_model_on_this_computer_is_chosen_like_any_other() {
    let (house, _) = demo();
    let mut page = house.visitor("/settings/models");
    assert_eq!(
        page.attributes("model", "data-model"),
        ["demo (plays a script)", "small model (plays a script)"]
    );
    assert!(page.texts("model")[1].contains("On this computer"), "{:?}", page.texts("model"));
    page.open("/");
    let options = page.text_of_children("model-picker");
    assert!(options.contains(&"small model (plays a script) · on this computer".to_owned()), "{options:?}");
    page.page.fill(page.first("model-picker"), "small model (plays a script)");
    page.fill("chat-input", "What time is it?");
    page.press("chat-send");
    page.until_says("Answered by small model (plays a script)");
    page.open("/ledger");
    assert!(page.says("to small model (plays a script)") && page.says("stayed here"));
}

/// Whatever the store kept of the last start is replaced.
#[test]
fn another_start_doubles_nothing() {
    let (house, _) = demo();
    let counted = || {
        let rows = |what: &str| house.run(what, &json!("list")).as_array().unwrap().clone();
        let names = |rows: Vec<Value>, name: &str| -> Vec<Value> {
            rows.iter().map(|row| row[name].clone()).collect()
        };
        let mails = house.run("email", &json!({"search": {"text": "photos"}}))["emails"].clone();
        let mail_ids = names(mails.as_array().unwrap().clone(), "subject").len();
        (
            names(rows("phones"), "name"),
            names(rows("email"), "address"),
            names(rows("email"), "queued"),
            names(rows("mcp"), "name"),
            rows("drafts").len(),
            mail_ids > 0,
        )
    };
    let expected = (
        vec![json!("Work phone")],
        vec![json!("you@example.org")],
        vec![json!(2)],
        vec![json!("weather")],
        0,
        true,
    );
    assert_eq!(counted(), expected);
    asked(&house, "Answer the dinner message");
    house.wait(crate::demo::prepare(&house.app)).unwrap();
    assert_eq!(counted(), expected);
}

/// Every suggestion of the page is understood, in both languages: none gets the script's excuse.
#[test]
fn every_suggestion_has_an_answer() {
    let (house, _) = demo();
    // Who has chatted sees the chat instead of them, so they are read first.
    let suggested = |language: &str| -> Vec<String> {
        house.set("language", language);
        house.visitor("/").texts("idea").into_iter().map(str::to_owned).collect()
    };
    let ideas = [suggested("en"), suggested("de")];
    assert_eq!(ideas.each_ref().map(Vec::len), [7, 7], "{ideas:?}");
    for idea in ideas.iter().flatten() {
        let answer = asked(&house, idea);
        let excuses = ["I am the demo's script", "off in the settings", "nobody to answer"];
        assert!(!excuses.iter().any(|excuse| answer.contains(excuse)), "{idea}: {answer}");
    }
}
