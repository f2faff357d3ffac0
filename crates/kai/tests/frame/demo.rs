//! The demo: a world of its own beside the real home, and stopped by its own name.

use serde_json::json;

use crate::kit::{Daemon, Done, Home, kai, wait_for};

#[test]
fn the_demo_is_a_world_of_its_own() {
    let home = Home::new();
    home.run(&["stop", "--demo"]).refused(1, "The demo is not running");
    home.run(&["demo", "sms", "Hi"]).refused(1, "kai serve --demo");
    home.run(&["demo", "notify", "too early"]).refused(1, "The demo is not running");
    home.run(&["drafts", "list", "--demo"]).refused(1, "kai serve --demo");
    let real = home.start();
    let daemon = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
    a_message_arrives_and_is_answered(&home);
    its_tray_can_be_played_with(&home);

    for again in [&["link", "--demo"], &["demo", "link"]] {
        let link = home.run(again).out;
        assert!(link.contains(&daemon.address), "{link}");
    }
    home.run(&["serve", "--demo"]).refused(1, "kai demo link");
    let sign_in = daemon.get("/", "").text;
    assert!(sign_in.contains("kai demo link") && !sign_in.contains(" --"), "{sign_in}");
    let status = home.run(&["status", "--demo", "--json"]).json();
    assert_eq!((&status["demo"], &status["sms"]["bridge"]), (&json!(true), &json!("simulated")), "{status}");
    assert_eq!(status["sms"]["sources"].as_array().map(Vec::len), Some(1), "{status}");
    let pair = home.type_at("phones pair --demo", "");
    assert!(pair.code == 1 && pair.out.contains("Not in the demo"), "{pair:?}");

    assert_eq!(home.run(&["stop"]).out, "Kai has stopped.\n");
    assert_eq!(real.ended().0, Some(0), "the real one has stopped");
    assert_eq!(home.run(&["status", "--json"]).json()["demo"], false, "the real home is not touched");
    assert_eq!(home.run(&["drafts", "list"]).out, "No drafts.\n", "nor are there drafts in it");
    let which = home.run(&["stop"]).out;
    assert_eq!(which, "Kai is not running. The demo is; stop it: kai stop --demo\n");
    assert_eq!(home.run(&["stop", "--demo"]).out, "Kai has stopped.\n");
    assert_eq!(daemon.ended().0, Some(0), "the demo has stopped");
}

/// A command in the demo's own home.
fn demo(home: &Home, args: &[&str]) -> Done {
    let done: Done = kai(&home.path().join("demo")).args(args).output().unwrap().into();
    assert_eq!(done.code, 0, "{done:?}");
    done
}

fn a_message_arrives_and_is_answered(home: &Home) {
    let arrived = home.run(&["demo", "sms", "--from", "+15550177", "Are you there?", "--json"]).json();
    let found = demo(home, &["sms", "search", "you there", "--json"]).json();
    assert_eq!(arrived, json!({"id": found[0]["id"]}), "{found}");
    assert_eq!(found[0]["from"], "+15550177", "{found}");
    // It may be the daemon's first heartbeat that saw it, and not the one that the command had made.
    let told = demo(home, &["chats", "search", "+15550177", "--json"]).json();
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told}");
    assert_eq!(demo(home, &["sms", "list", "--json"]).json(), json!([]), "and nothing waits any more");
    let asked = demo(home, &["ask", "please answer the dinner message"]);
    assert!(asked.out.contains("waits for your tap"), "{asked:?}");
    let drafts = demo(home, &["drafts", "list", "--json"]).json();
    assert_eq!(drafts[0]["status"], "PENDING", "{drafts}");
}

fn its_tray_can_be_played_with(home: &Home) {
    let arrived = home.run(&["demo", "notify", "--app", "Signal", "--title", "Bob", "Lunch?"]);
    assert!(arrived.code == 0 && arrived.out.contains("com.example.signal"), "{arrived:?}");
    // All that is kept, and not only what waits: the demo's own heartbeat may have told of it already.
    let listed = || demo(home, &["notifications", "list", "--all"]).out;
    let both = ["WhatsApp — Alice: Hey", "Signal — Bob: Lunch?"];
    wait_for("both to be heard", || both.iter().all(|said| listed().contains(said)));
    let found = demo(home, &["--json", "notifications", "search", "dentist"]).json();
    assert_eq!(found[0]["app_label"], "Calendar", "what stood there before can be found");
    let id = found[0]["id"].as_str().unwrap();
    let read = demo(home, &["notifications", "read", id]).out;
    assert!(read.contains("Tomorrow at 9:30"), "{read}");
}
