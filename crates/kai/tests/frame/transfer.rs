//! Out of one home, into another, and gone.

use crate::kit::{Done, Home, kai};

fn remember(home: &Home, key: &str, content: &str) {
    let arguments = format!("{{\"key\": \"{key}\", \"content\": \"{content}\"}}");
    assert_eq!(home.run(&["tools", "call", "memory_store", &arguments]).code, 0);
}

fn with_key(home: &Home) {
    let key = home.path().join("key");
    std::fs::write(&key, "sk-very-secret").unwrap();
    let input = std::fs::File::open(&key).unwrap();
    let added = kai(home.path()).args(["models", "add", "openai", "--key-stdin"]).stdin(input).output();
    assert_eq!(Done::from(added.unwrap()).code, 0);
}

#[test]
fn a_file_goes_from_home_to_home_with_a_preview_between() {
    let (from, to) = (Home::new(), Home::new());
    remember(&from, "tea", "Likes green tea.");
    from.run(&["settings", "set", "theme", "dark"]);
    let daily = r#"{"description": "Plants", "prompt": "Water them.", "cron": "0 8 * * *"}"#;
    assert_eq!(from.run(&["tools", "call", "schedule_task", daily]).code, 0);
    with_key(&from);
    let file = from.path().join("kai.json");
    let file = file.to_str().unwrap();
    let written = from.run(&["export", file]);
    assert_eq!(written.code, 0, "{written:?}");
    assert!(written.err.contains("not encrypted") && written.err.contains("conversations"), "{written:?}");
    let text = std::fs::read_to_string(file).unwrap();
    let printed = from.run(&["export", "-"]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""), "the file and nothing else");
    assert_eq!(
        printed.json()["sections"],
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["sections"]
    );
    assert!(!std::path::Path::new("-").exists());
    assert!(text.contains("green tea") && !text.contains("sk-very-secret"));
    from.run(&["export", file]).refused(1, "is there already");

    let preview = to.run(&["import", file, "--preview", "--json"]);
    assert_eq!(preview.json()[1]["section"], "memory", "{preview:?}");
    assert_eq!(preview.json()[1]["new"], 1);
    let sections = preview.json();
    assert!(sections.as_array().unwrap().iter().all(|section| section["changes"].is_array()), "{preview:?}");
    assert_eq!(to.run(&["memory", "list"]).out, "Kai remembers nothing yet.\n", "a preview changes nothing");
    to.run(&["import", file]).refused_last(2, "or add --yes");
    let daemon = to.start();
    assert_eq!(to.run(&["import", file, "--yes"]).code, 0);
    assert_eq!(to.run(&["memory", "list"]).out, "tea  Likes green tea.\n");
    assert_eq!(to.run(&["settings", "get", "theme"]).out, "dark\n");
    assert_eq!(to.run(&["tasks", "list", "--json"]).json()[0]["cron"], "0 8 * * *");
    drop(daemon);

    remember(&to, "coffee", "Never.");
    assert_eq!(to.run(&["import", file, "--replace", "--section", "memory", "--yes"]).code, 0);
    assert_eq!(to.run(&["memory", "list"]).out, "tea  Likes green tea.\n");
    to.run(&["import", file, "--section", "poems", "--yes"])
        .refused(2, "settings, memory, models, tasks, conversations");
}

#[test]
fn what_is_as_it_was_is_not_told_as_news() {
    let (from, to) = (Home::new(), Home::new());
    from.run(&["tools", "disable", "get_local_time"]);
    from.run(&["tools", "enable", "get_local_time"]);
    from.run(&["settings", "set", "theme", "dark"]);
    let file = from.path().join("kai.json");
    let file = file.to_str().unwrap();
    assert_eq!(from.run(&["export", file, "--section", "settings"]).code, 0);
    let preview = to.run(&["import", file, "--preview", "--json"]).json();
    assert_eq!((&preview[0]["same"], &preview[0]["new"]), (&1.into(), &1.into()), "{preview}");
    assert_eq!(preview[0]["changes"], serde_json::json!(["theme: system → dark"]));
}

