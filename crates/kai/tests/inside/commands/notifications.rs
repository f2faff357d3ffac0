//! Notifications of a phone, with Termux's program played by a stand-in.

use std::sync::Arc;

use kai_assistant::notifications::Source;
use kai_bridges::termux::Termux;

use super::kit::{Home, Programs};
use crate::machine::Machine;
use crate::machine::messages::Messages;

#[test]
fn on_a_phone_termux_is_asked_and_its_silence_is_told() {
    let programs =
        Programs::new(&[("termux-notification-list", r#"cat "$DIR/tray" 2> /dev/null || exit 0"#)]);
    let tray = |entries: &str| std::fs::write(programs.path().join("tray"), entries).unwrap();
    let source = Arc::new(Source::new(Arc::new(Termux::in_folder(programs.path().to_owned()))));
    let messages = Messages { notifications: Some(source), ..Messages::default() };
    let machine = Machine { messages, ..Machine::default() };
    let home = Home::served_on(machine);
    let run = |words: &[&str]| home.run(words);
    run(&["settings", "set", "notifications_enabled", "true"]).refused(1, "gave no answer");
    let stood = r#"{"key":"1","packageName":"org.x","title":"stood","when":"292269055-12-02 17:47:04"}"#;
    tray(&format!("[{stood}]"));
    let back = run(&["--json", "notifications", "refresh"]).json();
    assert_eq!((&back["enabled"], &back["bridge"]), (&true.into(), &"termux".into()), "{back}");
    let status = || run(&["--json", "status"]).json()["notifications"].clone();
    let listens = (0..1_000).any(|_| status()["state"] == "listening");
    assert!(listens, "{}", status());
    tray(&format!(r#"[{stood},{{"key":"2","packageName":"org.x","title":"came","lines":["a","b"]}}]"#));
    run(&["notifications", "refresh"]);
    let listed = run(&["--json", "notifications", "list"]).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["preview"]), (1, &"a b".into()), "{listed}");
    let found = run(&["--json", "notifications", "search", "stood"]).json();
    assert_eq!(found[0]["id"], "1", "what stood there before can be found: {found}");
    tray("");
    run(&["notifications", "refresh"]);
    let said = run(&["status"]).out;
    assert!(said.contains("Listener inactive — check notification access"), "{said}");
    assert_eq!(status()["gaps"].as_array().unwrap().len(), 1, "{}", status());
}
