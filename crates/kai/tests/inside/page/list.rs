//! The list of chats: groups, more of them, names, pins, what is found and where that leads, files.

use serde_json::{Value, json};

use super::agent::HOSTILE;
use super::document::Document;
use super::house::House;
use super::model::{Act, Model};
use super::visitor::Visitor;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// What the clock of a house shows: 2027-01-15 08:00.
const NOW: i64 = 1_800_000_000_000;

/// A chat as an export has it.
fn chat(title: &str, updated_at: i64, said: &[(&str, &str)]) -> Value {
    let entries = said.iter().flat_map(|(asked, answered)| {
        let entry = |message: Value, by: Option<&str>| {
            json!({"message": message, "answered_by": by, "usage": null, "at": updated_at})
        };
        let answer = json!({"role": "assistant", "text": answered, "calls": [], "signature": null});
        [entry(json!({"role": "user", "text": asked}), None), entry(answer, Some("mine"))]
    });
    let entries: Vec<Value> = entries.collect();
    json!({"title": title, "kind": "chat", "created_at": updated_at, "updated_at": updated_at, "entries": entries})
}

fn with_chats(chats: &[Value]) -> House {
    let house = House::new();
    house.take_in(&json!({ "conversations": chats }));
    house
}

/// The number of the chat that has this title.
fn number(house: &House, title: &str) -> i64 {
    let all = house.show("chats_list");
    let found = all.as_array().unwrap().iter().find(|row| row["title"] == title);
    found.unwrap_or_else(|| panic!("{title} in {all}"))["id"].as_i64().unwrap()
}

/// Each group of the list: its heading and the titles below it.
fn groups(page: &Document) -> Vec<(String, Vec<String>)> {
    let titles = |group: usize| {
        let inside = page.all("chat-title").into_iter().filter(|at| page.holds(group, *at));
        inside.map(|at| page.text_of(at).to_owned()).collect()
    };
    let heading = |group: usize| {
        let heading = page.children_of(group).next().unwrap();
        page.text_of(heading).to_owned()
    };
    page.having("class", "chat-group").into_iter().map(|at| (heading(at), titles(at))).collect()
}

fn titles<'a>(visitor: &'a Visitor<'_>) -> Vec<&'a str> {
    visitor.texts("chat-title")
}

#[test]
fn chats_stand_under_days_and_months_and_what_is_pinned_first() {
    let house = with_chats(&[
        chat("now", NOW - HOUR, &[]),
        chat("last night", NOW - 9 * HOUR, &[]),
        chat("this week", NOW - 5 * DAY, &[]),
        chat("this month", NOW - 12 * DAY, &[]),
        chat("before", NOW - 40 * DAY, &[]),
        chat("long ago", NOW - 400 * DAY, &[]),
    ]);
    let expected = |pinned: &[&str], others: &[(&str, &str)]| -> Vec<(String, Vec<String>)> {
        let all = |titles: &[&str]| titles.iter().map(|title| (*title).to_owned()).collect::<Vec<_>>();
        let pinned = (!pinned.is_empty()).then(|| ("Pinned".to_owned(), all(pinned)));
        pinned.into_iter().chain(others.iter().map(|(head, one)| ((*head).to_owned(), all(&[one])))).collect()
    };
    let dated = [
        ("Today", "now"),
        ("Yesterday", "last night"),
        ("Last 7 days", "this week"),
        ("January", "this month"),
        ("December 2026", "before"),
        ("December 2025", "long ago"),
    ];
    let mut visitor = house.visitor("/new");
    assert_eq!(groups(&visitor.page), expected(&[], &dated));
    let id = number(&house, "this month");
    visitor.press_at(visitor.within(("id", &format!("chat-{id}")), "chat-options"));
    assert_eq!(visitor.texts("chat-pin"), ["Pin"], "one row is unfolded");
    visitor.press("chat-pin");
    let rest: Vec<(&str, &str)> = dated.iter().copied().filter(|(_, one)| *one != "this month").collect();
    assert_eq!(groups(&visitor.page), expected(&["this month"], &rest));
    assert!(!visitor.has("chat-pin"), "folded again");
    visitor.press_at(visitor.within(("id", &format!("chat-{id}")), "chat-options"));
    assert_eq!(visitor.texts("chat-pin"), ["Unpin"]);
    visitor.press("chat-pin");
    assert_eq!(groups(&visitor.page), expected(&[], &dated));
    house.set("language", "de");
    visitor.open(&format!("/new?menu={id}"));
    let heads: Vec<String> = groups(&visitor.page).into_iter().map(|(heading, _)| heading).collect();
    assert_eq!(heads[..5], ["Heute", "Gestern", "Letzte 7 Tage", "Januar", "Dezember 2026"]);
    assert_eq!(visitor.texts("chat-pin"), ["Anheften"]);
}

