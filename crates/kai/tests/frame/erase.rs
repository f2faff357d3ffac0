//! Erasing everything, typed at a terminal and on `/settings/general`.

use crate::kit::{Daemon, Home, kai, wait_for};

#[test]
fn erasing_needs_the_typed_words_and_empties_the_home() {
    let home = Home::new();
    home.remember("a");
    std::fs::write(home.path().join("notes.txt"), "mine").unwrap();
    let demo = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    let early = home.type_at("erase", "erase everything\n");
    let names_demo =
        early.out.contains("The demo is still running in this home. Stop it first: kai stop --demo");
    assert!(early.code == 1 && names_demo, "{early:?}");
    drop(demo);
    home.run(&["erase"]).refused_last(2, "Run this on a terminal.");
    let daemon = home.start();
    home.run(&["erase"]).refused(1, "Stop it first: kai stop");
    drop(daemon);
    let other = home.type_at("erase", "yes\n");
    assert!(other.code == 1 && home.path().join("kai.db").exists(), "{other:?}");
    let erased = home.type_at("erase", "erase everything\n");
    assert_eq!(erased.code, 0, "{erased:?}");
    only_what_is_not_kais_is_left(&home);

    home.remember("a");
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/settings/general", &cookie).csrf();
    let erase = |words: &str| {
        let body = format!("csrf={csrf}&page=general&card=erase&words={words}");
        daemon.send("POST", "/settings/general/erase", &[("Cookie", &cookie)], &body).text
    };
    let refused = erase("erase");
    assert!(refused.contains("Nothing was erased"), "{refused}");
    assert!(home.path().join("kai.db").exists(), "other words erase nothing");
    let done = erase("erase+everything");
    assert!(done.contains("Everything is erased"), "{done}");
    let address = daemon.address.clone();
    assert_eq!(daemon.ended().0, Some(0), "the daemon ends");
    wait_for("its port to be free", || std::net::TcpStream::connect(&address).is_err());
    only_what_is_not_kais_is_left(&home);
}

fn only_what_is_not_kais_is_left(home: &Home) {
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"], "only what is Kai's is gone");
    assert_eq!(home.run(&["memory", "list"]).out, "No memories yet.\n", "a new beginning");
}
