//! The inbox: what was received, on the page of a Kai with a phone.

use kai_assistant::inbox::{Key, Mark};
use serde_json::json;

use super::agent::HOSTILE;
use super::german::assert_german;
use super::house::House;
use super::model::{Act, Model};
use super::phone::{ALICE, Phone, poll, ready};

const INBOX: &str = "/inbox";

/// Alice's question waits in the queue; what was there before does not.
fn asked() -> (Phone, House) {
    let (phone, house) = ready();
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner at 8? The door code is 482913.")]);
    poll(&house);
    (phone, house)
}

fn drafts(house: &House) -> serde_json::Value {
    house.run("drafts", &json!("list"))
}

#[test]
fn messages_are_listed_at_once_as_far_as_they_wait_and_then_all() {
    let (_phone, house) = asked();
    let mut visitor = house.visitor(INBOX);
    assert!(visitor.has("inbox-list") && visitor.has("inbox-search"));
    assert_eq!(visitor.texts("inbox-item").len(), 1, "what the queue has needs no phone");
    visitor.until("all messages", |page, _| page.all("inbox-item").len() == 2);
    assert_eq!(visitor.texts("inbox-group").len(), 1, "one conversation");
    assert_eq!(visitor.texts("inbox-waiting").len(), 1);
    assert!(visitor.texts("inbox-item")[0].contains("482913"), "{:?}", visitor.texts("inbox-item"));
    assert!(!visitor.has("inbox-loading") && !visitor.has("inbox-older"));
    for (query, count) in [("find=DINNER", 1), ("find=nothing", 0), ("from=notification", 0), ("from=sms", 2)]
    {
        visitor.open(&format!("{INBOX}?{query}"));
        visitor.until(query, |page, _| {
            page.all("inbox-loading").is_empty() && page.all("inbox-item").len() == count
        });
    }
    visitor.open(&format!("{INBOX}?show=waiting"));
    assert_eq!(visitor.texts("inbox-item").len(), 1);
}

/// A GET changes nothing, so loading the page does not mark the message; the script, or the button without one, does.
#[test]
fn a_message_is_whole_has_its_codes_and_is_marked_when_it_is_opened() {
    let (_phone, house) = asked();
    let mut visitor = house.visitor("/inbox/sms-42");
    visitor.until_text("inbox-text", "Dinner at 8? The door code is 482913.");
    assert!(visitor.has("inbox-read"), "it is unread still");
    assert_eq!(house.visitor("/new").texts("inbox-count"), ["1 unread"]);
    visitor.press("inbox-read");
    assert!(!visitor.has("inbox-read"));
    assert!(!house.visitor("/new").has("inbox-count"));
    visitor.open(INBOX);
    visitor.until("all messages", |page, _| page.all("inbox-item").len() == 2);
    assert_eq!(visitor.texts("inbox-unread").len(), 1, "the other one was not opened");
    visitor.open("/inbox/sms-99");
    visitor.until_seen("inbox-gone");
    for path in ["/inbox/42", "/inbox/mail-1", "/inbox/sms-x", "/inbox/%2e%2e"] {
        assert_eq!(house.get(path, &visitor.cookie).status, 404, "{path}");
    }
}

#[test]
fn a_dismissed_message_leaves_the_list_and_the_queue_and_can_be_put_back() {
    let (_phone, house) = asked();
    let mut visitor = house.visitor("/inbox/sms-42");
    visitor.until_seen("inbox-text");
    visitor.press("inbox-dismiss");
    assert_eq!(visitor.path, INBOX);
    visitor.until("one message", |page, _| page.all("inbox-item").len() == 1);
    assert_eq!(house.run("sms", &json!("list")), json!([]), "no heartbeat tells of it");
    visitor.open(&format!("{INBOX}?show=dismissed"));
    visitor.until_seen("inbox-dismissed");
    visitor.press_at(visitor.page.having("href", "/inbox/sms-42")[0]);
    visitor.press("inbox-restore");
    visitor.open(INBOX);
    visitor.until("both messages", |page, _| page.all("inbox-item").len() == 2);
}

#[test]
fn a_reply_is_the_users_own_draft_and_leaves_by_the_tap_alone() {
    let (phone, house) = asked();
    let mut visitor = house.visitor("/inbox/sms-42");
    visitor.until_seen("inbox-body");
    visitor.fill("inbox-body", " Yes,\nat 8 ");
    visitor.press("inbox-reply");
    assert!(visitor.has("inbox-drafted") && visitor.has("draft-card"), "{}", visitor.answer.text);
    let staged = drafts(&house);
    let told = |field: &str| staged[0][field].clone();
    assert_eq!(
        (told("to"), told("body"), told("status")),
        (json!(ALICE), json!("Yes,\nat 8"), json!("PENDING"))
    );
    assert_eq!((told("origin"), told("in_reply_to")), (json!("user"), json!(42)));
    assert!(visitor.texts("draft-card")[0].contains("written by you"));
    assert!(visitor.texts("draft-quoted")[0].contains("Dinner at 8?"), "{:?}", visitor.texts("draft-quoted"));
    assert_eq!(phone.left(), "", "nothing leaves by itself");
    // Blank, too long, or to another message than was shown: refused, in words.
    for (body, says) in [
        ("body=+%0a&date=0".to_owned(), "The reply is empty."),
        (format!("body={}&date=0", "x".repeat(10_001)), "too long"),
        ("body=Yes&date=0".to_owned(), "another message in this place"),
    ] {
        let answer = visitor.post("/inbox/sms-42/reply", &body);
        assert!(answer.status == 409 && answer.text.contains(says), "{says}: {}", answer.text);
    }
    assert_eq!(drafts(&house).as_array().unwrap().len(), 1);
    visitor.press("draft-send");
    visitor.until_says("handed to the phone");
    assert_eq!(phone.left(), format!("{ALICE}|Yes,\nat 8\n"));
    house.set("sms_send_enabled", "false");
    visitor.reload();
    assert!(visitor.has("inbox-no-reply") && !visitor.has("inbox-body"));
    let off = visitor.post("/inbox/sms-42/reply", "body=Yes&date=0");
    assert_eq!(off.status, 409);
}

