//! `/settings/mcp`: other people's servers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::house::House;
use super::visitor::Visitor;
use crate::call::Call;
use crate::call::mcp::McpCall;
use crate::inside::server::PlayedServer;
use crate::machine::Machine;

const MCP: &str = "/settings/mcp";
/// Longer than anything takes; nobody waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(30);

fn house(server: &PlayedServer) -> House {
    let servers = Some(Arc::new(server.clone()) as _);
    House::on(|_| Machine { servers, ..Machine::default() })
}

/// A house in which the server is added as `time`.
fn with_time(server: &PlayedServer) -> House {
    let house = house(server);
    add_time(&house);
    house
}

fn add_time(house: &House) {
    let new =
        json!({"add": {"name": "time", "command": ["uvx", "time"], "url": null, "headers": [], "env": []}});
    house.run("mcp", &new);
}

/// A house with a server that wants the user to sign in, and waits for that.
fn with_sign_in(server: &PlayedServer) -> House {
    server.wants_sign_in();
    server.waits_for_the_user();
    with_time(server)
}

/// A call about the server.
fn ask(house: &House, what: &str) -> Value {
    house.run("mcp", &json!({ what: {"server": "time"} }))
}

#[test]
fn a_server_is_added_looked_at_and_approved() {
    let server = PlayedServer::with(&[("now", "Tells <b>the</b> time", true), ("set", "Sets it", false)]);
    let house = house(&server);
    let mut visitor = house.visitor(&format!("{MCP}?open=way:program"));
    visitor.fill("mcp-name", "time");
    visitor.fill("mcp-command", "uvx 'mcp server' --zone UTC");
    visitor.fill("mcp-env", "TOKEN=hunter2\n");
    visitor.press("mcp-add-save");
    visitor.until_seen("mcp-approve-all");
    assert_eq!(server.secrets(), [("TOKEN".to_owned(), "hunter2".to_owned())]);
    assert!(visitor.says("uvx \"mcp server\" --zone UTC") && visitor.says("TOKEN"));
    assert!(!visitor.says("hunter2"), "a secret is never shown again");
    assert!(
        visitor.says("Tells <b>the</b> time") && visitor.says("played <1>"),
        "a stranger's words are text"
    );
    assert_eq!(visitor.texts("mcp-status"), ["connected"]);
    assert_eq!(visitor.texts("mcp-usable"), ["Models can use 0 of its tools."]);

    visitor.press("mcp-approve-all");
    assert_eq!(visitor.texts("mcp-usable"), ["Models can use 2 of its tools."]);
    visitor.press("mcp-dont_ask");
    assert!(visitor.is_on("mcp-dont_ask"));
    visitor.press("mcp-in_tasks");
    assert!(visitor.is_on("mcp-in_tasks"));
    visitor.press("mcp-enabled");
    assert_eq!(visitor.texts("mcp-usable"), ["Models can use 1 of its tools."]);

    visitor.press("mcp-off");
    assert_eq!(visitor.texts("mcp-status"), ["off"]);
    visitor.press("mcp-on");
    visitor.press("mcp-remove");
    assert!(!visitor.has("mcp-server"));
    visitor.press("undo");
    visitor.open(MCP);
    assert_eq!(visitor.texts("mcp-usable"), ["Models can use 1 of its tools."], "with what was approved");
}

/// What was approved is what was on the page: if the server says something else by now, nothing is approved.
#[test]
fn only_what_was_seen_is_approved_and_a_change_is_shown() {
    let server = PlayedServer::with(&[("now", "Tells the time", true)]);
    let house = with_time(&server);
    let mut visitor = house.visitor(&format!("{MCP}?open=server:time"));
    server.says(&[("now", "Tells the time. Also reads your mail", true)]);
    house.run("mcp", &json!({"test": {"server": "time"}}));
    visitor.press("mcp-approve");
    assert!(visitor.says("now changed while you were looking at it. Look at it again."));
    visitor.open(&format!("{MCP}?open=server:time"));
    visitor.press("mcp-approve");
    server.says(&[("now", "Tells the time. Sends it to me", true)]);
    house.run("mcp", &json!({"test": {"server": "time"}}));
    visitor.open(&format!("{MCP}?open=server:time"));
    assert!(visitor.says("changed since you approved it"));
    assert!(visitor.says("Also reads your mail") && visitor.says("Sends it to me"), "both are shown");
    assert_eq!(visitor.texts("mcp-usable"), ["Models can use 0 of its tools."]);
}

