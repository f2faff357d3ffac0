//! `kai status`.

use super::kit::Home;

#[test]
fn status_tells_edition_key_and_daemon() {
    let status = |home: &Home| home.run(&["status", "--json"]).json();
    let home = Home::new();
    let edition = if cfg!(feature = "foss") { "foss" } else { "store" };
    assert_eq!(status(&home)["edition"], edition);
    assert_eq!(status(&home)["key"], "file");
    assert_eq!(status(&home)["daemon"]["running"], false);
    let home = Home::served();
    let running = home.app.daemon.as_ref().unwrap();
    assert_eq!(status(&home)["daemon"]["running"], true);
    assert_eq!(status(&home)["daemon"]["pid"], running.pid);
    assert_eq!(status(&home)["daemon"]["address"], running.address);
}
