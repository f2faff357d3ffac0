//! `/settings/agent`: switches, editors, memories, proposals, tasks and heartbeats.

use serde_json::json;

use super::house::House;
use super::model::{Act, Model};

pub(super) const HOSTILE: &str = "<img src=x onerror=\"alert(1)\"><b>bold</b>";
const AGENT: &str = "/settings/agent";

#[test]
fn a_switch_persists_and_its_tools_come_and_go() {
    let model = Model::start([Act::says("Yes.")]);
    let house = House::with_model(&model);
    let mut visitor = house.visitor(AGENT);
    for (testid, key, tool) in [
        ("memory-toggle", "memory_enabled", "memory_store"),
        ("scheduling-toggle", "scheduling_enabled", "schedule_task"),
    ] {
        for on in [false, true] {
            visitor.press(testid);
            assert_eq!(visitor.is_on(testid), on);
            assert_eq!(house.get_setting(key), on.to_string());
            house.ask("Hello");
            assert_eq!(model.offered().iter().any(|offered| offered == tool), on, "{tool}");
        }
    }
}

#[test]
fn what_is_set_elsewhere_is_seen_on_an_open_page() {
    let house = House::new();
    let mut visitor = house.visitor(AGENT);
    for (key, value, testid, shown) in [
        ("heartbeat_interval", "5", "heartbeat-interval", "0"),
        ("heartbeat_daily_tokens", "1234", "heartbeat-budget", "1234"),
        ("heartbeat_model", "gone", "heartbeat-model", "gone"),
    ] {
        assert_ne!(visitor.value(testid), shown);
        // Also one that the page does not offer, as a newer Kai may have left it.
        house.take_in(&json!({"settings": {key: value}}));
        visitor.until(key, |page, _| page.all(testid).first().is_some_and(|at| page.value(*at) == shown));
    }
    house.set("memory_enabled", "false");
    visitor.until_on("memory-toggle", false);
    house.set("heartbeat_prompt", "Brief");
    visitor.until_text("heartbeat-prompt-count", "5 / 4,000");
    house.set("language", "de");
    assert_eq!(house.visitor(AGENT).texts("heartbeat-prompt-count"), ["5 / 4.000"]);
}

#[test]
fn what_is_typed_is_saved_reset_and_refused_in_words() {
    let house = House::new();
    let mut visitor = house.visitor(AGENT);
    assert!(visitor.value("heartbeat-prompt").starts_with("This is a heartbeat"));
    assert!(!visitor.has("heartbeat-prompt-reset"), "it is Kai’s own");
    visitor.fill("heartbeat-prompt", &"ä".repeat(4_001));
    visitor.press("heartbeat-prompt-save");
    assert!(visitor.says("at most 4,000 characters"));
    assert_eq!(visitor.texts("heartbeat-prompt-count"), ["4,001 / 4,000"]);
    assert_eq!(visitor.value("heartbeat-prompt"), "ä".repeat(4_001), "it can be mended");
    assert_eq!(house.get_setting("heartbeat_prompt"), "");
    visitor.fill("heartbeat-prompt", "Only say what is urgent.\nBe brief.");
    assert_eq!(visitor.press_live("heartbeat-prompt-save"), json!({"said": "Saved."}));
    assert_eq!(visitor.texts("heartbeat-prompt-count"), ["34 / 4,000"]);
    assert_eq!(house.get_setting("heartbeat_prompt"), "Only say what is urgent.\nBe brief.");
    visitor.press("heartbeat-prompt-reset");
    assert!(!visitor.has("heartbeat-prompt-reset"));
    assert_eq!(house.get_setting("heartbeat_prompt"), "");
    assert!(visitor.value("heartbeat-prompt").starts_with("This is a heartbeat"));
    visitor.fill("soul", "You are brief.");
    visitor.press("soul-save");
    assert!(visitor.has("soul-reset"));
    assert_eq!(house.get_setting("soul_text"), "You are brief.");
}

