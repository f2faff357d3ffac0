//! The heartbeat and proposals, as a person and a script see them.

use kai_stand_ins::{Act, Provider};
use serde_json::json;

use super::kit::Home;

#[test]
fn nothing_new_asks_nobody_and_force_asks() {
    let provider = Provider::start([Act::says("**HEARTBEAT_OK**"), Act::says("The roof leaks.")]);
    let home = Home::with_model(&provider);
    let ran = home.run(&["heartbeat", "run"]);
    assert!(ran.code == 0 && ran.out.contains("Nothing is new, so Kai did not ask a model."), "{ran:?}");
    assert!(provider.asked().is_empty());
    assert_eq!(home.run(&["heartbeat", "run", "--force"]).out, "Nothing needs your attention.\n");
    assert_eq!(home.run(&["heartbeat", "run", "--force"]).out, "The roof leaks.\n");
    let log = home.run(&["heartbeat", "log", "--json"]).json();
    let outcomes: Vec<&str> =
        log.as_array().unwrap().iter().map(|r| r["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["report", "ok", "nothing_new"]);
    assert_eq!(log[0]["tokens"], 18);
    let status = home.run(&["status", "--json"]).json()["heartbeat"].clone();
    assert_eq!((&status["enabled"], &status["interval"]), (&json!(true), &json!(30)));
    let id = status["report"].as_i64().unwrap().to_string();
    assert!(home.run(&["chats", "show", &id]).out.contains("The roof leaks."));
    let listed = home.run(&["chats", "list", "--json"]).json();
    assert_eq!((&listed[0]["kind"], &listed[0]["title"]), (&json!("heartbeat"), &json!("Heartbeat")));
    // What is asked in a heartbeat has only the tools of a run that nobody watches.
    let body = provider.asked()[0].body.clone();
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|t| t["function"]["name"].as_str().unwrap()).collect();
    for (tool, offered) in
        [("get_local_time", true), ("memory_reinforce", true), ("web_search", false), ("memory_store", false)]
    {
        assert_eq!(tools.contains(&tool), offered, "{tool} in {tools:?}");
    }
}

#[test]
fn a_run_that_cannot_be_answered_says_why() {
    let home = Home::new();
    home.run(&["heartbeat", "run", "--force"]).refused(1, "The heartbeat failed: No model is set up");
    assert_eq!(home.run(&["heartbeat", "log", "--json"]).json()[0]["outcome"], "failed");
    home.run(&["settings", "set", "heartbeat_interval", "7"]).refused(2, "5, 10, 15");
    home.run(&["settings", "set", "heartbeat_active_end", "25"]).refused(2, "0 to 24");
    let dry = home.run(&["heartbeat", "dry-run", "--json"]).json();
    assert!(dry["prompt"].as_str().unwrap().contains("HEARTBEAT_OK"), "{dry}");
    assert!(dry["tokens"].as_u64().unwrap() > 100);
    assert_eq!(dry["is_new"], false);
    let dry = home.run(&["heartbeat", "dry-run"]);
    assert!(dry.err.starts_with("Nothing is new, so Kai would not ask a model."), "{dry:?}");
    assert!(dry.out.contains("HEARTBEAT_OK"), "{dry:?}");
    assert_eq!(home.run(&["heartbeat", "log", "--json"]).json().as_array().unwrap().len(), 1);
    let scripted = home.run(&["heartbeat", "run", "--force", "--json"]);
    assert_eq!((scripted.code, &scripted.json()["outcome"]), (1, &json!("failed")));
}

#[test]
fn the_model_of_heartbeats_is_one_that_there_is() {
    let home = Home::new();
    let choose = |name: &str| home.run(&["settings", "set", "heartbeat_model", name]);
    choose("nosuch").refused(2, "There’s no model called nosuch. Try: kai models add");
    let local = ["openai-compatible", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    for name in ["first", "second"] {
        home.run(&[&["models", "add", "--name", name][..], &local].concat());
    }
    choose("nosuch").refused(2, "Available: first, second.");
    assert_eq!((choose("").code, choose("first").code), (0, 0));
    let other = home.run(&["models", "remove", "second"]);
    assert_eq!((other.out.as_str(), other.err.as_str()), ("Removed second.\n", ""));
    assert_eq!(home.run(&["settings", "get", "heartbeat_model"]).out, "first\n");
    let chosen = home.run(&["models", "remove", "first"]);
    assert!(chosen.err.contains("They now use the first available one"), "{chosen:?}");
    assert_eq!(home.run(&["settings", "get", "heartbeat_model"]).out, "\n");
}

/// A model that is gone, or cannot be asked, has one sentence wherever it is told. The page shows the log too, so only
/// doctor names the commands that help.
#[test]
fn a_chosen_model_that_cannot_be_asked_is_said_everywhere() {
    let none = "The heartbeat is set to ask gone, but there is no such model. Choose another one.";
    let unready = "The heartbeat can’t ask its model: openai has no API key. Enter one first.";
    for (wanted, sentence, found, helps) in [
        ("gone", none, "is set to ask gone, but there is no such model", "Choose one from kai models list"),
        (
            "openai",
            unready,
            "is set to ask openai, which cannot be used",
            "Try: kai models add openai, or set OPENAI_API_KEY",
        ),
    ] {
        let home = Home::new();
        home.run(&["models", "add", "openai"]);
        home.take_in("heartbeat_model", wanted);
        let ran = home.run(&["heartbeat", "run", "--force", "--json"]);
        assert!(ran.code == 1 && ran.json()["reason"].as_str().unwrap().contains(sentence), "{ran:?}");
        let log = home.run(&["heartbeat", "log"]).out;
        let status = home.run(&["status"]).out;
        assert!(log.contains(sentence) && status.contains(sentence), "{log} {status}");
        assert!(status.contains("kai doctor") && !log.contains("kai "), "{log} {status}");
        let doctor = home.run(&["doctor"]).out;
        assert!(doctor.contains(found) && doctor.contains(helps), "{doctor}");
    }
}

#[test]
fn a_proposal_waits_for_the_person() {
    let provider = Provider::start([
        Act::calls("promote_learning", &json!({"key": "tea", "text": "Offer green tea."})),
        Act::says("I proposed something."),
    ]);
    let home = Home::with_model(&provider);
    home.run(&["tools", "call", "memory_store", r#"{"key": "tea", "content": "Likes green tea."}"#]);
    for _ in 0..5 {
        home.run(&["tools", "call", "memory_reinforce", r#"{"key": "tea"}"#]);
    }
    let dry = home.run(&["heartbeat", "dry-run"]);
    assert!(dry.out.contains("## Promotion Candidates\n- tea: Likes green tea."), "{dry:?}");
    assert_eq!(dry.err, "", "something is new");
    assert_eq!(home.run(&["heartbeat", "run"]).out, "I proposed something.\n");
    assert!(home.run(&["memory", "proposals"]).out.contains("Offer green tea. (useful 5 times)"));
    assert_eq!(home.run(&["settings", "get", "soul_text"]).out, "\n");
    home.run(&["memory", "accept", "coffee"]).refused(1, "There’s no suggestion called “coffee”.");
    assert_eq!(home.run(&["memory", "accept", "tea"]).out, "Added to Kai's personality: Offer green tea.\n");
    assert!(home.run(&["settings", "get", "soul_text"]).out.ends_with("\nOffer green tea.\n"));
    assert_eq!(home.run(&["memory", "proposals"]).out, "No suggestions yet.\n");
    let again = home.run(&["heartbeat", "run"]);
    assert!(again.out.contains("Nothing is new, so Kai did not ask a model."), "{again:?}");
}

/// A model elsewhere is never asked, although it is first, chosen and usable, and however the local one fails.
#[test]
fn private_first_asks_nobody_elsewhere() {
    let provider = Provider::start([
        Act::says("HEARTBEAT_OK"),
        Act::status("401 Unauthorized", "application/json", "{}"),
        Act::status("400 Bad Request", "application/json", "{}"),
        Act::says(" "),
    ]);
    let home = Home::new();
    let far = ["openai-compatible", "--base-url", "https://far.invalid/v1", "--model", "m"];
    assert_eq!(home.run(&[&["models", "add", "--name", "far"][..], &far].concat()).code, 0);
    home.add_model("near", &provider);
    for (key, value) in [("heartbeat_model", "far"), ("heartbeat_local_first", "true")] {
        assert_eq!(home.run(&["settings", "set", key, value]).code, 0);
    }
    assert_eq!(home.run(&["heartbeat", "run", "--force"]).out, "Nothing needs your attention.\n");
    for fails in ["refuses its key", "refuses the request", "says nothing"] {
        let ran = home.run(&["heartbeat", "run", "--force"]);
        assert!(ran.code == 1 && !ran.err.contains("far"), "{fails}: {ran:?}");
    }
    assert_eq!(provider.asked().len(), 4);
    drop(provider);
    home.run(&["models", "remove", "near"]);
    let sentence = "The heartbeat may ask only models on this computer, and none of them can be used.";
    home.run(&["heartbeat", "run", "--force"]).refused(1, sentence);
    assert!(home.run(&["status"]).out.contains(sentence));
    let doctor = home.run(&["doctor"]).out;
    assert!(doctor.contains("kai settings set heartbeat_local_first false"), "{doctor}");
    let ledger = home.run(&["ledger", "show", "--json"]).out;
    assert!(ledger.contains("near") && !ledger.contains("far"), "{ledger}");
}
