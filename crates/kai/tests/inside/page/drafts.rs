//! Drafts on the page, besides sending them: edited, discarded and taken back, and how several of them are shown.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::house::House;
use super::phone::{ALICE, draft, ready};

const BOB: &str = "+15550199";

fn rows(house: &House) -> Vec<Value> {
    house.run("drafts", &json!("list")).as_array().unwrap().clone()
}

#[test]
fn a_draft_is_edited_where_it_stands_and_the_old_one_is_not_sent() {
    let (phone, house) = ready();
    let id = draft(&house, ALICE, "See you\nat 8");
    let other = house.visitor("/");
    let mut visitor = house.visitor("/");
    assert!(!visitor.has("draft-unknown-recipient"), "Alice wrote before");
    assert!(!visitor.says("edited by you"));
    visitor.press("draft-edit");
    assert_eq!(visitor.path, format!("/?edit={id}"));
    assert_eq!(
        (visitor.value("draft-edit-to"), visitor.value("draft-edit-body")),
        (ALICE.to_owned(), "See you\nat 8".to_owned())
    );
    assert!(!visitor.has("draft-send"), "nothing is sent while it is edited");
    visitor.fill("draft-edit-to", "+1 555 0199");
    visitor.fill("draft-edit-body", "See you\nat 9");
    visitor.press("draft-save");
    assert_eq!(visitor.path, "/", "the form is closed");
    assert_eq!(visitor.texts("draft-body"), ["See you\nat 9"]);
    assert_eq!(visitor.texts("draft-to"), [BOB]);
    assert!(visitor.says("from the command line, edited by you"));
    assert_eq!(
        visitor.texts("draft-unknown-recipient"),
        ["You haven’t exchanged messages with this number before."],
        "the warning counts for the new number"
    );
    // The other page still shows what it was.
    let stale = other.sent(other.first("draft-send"), &[]);
    assert!(stale.status == 409 && stale.text.contains("changed after you saw it"), "{}", stale.text);
    assert_eq!(phone.left(), "");
    visitor.press("draft-send");
    visitor.until_says("handed to the phone");
    assert_eq!(phone.left(), format!("{BOB}|See you\nat 9\n"));
    assert!(visitor.says(&format!("Sent to {BOB}")));
    visitor.open("/ledger");
    assert!(visitor.says(&format!("You edited draft {id}, which now goes to {BOB}")));
}

#[test]
fn of_two_pages_that_edit_one_is_told_and_loses_nothing() {
    let (_phone, house) = ready();
    let id = draft(&house, ALICE, "First");
    let mut one = house.visitor(&format!("/?edit={id}"));
    let mut two = house.visitor(&format!("/?edit={id}"));
    one.fill("draft-edit-body", "Second");
    one.press("draft-save");
    two.fill("draft-edit-body", "Third");
    let told = two.press_live("draft-save");
    assert!(told["error"].as_str().unwrap().contains("changed elsewhere"), "{told}");
    assert_eq!(rows(&house)[0]["body"], "Second");
    // What the script is told has no address: it stays where it is.
    two.fill("draft-edit-body", "Third");
    assert_eq!(two.press_live("draft-save"), json!({}));
    assert_eq!(rows(&house)[0]["body"], "Third");
}

#[test]
fn what_cannot_be_sent_is_not_saved() {
    let (_phone, house) = ready();
    let id = draft(&house, ALICE, "Hi");
    let mut visitor = house.visitor("/");
    for (to, body, says) in [
        ("Mom", "Hi", "Enter a phone number"),
        (ALICE, " \n", "A message can’t be empty"),
        (ALICE, &"x".repeat(10_001), "10,001 characters"),
    ] {
        visitor.open(&format!("/?edit={id}"));
        visitor.fill("draft-edit-to", to);
        visitor.fill("draft-edit-body", body);
        let told = visitor.press_live("draft-save");
        assert!(told["error"].as_str().unwrap().contains(says), "{told}");
    }
    assert_eq!((&rows(&house)[0]["to"], &rows(&house)[0]["body"]), (&json!(ALICE), &json!("Hi")));
    house.set("language", "de");
    visitor.open(&format!("/?edit={id}"));
    assert_eq!(visitor.texts("draft-save"), ["Speichern"]);
    visitor.fill("draft-edit-to", "Oma");
    let told = visitor.press_live("draft-save");
    assert!(told["error"].as_str().unwrap().contains("Geben Sie eine Telefonnummer ein"), "{told}");
    assert_eq!(visitor.post("/drafts/99/edit", "seen=0&body=x").status, 409);
    assert_eq!(visitor.post("/drafts/99/edit", "body=x").status, 400);
}

