//! What holds for the JSON of every command.

use kai_stand_ins::{Act, Provider};
use serde_json::json;

use super::kit::Home;

/// A bare value could never be told more of.
#[test]
fn json_is_an_object_with_names_also_where_there_is_little_to_say() {
    let provider = Provider::start([Act::says("Hello.")]);
    let home = Home::with_model(&provider);
    home.run(&["ask", "hi"]);
    home.run(&["tools", "call", "memory_store", r#"{"key": "tea", "content": "Green."}"#]);
    let daily = r#"{"description": "Persists", "prompt": "Water them.", "cron": "0 8 * * *"}"#;
    assert_eq!(home.run(&["tools", "call", "schedule_task", daily]).code, 0);
    for (command, expected) in [
        (&["memory", "forget", "tea"][..], json!({"forgotten": "tea"})),
        (&["tasks", "cancel", "1"], json!({"id": 1, "cancelled": true})),
        (&["chats", "delete", "1", "--yes"], json!({"id": 1, "deleted": true})),
        (&["models", "first", "mine"], json!({"first": "mine"})),
        (
            &["models", "remove", "mine"],
            json!({"removed": "mine", "heartbeat_reset": false, "file_deleted": false}),
        ),
    ] {
        assert_eq!(home.run(&[command, &["--json"]].concat()).json(), expected, "{command:?}");
    }
}

/// Every `…_local` of every answer is written alike.
#[test]
fn local_times_in_json_are_written_alike() {
    fn locals(value: &serde_json::Value, found: &mut Vec<(String, String)>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    if let (true, Some(at)) = (key.ends_with("_local"), value.as_str()) {
                        found.push((key.clone(), at.to_owned()));
                    }
                    locals(value, found);
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| locals(item, found)),
            _ => {}
        }
    }
    let home = Home::served();
    home.run(&["heartbeat", "run"]);
    let daily = r#"{"description": "Persists", "prompt": "Water them.", "cron": "0 8 * * *"}"#;
    home.run(&["tools", "call", "schedule_task", daily]);
    let mut found = vec![];
    for command in [&["status"][..], &["tasks", "list"], &["heartbeat", "log"], &["ledger", "show"]] {
        locals(&home.run(&[command, &["--json"]].concat()).json(), &mut found);
    }
    for key in ["since_local", "next_local", "at_local"] {
        assert!(found.iter().any(|(name, _)| name == key), "{key} in {found:?}");
    }
    for (key, at) in found {
        let marks: String = at.chars().filter(|c| !c.is_ascii_digit()).collect();
        assert!(at.len() == 25 && matches!(marks.as_str(), "--T::+:"), "{key}: {at}");
    }
}
