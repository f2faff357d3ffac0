//! Passphrases: of a home that is locked, and of secrets that leave it in a file.

use std::path::Path;
use std::process::Command;

use crate::kit::{Done, Home, KAI, kai};
use crate::rollback::copy_store;

#[test]
fn a_passphrase_locks_the_home_and_secrets_travel_only_under_one() {
    a_locked_home_opens_for_who_knows_it();
    secrets_travel_only_under_a_passphrase();
}

fn a_locked_home_opens_for_who_knows_it() {
    let (home, older, newest) = (Home::new(), Home::new(), Home::new());
    let with = |passphrase: &str, args: &[&str]| {
        let file = home.path().join("typed");
        std::fs::write(&file, passphrase).unwrap();
        let input = std::fs::File::open(&file).unwrap();
        Done::from(kai(home.path()).args(args).args(["--passphrase-fd", "0"]).stdin(input).output().unwrap())
    };
    home.remember("a");
    copy_store(home.path(), older.path());
    home.remember("a");
    with("", &["key", "move", "passphrase"]).refused(2, "empty");
    let short = with("open sesame\n", &["key", "move", "passphrase"]);
    assert!(short.code == 0 && short.err.contains("could guess a short passphrase"), "{short:?}");
    home.run(&["memory", "list"]).refused(3, "locked with a passphrase");
    let doctor = home.run(&["doctor", "--json"]);
    let checks = doctor.json();
    let store = checks.as_array().unwrap().iter().find(|check| check["name"] == "store").unwrap();
    let says_how = store["says"].as_str().unwrap().contains("--passphrase-fd");
    assert!(doctor.code == 3 && says_how, "doctor says how to open a locked home: {doctor:?}");
    with("wrong", &["memory", "list"]).refused(3, "does not open this home");
    assert_eq!(with("open sesame", &["memory", "list"]).out, "a  b\n", "the passphrase on a file descriptor");
    let credentials = Home::new();
    std::fs::write(credentials.path().join("kai-passphrase"), "open sesame\n").unwrap();
    let service =
        kai(home.path()).env("CREDENTIALS_DIRECTORY", credentials.path()).args(["memory", "list"]).output();
    assert_eq!(Done::from(service.unwrap()).out, "a  b\n", "the passphrase from systemd");

    assert_eq!(home.noted(), 4, "the note of the ledger's end moved with the key");
    copy_store(home.path(), newest.path());
    copy_store(older.path(), home.path());
    let found = verified_by_another_descriptor(home.path());
    assert!(found.code == 1 && found.out.contains("noted record 4"), "an older store is found: {found:?}");
    copy_store(newest.path(), home.path());
    assert_eq!(with("open sesame", &["key", "move", "file"]).code, 0, "back to a key file");
    assert_eq!(home.run(&["memory", "list"]).out, "a  b\n", "without a passphrase again");
}

fn verified_by_another_descriptor(home: &Path) -> Done {
    let script = "\"$0\" --home \"$1\" ledger verify --passphrase-fd 9 9<<< 'open sesame'";
    Command::new("bash").args(["-c", script]).args([KAI.as_ref(), home]).output().unwrap().into()
}

fn secrets_travel_only_under_a_passphrase() {
    let (from, to) = (Home::new(), Home::new());
    let key = from.path().join("key");
    std::fs::write(&key, "sk-very-secret").unwrap();
    let input = std::fs::File::open(&key).unwrap();
    let added = kai(from.path()).args(["models", "add", "openai", "--key-stdin"]).stdin(input).output();
    assert_eq!(Done::from(added.unwrap()).code, 0);
    let file = from.path().join("kai.json");
    let name = file.to_str().unwrap();
    from.run(&["export", name, "--secrets"]).refused(2, "Run this on a terminal.");
    let written = from.type_at(&format!("export {name} --secrets"), "sesame\nsesame\n");
    assert_eq!(written.code, 0, "{written:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("sk-very-secret"), "the file holds no secret in plain text");
    to.run(&["import", name, "--yes"]).refused(1, "--no-secrets");
    let wrong = to.type_at(&format!("import {name} --yes"), "wrong\n");
    assert!(wrong.code == 1 && wrong.out.contains("doesn’t open"), "{wrong:?}");
    assert_eq!(to.type_at(&format!("import {name} --yes"), "sesame\n").code, 0);
    assert_eq!(to.run(&["models", "list", "--json"]).json()[0]["ready"], true, "the key came along");
}
