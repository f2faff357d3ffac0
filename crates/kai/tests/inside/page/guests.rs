//! `/settings/mcp`: the programs that may ask Kai.

use serde_json::{Value, json};

use super::house::House;

const MCP: &str = "/settings/mcp";

fn asks(house: &House, name: &str, wants: &Value) -> Value {
    house.run("guest", &json!({"who": {"named": name}, "wants": wants}))
}

#[test]
fn a_program_that_asked_is_allowed_blocked_and_forgotten_on_the_page() {
    let house = House::new();
    let mut visitor = house.visitor(MCP);
    assert!(!visitor.is_on("guests-enabled") && visitor.has("guests-none"), "off by default");
    assert_eq!(asks(&house, "Zed", &json!("enter"))["welcome"], "off");
    visitor.press("guests-enabled");
    assert_eq!(house.get_setting("mcp_server_enabled"), "true");
    assert!(visitor.has("guests-none"), "whoever came while it was off was not kept");

    let name = "<b>Zed</b> & \"co\"";
    assert_eq!(asks(&house, name, &json!("enter"))["welcome"], "asked");
    visitor.until_seen("guest");
    assert_eq!(visitor.texts("guest-state"), ["Waiting for your answer"]);
    assert!(visitor.says(name), "a name is text");
    assert_eq!(asks(&house, name, &json!("tools"))["tools"], Value::Null);
    visitor.press("guest-allow");
    assert_eq!(visitor.texts("guest-state"), ["Allowed"]);
    assert!(!visitor.has("guest-allow"));
    let offered = asks(&house, name, &json!("tools"));
    assert!(
        offered["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "list_tasks"),
        "{offered}"
    );

    for _ in 0..5 {
        let listed = asks(&house, name, &json!({"call": {"tool": "list_tasks", "arguments": "{}"}}));
        assert_eq!(listed["result"]["success"], true, "{listed}");
    }
    visitor.reload();
    assert_eq!(visitor.texts("guest-deed").len(), 3);
    let number = visitor.attributes("guest", "data-guest")[0].to_owned();
    visitor.open(&format!("{MCP}?open=deeds:{number}"));
    assert_eq!(visitor.texts("guest-deed").len(), 5);
    visitor.open("/ledger");
    assert!(visitor.says("called “Tasks” and got"), "{:?}", visitor.texts("ledger-line"));
    assert!(visitor.says("You allowed the program"));

    visitor.open(MCP);
    visitor.press("guest-block");
    assert_eq!(visitor.texts("guest-state"), ["Blocked"]);
    assert_eq!(asks(&house, name, &json!("tools"))["welcome"], "blocked");
    visitor.press("guest-forget");
    assert!(visitor.has("guests-none"));
}

#[test]
fn a_form_that_was_made_up_changes_nothing() {
    let house = House::new();
    house.set("mcp_server_enabled", "true");
    asks(&house, "Zed", &json!("enter"));
    let visitor = house.visitor(MCP);
    let csrf = visitor.answer.csrf();
    for (body, status) in [
        (format!("csrf={csrf}&page=mcp&card=guests&name=Zed&act=send"), 400),
        (format!("csrf={csrf}&page=mcp&card=guests&name=Other&act=allow"), 409),
        ("csrf=wrong&page=mcp&card=guests&name=Zed&act=allow".to_owned(), 403),
    ] {
        let headers = [("Cookie", visitor.cookie.as_str())];
        assert_eq!(house.send("POST", "/settings/mcp/guest", &headers, &body).status, status, "{body}");
    }
    assert_eq!(asks(&house, "Zed", &json!("nothing"))["welcome"], "asked");
}

#[test]
fn what_to_paste_is_shown_when_it_is_asked_for() {
    let house = House::new();
    let mut visitor = house.visitor(MCP);
    assert!(!visitor.has("guests-config"));
    visitor.open(&format!("{MCP}?show=paste"));
    assert_eq!(visitor.attributes("guests-config", "data-program"), ["claude_desktop", "zed", "vs_code"]);
    assert!(visitor.texts("guests-config")[0].contains("mcpServers"));
}
