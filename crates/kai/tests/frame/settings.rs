//! The settings as a person uses them, in a real browser: every switch, slider and editor, and what comes of it.

use serde_json::{Value, json};

use crate::ask::with_model;
use crate::browser::Browser;
use crate::doctor::take_in;
use crate::kit::{Daemon, Home, wait_for};
use crate::page::check;
use crate::provider::{Act, Provider};

pub(crate) const RIGHT: &str = "\u{e014}";
const LEFT: &str = "\u{e012}";
pub(crate) const HOSTILE: &str = "<img src=x onerror=\"alert(1)\"><b>bold</b>";

impl Browser {
    pub(crate) fn agent(&self, daemon: &Daemon) {
        self.open(&format!("http://{}/settings/agent", daemon.address));
        self.until_live();
    }

    /// Waits until a switch is on, or off.
    pub(crate) fn until_switched(&self, testid: &str, on: bool) {
        let script =
            format!("return document.querySelector('[data-testid={testid}]').ariaChecked === '{on}'");
        self.until(&format!("{testid} to be {on}"), &script);
    }

    pub(crate) fn turn(&self, testid: &str, on: bool) {
        self.click(testid);
        self.until_switched(testid, on);
    }

    /// Waits until the first element with this test id has exactly this text.
    pub(crate) fn until_text(&self, testid: &str, text: &str) {
        let text = Value::from(text);
        let script =
            format!("return document.querySelector('[data-testid={testid}]')?.innerText.trim() === {text}");
        self.until(&format!("{testid}: {text}"), &script);
    }

    fn value(&self, testid: &str) -> Value {
        self.run(&format!("return document.querySelector('[data-testid={testid}]').value"))
    }

    pub(crate) fn fine(&self) {
        assert_eq!(
            self.run("return document.querySelectorAll('main img, main b').length"),
            0,
            "text is text"
        );
        assert_eq!(self.complaints(), Vec::<String>::new());
    }
}

fn get(home: &Home, key: &str) -> String {
    home.run(&["settings", "get", key]).out.trim().to_owned()
}

fn remember(home: &Home, key: &str, content: &str) {
    let arguments = json!({"key": key, "content": content}).to_string();
    assert_eq!(home.run(&["tools", "call", "memory_store", &arguments]).code, 0);
}

/// The names of the tools that the last request offered.
pub(crate) fn offered(provider: &Provider) -> Vec<String> {
    let asked = provider.asked().pop().unwrap().body;
    let tools = asked["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_switch_persists_and_its_tools_come_and_go() {
    let provider = Provider::start(std::iter::repeat_n(Act::says("Yes."), 4));
    let home = with_model(&provider);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    for (testid, key, tool) in [
        ("memory-toggle", "memory_enabled", "memory_store"),
        ("scheduling-toggle", "scheduling_enabled", "schedule_task"),
    ] {
        for on in [false, true] {
            browser.agent(&daemon);
            browser.turn(testid, on);
            assert_eq!(get(&home, key), on.to_string());
            assert_eq!(home.run(&["ask", "Hello"]).code, 0);
            assert_eq!(offered(&provider).iter().any(|offered| offered == tool), on, "{tool}");
        }
    }
    // With the keyboard, and seen on another page without a reload.
    let first = browser.tab();
    browser.new_tab();
    browser.agent(&daemon);
    browser.run("document.querySelector('[data-testid=heartbeat-toggle]').focus()");
    browser.press(" ");
    browser.until_switched("heartbeat-toggle", true);
    assert_eq!(get(&home, "heartbeat_enabled"), "true");
    browser.switch_to(&first);
    browser.until_switched("heartbeat-toggle", true);
    browser.until_seen("heartbeat-interval");
    browser.fine();
}

#[test]
fn sliders_are_moved_with_the_keyboard() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    let stored = |key: &str, value: &str| {
        wait_for(key, || get(&home, key) == value);
    };
    for (testid, keys, told, key, value) in [
        ("heartbeat-interval", [RIGHT, RIGHT], "1h", "heartbeat_interval", "60"),
        ("heartbeat-start", [LEFT, LEFT], "6:00", "heartbeat_active_start", "6"),
        ("heartbeat-end", [RIGHT, RIGHT], "24:00", "heartbeat_active_end", "24"),
    ] {
        browser.run(&format!("document.querySelector('[data-testid={testid}]').focus()"));
        for key in keys {
            browser.press(key);
        }
        let shown = browser.run(&format!(
            "return [document.querySelector('[data-testid={testid}]').ariaValueText,
                     document.querySelector('output[for={testid}]').innerText]"
        ));
        assert_eq!(shown, json!([told, told]));
        stored(key, value);
    }
    // What is set elsewhere moves it too, as long as nobody has it in hand.
    browser.run("document.activeElement.blur()");
    assert_eq!(home.run(&["settings", "set", "heartbeat_interval", "5"]).code, 0);
    browser.until(
        "the slider",
        "return document.querySelector('[data-testid=heartbeat-interval]').value === '0'",
    );
    // A day's budget and a model are chosen, and what is not on the list stays visible.
    for (key, testid, elsewhere, chosen) in [
        ("heartbeat_daily_tokens", "heartbeat-budget", "1234", "0"),
        ("heartbeat_model", "heartbeat-model", "gone", ""),
    ] {
        take_in(&home, key, elsewhere);
        let select = format!("document.querySelector('[data-testid={testid}]')");
        browser.until(key, &format!("return {select}.value === '{elsewhere}'"));
        browser.run(&format!(
            "{select}.value = '{chosen}'; {select}.dispatchEvent(new Event('change', {{bubbles: true}}))"
        ));
        stored(key, chosen);
    }
    browser.fine();
}