#[test]
fn another_apps_list_is_shown_before_it_is_added() {
    let house = house(&PlayedServer::default());
    let mut visitor = house.visitor(&format!("{MCP}?open=way:import"));
    visitor.fill("mcp-paste", "{\n nonsense");
    visitor.press("mcp-preview");
    assert!(visitor.says("This is not JSON: look at line 2."));
    let list = json!({"mcpServers": {
        "My Notes": {"command": "notes", "env": {"KEY": "hunter2"}}, "broken": {"command": "nope"}, "empty": {},
    }});
    visitor.fill("mcp-paste", &list.to_string());
    visitor.press("mcp-preview");
    assert!(visitor.has("mcp-plan") && visitor.says("my-notes") && visitor.says("KEY"));
    assert!(visitor.says("It has neither a command nor an address."));
    assert!(!visitor.says("hunter2"));
    assert_eq!(house.run("mcp", &json!("list")), json!([]), "nothing is added yet");
    visitor.press("mcp-import");
    assert_eq!(house.run("mcp", &json!("list")).as_array().unwrap().len(), 2);
    house.run("mcp", &json!({"test": {"server": "broken"}}));
    visitor.open(MCP);
    assert!(visitor.says("The program nope could not be started: there is no such file"));
}

/// What a tab adds is the list that it showed, and not one that another tab pasted since.
#[test]
fn a_list_is_added_only_from_where_it_was_shown() {
    let house = house(&PlayedServer::default());
    let path = format!("{MCP}?open=way:import");
    let (mut first, mut second) = (house.visitor(&path), house.visitor(&path));
    for (tab, name) in [(&mut first, "one"), (&mut second, "two")] {
        tab.fill("mcp-paste", &json!({"mcpServers": { name: {"command": name} }}).to_string());
        tab.press("mcp-preview");
        assert!(tab.has("mcp-plan") && tab.says(name));
    }
    let added = || {
        let rows = house.run("mcp", &json!("list"));
        rows.as_array().unwrap().iter().map(|row| row["name"].clone()).collect::<Vec<Value>>()
    };
    let cancelled = first.sent(first.first("mcp-import-cancel"), &[]);
    assert_eq!(cancelled.status, 303, "{}", cancelled.text);
    first.press("mcp-import");
    assert!(first.says("That list has expired or was replaced by another, so nothing was added."));
    assert_eq!(added(), Vec::<Value>::new());
    second.press("mcp-import");
    assert_eq!(added(), ["two"], "neither tab took it away");
}

#[test]
fn a_server_that_wants_a_sign_in_links_to_it() {
    let server = PlayedServer::with(&[("now", "", true)]);
    server.wants_sign_in();
    let house = with_time(&server);
    let mut visitor = house.visitor(MCP);
    assert_eq!(visitor.texts("mcp-status"), ["waits for you to sign in"]);
    visitor.press("mcp-sign-in");
    visitor.until_text("mcp-status", "connected");
    visitor.press("mcp-sign-out");
    assert!(!visitor.has("mcp-sign-out"));
}

/// What the card offers: its link to a page on which to sign in, or the button that begins it.
fn offered<'a>(visitor: &'a Visitor<'_>) -> (Vec<&'a str>, bool) {
    (visitor.attributes("mcp-sign-in-page", "href"), visitor.has("mcp-sign-in"))
}

