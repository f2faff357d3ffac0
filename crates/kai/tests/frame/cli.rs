//! Commands, with and without a daemon.

use std::process::Stdio;

use crate::kit::{Done, Home, kai};

#[test]
fn a_home_that_was_not_there_is_said() {
    let folder = Home::new();
    let typed = folder.path().join("kia");
    let asked = || -> Done {
        kai(folder.path())
            .args(["--home", typed.to_str().unwrap(), "memory", "list"])
            .output()
            .unwrap()
            .into()
    };
    let first = asked();
    assert!(
        first.code == 0 && first.err.contains("kia was not there: this is a new, empty home."),
        "{first:?}"
    );
    assert_eq!(asked().err, "", "once");
    let by_name = Done::from(kai(&folder.path().join("aik")).args(["memory", "list"]).output().unwrap());
    assert!(by_name.err.contains("aik was not there"), "{by_name:?}");
}

#[test]
fn names_come_in_the_language_of_the_locale_or_the_chosen_one() {
    let home = Home::new();
    let title = |locale: &str| {
        let done = Done::from(
            kai(home.path()).env("LANG", locale).args(["tools", "list", "--json"]).output().unwrap(),
        );
        done.json()[0]["title"].as_str().unwrap().to_owned()
    };
    assert_eq!((title("de_DE.UTF-8").as_str(), title("en_GB.UTF-8").as_str()), ("Ortszeit", "Local time"));
    let daemon = home.start();
    assert_eq!(title("de_DE.UTF-8"), "Ortszeit", "the caller's locale counts, not the daemon's");
    drop(daemon);
    home.run(&["settings", "set", "language", "de"]);
    assert_eq!(title("en_GB.UTF-8"), "Ortszeit");
}

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
    let (alone, served) = (Home::new(), Home::new());
    // During its hours the daemon's heartbeat would stand in the status of one of them.
    for home in [&alone, &served] {
        assert_eq!(home.run(&["settings", "set", "heartbeat_enabled", "false"]).code, 0);
    }
    let daemon = served.start();
    // The daemon has made one link for its first line, which the other home must have too.
    assert_eq!(alone.run(&["link"]).code, 0);
    for command in commands {
        let (a, b) = (alone.run(command), served.run(command));
        assert_eq!(comparable(&a, alone.path()), comparable(&b, served.path()), "kai {}", command.join(" "));
    }
    drop(daemon);
}

/// Without what must differ: the name of the home, the daemon's own line, and the tool that needs a daemon.
fn comparable(done: &Done, home: &std::path::Path) -> Done {
    let home = std::fs::canonicalize(home).unwrap();
    let out = done.out.replace(home.to_str().unwrap(), "HOME");
    let out = match serde_json::from_str::<serde_json::Value>(&out) {
        Ok(serde_json::Value::Object(mut fields)) => {
            fields.remove("daemon");
            serde_json::Value::Object(fields).to_string()
        }
        Ok(serde_json::Value::Array(mut rows)) => {
            rows.retain(|row| row["name"] != "set_alarm");
            serde_json::Value::Array(rows).to_string()
        }
        _ => {
            let differs = |line: &&str| line.starts_with("Daemon ") || line.starts_with("set_alarm ");
            out.lines().filter(|line| !differs(line)).collect::<Vec<_>>().join("\n")
        }
    };
    Done { out, ..done.clone() }
}

#[test]
fn a_closed_pipe_is_no_failure_and_no_panic() {
    let home = Home::new();
    let mut listing = kai(home.path())
        .args(["settings", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(listing.stdout.take());
    let done = Done::from(listing.wait_with_output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (0, ""));
}

#[cfg(debug_assertions)]
#[test]
fn a_bug_ends_in_a_sentence_and_a_file() {
    let home = Home::new();
    let done = home.run(&["__panic"]);
    done.refused(1, "hit a bug of its own");
    let file = done.err.split("is in ").nth(1).unwrap().split(';').next().unwrap();
    let report = std::fs::read_to_string(file).unwrap();
    assert!(report.contains("cli/mod.rs:"), "{report}");
    assert!(!report.contains("on purpose"), "what a panic says may quote a message: {report}");
}

#[test]
fn the_home_is_the_flag_then_the_variable_then_the_data_folder() {
    let (flag, variable, data) = (Home::new(), Home::new(), Home::new());
    let status = |command: &mut std::process::Command| {
        Done::from(command.args(["status", "--json"]).output().unwrap()).json()["home"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let real = |home: &Home| std::fs::canonicalize(home.path()).unwrap().display().to_string();
    assert_eq!(status(kai(variable.path()).arg("--home").arg(flag.path())), real(&flag));
    assert_eq!(status(&mut kai(variable.path())), real(&variable));
    let from_data = status(kai(variable.path()).env_remove("KAI_HOME").env("XDG_DATA_HOME", data.path()));
    assert_eq!(from_data, format!("{}/kai", real(&data)));
    let from_home = status(kai(variable.path()).env_remove("KAI_HOME").env("HOME", data.path()));
    assert_eq!(from_home, format!("{}/.local/share/kai", real(&data)));
    let lost = kai(variable.path()).env_remove("KAI_HOME").arg("status").output().unwrap();
    Done::from(lost).refused(3, "--home DIR");
}

#[test]
fn a_passphrase_locks_the_home() {
    let home = Home::new();
    let with = |passphrase: &str, args: &[&str]| {
        let file = home.path().join("typed");
        std::fs::write(&file, passphrase).unwrap();
        let input = std::fs::File::open(&file).unwrap();
        Done::from(kai(home.path()).args(args).args(["--passphrase-fd", "0"]).stdin(input).output().unwrap())
    };
    home.run(&["tools", "call", "memory_store", r#"{"key": "a", "content": "b"}"#]);
    with("", &["key", "move", "passphrase"]).refused(2, "empty");
    let short = with("open sesame\n", &["key", "move", "passphrase"]);
    assert!(short.code == 0 && short.err.contains("can be guessed"), "{short:?}");
    home.run(&["memory", "list"]).refused(3, "locked with a passphrase");
    with("wrong", &["memory", "list"]).refused(3, "does not open this home");
    assert_eq!(with("open sesame", &["memory", "list"]).out, "a  b\n");
    let credentials = Home::new();
    std::fs::write(credentials.path().join("kai-passphrase"), "open sesame\n").unwrap();
    let service =
        kai(home.path()).env("CREDENTIALS_DIRECTORY", credentials.path()).args(["memory", "list"]).output();
    assert_eq!(Done::from(service.unwrap()).out, "a  b\n");
    assert_eq!(with("open sesame", &["key", "move", "file"]).code, 0);
    assert_eq!(home.run(&["memory", "list"]).out, "a  b\n");
}