#[test]
fn what_is_typed_is_counted_kept_saved_and_refused_in_words() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    assert!(browser.value("heartbeat-prompt").as_str().unwrap().starts_with("This is a heartbeat"));
    assert!(browser.texts("heartbeat-prompt-reset").is_empty(), "it is Kai’s own");
    let fill = |testid: &str, text: &str| {
        browser.run(&format!(
            "const t = document.querySelector('[data-testid={testid}]'); t.focus(); t.value = {};
             t.dispatchEvent(new Event('input', {{bubbles: true}})); t.blur()",
            Value::from(text)
        ));
    };
    fill("heartbeat-prompt", &"ä".repeat(4_001));
    browser.until_text("heartbeat-prompt-count", "4001 / 4000");
    browser.click("heartbeat-prompt-save");
    browser.until_says("at most 4000 characters");
    assert_eq!(browser.value("heartbeat-prompt"), "ä".repeat(4_001), "it can be mended");
    assert_eq!(get(&home, "heartbeat_prompt"), "");
    fill("heartbeat-prompt", "Only say what is urgent.\nBe brief.");
    browser.until_text("heartbeat-prompt-count", "34 / 4000");
    // What happens elsewhere does not take it away.
    assert_eq!(home.run(&["settings", "set", "heartbeat_interval", "60"]).code, 0);
    browser.until(
        "the slider",
        "return document.querySelector('[data-testid=heartbeat-interval]').value === '5'",
    );
    assert_eq!(browser.value("heartbeat-prompt"), "Only say what is urgent.\nBe brief.");
    browser.until_text("heartbeat-prompt-count", "34 / 4000");
    browser.click("heartbeat-prompt-save");
    browser.until_seen("heartbeat-prompt-reset");
    browser.until_says("Saved.");
    assert_eq!(get(&home, "heartbeat_prompt"), "Only say what is urgent.\nBe brief.");
    browser.click("heartbeat-prompt-reset");
    browser.until_gone("heartbeat-prompt-reset");
    assert_eq!(get(&home, "heartbeat_prompt"), "");
    let own = "return document.querySelector('[data-testid=heartbeat-prompt]').value.startsWith('This is a heartbeat')";
    browser.until("Kai’s own", own);
    fill("soul", "You are brief.");
    browser.click("soul-save");
    browser.until_seen("soul-reset");
    assert_eq!(get(&home, "soul_text"), "You are brief.");
    browser.fine();
}