#[test]
fn a_heartbeat_is_run_seen_and_looked_into() {
    let pieces = ["The roof ", "leaks."];
    let model = Model::start([Act::says_in_steps(&pieces), Act::says("The roof leaks.")]);
    let house = House::with_model(&model);
    house.remember("tea", "Likes green tea.");
    for _ in 0..5 {
        house.tool("memory_reinforce", &json!({"key": "tea"}));
    }
    let mut visitor = house.visitor(AGENT);
    assert!(visitor.says("It hasn’t run yet."));
    visitor.press("heartbeat-dry-run");
    let dry = house.show("heartbeat_dry_run");
    assert_eq!(visitor.texts("heartbeat-preview"), [dry["prompt"].as_str().unwrap().trim()], "to the byte");
    let tokens = kai_words::Lang::ENGLISH.number(dry["tokens"].as_u64().unwrap());
    assert!(visitor.texts("heartbeat-tokens")[0].contains(&format!("{tokens} tokens")));
    visitor.press("heartbeat-run");
    visitor.until_seen("spinner");
    model.go_on(pieces.len());
    visitor.until_gone("spinner");
    assert!(visitor.says("Sent you a report"));
    for _ in 0..6 {
        house.run("heartbeat_run", &json!({"force": false}));
    }
    visitor.reload();
    assert_eq!(visitor.text_of_children("heartbeat-log").len(), 5);
    visitor.press("heartbeat-log-more");
    assert_eq!(visitor.text_of_children("heartbeat-log").len(), 7);
    assert_eq!(visitor.path, "/settings/agent?show=dry-run%2Clog");
    visitor.press("heartbeat-log-less");
    assert_eq!(visitor.text_of_children("heartbeat-log").len(), 5);
}

#[test]
fn memories_are_seen_edited_deleted_and_taken_back() {
    let house = House::new();
    for n in 1..=6 {
        house.remember(&format!("thing {n}"), &format!("Number {n}."));
    }
    house.remember(HOSTILE, HOSTILE);
    let mut visitor = house.visitor(AGENT);
    assert_eq!(visitor.texts("memory").len(), 5);
    assert!(visitor.texts("memory")[0].contains(HOSTILE), "the newest first");
    assert_eq!((visitor.page.tagged("img"), visitor.page.tagged("b")), (0, 0), "text is text");
    house.remember("thing 7", "Comes by itself.");
    visitor.until_says("Comes by itself.");
    visitor.press("memories-all");
    assert_eq!(visitor.texts("memory").len(), 8);
    visitor.press("memory-edit");
    visitor.fill("memory-text", "  ");
    visitor.press("memory-save");
    assert!(visitor.says("A memory can’t be empty."));
    visitor.fill("memory-text", "In other words.");
    assert_eq!(visitor.press_live("memory-save"), json!({"said": "Saved."}));
    let listed = || house.show("memory_list");
    assert_eq!(
        (&listed()[0]["key"], &listed()[0]["content"]),
        (&json!("thing 7"), &json!("In other words."))
    );
    visitor.press("memory-edit");
    assert!(!visitor.has("memory-text"));
    // The last one, so that it is seen to come back to its place.
    let before = listed();
    visitor.press_at(*visitor.page.all("memory-delete").last().unwrap());
    assert_eq!(visitor.texts("memory").len(), 7);
    assert_eq!(listed().as_array().unwrap().len(), 7, "really gone");
    visitor.press("undo");
    assert!(!visitor.has("undo"));
    assert_eq!(visitor.texts("memory").len(), 8);
    assert_eq!(listed(), before);
}

