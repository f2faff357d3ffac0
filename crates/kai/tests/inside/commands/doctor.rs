//! Broken states that people get into, and what `kai doctor` says about each: what is wrong, and the next step.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kai_stand_ins::{Act, Provider};

use super::kit::Home;

/// It says this, and this is the next step.
fn says(home: &Home, name: &str, what: &str, next: &str) {
    let done = home.run(&["doctor", "--json"]);
    let checks = done.json();
    let found = checks.as_array().unwrap().iter().find(|check| check["name"] == name).cloned();
    let found = found.unwrap_or_default();
    let told = (found["says"].as_str().unwrap_or_default(), found["next"].as_str().unwrap_or_default());
    assert!(told.0.contains(what) && told.1.contains(next), "{name}: wanted {what:?}, {next:?}: {done:?}");
    assert_ne!(found["verdict"], "fine", "{found}");
    assert_eq!(done.code, u8::from(found["verdict"] == "broken"), "{done:?}");
    // A person reads the same.
    let read = home.run(&["doctor"]).out;
    assert!(read.contains(next), "{name}: {read}");
}

fn open_to(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A state: how one gets into it, and what doctor is to say: of what, what, and which step.
type State = (&'static str, fn(&Home), &'static str, &'static str, &'static str);

const STATES: &[State] = &[
    ("nothing set up", |_| (), "model", "none is set up", "kai models add"),
    ("not running", |_| (), "daemon", "does not run", "Start it: kai"),
    (
        "a model without its key",
        |home| drop(home.run(&["models", "add", "openai"])),
        "model",
        "openai cannot be used",
        "key",
    ),
    (
        "a model's server that is off",
        |home| {
            let at = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
            assert_eq!(home.run(&[&["models", "add", "openai-compatible"], &at[..]].concat()).code, 0);
        },
        "model server",
        "nobody answers at 127.0.0.1:9",
        "Start the server",
    ),
    ("no model for heartbeats", |_| (), "heartbeat", "has no model to ask", "heartbeat_enabled false"),
    (
        "a heartbeat's model that is not there",
        |home| home.take_in("heartbeat_model", "claud"),
        "heartbeat",
        "called claud",
        "kai models list",
    ),
    (
        "a search service without its address",
        |home| assert_eq!(home.run(&["settings", "set", "web_search_backend", "searxng"]).code, 0),
        "web search",
        "does not have its address",
        "web_search_searxng_url",
    ),
    (
        "a search service without its key",
        |home| assert_eq!(home.run(&["settings", "set", "web_search_backend", "brave"]).code, 0),
        "web search",
        "does not have its key",
        "web_search_brave_key",
    ),
    ("a home that others can read", |home| open_to(home.path(), 0o755), "privacy", "", "chmod 700"),
    (
        "a key that others can read",
        |home| open_to(&home.path().join("kai.key"), 0o644),
        "key",
        "other users can open the file kai.key (mode 644)",
        "chmod 600",
    ),
    (
        "a bug of ours",
        |home| {
            std::fs::create_dir_all(home.path().join("logs")).unwrap();
            std::fs::write(home.path().join("logs/crash-20260309T120000000Z.txt"), "x").unwrap();
        },
        "crash",
        "a bug of its own",
        "crash-20260309T120000000Z.txt",
    ),
];

#[test]
fn every_broken_state_has_a_next_step() {
    for (_, into, name, what, next) in STATES {
        let home = Home::new();
        into(&home);
        says(&home, name, what, next);
    }
}

#[test]
fn what_failed_by_itself_is_found_later() {
    let provider = Provider::start([Act::status("401 Unauthorized", "text/plain", "no")]);
    let home = Home::with_model(&provider);
    home.run(&["heartbeat", "run", "--force"]);
    says(&home, "heartbeat", "failed the last time", "kai heartbeat run");

    let provider = Provider::start([Act::says("All is well.")]);
    let home = Home::with_model(&provider);
    for (key, value) in [("heartbeat_daily_tokens", "5")] {
        home.run(&["settings", "set", key, value]);
    }
    home.run(&["heartbeat", "run", "--force"]);
    says(&home, "heartbeat", "used up its 5 tokens", "heartbeat_daily_tokens 0");
}