#[test]
fn bad_files_are_said_and_change_nothing() {
    let home = Home::new();
    remember(&home, "a", "b");
    let file = home.path().join("file.json");
    let name = file.to_str().unwrap();
    home.run(&["import", name, "--yes"]).refused(1, "There is no file");
    for (text, word) in [("", "not an export"), ("[]", "not an export"), ("{\"kai_export\": 2}", "newer Kai")]
    {
        std::fs::write(&file, text).unwrap();
        home.run(&["import", name, "--yes"]).refused(1, word);
    }
    std::fs::write(&file, r#"{"kai_export": 1, "sections": {"memory": 5, "settings": {"theme": "dark"}}}"#)
        .unwrap();
    let partly = home.run(&["import", name, "--yes"]);
    assert!(partly.code == 1 && partly.out.contains("memory: left out"), "{partly:?}");
    assert_eq!(home.run(&["settings", "get", "theme"]).out, "dark\n", "the good section is taken in");
    assert_eq!(home.run(&["memory", "list"]).out, "a  b\n");
    let hostile = r#"{"kai_export": 1, "sections": {"settings": {"\u001b[2Jx": "y"}, "memory": [], "tasks": [
        {"description": "\u001b[2Ja\nb", "prompt": "c", "on_heartbeat": true}, {"description": "\u001b]d", "prompt": "e"}]}}"#;
    std::fs::write(&file, hostile).unwrap();
    let shown = home.run(&["import", name, "--preview"]).out;
    assert!(!shown.contains('\u{1b}') && shown.contains("a b: with every heartbeat"), "{shown:?}");
    assert!(shown.contains("left out: \\u{1b}[2Jx: unknown here"), "{shown:?}");
}

#[test]
fn secrets_travel_only_under_a_passphrase() {
    let (from, to) = (Home::new(), Home::new());
    with_key(&from);
    let file = from.path().join("kai.json");
    let name = file.to_str().unwrap();
    from.run(&["export", name, "--secrets"]).refused(2, "needs a terminal");
    let written = from.type_at(&format!("export {name} --secrets"), "sesame\nsesame\n");
    assert_eq!(written.code, 0, "{written:?}");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("sk-very-secret"));
    to.run(&["import", name, "--yes"]).refused(1, "--no-secrets");
    let wrong = to.type_at(&format!("import {name} --yes"), "wrong\n");
    assert!(wrong.code == 1 && wrong.out.contains("does not open"), "{wrong:?}");
    assert_eq!(to.type_at(&format!("import {name} --yes"), "sesame\n").code, 0);
    assert_eq!(to.run(&["models", "list", "--json"]).json()[0]["ready"], true, "the key came along");
}

#[test]
fn erasing_needs_the_typed_words_and_a_stopped_daemon() {
    let home = Home::new();
    remember(&home, "a", "b");
    std::fs::write(home.path().join("notes.txt"), "mine").unwrap();
    #[cfg(feature = "foss")]
    {
        let demo = crate::kit::Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
        let early = home.type_at("erase", "erase everything\n");
        assert!(
            early.code == 1
                && early.out.contains("The demo still runs in this home. Stop it first: kai stop --demo"),
            "{early:?}"
        );
        drop(demo);
    }
    home.run(&["erase"]).refused_last(2, "needs a terminal");
    let daemon = home.start();
    home.run(&["erase"]).refused(1, "Stop it first: kai stop");
    drop(daemon);
    let other = home.type_at("erase", "yes\n");
    assert!(other.code == 1 && home.path().join("kai.db").exists(), "{other:?}");
    let erased = home.type_at("erase", "erase everything\n");
    assert_eq!(erased.code, 0, "{erased:?}");
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"], "only what is Kai's is gone");
    assert_eq!(home.run(&["memory", "list"]).out, "Kai remembers nothing yet.\n");
}
