//! Out of one home and into another.

use super::kit::Home;

fn remember(home: &Home, key: &str, content: &str) {
    let arguments = format!("{{\"key\": \"{key}\", \"content\": \"{content}\"}}");
    assert_eq!(home.run(&["tools", "call", "memory_store", &arguments]).code, 0);
}

#[test]
fn a_file_goes_from_home_to_home_with_a_preview_between() {
    let (from, to) = (Home::new(), Home::new());
    remember(&from, "tea", "Likes green tea.");
    from.run(&["settings", "set", "theme", "dark"]);
    let daily = r#"{"description": "Persists", "prompt": "Water them.", "cron": "0 8 * * *"}"#;
    assert_eq!(from.run(&["tools", "call", "schedule_task", daily]).code, 0);
    let added = from.piped(&["models", "add", "openai", "--key-stdin"], "sk-very-secret");
    assert_eq!(added.code, 0, "{added:?}");
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
    from.run(&["export", file]).refused(1, "already exists");

    let preview = to.run(&["import", file, "--preview", "--json"]);
    assert_eq!(preview.json()[1]["section"], "memory", "{preview:?}");
    assert_eq!(preview.json()[1]["new"], 1);
    let sections = preview.json();
    assert!(sections.as_array().unwrap().iter().all(|section| section["changes"].is_array()), "{preview:?}");
    assert_eq!(to.run(&["memory", "list"]).out, "No memories yet.\n", "a preview changes nothing");
    to.run(&["import", file]).refused_last(2, "or add --yes");
    assert_eq!(to.run(&["import", file, "--yes"]).code, 0);
    assert_eq!(to.run(&["memory", "list"]).out, "tea  Likes green tea.\n");
    assert_eq!(to.run(&["settings", "get", "theme"]).out, "dark\n");
    assert_eq!(to.run(&["tasks", "list", "--json"]).json()[0]["cron"], "0 8 * * *");

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
    for (text, word) in [
        ("", "not a file that Kai exported"),
        ("[]", "not a file that Kai exported"),
        ("{\"kai_export\": 2}", "newer Kai"),
    ] {
        std::fs::write(&file, text).unwrap();
        home.run(&["import", name, "--yes"]).refused(1, word);
    }
    std::fs::write(&file, r#"{"kai_export": 1, "sections": {"memory": 5, "settings": {"theme": "dark"}}}"#)
        .unwrap();
    let partly = home.run(&["import", name, "--yes"]);
    assert!(partly.code == 1 && partly.out.contains("memory: not imported"), "{partly:?}");
    assert_eq!(home.run(&["settings", "get", "theme"]).out, "dark\n", "the good section is taken in");
    assert_eq!(home.run(&["memory", "list"]).out, "a  b\n");
    let hostile = r#"{"kai_export": 1, "sections": {"settings": {"\u001b[2Jx": "y"}, "memory": [], "tasks": [
        {"description": "\u001b[2Ja\nb", "prompt": "c", "on_heartbeat": true}, {"description": "\u001b]d", "prompt": "e"}]}}"#;
    std::fs::write(&file, hostile).unwrap();
    let shown = home.run(&["import", name, "--preview"]).out;
    assert!(!shown.contains('\u{1b}') && shown.contains("a b: with every heartbeat"), "{shown:?}");
    assert!(shown.contains("not imported: \\u{1b}[2Jx: unknown here"), "{shown:?}");
}
