//! The search over everything, without a script and as the script asks for it.

use serde_json::json;

use super::document::Document;
use super::house::House;

#[test]
fn chats_and_settings_are_found_on_one_page() {
    let house = House::new();
    let said = json!({"message": {"role": "user", "text": "Is dark tea good?"}, "answered_by": null, "usage": null, "at": 0});
    let chat = json!({"title": "Tea", "kind": "chat", "created_at": 0, "updated_at": 0, "entries": [said]});
    house.take_in(&json!({"conversations": [chat]}));
    let mut visitor = house.visitor("/new");
    visitor.press("find");
    assert_eq!(visitor.path, "/search");
    let places = visitor.attributes("found", "href").join(" ");
    assert!(places.starts_with("/c/1 /new ") && places.ends_with("/settings/general /ledger"), "{places}");
    visitor.fill("search-input", "dark");
    visitor.open("/search?q=dark");
    assert_eq!(visitor.attributes("found", "href"), ["/c/1?q=dark&hit=1#hit", "/settings/general#look"]);
    assert_eq!(visitor.value("search-input"), "dark");
    visitor.open("/search?q=%3Cb%3E+zzz");
    assert!(!visitor.has("found") && visitor.says("Nothing found for “<b> zzz”."));
    // The script gets the results alone.
    let headers = [("Cookie", visitor.cookie.as_str()), ("X-Live", "1")];
    let answer = house.send("GET", "/search?q=dark", &headers, "");
    let options = Document::new(answer.body());
    assert_eq!((options.all("found").len(), options.tagged("html")), (2, 0));
    assert_eq!(options.having("role", "option"), options.all("found"));
    assert_eq!(house.get("/search?q=dark", "").status, 401, "not without a session");
    house.set("language", "de");
    visitor.open("/search?q=dunkel");
    assert_eq!(visitor.attributes("found", "href"), ["/settings/general#look"]);
}

/// Where the search leads in the settings, there is something.
#[test]
fn every_part_of_the_settings_that_is_found_is_there() {
    let house = House::new();
    let mut visitor = house.visitor("/search?q=settings");
    let mut parts: Vec<String> = vec![];
    for letter in 'a'..='z' {
        visitor.open(&format!("/search?q={letter}"));
        parts.extend(visitor.attributes("found", "href").into_iter().map(str::to_owned));
    }
    parts.sort();
    parts.dedup();
    assert!(parts.len() > 12, "{parts:?}");
    for part in parts {
        let (path, id) = part.split_once('#').unwrap();
        visitor.open(path);
        assert_eq!(visitor.page.having("id", id).len(), 1, "{part}");
    }
}

#[cfg(feature = "foss")]
#[test]
fn received_messages_are_found_too() {
    use super::phone::{ALICE, poll, ready};
    let (phone, house) = ready();
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner at 8?")]);
    poll(&house);
    let mut visitor = house.visitor("/search?q=dinner");
    // Without a script the page is loaded again until the phone has answered.
    for _ in 0..600 {
        if !visitor.answer.text.contains("data-loading") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        visitor.open("/search?q=dinner");
    }
    assert!(visitor.answer.text.contains("href=\"/inbox/sms-42\""), "{}", visitor.answer.text);
    assert!(visitor.texts("found").concat().contains("Dinner at 8?"));
}