#[test]
fn a_chat_is_renamed_where_it_stands_and_called_so_everywhere() {
    let house = with_chats(&[chat("Tea?", NOW, &[("Tea?", "Yes.")]), chat("Ships", NOW - 1, &[])]);
    let id = number(&house, "Tea?");
    let mut visitor = house.visitor(&format!("/c/{id}"));
    let mut open = visitor.follow();
    visitor.press_at(visitor.within(("id", &format!("chat-{id}")), "chat-options"));
    visitor.press("chat-rename");
    assert_eq!(visitor.value("chat-name"), "Tea?");
    visitor.fill("chat-name", &format!("  {HOSTILE}\n "));
    visitor.press("chat-name-save");
    assert_eq!((titles(&visitor)[0], visitor.has("chat-name")), (HOSTILE, false));
    let heading = visitor.page.having("id", "title")[0];
    assert_eq!(visitor.page.text_of(heading), HOSTILE);
    while !open.html().contains("bold") {
        assert!(open.next(), "an open page hears of it");
    }
    assert_eq!(house.show("chats_list")[0]["name"], HOSTILE, "the command says so too");
    assert_eq!(house.show("chats_list")[0]["title"], "Tea?", "and what it was");
    visitor.open(&format!("/c/{id}?rename={id}"));
    visitor.fill("chat-name", &"ä".repeat(101));
    visitor.press("chat-name-save");
    assert!(visitor.answer.status == 409 && visitor.says("A name can have at most 100 characters."));
    visitor.open(&format!("/c/{id}?rename={id}"));
    visitor.fill("chat-name", " ");
    visitor.press("chat-name-save");
    assert_eq!(titles(&visitor)[0], "Tea?", "with no name it is called by its first words again");
    visitor.open(&format!("/c/{id}?rename={id}"));
    visitor.press("chat-name-cancel");
    assert!(!visitor.has("chat-name"));
    assert_eq!(visitor.post("/c/77/name", "name=a").status, 409, "there is none");
    assert_eq!(visitor.post(&format!("/c/{id}/pin"), "pinned=maybe").status, 400);
}

#[test]
fn what_is_found_says_where_and_leads_there() {
    let house = with_chats(&[
        chat("Tea", NOW, &[("Tea?", "# Yes\n\nGreen **tea**, always."), ("And coffee?", "Never.")]),
        chat("Ships", NOW - 1, &[("Where are ships?", "At sea.")]),
    ]);
    let (tea, ships) = (number(&house, "Tea"), number(&house, "Ships"));
    let mut visitor = house.visitor("/new?q=green");
    assert_eq!(titles(&visitor), ["Tea"]);
    assert!(visitor.texts("chat-snippet")[0].contains("Green **tea**, always."));
    assert_eq!(visitor.page.tagged("mark"), 1, "the word is marked");
    let href =
        visitor.page.attribute(visitor.within(("id", "list-found"), "chat-title") - 1, "href").unwrap();
    assert!(href.starts_with(&format!("/c/{tea}?q=green&hit=")) && href.ends_with("#hit"), "{href}");
    let href = href.to_owned();
    visitor.open(&href);
    let hit = visitor.page.having("id", "hit");
    assert_eq!(hit.len(), 1);
    assert!(visitor.page.text_of(hit[0]).contains("Green tea, always."));
    assert_eq!(titles(&visitor), ["Tea"], "the list still shows what was found");
    let entry = href.split("hit=").nth(1).unwrap().split('#').next().unwrap();
    visitor.open(&format!("/c/{ships}?hit={entry}"));
    assert_eq!(visitor.page.having("id", "hit"), [0_usize; 0], "it is not in this chat");
    visitor.open("/new?q=coffee");
    visitor.open(&visitor.attributes("chat-options", "href")[0].replace('?', "/new?"));
    assert!(
        visitor.has("chat-pin") && titles(&visitor) == ["Tea"],
        "a row of what was found unfolds as well"
    );
    visitor.open("/new?q=nothing");
    assert!(visitor.says("No chats found."));
}

