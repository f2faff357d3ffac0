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
    assert_eq!(status["sms"]["sources"].as_array().map(Vec::len), Some(2), "{status}");
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

/// Everything is made afresh at each start, and nothing is there twice.
#[test]
fn a_demo_that_starts_again_doubles_nothing() {
    let home = Home::new();
    for _ in 0..2 {
        let daemon = Daemon::start(kai(home.path()).args(["serve", "--demo", "--port", "0"]));
        let found = || demo(&home, &["sms", "search", "stand-up", "--json"]).json();
        wait_for("the work phone's message", || found() != json!([]));
        assert_eq!(found().as_array().map(Vec::len), Some(1), "{}", found());
        let named = |what: &str, name: &str| {
            let rows = demo(&home, &[what, "list", "--json"]).json();
            rows.as_array()
                .unwrap()
                .iter()
                .map(|row| row[name].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(named("phones", "name"), ["Work phone"]);
        assert_eq!(named("email", "address"), ["you@example.org"]);
        assert_eq!(named("mcp", "name"), ["weather"]);
        assert_eq!(named("models", "name").len(), 2);
        let mails = demo(&home, &["email", "search", "swap", "--json"]).json();
        assert_eq!(mails["emails"].as_array().map(Vec::len), Some(1), "{mails}");
        demo(&home, &["ask", "Answer Priya at work"]);
        assert_eq!(named("drafts", "to"), ["+15550166"]);
        home.run(&["stop", "--demo"]);
        assert_eq!(daemon.ended().0, Some(0));
    }
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