/// An unconfirmed memory shows its words and waits for *Confirm*; a button that showed other words confirms nothing.
#[test]
fn an_unconfirmed_memory_is_confirmed_on_the_page_with_the_words_that_were_shown() {
    let house = House::new();
    let bring = |words: &str| {
        let memory =
            json!([{"key": "bank", "content": words, "category": "GENERAL", "hits": 0, "tainted": true}]);
        house.take_in(&json!({ "memory": memory }));
    };
    bring("Pay to\u{202e} Alice.");
    let mut visitor = house.visitor(AGENT);
    assert_eq!(visitor.texts("memory-waits"), ["Pay to\\u{202e} Alice."], "nothing is hidden");
    assert_eq!(visitor.texts("memories-waiting"), ["1 memory waits for your confirmation"]);
    assert_eq!(visitor.texts("memory-confirm"), ["Confirm"]);
    // However many others there are, what waits is listed.
    for n in 0..7 {
        house.remember(&format!("memory {n}"), "Tea.");
    }
    visitor.reload();
    assert!(visitor.has("memory-waits"));
    visitor.press("memory-delete");
    assert_eq!(visitor.texts("memory-waits"), Vec::<&str>::new(), "forgotten");
    visitor.press("undo");
    assert!(visitor.has("memory-waits"));
    // What is shown is not what is there any more.
    bring("Pay to Eve.");
    visitor.press("memory-confirm");
    assert!(visitor.says("Nothing was confirmed"));
    let confirmed = || {
        let all = house.show("memory_list");
        let bank = all.as_array().unwrap().iter().find(|memory| memory["key"] == "bank").cloned();
        bank.unwrap()["confirmed"].clone()
    };
    assert_eq!(confirmed(), false);
    visitor.until_says("Pay to Eve.");
    visitor.press("memory-confirm");
    assert!(!visitor.has("memory-waits"));
    assert_eq!(confirmed(), true);
}

#[test]
fn a_proposal_is_answered_on_the_page() {
    let proposals = [("tea", "Offer green tea."), ("time", HOSTILE)];
    let calls =
        proposals.map(|(key, text)| Act::calls("promote_learning", &json!({"key": key, "text": text})));
    let model = Model::start(calls.into_iter().chain([Act::says("Proposed.")]));
    let house = House::with_model(&model);
    for (key, _) in proposals {
        house.remember(key, "A memory.");
        for _ in 0..5 {
            house.tool("memory_reinforce", &json!({ "key": key }));
        }
    }
    assert_eq!(house.run("heartbeat_run", &json!({"force": false}))["report"], "Proposed.");
    let mut visitor = house.visitor(AGENT);
    assert_eq!(visitor.texts("proposal").len(), 2);
    assert!(visitor.texts("proposal")[1].contains(HOSTILE));
    assert_eq!(visitor.page.tagged("img"), 0, "text is text");
    visitor.press("proposal-accept");
    assert_eq!(visitor.texts("proposal").len(), 1);
    assert!(house.get_setting("soul_text").ends_with("\nOffer green tea."));
    assert!(visitor.value("soul").ends_with("green tea."));
    visitor.press("proposal-decline");
    assert!(!visitor.has("proposal"));
}

#[test]
fn tasks_are_read_opened_deleted_and_taken_back() {
    let house = House::new();
    let weekly = json!({"description": HOSTILE, "prompt": "Look at the week.", "cron": "30 8 * * 1-5"});
    for arguments in [weekly, json!({"description": "Always", "prompt": "Be kind.", "on_heartbeat": true})] {
        house.tool("schedule_task", &arguments);
    }
    let mut visitor = house.visitor(AGENT);
    assert!(visitor.texts("task")[0].contains(HOSTILE));
    assert_eq!(visitor.page.tagged("img"), 0, "text is text");
    assert_eq!(visitor.texts("task-when"), ["Every weekday at 8:30", "With every heartbeat"]);
    visitor.press("task-details");
    assert!(visitor.says("Look at the week.") && visitor.says("It hasn’t run yet."));
    let shown = || house.try_to("tasks_show", &json!({"id": 1}));
    let before = shown().unwrap();
    visitor.press("task-delete");
    let gone = shown().unwrap_err();
    assert!(gone.code == 1 && gone.message.to_string().contains("no task number 1"), "{gone:?}");
    assert!(visitor.texts("undo-bar").concat().contains(HOSTILE));
    visitor.press("undo");
    assert_eq!(visitor.texts("task").len(), 2);
    assert_eq!(shown().unwrap(), before);
}