#[test]
fn a_heartbeat_is_run_seen_and_looked_into() {
    let pieces = ["The roof ", "leaks."];
    let provider = Provider::start([Act::says_in_steps(&pieces), Act::says("The roof leaks.")]);
    let home = with_model(&provider);
    remember(&home, "tea", "Likes green tea.");
    for _ in 0..5 {
        home.run(&["tools", "call", "memory_reinforce", r#"{"key": "tea"}"#]);
    }
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    browser.until_says("It has not run yet.");
    browser.click("heartbeat-dry-run");
    browser.until_seen("heartbeat-preview");
    let dry = || home.run(&["heartbeat", "dry-run", "--json"]).json();
    let shown = "return document.querySelector('[data-testid=heartbeat-preview]').textContent";
    // The prompt tells the minute, which may pass between the two looks.
    wait_for("the same prompt to the byte", || browser.run(shown) == dry()["prompt"]);
    assert!(browser.texts("heartbeat-tokens")[0].contains(&format!("{} tokens", dry()["tokens"])));
    browser.click("heartbeat-run");
    browser.until_seen("spinner");
    provider.go_on(pieces.len());
    browser.until_gone("spinner");
    browser.until_says("Reported something");
    for _ in 0..6 {
        home.run(&["heartbeat", "run"]);
    }
    let rows = "return document.querySelectorAll('[data-testid=heartbeat-log] > li').length";
    browser.until("five", &format!("{rows} === 5"));
    // Five are there before the sixth has come.
    browser.until_seen("heartbeat-log-more");
    browser.click("heartbeat-log-more");
    browser.until("all", &format!("{rows} === 7"));
    assert_eq!(browser.run("return location.search"), "?show=dry-run,log");
    browser.click("heartbeat-log-less");
    browser.until("five", &format!("{rows} === 5"));
    browser.fine();
}

#[test]
fn memories_are_seen_edited_deleted_and_taken_back() {
    let home = Home::new();
    for n in 1..=6 {
        remember(&home, &format!("thing {n}"), &format!("Number {n}."));
    }
    remember(&home, HOSTILE, HOSTILE);
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    let count = |n: usize| {
        let script = format!("return document.querySelectorAll('[data-testid=memory]').length === {n}");
        browser.until(&format!("{n} memories"), &script);
    };
    count(5);
    assert!(browser.texts("memory")[0].contains(HOSTILE), "the newest first");
    remember(&home, "thing 7", "Comes by itself.");
    browser.until_says("Comes by itself.");
    browser.click("memories-all");
    count(8);
    let first = |testid: &str| {
        browser
            .run(&format!("document.querySelector('[data-testid=memory] [data-testid={testid}]').click()"));
    };
    first("memory-edit");
    browser.until_seen("memory-text");
    browser.run("document.querySelector('[data-testid=memory-text]').value = '  '");
    browser.click("memory-save");
    browser.until_says("A memory must say something.");
    browser.run("document.querySelector('[data-testid=memory-text]').value = 'In other words.'");
    browser.click("memory-save");
    browser.until_says("Saved.");
    let listed = || home.run(&["memory", "list", "--json"]).json();
    assert_eq!(
        (&listed()[0]["key"], &listed()[0]["content"]),
        (&json!("thing 7"), &json!("In other words."))
    );
    first("memory-edit");
    browser.until_gone("memory-text");
    // The last one, so that it is seen to come back to its place.
    let before = listed();
    browser.run("[...document.querySelectorAll('[data-testid=memory-delete]')].at(-1).click()");
    browser.until_seen("undo");
    count(7);
    assert_eq!(listed().as_array().unwrap().len(), 7, "really gone");
    check(&browser, "something to take back");
    browser.click("undo");
    browser.until_gone("undo");
    count(8);
    assert_eq!(listed(), before);
    browser.fine();
}

/// An unconfirmed memory shows its words and waits for *Remember*; a button that showed other words confirms nothing.
#[test]
fn an_unconfirmed_memory_is_confirmed_on_the_page_with_the_words_that_were_shown() {
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("older.json");
    let bring = |words: &str| {
        let memory =
            json!([{"key": "bank", "content": words, "category": "GENERAL", "hits": 0, "tainted": true}]);
        std::fs::write(&file, json!({"kai_export": 1, "sections": {"memory": memory}}).to_string()).unwrap();
        assert_eq!(home.run(&["import", file.to_str().unwrap(), "--yes"]).code, 0);
    };
    bring("Pay to\u{202e} Alice.");
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    assert_eq!(browser.texts("memory-waits"), ["Pay to\\u{202e} Alice."], "nothing is hidden");
    check(&browser, "a memory that waits");
    browser.picture("memory-waits");
    // What was shown is not what is there any more.
    let stale = browser.run("return document.querySelector('[name=seen]').value");
    bring("Pay to Eve.");
    browser.until_says("Pay to Eve.");
    browser.run(&format!("document.querySelector('[name=seen]').value = {stale}"));
    browser.click("memory-confirm");
    browser.until_says("Nothing was confirmed");
    let confirmed = || home.run(&["memory", "list", "--json"]).json()[0]["confirmed"].clone();
    assert_eq!(confirmed(), false);
    browser.agent(&daemon);
    browser.click("memory-confirm");
    browser.until_gone("memory-waits");
    assert_eq!(confirmed(), true);
    browser.fine();
}

#[test]
fn a_proposal_is_answered_on_the_page() {
    let proposals = [("tea", "Offer green tea."), ("time", HOSTILE)];
    let calls =
        proposals.map(|(key, text)| Act::calls("promote_learning", &json!({"key": key, "text": text})));
    let provider = Provider::start(calls.into_iter().chain([Act::says("Proposed.")]));
    let home = with_model(&provider);
    for (key, _) in proposals {
        remember(&home, key, "A memory.");
        for _ in 0..5 {
            home.run(&["tools", "call", "memory_reinforce", &json!({"key": key}).to_string()]);
        }
    }
    assert_eq!(home.run(&["heartbeat", "run"]).out, "Proposed.\n");
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    assert_eq!(browser.texts("proposal").len(), 2);
    assert!(browser.texts("proposal")[1].contains(HOSTILE));
    browser.click("proposal-accept");
    browser.until("one", "return document.querySelectorAll('[data-testid=proposal]').length === 1");
    assert!(get(&home, "soul_text").ends_with("\nOffer green tea."));
    browser.until(
        "the editor",
        "return document.querySelector('[data-testid=soul]').value.endsWith('green tea.')",
    );
    browser.click("proposal-decline");
    browser.until_gone("proposal");
    browser.fine();
}

#[test]
fn tasks_are_read_opened_deleted_and_taken_back() {
    let home = Home::new();
    let weekly = json!({"description": HOSTILE, "prompt": "Look at the week.", "cron": "30 8 * * 1-5"});
    for arguments in [weekly, json!({"description": "Always", "prompt": "Be kind.", "on_heartbeat": true})] {
        assert_eq!(home.run(&["tools", "call", "schedule_task", &arguments.to_string()]).code, 0);
    }
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    assert!(browser.texts("task")[0].contains(HOSTILE));
    assert_eq!(browser.texts("task-when"), ["Every weekday at 8:30", "With every heartbeat"]);
    browser.click("task-details");
    browser.until_says("Look at the week.");
    browser.until_says("It has not run yet.");
    let before = home.run(&["tasks", "show", "1", "--json"]).json();
    browser.click("task-delete");
    browser.until_seen("undo");
    home.run(&["tasks", "show", "1"]).refused(1, "no task number 1");
    let browser_says = browser.texts("undo-bar").join("");
    assert!(browser_says.contains(HOSTILE), "{browser_says}");
    browser.click("undo");
    browser.until("both", "return document.querySelectorAll('[data-testid=task]').length === 2");
    assert_eq!(home.run(&["tasks", "show", "1", "--json"]).json(), before);
    browser.fine();
}

#[test]
fn without_a_phone_or_a_desktop_there_is_no_card_for_them() {
    let home = Home::new();
    let daemon = home.start();
    let browser = Browser::start();
    browser.enter(&daemon);
    browser.agent(&daemon);
    for testid in ["sms-card", "notifications-card", "code-redaction-toggle"] {
        assert!(browser.texts(testid).is_empty(), "{testid}");
    }
    let words = browser.run("return document.documentElement.outerHTML");
    for word in ["SMS", "otification"] {
        assert!(!words.as_str().unwrap().contains(word), "{word}");
    }
    assert_eq!(browser.texts("heartbeat-card").len(), 1);
    browser.fine();
}

#[test]
fn without_a_script_every_setting_can_be_changed() {
    let home = Home::new();
    remember(&home, "tea", "Likes green tea.");
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/settings/agent", &cookie).csrf();
    let post = |path: &str, body: &str| {
        let referer = format!("http://{}/settings/agent?show=log", daemon.address);
        let headers = [("Cookie", cookie.as_str()), ("Referer", referer.as_str())];
        daemon.send("POST", path, &headers, &format!("csrf={csrf}&page=agent&{body}"))
    };
    let turned = post("/settings/set", "card=memory&key=memory_enabled&value=false");
    assert_eq!((turned.status, turned.header("location")), (303, Some("/settings/agent?show=log#memory")));
    assert_eq!(get(&home, "memory_enabled"), "false");
    post("/settings/set", "card=heartbeat&key=heartbeat_interval&stop=7");
    assert_eq!(get(&home, "heartbeat_interval"), "240");
    assert_eq!(post("/settings/set", "card=heartbeat&key=heartbeat_interval&stop=8").status, 400);
    let refused =
        post("/settings/text", &format!("card=heartbeat&key=heartbeat_prompt&value={}", "x".repeat(4_001)));
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("at most 4000 characters") && refused.text.contains(&"x".repeat(4_001)));
    let edit = post("/settings/agent/memory/edit", "card=memory&key=tea&content=Likes+black+tea.");
    assert_eq!(edit.status, 303);
    assert!(daemon.get("/settings/agent", &cookie).text.contains("Likes black tea."));
    assert_eq!(post("/settings/agent/memory/delete", "card=memory&key=nothing").status, 409);
    assert_eq!(post("/settings/agent/memory/delete", "card=memory&key=tea").status, 303);
    assert_eq!(home.run(&["memory", "list", "--json"]).json(), json!([]));
    let restored = post("/undo", "number=1&act=restore");
    assert_eq!((restored.status, restored.header("location")), (303, Some("/settings/agent?show=log")));
    assert_eq!(home.run(&["memory", "list", "--json"]).json()[0]["key"], "tea");
    assert_eq!(post("/undo", "number=1&act=restore").status, 409, "once");
    // A page asked for what it does not have shows what it has.
    for path in ["/settings/agent?open=task:99&show=dry-run", "/settings/agent?open=x&show=,,%00"] {
        assert_eq!(daemon.get(path, &cookie).status, 200, "{path}");
    }
    assert_eq!(daemon.get("/settings/nothing", &cookie).status, 404);
}
