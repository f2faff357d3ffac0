//! Broken states that people get into, and what `kai doctor` says about each: what is wrong, and the next step.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kai_stand_ins::{Act, Provider};
use serde_json::Value;

use super::kit::{Disk, Done, Home};

/// What doctor finds under a name.
fn check(done: &Done, name: &str) -> Value {
    let checks = done.json();
    checks.as_array().unwrap().iter().find(|check| check["name"] == name).cloned().unwrap_or_default()
}

/// It says this, and this is the next step.
fn says(home: &Home, name: &str, what: &str, next: &str) {
    let done = home.run(&["doctor", "--json"]);
    let found = check(&done, name);
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
    ("nothing set up", |_| (), "model", "none set up", "kai models add"),
    ("not running", |_| (), "daemon", "not running", "Start it: kai"),
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
        "nothing answers at 127.0.0.1:9",
        "Start the server",
    ),
    ("no model for heartbeats", |_| (), "heartbeat", "has no model to ask", "heartbeat_enabled false"),
    (
        "a heartbeat's model that is not there",
        |home| home.take_in("heartbeat_model", "claud"),
        "heartbeat",
        "set to ask claud",
        "kai models list",
    ),
    (
        "a search service without its address",
        |home| assert_eq!(home.run(&["settings", "set", "web_search_backend", "searxng"]).code, 0),
        "web search",
        "its address is missing",
        "web_search_searxng_url",
    ),
    (
        "a search service without its key",
        |home| assert_eq!(home.run(&["settings", "set", "web_search_backend", "brave"]).code, 0),
        "web search",
        "its key is missing",
        "web_search_brave_key",
    ),
    ("a home that others can read", |home| open_to(home.path(), 0o755), "privacy", "", "chmod 700"),
    (
        "a key that others can read",
        |home| open_to(&home.path().join("kai.key"), 0o644),
        "key",
        "other users can read the file kai.key (mode 644)",
        "chmod 600",
    ),
    (
        "a bug of ours",
        |home| {
            std::fs::create_dir_all(home.path().join("logs")).unwrap();
            std::fs::write(home.path().join("logs/crash-20260309T120000000Z.txt"), "x").unwrap();
        },
        "crash",
        "ran into a bug",
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
    says(&home, "heartbeat", "the last run failed", "kai heartbeat run");

    let provider = Provider::start([Act::says("All is well.")]);
    let home = Home::with_model(&provider);
    home.run(&["settings", "set", "heartbeat_daily_tokens", "5"]);
    home.run(&["heartbeat", "run", "--force"]);
    says(&home, "heartbeat", "used its 5 tokens", "heartbeat_daily_tokens 0");
}

#[test]
fn a_key_that_is_the_owners_alone_is_said_to_be() {
    let home = Home::new();
    let found = check(&home.run(&["doctor", "--json"]), "key");
    assert!(
        found["verdict"] == "fine" && found["says"].as_str().unwrap().contains("which only you can read")
    );
    assert_eq!(home.run(&["key", "show"]).out, "The key is in kai.key, which only you can read.\n");
    open_to(&home.path().join("kai.key"), 0o640);
    let shown = home.run(&["key", "show"]);
    assert!(shown.out.contains("other users can read") && shown.err.contains("chmod 600"), "{shown:?}");
}

#[test]
fn a_store_that_does_not_open_says_what_to_do() {
    type Spoiled = (&'static str, fn(&Disk), &'static str);
    let spoil: [Spoiled; 4] = [
        ("damaged", |home| std::fs::write(home.file("kai.db"), vec![7; 40_000]).unwrap(), "backup"),
        ("the key is gone", |home| std::fs::remove_file(home.file("kai.key")).unwrap(), "key"),
        (
            "another home's key",
            |home| {
                let other = Disk::prepared();
                std::fs::copy(other.file("kai.key"), home.file("kai.key")).unwrap();
            },
            "key",
        ),
        ("half a key", |home| std::fs::write(home.file("kai.key"), "abc").unwrap(), "key"),
    ];
    for (state, into, word) in spoil {
        let home = Disk::prepared();
        into(&home);
        let done = home.run(&["doctor", "--json"]);
        let found = check(&done, "store");
        let told = format!("{} {}", found["says"], found["next"]);
        assert_eq!((done.code, &found["verdict"]), (3, &Value::from("broken")), "{state}: {done:?}");
        assert!(told.contains(word), "{state}: {told}");
    }
}

#[test]
fn a_home_that_is_well_is_said_to_be() {
    let home = Home::new();
    let done = home.run(&["doctor", "--json"]);
    assert_eq!((done.code, check(&done, "daemon")["next"].as_str()), (0, Some("Start it: kai")));
    assert_eq!(check(&done, "privacy"), Value::Null);
}

#[cfg(feature = "foss")]
mod phones {
    use kai_assistant::db::DbError;
    use kai_assistant::settings;
    use serde_json::json;

    use super::super::phone::{ALICE, Phone, draft, ready};
    use super::*;

    #[test]
    fn a_phone_in_every_state() {
        says(&Phone::with_sms().home, "phone", "does not read its SMS", "sms_enabled true");

        let phone = ready();
        phone.program("termux-sms-list", r#"echo '{"API_ERROR": "Please grant the following permission to use this command: android.permission.READ_SMS"}'"#);
        assert_eq!(phone.run(&["sms", "poll"]).code, 1);
        says(&phone.home, "phone", "Kai cannot read its SMS", "SMS");

        let phone = ready();
        phone.program("termux-sms-list", "echo '[{\"_id\": '");
        assert_eq!(phone.run(&["sms", "poll"]).code, 1);
        says(&phone.home, "phone", "the last poll failed", "kai sms poll");

        // Taken to a desktop, where no phone is.
        let home = Home::new();
        let on = home.app.db.write_now(|tx| settings::store(tx, "sms_enabled", "true"));
        on.map_err(|error: DbError| error).unwrap();
        says(&home, "phone", "no phone is connected", "Termux");
    }

    #[test]
    fn drafts_that_did_not_go_well() {
        let phone = ready();
        let id = draft(&phone, ALICE, "Hi");
        phone.program("termux-sms-send", "cat > /dev/null; echo no service >&2; exit 1");
        let shown = phone.run(&["drafts", "list", "--json"]).json()[0].clone();
        let tap =
            json!({"id": id, "button": "send", "shown": shown["digest"], "attempts": shown["attempts"]});
        let tap = serde_json::from_value(tap).unwrap();
        let tapped = phone.home.wait(async |app| crate::commands::drafts::tap(app, tap).await.unwrap());
        assert!(phone.run(&["drafts", "list"]).out.contains("FAILED"), "{tapped:?}");
        says(&phone.home, "drafts", "could not be sent", &format!("kai drafts show {id}"));
    }
}