/// Nobody listens for the answer of a page whose sign-in is over, so the card does not lead there.
#[test]
fn the_link_to_sign_in_ends_with_its_sign_in() {
    let server = PlayedServer::with(&[("now", "", true)]);
    let house = with_sign_in(&server);
    let mut visitor = house.visitor(MCP);
    visitor.press("mcp-sign-in");
    assert_eq!(offered(&visitor), (vec!["https://sign.test/1"], false));

    server.user_refuses("Not today");
    visitor.until_seen("mcp-sign-in");
    assert_eq!(offered(&visitor), (vec![], true));
    assert!(visitor.says("Not today"));

    visitor.press("mcp-sign-in");
    assert_eq!(offered(&visitor), (vec!["https://sign.test/2"], false));
    server.user_signs_in();
    visitor.until_text("mcp-status", "connected");
    visitor.press("mcp-sign-out");
    ask(&house, "test");
    visitor.open(MCP);
    assert_eq!(offered(&visitor), (vec![], true), "signed out again");

    visitor.press("mcp-sign-in");
    assert_eq!(offered(&visitor), (vec!["https://sign.test/3"], false));
    ask(&house, "sign_out");
    visitor.open(MCP);
    assert_eq!(offered(&visitor), (vec![], true), "the sign-in was given up");

    visitor.press("mcp-sign-in");
    assert_eq!(offered(&visitor), (vec!["https://sign.test/4"], false));
    visitor.press("mcp-remove");
    add_time(&house);
    visitor.open(MCP);
    assert_eq!(offered(&visitor), (vec![], true), "another server of the same name");
}

/// `kai mcp sign-in` waits for the sign-in that it began, whatever came of an earlier one.
#[test]
fn a_sign_in_is_awaited_whatever_came_of_an_earlier_one() {
    let server = PlayedServer::with(&[("now", "", true)]);
    let house = with_sign_in(&server);
    ask(&house, "sign_in");
    server.user_refuses("Not today");
    let row = ask(&house, "signed_in");
    assert_eq!(row["status"], "sign_in", "{row}");
    assert!(row["why"].as_str().unwrap().contains("Not today"), "{row}");

    ask(&house, "sign_in");
    let waits = house.run("mcp", &json!("list"));
    let why = waits[0]["why"].as_str().unwrap();
    assert!(!why.contains("Not today"), "{waits}");
    server.user_signs_in();
    let row = ask(&house, "signed_in");
    assert_eq!((&row["status"], &row["signed_in"]), (&json!("connected"), &json!(true)), "{row}");
}

/// Whoever waits for a sign-in is told when its server is removed or turned off.
#[test]
fn nobody_waits_for_a_server_that_is_gone() {
    let off = json!({"switch": {"server": "time", "tool": null, "on": false}});
    let removed = json!({"remove": {"server": "time"}});
    for (end, says) in
        [(off, "The MCP server time is turned off."), (removed, "There is no MCP server called time.")]
    {
        let server = PlayedServer::with(&[("now", "", true)]);
        let house = with_sign_in(&server);
        ask(&house, "sign_in");
        let waiting = house.begin(Call::Mcp(McpCall::SignedIn { server: "time".to_owned() }));
        house.run("mcp", &end);
        let ended = house.wait(async { tokio::time::timeout(PATIENCE, waiting).await });
        let failure = ended.expect("it waits for ever").unwrap().unwrap_err();
        assert_eq!(failure.message.to_string(), says);
    }
}

#[test]
fn what_cannot_be_added_is_said_in_words() {
    let house = house(&PlayedServer::default());
    for (way, fields, says) in [
        ("program", [("mcp-name", "Time"), ("mcp-command", "x")], "Time cannot be a server’s name."),
        (
            "program",
            [("mcp-name", "time"), ("mcp-command", "x 'y")],
            "A quotation mark in the command is not closed.",
        ),
        ("program", [("mcp-name", "time"), ("mcp-command", " ")], "Give either a command or an address"),
        ("program", [("mcp-command", "x"), ("mcp-env", "nothing")], "cannot be a server’s name"),
        (
            "address",
            [("mcp-name", "time"), ("mcp-url", "file:///etc")],
            "file:///etc is not an address of a server.",
        ),
    ] {
        let mut visitor = house.visitor(&format!("{MCP}?open=way:{way}"));
        for (field, typed) in fields {
            visitor.fill(field, typed);
        }
        visitor.press("mcp-add-save");
        assert!(visitor.says(says), "{says}");
    }
    assert_eq!(house.run("mcp", &json!("list")), json!([]));
}