#[test]
fn a_long_list_goes_on_when_it_is_asked_to() {
    let chats: Vec<Value> = (0..130).map(|n| chat(&format!("chat {n}"), NOW - n * HOUR, &[])).collect();
    let house = with_chats(&chats);
    let mut visitor = house.visitor("/new");
    for shown in [60, 120] {
        assert_eq!(titles(&visitor).len(), shown);
        visitor.press("list-older");
    }
    assert_eq!(titles(&visitor).len(), 130);
    assert!(!visitor.has("list-older"), "that is all");
    let last = number(&house, "chat 129");
    let link =
        visitor.page.attribute(visitor.page.having("id", &format!("chat-{last}"))[0] + 1, "href").unwrap();
    assert_eq!(link, format!("/c/{last}?listed=180"), "the list stays as long as it is");
    visitor.open("/new?listed=99999999999999999999");
    assert_eq!(titles(&visitor).len(), 60, "nobody counts so far");
    visitor.open("/new?listed=999999&q=chat");
    assert_eq!(titles(&visitor).len(), 0, "titles alone are not said");
}

#[test]
fn questions_of_the_command_line_lie_folded_under_one_heading() {
    let model = Model::start([Act::says("Friday."), Act::says("Saturday."), Act::says("Sunday.")]);
    let house = House::with_model(&model);
    house.run("ask", &json!({"text": "What day is it?", "chat": "question"}));
    house.run("ask", &json!({"text": "And tomorrow?", "chat": "question"}));
    house.take_in(&json!({"conversations": [chat("Tea", NOW, &[])]}));
    let mut visitor = house.visitor("/new");
    assert_eq!(titles(&visitor), ["Tea"]);
    assert_eq!(visitor.texts("list-asked"), ["Asked in the terminal 2"]);
    visitor.press("list-asked");
    assert_eq!(titles(&visitor), ["And tomorrow?", "What day is it?", "Tea"]);
    visitor.press("list-asked");
    assert_eq!(titles(&visitor), ["Tea"]);
    let id = number(&house, "What day is it?");
    visitor.open(&format!("/c/{id}"));
    assert_eq!(titles(&visitor).len(), 3, "the one that is open is not hidden");
    house.run("ask", &json!({"text": "Really?", "chat": {"id": id}}));
    visitor.open("/new");
    assert!(titles(&visitor).contains(&"What day is it?"), "what is continued is a chat");
    assert_eq!(visitor.texts("list-asked"), ["Asked in the terminal 1"]);
}

#[test]
fn a_chat_is_a_file() {
    let house = with_chats(&[chat("Tea / time?", NOW, &[("Tea?", "# Yes\n\nGreen.")])]);
    let id = number(&house, "Tea / time?");
    let mut visitor = house.visitor(&format!("/c/{id}?menu={id}"));
    assert_eq!(visitor.texts("chat-export").len(), 2, "in the row, and in the chat's menu");
    visitor.press("chat-export");
    let file = visitor.answer.header("content-disposition").unwrap().to_owned();
    assert_eq!(file, "attachment; filename*=UTF-8''Tea-time.md");
    assert_eq!(visitor.answer.header("content-type"), Some("text/markdown; charset=utf-8"));
    let text = visitor.answer.body().to_owned();
    assert!(text.starts_with("# Tea / time?\n\n*Exported from Kai on 2027-01-15 08:00.*\n"), "{text}");
    assert!(
        text.contains("## You · 2027-01-15 08:00\n\nTea?\n\n## Kai (mine) · 2027-01-15 08:00\n\n### Yes\n")
    );
    let command = house.run("chats_export", &json!({ "id": id }));
    assert_eq!(
        (command["file"].as_str(), command["text"].as_str()),
        (Some("Tea-time.md"), Some(text.as_str()))
    );
    assert_eq!(house.get("/c/77/export", &visitor.cookie).status, 404);
    assert_eq!(house.get(&format!("/c/{id}/export"), "").status, 401, "not without a session");
    assert!(house.try_to("chats_export", &json!({"id": 77})).is_err());
}
