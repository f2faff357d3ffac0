//! One-time codes: hidden from the assistant until the person clicks, and again when they take it back.

use serde_json::json;

use crate::banners::use_model;
use crate::browser::Browser;
use crate::page::check;
use crate::phone::Phone;
use crate::provider::{Act, Provider};
use crate::sms::{ALICE, ready};

/// A phone with a code on it, and a model that reads the message whenever it is asked.
fn with_a_code(answers: usize) -> (Phone, Provider) {
    let asked = [Act::calls("read_sms", &json!({"id": 42})), Act::says("I have read it.")];
    let provider = Provider::start(std::iter::repeat_n(asked, answers).flatten());
    let phone = ready();
    use_model(&phone, &provider);
    phone.inbox(&[(41, ALICE, "before"), (42, "+15550177", "Your login code is 482913. Tell nobody.")]);
    phone.run(&["sms", "poll"]);
    (phone, provider)
}

fn newest_request(provider: &Provider) -> String {
    provider.asked().pop().unwrap().raw
}

#[test]
fn codes_are_shown_to_the_assistant_when_the_person_wants_it_and_in_no_file() {
    codes_are_shown_to_the_assistant_by_a_click_in_that_conversation_only();
    in_a_terminal_it_is_a_word_of_the_chat_and_an_export_holds_no_code();
}

fn codes_are_shown_to_the_assistant_by_a_click_in_that_conversation_only() {
    let (phone, provider) = with_a_code(4);
    let daemon = phone.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    assert!(browser.texts("taint").is_empty(), "nothing was read yet");
    let ask = |count: usize| {
        browser.type_into("chat-input", "What does it say?\u{e007}");
        let answered = format!("return document.querySelectorAll('.foot').length === {count}");
        browser.until("an answer", &answered);
        newest_request(&provider)
    };
    let hidden = ask(1);
    assert!(hidden.contains("[code]") && !hidden.contains("482913"), "{hidden}");
    browser.until_seen("taint");
    check(&browser, "a conversation that has read");
    assert!(browser.texts("taint-reason")[0].contains("+15550177"), "{:?}", browser.texts("taint-reason"));
    browser.picture("codes");
    // It is in the menu, and says what it does before it does it.
    browser.click("chat-menu");
    browser.click("codes-ask");
    browser.until_says("sends the codes in the messages that it reads in this chat to the model");
    check(&browser, "the question about codes");
    browser.picture("codes-ask");
    assert!(browser.texts("codes-shown").is_empty(), "it was not answered yet");
    browser.click("codes");
    browser.until_seen("codes-shown");
    let shown = ask(2);
    assert!(shown.contains("482913"), "{shown}");
    // Also what it was shown before.
    browser.click("chat-menu");
    browser.click("codes");
    browser.until_gone("codes-shown");
    let again = ask(3);
    assert!(!again.contains("482913"), "{again}");
    let ledger = phone.run(&["ledger", "show"]).out;
    let at = |words: &str| ledger.find(words).unwrap_or_else(|| panic!("{words}: {ledger}"));
    assert!(
        at("You hid one-time codes again (chat 1)") < at("You let the model see one-time codes (chat 1)")
    );
    browser.open(&format!("http://{}/new", daemon.address));
    let other = ask(1);
    assert!(!other.contains("482913"), "{other}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

fn in_a_terminal_it_is_a_word_of_the_chat_and_an_export_holds_no_code() {
    let (phone, provider) = with_a_code(3);
    phone.chats_on_terminal(&["chat"], "/codes\n", "Send a message first");
    phone.run(&["ask", "read it"]);
    phone.chats_on_terminal(&["chat", "--last"], "/codes\n", "Kai can now see one-time codes");
    phone.run(&["ask", "--last", "read it"]);
    let requests: Vec<String> = provider.asked().into_iter().map(|asked| asked.raw).collect();
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert!(!requests[1].contains("482913") && requests[3].contains("482913"), "{requests:?}");
    let export = phone.home.path().join("export.json");
    let export = export.to_str().unwrap();
    assert_eq!(phone.run(&["export", export]).code, 0);
    let taken = std::fs::read_to_string(export).unwrap();
    assert!(taken.contains("read it") && taken.contains("[code]") && !taken.contains("482913"), "{taken}");
    let hidden = phone.run(&["chats", "codes", "1", "hide", "--json"]).json();
    assert_eq!((&hidden["id"], &hidden["shown"]), (&json!(1), &json!(false)), "{hidden}");
    phone.run(&["ask", "--last", "read it"]);
    let last = newest_request(&provider);
    assert!(!last.contains("482913"), "hidden again by the command: {last}");
    phone.run(&["chats", "codes", "99", "show"]).refused(1, "no chat number 99");
}