#[test]
fn a_discarded_draft_comes_back_within_ten_seconds() {
    let (phone, house) = ready();
    draft(&house, ALICE, "Hi");
    let before = rows(&house);
    let mut visitor = house.visitor("/");
    visitor.press("draft-discard");
    assert!(!visitor.has("draft-card") && rows(&house).is_empty());
    assert!(visitor.says(&format!("Discarded the draft to {ALICE}.")));
    visitor.press("draft-undo");
    assert_eq!((visitor.has("draft-undo"), rows(&house)), (false, before));
    visitor.press("draft-discard");
    let undo = visitor.first("draft-undo");
    house.clock.advance(SignedDuration::from_secs(15));
    let late = visitor.sent(undo, &[]);
    assert!(late.status == 409 && late.text.contains("too late"), "{}", late.text);
    visitor.reload();
    assert!(!visitor.has("draft-undo"));
    assert_eq!(phone.left(), "");
}

#[test]
fn several_drafts_are_one_line_with_a_count_and_go_together() {
    let (phone, house) = ready();
    for body in ["First", "Second", "Third\nwith a second line"] {
        draft(&house, ALICE, body);
    }
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.texts("draft-count"), ["2 more drafts"]);
    assert_eq!(visitor.texts("draft-discard-all"), ["Discard all 3"]);
    assert_eq!(
        visitor.attributes("draft-card", "class"),
        ["card draft", "card draft later", "card draft later"]
    );
    assert_eq!(visitor.texts("draft-words"), ["First", "Second", "Third with a second line"]);
    // One that is not on the page yet is not meant.
    let all = visitor.first("draft-discard-all");
    let fourth = draft(&house, ALICE, "Fourth");
    assert_eq!(visitor.sent(all, &[]).status, 303);
    visitor.reload();
    assert_eq!(rows(&house).iter().map(|row| &row["id"]).collect::<Vec<_>>(), [&json!(fourth)]);
    assert!(visitor.says("Discarded 3 drafts.") && !visitor.has("draft-count"));
    visitor.press("draft-undo");
    assert_eq!(visitor.texts("draft-count"), ["3 more drafts"]);
    // What was sent is a line of its own and no part of the stack.
    visitor.press("draft-send");
    visitor.until_says(&format!("Sent to {ALICE}"));
    assert_eq!(visitor.texts("draft-count"), ["2 more drafts"]);
    assert_eq!(visitor.texts("draft-discard-all"), ["Discard all 3"]);
    visitor.press("draft-discard-all");
    assert_eq!(rows(&house).len(), 1, "what was sent stays until it is dismissed");
    assert_eq!(phone.left(), format!("{ALICE}|First\n"));
}

/// It says once that it may have been sent, and does not invite anybody to send it twice.
#[test]
fn what_may_have_been_sent_is_not_pressed_again_by_the_way() {
    let (phone, house) = ready();
    phone.program("termux-sms-send", "cat > /dev/null; echo 'what is this' >&2; exit 0");
    draft(&house, ALICE, "Hi");
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.attributes("draft-send", "class"), ["tap primary"]);
    house
        .app
        .db
        .write_now(|tx| {
            tx.execute("UPDATE drafts SET status = 'SENDING'", []).map_err(kai_assistant::db::DbError::from)
        })
        .unwrap();
    visitor.open("/");
    assert_eq!(
        visitor.texts("draft-state"),
        ["may have been sent: Kai stopped while sending it. Check the phone."]
    );
    assert_eq!(visitor.attributes("draft-retry", "class"), ["tap"]);
    assert!(!visitor.has("draft-edit"), "nobody edits what may have left");
}
