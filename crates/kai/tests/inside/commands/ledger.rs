//! The ledger, as a person asks it: exactly what left, who saw a message, and whether it is whole.

use kai_stand_ins::{Act, Provider};
use serde_json::{Value, json};

use super::kit::Home;

#[test]
fn what_is_in_the_ledger_is_what_left_to_the_byte() {
    let tea = json!({"key": "tea", "content": "Likes \"green\" tea. 😀"});
    let provider = Provider::start([
        Act::calls("memory_store", &tea),
        Act::says("Noted."),
        Act::status("500 Oops", "text/plain", "no"),
        Act::says("Green."),
    ]);
    let home = Home::with_model(&provider);
    home.run(&["ask", "I like green tea"]);
    home.run(&["ask", "--last", "which tea?"]);
    let rows = home.run(&["ledger", "show", "--json"]).json();
    let rows = rows.as_array().unwrap();
    let what: Vec<&str> = rows.iter().rev().map(|row| row["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["request", "tool_call", "tool_result", "request", "request", "request"]);
    let left = provider.asked();
    let requests = rows.iter().rev().filter(|row| row["what"] == "request");
    for (row, asked) in requests.zip(&left) {
        let kept = home.run(&["ledger", "bytes", &row["seq"].to_string()]).out;
        assert_eq!(kept.trim_end_matches('\n'), asked.raw, "record {}", row["seq"]);
        assert_eq!(row["bytes"].as_u64().unwrap(), asked.raw.len() as u64);
    }
    assert_eq!(left.len(), 4, "an attempt that failed has left too");
    assert_eq!(home.run(&["ledger", "verify"]).out, "All 6 records verified; none were altered.\n");
    assert_eq!(home.run(&["ledger", "verify", "--json"]).json()["whole"], Value::Bool(true));
    home.run(&["ledger", "bytes", "2"]).refused(1, "Record 2 isn’t a request");
    assert_eq!(home.run(&["ledger", "who", "4711"]).out, "No request contained it.\n");
}

#[cfg(feature = "foss")]
#[test]
fn who_saw_a_message_has_an_exact_answer() {
    let home = Home::demo();
    let demo = |words: &[&str]| home.run(words);
    let id = demo(&["sms", "list", "--json"]).json()[0]["id"].as_i64().unwrap().to_string();
    let before = demo(&["ledger", "who", &id, "--json"]).json().as_array().unwrap().len();
    assert_eq!(demo(&["ask", "any new messages?"]).code, 0);
    let saw = demo(&["ledger", "who", &id, "--json"]).json();
    let saw = saw.as_array().unwrap();
    assert!(saw.len() > before, "the request after check_sms held it");
    assert!(
        saw.iter().all(|row| row["what"] == "request" && row["model"].as_str().unwrap().contains("demo"))
    );
    assert!(demo(&["ledger", "who", "999999"]).out.contains("No request contained it"));
    // A heartbeat's prompt holds what it shows.
    assert!(!demo(&["sms", "list", "--json"]).json().as_array().unwrap().is_empty());
    let last = demo(&["ledger", "who", &id, "--json"]).json().as_array().unwrap().len();
    assert!(demo(&["heartbeat", "run"]).out.contains("New messages wait"));
    assert!(demo(&["ledger", "who", &id, "--json"]).json().as_array().unwrap().len() > last);
    assert_eq!(demo(&["ledger", "verify"]).code, 0);
}
