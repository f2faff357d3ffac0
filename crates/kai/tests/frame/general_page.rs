//! Erasing everything on `/settings/general`: the daemon ends, and its home is empty.

use crate::kit::{Home, wait_for};

#[test]
fn erasing_ends_the_daemon_with_an_empty_home() {
    let home = Home::new();
    let memory = serde_json::json!({"key": "a", "content": "b"}).to_string();
    assert_eq!(home.run(&["tools", "call", "memory_store", &memory]).code, 0);
    std::fs::write(home.path().join("notes.txt"), "mine").unwrap();
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/settings/general", &cookie).csrf();
    let erase = |words: &str| {
        let body = format!("csrf={csrf}&page=general&card=erase&words={words}");
        daemon.send("POST", "/settings/general/erase", &[("Cookie", &cookie)], &body)
    };
    assert!(erase("erase").text.contains("Nothing was erased"));
    assert!(home.path().join("kai.db").exists());
    assert!(erase("erase+everything").text.contains("Everything is erased"));
    let left = || -> Vec<_> {
        std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let address = daemon.address.clone();
    assert_eq!(daemon.ended().0, Some(0));
    assert_eq!(left(), ["notes.txt"], "only what is Kai's is gone");
    wait_for("its port to be free", || std::net::TcpStream::connect(&address).is_err());
    assert_eq!(home.run(&["memory", "list"]).out, "Kai remembers nothing yet.\n", "a new beginning");
}
