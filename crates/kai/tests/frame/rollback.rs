//! A store that is missing, or older than the home remembers: refused or said, never taken for the newest one.

use std::path::{Path, PathBuf};

use crate::kit::Home;

const STORE: [&str; 3] = ["kai.db", "kai.db-wal", "kai.db-shm"];

/// Copies the store, and nothing else of the home.
pub(crate) fn copy_store(from: &Path, to: &Path) {
    for name in STORE {
        drop(std::fs::remove_file(to.join(name)));
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// A home with an older copy of its store beside it.
fn with_older_copy() -> (Home, Home) {
    let (home, older) = (Home::new(), Home::new());
    home.remember("one");
    copy_store(home.path(), older.path());
    home.remember("two");
    (home, older)
}

fn is_said_everywhere(home: &Home, word: &str) {
    let found = home.run(&["ledger", "verify"]);
    assert_eq!(found.code, 1, "{found:?}");
    assert!(found.out.contains(word) && found.out.contains("kai ledger accept"), "{found:?}");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains(word) && doctor.out.contains("kai ledger accept"), "{doctor:?}");
    let (_, log) = home.start().stop("-TERM");
    assert!(log.contains(word) && log.contains("kai ledger accept"), "{log}");
}

#[test]
fn a_store_that_is_gone_is_not_replaced_by_an_empty_one() {
    let home = Home::new();
    home.remember("one");
    let kept = Home::new();
    copy_store(home.path(), kept.path());
    for name in STORE {
        drop(std::fs::remove_file(home.path().join(name)));
    }
    let key = std::fs::read(home.path().join("kai.key")).unwrap();
    for command in [&["memory", "list"][..], &["status"], &["serve", "--port", "0"], &["doctor", "--json"]] {
        let done = home.run(command);
        assert_eq!(done.code, 3, "{done:?}");
        let said = format!("{}{}", done.out, done.err);
        assert!(said.contains("kai.db is missing") && said.contains("kai erase"), "{command:?}: {done:?}");
        assert!(!home.path().join("kai.db").exists(), "{command:?} made a new one");
    }
    assert_eq!(std::fs::read(home.path().join("kai.key")).unwrap(), key);
    copy_store(kept.path(), home.path());
    assert_eq!(home.run(&["memory", "list"]).out, "one  b\n", "put back, it is as it was");

    // Who wants to begin anew can.
    std::fs::remove_file(home.path().join("kai.db")).unwrap();
    let erased = home.type_at("erase", "erase everything");
    assert!(erased.out.contains("Everything is erased"), "{erased:?}");
    assert!(!home.path().join("kai.head").exists() && !home.path().join("kai.key").exists());
    assert_eq!(home.run(&["memory", "list"]).out, "No memories yet.\n");
}

#[test]
fn a_store_that_is_older_or_not_the_noted_one_is_said_until_the_person_accepts_it() {
    an_older_copy_is_found_and_said_until_the_person_accepts_it();
    an_older_copy_is_accepted_through_a_daemon_too();
    a_note_that_is_gone_or_spoiled_is_said();
}

fn an_older_copy_is_found_and_said_until_the_person_accepts_it() {
    let (home, older) = with_older_copy();
    assert_eq!((home.verify()["whole"].as_bool(), home.noted()), (Some(true), 4));
    copy_store(older.path(), home.path());
    is_said_everywhere(&home, "it ends at record 2, but Kai had noted record 4");

    // Used further, it is still another one.
    for key in ["x", "y", "z"] {
        home.remember(key);
    }
    is_said_everywhere(&home, "record 4 is not the one that Kai had noted");
    assert_eq!(home.noted(), 4, "what was found is not written over");

    let alone = home.run(&["ledger", "accept"]);
    alone.refused_last(2, "terminal");
    let no = home.type_at("ledger accept", "n");
    assert!(no.out.contains("Not accepted"), "{no:?}");
    assert_eq!(home.verify()["rolled_back"], true);
    let yes = home.type_at("ledger accept", "y");
    assert!(yes.out.contains("Accepted. The ledger continues after record 8"), "{yes:?}");
    assert_eq!(home.verify()["whole"], true);
    let newest = home.run(&["ledger", "show", "--limit", "1", "--json"]).json();
    assert_eq!(newest[0]["what"], "restored", "{newest}");
    assert_eq!((newest[0]["last"].as_i64(), newest[0]["noted"].as_i64()), (Some(8), Some(4)));
    let again = home.run(&["ledger", "accept"]);
    assert_eq!((again.code, again.out.contains("nothing to accept")), (0, true), "{again:?}");
}

fn an_older_copy_is_accepted_through_a_daemon_too() {
    let (home, older) = with_older_copy();
    copy_store(older.path(), home.path());
    let daemon = home.start();
    assert_eq!(home.verify()["rolled_back"], true);
    let yes = home.type_at("ledger accept", "y");
    assert!(yes.out.contains("Accepted"), "{yes:?}");
    assert_eq!(home.verify()["whole"], true);
    home.remember("more");
    assert_eq!(daemon.stop("-TERM").0, Some(0));
    assert_eq!((home.verify()["whole"].as_bool(), home.noted()), (Some(true), 5));
}

fn a_note_that_is_gone_or_spoiled_is_said() {
    type Spoil = fn(PathBuf);
    let spoilt: [(Spoil, &str); 3] = [
        (|note| std::fs::remove_file(note).unwrap(), "is missing"),
        (|note| std::fs::write(note, "{\"seq\": 4").unwrap(), "is cut off or overwritten"),
        (
            |note| std::fs::write(note, format!("{{\"seq\":1,\"hash\":\"{}\"}}", "0".repeat(64))).unwrap(),
            "record 1 is not the one",
        ),
    ];
    for (spoil, word) in spoilt {
        let home = Home::new();
        home.remember("one");
        spoil(home.path().join("kai.head"));
        is_said_everywhere(&home, word);
        let yes = home.type_at("ledger accept", "y");
        assert!(yes.out.contains("Accepted"), "{yes:?}");
        assert_eq!((home.verify()["whole"].as_bool(), home.noted()), (Some(true), 3));
    }
}
