//! `/ledger`: what left, who saw it, whether it is whole.

use serde_json::json;

use super::house::House;
use super::model::{Act, Model};
use super::tools::assert_light;

const HOSTILE: &str = "<img src=x onerror=alert(1)> \u{202e}gnp.exe";

#[test]
fn what_left_and_ran_is_filtered_opened_whole_and_checked() {
    let tea = json!({"key": "tea", "content": HOSTILE});
    let model = Model::start([Act::calls("memory_store", &tea), Act::says("Noted."), Act::says("Green.")]);
    let house = House::with_model(&model);
    house.ask(HOSTILE);
    house.ask("Which tea?");
    let mut visitor = house.visitor("/ledger");
    let newest = ["request", "request", "tool_result", "tool_call", "request"];
    assert_eq!(visitor.attributes("ledger-line", "data-kind"), newest, "newest first");
    assert_eq!(visitor.page.tagged("img"), 0);
    assert!(!visitor.says("\u{202e}"), "what turns text around is spelled out");
    assert!(visitor.says("The model called") && visitor.says("5 records since "));
    house.set("language", "de");
    assert!(house.visitor("/ledger").says("5 Einträge seit dem "));
    house.set("language", "en");
    // A new one comes by itself.
    let mut open = visitor.follow();
    house.ask("And now?");
    while super::document::Document::new(&open.html()).all("ledger-line").len() < 6 {
        assert!(open.next());
    }
    for (query, expected) in [
        ("kind=tool_call", vec!["tool_call"]),
        ("name=mine", vec!["request"; 4]),
        ("name=memory_store", vec!["tool_result", "tool_call"]),
        ("conversation=2", vec!["request"]),
        ("text=ONERROR", vec!["tool_call"]),
        ("day=2001-01-01", vec![]),
        ("kind=request&name=nobody", vec![]),
    ] {
        visitor.open(&format!("/ledger?{query}"));
        assert_eq!(visitor.attributes("ledger-line", "data-kind"), expected, "{query}");
    }
    visitor.open("/ledger?day=yesterday&conversation=");
    assert!(visitor.says("Enter a day such as 2026-11-15."));
    // The form leads to such an address.
    visitor.open("/ledger");
    visitor.fill("ledger-text", "onerror");
    visitor.press("ledger-filter");
    assert!(visitor.path.contains("text=onerror"));
    assert_eq!(visitor.attributes("ledger-line", "data-kind"), ["tool_call"]);
    visitor.press("ledger-open");
    assert!(visitor.has("ledger-record") && visitor.says("Arguments"));
    // The exact bytes of the first request.
    visitor.open("/ledger?open=record:1");
    let left = model.asked()[0].raw.clone();
    let shown = visitor.texts("ledger-bytes")[0];
    assert!(shown.contains("<img src=x onerror=alert(1)>") && shown.starts_with(&left[..40]), "{shown}");
    assert_eq!(house.get("/ledger/1/bytes", &visitor.cookie).body(), left, "to the byte");
    visitor.press("ledger-verify");
    visitor.until_says("All 6 records verified; none were altered.");
}

#[test]
fn a_long_ledger_is_read_page_by_page_and_says_how_long_it_is_kept() {
    let house = House::new();
    for _ in 0..24 {
        house.tool("get_local_time", &json!({}));
    }
    let mut visitor = house.visitor("/ledger");
    assert_eq!(visitor.texts("ledger-line").len(), 25);
    assert!(visitor.says("You called"));
    visitor.press("ledger-open");
    assert!(!visitor.texts("ledger-record")[0].contains("Chat"), "it was in none");
    visitor.open("/ledger");
    visitor.press("ledger-older");
    assert!(visitor.path.contains("before="));
    assert_eq!(visitor.texts("ledger-line").len(), 23);
    visitor.press("ledger-newest");
    assert!(!visitor.path.contains("before="));
    visitor.fill("ledger-retention", "30");
    assert_eq!(visitor.press_live("ledger-retention-save"), json!({"said": "Saved."}));
    assert_eq!(house.get_setting("ledger_retention_days"), "30");
    assert_light(&house, &visitor.cookie, "/ledger");
    assert_eq!(house.get("/ledger/1/bytes", "").status, 401);
}
