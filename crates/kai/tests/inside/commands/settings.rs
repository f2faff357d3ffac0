//! Settings, and commands that were typed wrongly.

use super::kit::Home;

#[test]
fn settings_are_listed_read_changed_and_refused_with_the_allowed_values() {
    let home = Home::new();
    let listed = home.run(&["settings", "list", "--json"]).json();
    let theme = listed.as_array().unwrap().iter().find(|row| row["key"] == "theme").unwrap();
    assert_eq!(theme["value"], "system");
    assert_eq!(theme["type"], "choice");
    assert_eq!(theme["allowed"], "one of system, light, dark");
    assert_eq!(home.run(&["settings", "get", "theme"]).out, "system\n");
    assert_eq!(home.run(&["settings", "set", "theme", "Dark"]).code, 0);
    assert_eq!(home.run(&["settings", "get", "theme"]).out, "dark\n");
    home.run(&["settings", "set", "theme", "blue"]).refused(2, "one of system, light, dark");
    assert_eq!(home.run(&["settings", "get", "theme"]).out, "dark\n", "a refused value changes nothing");
    home.run(&["settings", "set", "memory_enabled", "maybe"]).refused(2, "true or false");
    home.run(&["settings", "set", "tool_timeout_memory_store", "0"]).refused(2, "from 1 to 600");
    let soul = "You are Kai.\nYou are calm.";
    home.run(&["settings", "set", "soul_text", soul]);
    assert_eq!(home.run(&["settings", "get", "soul_text"]).out, format!("{soul}\n"), "the bare value");
    home.run(&["settings", "get", "themme"]).refused(2, "Did you mean theme?");
    let far = home.run(&["settings", "get", "nope"]);
    assert!(!far.err.contains("Did you mean"), "{}", far.err);
    home.run(&["ledger", "bytes", "99"]).refused(1, "Try: kai ledger show");
}

#[test]
fn wrong_usage_exits_2_and_help_shows_examples() {
    let home = Home::new();
    for wrong in [
        &["frobnicate"][..],
        &["settings"],
        &["settings", "set", "theme"],
        &["phone", "list"],
        &["--port", "x"],
    ] {
        let done = home.run(wrong);
        assert_eq!(done.code, 2, "{wrong:?}: {done:?}");
    }
    home.run(&["--bind", "0.0.0.0", "status"]).refused(2, "only work with serve");
    let word = home.run(&["chats", "show", "abc"]);
    assert!(word.code == 2 && word.err.contains("use the number from the list"), "{word:?}");
    for command in ["settings", "memory", "tools", "link", "status", "serve", "key", "completions"] {
        let help = home.run(&[command, "--help"]);
        assert!(help.code == 0 && help.out.contains("Example"), "kai {command} --help");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.run(&["completions", shell]).out.contains("kai"), "{shell}");
    }
    assert!(home.run(&["--version"]).out.starts_with("kai 0."));
}