#[test]
fn without_a_phone_or_a_desktop_there_is_no_card_for_them() {
    let house = House::new();
    let visitor = house.visitor(AGENT);
    for testid in ["sms-card", "notifications-card", "code-redaction-toggle"] {
        assert!(!visitor.has(testid), "{testid}");
    }
    for word in ["SMS", "otification"] {
        assert!(!visitor.answer.text.contains(word), "{word}");
    }
    assert!(visitor.has("heartbeat-card"));
}

#[test]
fn without_a_script_every_setting_can_be_changed() {
    let house = House::new();
    house.remember("tea", "Likes green tea.");
    let visitor = house.visitor("/settings/agent?show=log");
    let post = |path: &str, body: &str| visitor.post(path, &format!("page=agent&{body}"));
    let turned = post("/settings/set", "card=memory&key=memory_enabled&value=false");
    assert_eq!((turned.status, turned.header("location")), (303, Some("/settings/agent?show=log#memory")));
    assert_eq!(house.get_setting("memory_enabled"), "false");
    post("/settings/set", "card=heartbeat&key=heartbeat_interval&stop=7");
    assert_eq!(house.get_setting("heartbeat_interval"), "240");
    assert_eq!(post("/settings/set", "card=heartbeat&key=heartbeat_interval&stop=8").status, 400);
    let long = "x".repeat(4_001);
    let refused = post("/settings/text", &format!("card=heartbeat&key=heartbeat_prompt&value={long}"));
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("at most 4,000 characters") && refused.text.contains(&long));
    let edit = post("/settings/agent/memory/edit", "card=memory&key=tea&content=Likes+black+tea.");
    assert_eq!(edit.status, 303);
    assert!(house.get(AGENT, &visitor.cookie).text.contains("Likes black tea."));
    assert_eq!(post("/settings/agent/memory/delete", "card=memory&key=nothing").status, 409);
    assert_eq!(post("/settings/agent/memory/delete", "card=memory&key=tea").status, 303);
    assert_eq!(house.show("memory_list"), json!([]));
    let restored = post("/undo", "number=1&act=restore");
    assert_eq!((restored.status, restored.header("location")), (303, Some("/settings/agent?show=log")));
    assert_eq!(house.show("memory_list")[0]["key"], "tea");
    assert_eq!(post("/undo", "number=1&act=restore").status, 409, "once");
    // A page asked for what it does not have shows what it has.
    for (path, status) in [
        ("/settings/agent?open=task:99&show=dry-run", 200),
        ("/settings/agent?open=x&show=,,%00", 200),
        ("/settings/nothing", 404),
    ] {
        assert_eq!(house.get(path, &visitor.cookie).status, status, "{path}");
    }
}

#[test]
fn private_first_is_offered_where_there_is_a_choice() {
    let model = Model::start([]);
    let house = House::with_model(&model);
    assert!(!house.visitor(AGENT).has("heartbeat-local-first"), "everything stays here anyway");
    house.add_model("far", "https://far.invalid/v1", None);
    let mut visitor = house.visitor(AGENT);
    assert!(!visitor.is_on("heartbeat-local-first"));
    visitor.press("heartbeat-local-first");
    assert!(visitor.is_on("heartbeat-local-first") && !visitor.has("heartbeat-trouble"));
    assert_eq!(house.get_setting("heartbeat_local_first"), "true");
    house.run("models_remove", &json!({"name": "mine"}));
    let visitor = house.visitor(AGENT);
    assert!(visitor.has("heartbeat-local-first"), "it can be turned off");
    assert!(visitor.texts("heartbeat-trouble")[0].contains("may ask only models on this computer"));
}