/// The chat holds a stranger's words from its first request on, the ledger names them, and no code leaves.
#[test]
fn kai_is_asked_about_a_message_as_somebody_elses_text() {
    let store = json!({"key": "door", "content": "x"});
    let model = Model::start([
        Act::calls("memory_store", &store),
        Act::says("Alice asks about dinner."),
        Act::says("At 8."),
    ]);
    let (_phone, house) = asked();
    house.use_model(&model);
    let mut visitor = house.visitor("/inbox/sms-42");
    visitor.until_seen("inbox-text");
    visitor.fill("inbox-question", "Who is that?");
    visitor.press("inbox-ask");
    assert!(visitor.path.starts_with("/c/"), "{}", visitor.path);
    visitor.until_seen("click-card");
    visitor.press("click-deny");
    visitor.until_says("Answered by");
    assert_eq!(visitor.attributes("taint", "data-level"), ["people"]);
    assert!(visitor.texts("message-user")[0].starts_with("Who is that?"));
    let first = &model.asked()[0].raw;
    assert!(first.contains("somebody sent to the user") && first.contains("[code]"), "{first}");
    assert!(!first.contains("482913"), "{first}");
    let saw = || house.run("ledger", &json!({"who": {"id": "42"}})).as_array().unwrap().len();
    assert_eq!(saw(), 2, "both requests held it");
    visitor.fill("chat-input", "When?");
    visitor.press("chat-send");
    visitor.until_says("At 8.");
    assert_eq!(saw(), 3, "and so does every later one");
}

#[test]
fn kai_drafts_a_reply_when_it_is_asked_to() {
    let reply = json!({"sms_id": 42, "body": "Yes, gladly."});
    let model = Model::start([Act::calls("reply_sms", &reply), Act::says("It is drafted.")]);
    let (phone, house) = asked();
    let mut visitor = house.visitor("/inbox/sms-42");
    visitor.until_seen("inbox-text");
    visitor.press("inbox-ask-draft");
    assert!(visitor.answer.status == 409 && visitor.says("No model is set up"), "{}", visitor.answer.text);
    assert_eq!(house.show("chats_list"), json!([]), "no empty chat is left behind");
    house.use_model(&model);
    visitor.open("/inbox/sms-42");
    visitor.press("inbox-ask-draft");
    visitor.until_says("It is drafted.");
    assert_eq!(visitor.texts("draft-body"), ["Yes, gladly."]);
    assert!(visitor.texts("message-user")[0].starts_with("Draft a reply to this message."));
    assert_eq!(phone.left(), "");
}

#[test]
fn what_strangers_write_is_text_and_what_is_open_stays_true() {
    let (phone, house) = ready();
    let mut visitor = house.visitor(INBOX);
    visitor.until("what was there before", |page, _| page.all("inbox-item").len() == 1);
    phone.inbox(&[(41, ALICE, "before"), (42, HOSTILE, HOSTILE)]);
    // A poll that is newer than what the page has read makes it read again.
    house.clock.advance(jiff::SignedDuration::from_secs(1));
    poll(&house);
    visitor.until("the new one", |page, _| page.all("inbox-item").len() == 2);
    assert!(!visitor.answer.text.contains(HOSTILE), "it is escaped");
    visitor.open("/inbox/sms-42");
    visitor.until_seen("inbox-text");
    assert_eq!(visitor.texts("inbox-text"), [HOSTILE]);
    assert!(
        visitor.has("inbox-no-reply") && !visitor.has("inbox-ask-draft"),
        "such a sender has no number, so nobody can reply"
    );
    // A phone that does not answer hides nothing that is known.
    phone.program("termux-sms-list", "echo broken >&2; exit 1");
    house.clock.advance(jiff::SignedDuration::from_secs(61));
    visitor.open(INBOX);
    visitor.until_seen("inbox-failed");
    assert_eq!(visitor.texts("inbox-item").len(), 2);
    house.set("language", "de");
    visitor.reload();
    assert_german(&visitor.texts("inbox-failed"), "Einige Nachrichten konnten nicht gelesen werden");
}

#[test]
fn without_any_source_the_inbox_says_so() {
    let house = House::new();
    let visitor = house.visitor(INBOX);
    assert!(visitor.has("inbox-empty") && visitor.says("No messages yet"));
    assert_eq!(house.get(INBOX, "").status, 401, "nobody is signed in");
    let source = Key::new("sms", 1);
    let marked = house.wait(crate::commands::inbox::mark(&house.app, source, Mark::Opened));
    assert!(!marked.unwrap(), "there is no such message");
}
