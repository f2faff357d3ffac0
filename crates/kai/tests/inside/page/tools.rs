//! `/settings/tools` and `/settings/phones`: the switches, what tools use, and what is connected.

use serde_json::json;

use super::house::House;
use super::model::{Act, Model};

const TOOLS: &str = "/settings/tools";

#[test]
fn a_toggle_counts_in_the_next_request_and_a_command_moves_the_open_page() {
    let model = Model::start([Act::says("Yes.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor(TOOLS);
    assert_eq!(
        visitor.attributes("tool-card", "data-tool"),
        [
            "get_local_time",
            "open_url",
            "send_notification",
            "create_calendar_event",
            "set_alarm",
            "shell_command",
            "web_search",
            "fetch_url",
            "get_location_from_ip",
        ],
        "only those that have a switch of their own"
    );
    let offers = |question: &str| {
        house.ask(question);
        model.offered().contains(&"web_search".to_owned())
    };
    let is_on = |page: &super::document::Document, tool: &str| {
        let card = page.having("data-tool", tool)[0];
        let switch = page.having("role", "switch").into_iter().find(|at| page.holds(card, *at));
        page.attribute(switch.unwrap(), "aria-checked") == Some("true")
    };
    assert!(is_on(&visitor.page, "web_search") && !is_on(&visitor.page, "shell_command"));
    assert!(offers("One?"));
    let card = visitor.page.having("data-tool", "web_search")[0];
    let switch = visitor.page.having("role", "switch").into_iter().find(|at| visitor.page.holds(card, *at));
    visitor.press_at(switch.unwrap());
    assert!(!is_on(&visitor.page, "web_search"));
    assert_eq!(house.get_setting("tool_enabled_web_search"), "false");
    assert!(!offers("Two?"), "gone from the next request");
    house.run("tools_switch", &json!({"tool": "web_search", "on": true}));
    visitor.until("it to be on", |page, _| is_on(page, "web_search"));
    assert!(offers("Three?"));
    assert!(
        visitor.texts("tool-lacks").iter().any(|lacks| lacks.contains("notification")),
        "what is missing is said"
    );
}

#[test]
fn what_tools_use_is_chosen_and_a_key_is_never_shown() {
    let house = House::new();
    let mut visitor = house.visitor(TOOLS);
    visitor.press("search-backend-brave");
    visitor.fill("brave-key", "BSA-hidden-17");
    visitor.press("brave-key-save");
    assert!(visitor.says("A key is stored."));
    assert_eq!(house.get_setting("web_search_brave_key"), "set");
    assert!(!visitor.answer.text.contains("hidden-17"));
    assert_eq!(visitor.value("brave-key"), "");
    visitor.fill("result-limit", "999999");
    visitor.press("result-limit-save");
    assert!(visitor.says("Enter a whole number from 500 to 200,000."));
    assert_eq!(house.get_setting("tool_result_limit"), "8000");
}

#[test]
fn the_phones_page_says_what_is_missing_and_how_to_connect_one() {
    let house = House::new();
    let visitor = house.visitor("/settings/phones");
    assert!(visitor.texts("phone-bridge")[0].contains("neither Termux nor a desktop session"));
    let abilities = visitor.texts("ability").join("\n");
    assert!(!abilities.contains("Read SMS") && !abilities.contains("Read notifications"), "{abilities}");
    assert!(abilities.contains("Not available"));
    assert_eq!(visitor.has("pair-search"), cfg!(feature = "foss"));
    assert!(visitor.says("pkg install termux-api"));
}

/// The page with its style and script.
pub(super) fn assert_light(house: &House, cookie: &str, path: &str) {
    let page = house.get(path, cookie).text;
    let assets: Vec<&str> = page.split('"').filter(|part| part.starts_with("/assets/app.")).collect();
    let plain = page.len() + assets.iter().map(|asset| house.get(asset, cookie).text.len()).sum::<usize>();
    assert!(plain <= 84_000, "{path} weighs {plain} to be read");
    let packed = |part: &str| {
        let headers = [("Cookie", cookie), ("Accept-Encoding", "gzip")];
        let length = house.send("GET", part, &headers, "").header("content-length").map(str::to_owned);
        length.unwrap().parse::<usize>().unwrap()
    };
    let sent = packed(path) + assets.iter().map(|asset| packed(asset)).sum::<usize>();
    assert!(sent <= 32 * 1024, "{path} weighs {sent} on the way");
}

#[test]
fn every_page_of_the_settings_is_light_and_needs_no_script() {
    let house = House::new();
    let visitor = house.visitor(TOOLS);
    for path in [
        TOOLS,
        "/settings/models",
        "/settings/models?open=preset:openai",
        "/settings/phones",
        "/settings/mcp",
        "/settings/general",
        "/ledger",
    ] {
        assert_eq!(house.get(path, "").status, 401, "{path}");
        let page = house.get(path, &visitor.cookie);
        assert_eq!(page.status, 200, "{path}");
        for forbidden in ["<script>", "onclick=", "style=\""] {
            assert!(!page.text.contains(forbidden), "{forbidden} on {path}");
        }
        assert_light(&house, &visitor.cookie, path);
    }
    let first = house.get("/settings", &visitor.cookie);
    assert_eq!((first.status, first.header("location")), (303, Some("/settings/agent")));
    let turned =
        visitor.post("/settings/set", "page=tools&card=tools&key=tool_enabled_fetch_url&value=false");
    assert_eq!((turned.status, turned.header("location")), (303, Some("/settings/tools#tools")));
    let listed = house.show("tools_list");
    let fetch = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "fetch_url").unwrap();
    assert_eq!(fetch["enabled"], false);
}
