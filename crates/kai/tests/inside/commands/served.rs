//! The same commands with and without a daemon.

use serde_json::Value;

use super::kit::{Done, Home};

/// The same list of commands on equal homes, one with a daemon and one without: word for word the same.
#[test]
fn output_is_the_same_with_and_without_a_daemon() {
    let commands: &[&[&str]] = &[
        &["settings", "set", "theme", "dark"],
        &["settings", "list"],
        &["settings", "list", "--json"],
        &["settings", "get", "theme", "--json"],
        &["settings", "set", "theme", "blue"],
        &["settings", "get", "nothing"],
        &["tools", "list"],
        &["tools", "list", "--json"],
        &["tools", "call", "memory_store", r#"{"key": "a", "content": "hostile \u001b[31m\u202e text"}"#],
        &["tools", "call", "memory_store", "{}"],
        &["memory", "list"],
        &["memory", "list", "--json"],
        &["memory", "forget", "b"],
        &["memory", "forget", "a"],
        &["link", "--revoke-all"],
        &["status"],
        &["status", "--json"],
    ];
    let (alone, served) = (Home::new(), Home::served());
    for command in commands {
        let (a, b) = (alone.run(command), served.run(command));
        assert_eq!(comparable(&a, &alone), comparable(&b, &served), "kai {}", command.join(" "));
    }
}

/// Without what must differ: the name of the home, the daemon's own line, and the tool that needs a daemon.
fn comparable(done: &Done, home: &Home) -> Done {
    let home = std::fs::canonicalize(home.path()).unwrap();
    let out = done.out.replace(home.to_str().unwrap(), "HOME");
    let out = match serde_json::from_str::<Value>(&out) {
        Ok(Value::Object(mut fields)) => {
            fields.remove("daemon");
            Value::Object(fields).to_string()
        }
        Ok(Value::Array(mut rows)) => {
            rows.retain(|row| row["name"] != "set_alarm");
            Value::Array(rows).to_string()
        }
        _ => {
            let differs = |line: &&str| line.starts_with("Daemon ") || line.starts_with("set_alarm ");
            out.lines().filter(|line| !differs(line)).collect::<Vec<_>>().join("\n")
        }
    };
    Done { out, ..done.clone() }
}
