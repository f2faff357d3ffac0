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
    assert!(wrong.code == 1 && wrong.out.contains("doesn’t open"), "{wrong:?}");
    assert_eq!(to.type_at(&format!("import {name} --yes"), "sesame\n").code, 0);
    assert_eq!(to.run(&["models", "list", "--json"]).json()[0]["ready"], true, "the key came along");
}

#[test]
fn erasing_needs_the_typed_words_and_a_stopped_daemon() {
    let home = Home::new();
    remember(&home, "a", "b");
    std::fs::write(home.path().join("notes.txt"), "mine").unwrap();
    let demo = crate::kit::Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    let early = home.type_at("erase", "erase everything\n");
    assert!(
        early.code == 1
            && early.out.contains("The demo still runs in this home. Stop it first: kai stop --demo"),
        "{early:?}"
    );
    drop(demo);
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
