//! SMS and drafts, with Termux's programs played by stand-ins.

use serde_json::json;

use super::kit::Home;
use super::phone::{ALICE, Phone, draft, ready};

#[test]
fn without_a_phone_there_is_no_sms() {
    let home = Home::new();
    let next = "Pair one in Settings, under Phones, or run Kai in Termux on the phone.";
    for (key, cannot, stays) in [
        ("sms_enabled", "No phone that can read SMS", "Reading SMS stays off."),
        ("sms_send_enabled", "No phone that can send SMS", "Sending SMS stays off."),
    ] {
        let refused = home.run(&["settings", "set", key, "true"]);
        refused.refused(1, next);
        assert!(refused.err.contains(cannot) && refused.err.contains(stays), "{refused:?}");
        assert!(refused.err.ends_with("Try: kai phones pair\n"), "{refused:?}");
    }
    let listed = home.run(&["sms", "list"]).out;
    assert!(
        listed.starts_with("No phone that can read SMS is connected") && listed.contains(next),
        "{listed}"
    );
    assert!(listed.ends_with("Try: kai phones pair\n"), "{listed}");
    assert_eq!(home.run(&["sms", "list", "--json"]).out, "[]\n");
    let status = home.run(&["status", "--json"]).json()["sms"].clone();
    assert_eq!((&status["supported"], &status["access"]), (&json!(false), &json!("unsupported")));
    home.run(&["settings", "set", "sms_poll_interval", "7"]).refused(2, "0, 5, 15, 30, 60");
}

#[test]
fn arguments_of_a_draft_are_checked() {
    let phone = ready();
    for (arguments, word) in [
        (json!({"to": "Mom", "body": "Hi"}), "phone number"),
        (json!({"to": "null", "body": "Hi"}), "phone number"),
        (json!({"to": "", "body": "Hi"}), "phone number"),
        (json!({"to": null, "body": "Hi"}), "to"),
        (json!({"to": ALICE, "body": " \n "}), "must not be empty"),
        (json!({"to": ALICE}), "body"),
    ] {
        let refused = phone.run(&["tools", "call", "send_sms", &arguments.to_string()]);
        assert!(refused.code == 1 && refused.out.contains(word), "{arguments}: {refused:?}");
    }
    let number = phone.run(&["tools", "call", "send_sms", r#"{"to": 491715550100, "body": "Hi"}"#]).json();
    assert_eq!(number["to"], "491715550100", "a bare number keeps its digits");
    let missing = phone.run(&["tools", "call", "read_sms", r#"{"id": 4.5}"#]);
    assert!(missing.code == 1 && missing.out.contains("id"), "{missing:?}");
    for n in 1..20 {
        draft(&phone, ALICE, &n.to_string());
    }
    let full = phone.run(&["tools", "call", "send_sms", r#"{"to": "+15550100", "body": "one more"}"#]);
    assert!(full.code == 1 && full.out.contains("20 drafts are already waiting for the user"), "{full:?}");
    assert_eq!(phone.run(&["drafts", "list", "--json"]).json().as_array().unwrap().len(), 20);
}

#[test]
fn whatever_the_programs_do_ends_in_a_sentence_and_moves_nothing() {
    for (script, words) in [
        ("exit 0", "without an answer"),
        ("echo garbage", "something other than a list"),
        (r#"echo '[{"_id": 42, "type": "inbox"'"#, "is cut off"),
        ("echo the app is gone >&2; exit 1", "the app is gone"),
        ("yes '[' | head -c 40000000", "printed more than"),
    ] {
        let phone = ready();
        let before = phone.run(&["status", "--json"]).json()["sms"]["lastSyncEpochMs"].clone();
        phone.program("termux-sms-list", &format!("case \"$*\" in *--help*) exit 1;; esac; {script}"));
        phone.run(&["sms", "poll"]).refused(1, words);
        let status = phone.run(&["status", "--json"]).json()["sms"].clone();
        assert!(status["lastError"].as_str().unwrap().contains(words), "{script}: {status}");
        assert_eq!((&status["lastSyncEpochMs"], &status["lastSeenId"]), (&before, &json!(41)), "{script}");
    }
}

#[test]
fn an_empty_list_says_why() {
    let phone = ready();
    let list = || phone.run(&["sms", "list"]).out;
    assert_eq!(
        list(),
        "No messages are waiting for the next heartbeat. To find older ones: kai sms search TEXT\n"
    );
    phone.program(
        "termux-sms-list",
        "case \"$*\" in *--help*) exit 1;; esac; echo the app is gone >&2; exit 1",
    );
    phone.run(&["sms", "poll"]).refused(1, "the app is gone");
    assert!(list().starts_with("Last poll failed just now: "), "{}", list());
    phone.run(&["settings", "set", "sms_enabled", "false"]);
    assert!(
        list().ends_with("Kai does not read SMS. To enable this: kai settings set sms_enabled true\n"),
        "{}",
        list()
    );
    assert_eq!(phone.run(&["sms", "list", "--json"]).out, "[]\n");
}

#[test]
fn reading_stays_off_where_the_phone_does_not_allow_it() {
    let phone = Phone::with_sms();
    phone.program("termux-sms-list", r#"case "$*" in *--help*) exit 1;; esac; echo '{"error": "Please grant the following permissions to use this command: android.permission.READ_SMS"}'"#);
    let refused = phone.run(&["settings", "set", "sms_enabled", "true"]);
    refused.refused(1, "Permission not granted");
    assert!(refused.err.contains("Termux:API") && refused.err.contains("stays off"), "{refused:?}");
    assert_eq!(phone.run(&["settings", "get", "sms_enabled"]).out, "false\n");
    phone.run(&["sms", "poll"]).refused(1, "Try: kai settings set sms_enabled true");
    // Allowed, and taken away again later.
    let phone = ready();
    phone.program("termux-sms-list", r#"case "$*" in *--help*) exit 1;; esac; echo '{"error": "Please grant the following permissions to use this command: X"}'"#);
    phone.run(&["sms", "poll"]).refused(1, "Permission not granted");
    let status = phone.run(&["status", "--json"]).json()["sms"].clone();
    assert_eq!(
        (&status["access"], &status["lastError"]),
        (&json!("denied"), &json!("Permission not granted"))
    );
    let tools = phone.run(&["tools", "list", "--json"]).json();
    let tool = |name: &str| tools.as_array().unwrap().iter().find(|t| t["name"] == name).unwrap().clone();
    for (name, available) in [("check_sms", false), ("reply_sms", false), ("send_sms", true)] {
        assert_eq!(tool(name)["available"], available, "{name}");
    }
    assert!(phone.run(&["doctor"]).out.contains("SMS and Contacts"));
}

#[test]
fn a_message_is_polled_read_searched_and_answered() {
    for with_daemon in [false, true] {
        let mut phone = ready();
        phone.home.serving = with_daemon.then(|| phone.home.serve());
        phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner\nat 8?"), (43, "BANK", "Hello")]);
        let polled = phone.run(&["sms", "poll", "--json"]).json();
        assert_eq!((&polled["fresh"], &polled["queued"]), (&json!(2), &json!(2)));
        assert_eq!(phone.run(&["sms", "poll", "--json"]).json()["fresh"], 0);

        let listed = phone.run(&["sms", "list", "--json"]).json();
        assert_eq!(listed[0]["id"], 42);
        assert_eq!((&listed[0]["from"], &listed[0]["preview"]), (&json!(ALICE), &json!("Dinner at 8?")));
        assert_eq!(listed[0]["date_local"], "2026-03-09T12:00:01+00:00");
        assert_eq!(
            phone.run(&["sms", "read", "42"]).out,
            format!("From {ALICE} at 2026-03-09T12:00:01+00:00 (unread)\n\nDinner\nat 8?\n")
        );
        assert_eq!(phone.run(&["sms", "search", "DINNER", "--json"]).json()[0]["id"], 42);
        phone.run(&["sms", "read", "7"]).refused(1, "no received SMS with the id 7");
        phone.run(&["sms", "search", "  "]).refused(2, "what to search for");

        let checked = phone.run(&["tools", "call", "check_sms"]).json();
        assert_eq!((&checked["count"], &checked["untrusted"]), (&json!(2), &json!(true)));
        let read = phone.run(&["tools", "call", "read_sms", r#"{"id": "42"}"#]).json();
        assert_eq!((&read["body"], &read["untrusted"]), (&json!("Dinner\nat 8?"), &json!(true)));
        let staged = phone.run(&["tools", "call", "reply_sms", r#"{"sms_id": 42, "body": " Yes! "}"#]).json();
        assert_eq!((&staged["status"], &staged["to"]), (&json!("PENDING"), &json!(ALICE)));
        assert_eq!((&staged["body"], &staged["in_reply_to"]), (&json!("Yes!"), &json!(42)));
        let unanswerable = phone.run(&["tools", "call", "reply_sms", r#"{"sms_id": 43, "body": "Hi"}"#]);
        assert_eq!(unanswerable.code, 1);
        assert!(unanswerable.out.contains("no number"), "{unanswerable:?}");

        let status = phone.run(&["status", "--json"]).json()["sms"].clone();
        for (field, expected) in [
            ("supported", json!(true)),
            ("enabled", json!(true)),
            ("access", json!("granted")),
            ("bridge", json!("termux")),
            ("queued", json!(2)),
            ("dropped", json!(0)),
            ("lastSeenId", json!(43)),
            ("unreadCount", json!(0)),
            ("lastError", json!(null)),
        ] {
            assert_eq!(status[field], expected, "{field} with a daemon: {with_daemon}");
        }
        assert_eq!(phone.left(), "", "nothing leaves by itself");
    }
}

#[test]
fn a_message_that_was_read_by_a_command_is_no_longer_unread() {
    let phone = ready();
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner at 8?"), (43, "BANK", "Hello")]);
    phone.run(&["sms", "poll"]);
    let app = &phone.home.app;
    let unread = || app.db.read_now(|tx| app.inbox.unread(tx, app.clock.now(), 100)).unwrap();
    assert_eq!(unread(), 2);
    assert_eq!(phone.run(&["sms", "read", "42"]).code, 0);
    assert_eq!(unread(), 1);
    assert_eq!(phone.run(&["sms", "read", "7"]).code, 1);
    assert_eq!(unread(), 1, "nothing was read");
}

#[test]
fn an_answer_shows_what_it_answers_and_who_had_it_made() {
    let phone = ready();
    phone.inbox(&[(42, ALICE, "Dinner\nat 8?")]);
    phone.run(&["tools", "call", "reply_sms", r#"{"sms_id": 42, "body": "Yes!"}"#]);
    let shown = phone.run(&["drafts", "show", "1"]).out;
    assert!(shown.contains("They wrote:\n> Dinner\n> at 8?\n1 SMS:\n\nYes!\n"), "{shown}");
    assert!(shown.contains(" from a command, "), "no chat: {shown}");
    let listed = phone.run(&["drafts", "list"]).out;
    assert_eq!(listed, format!("1  PENDING  to {ALICE}: Yes!\n   > Dinner at 8?\n"));
    let long = format!("{}end", "word ".repeat(40));
    let id = draft(&phone, ALICE, &long);
    let listed = phone.run(&["drafts", "list"]).out;
    let hint = format!("To see a draft in full: kai drafts show {id}.");
    assert!(!listed.contains("end") && listed.contains("word…\n") && listed.contains(&hint), "{listed}");
    let full = phone.run(&["drafts", "list", "--full"]).out;
    assert!(full.contains(&long) && !full.contains("kai drafts show"), "{full}");
    assert_eq!(phone.run(&["drafts", "list", "--json"]).json()[1]["body"], long);
    let quoted = phone.run(&["drafts", "list", "--json"]).json()[0]["quoted"].clone();
    assert_eq!(quoted, "Dinner\nat 8?");
    let told = phone.run(&["ledger", "show"]).out;
    assert!(told.contains("You called reply_sms") && !told.contains("The model called"), "{told}");
    assert_eq!(phone.run(&["ledger", "verify"]).code, 0);
    let ledger = phone.run(&["ledger", "show", "--json"]).out;
    assert!(ledger.contains("reply_sms") && !ledger.contains("at 8?"), "{ledger}");
    let file = phone.home.path().join("export.json");
    assert_eq!(phone.run(&["export", file.to_str().unwrap()]).code, 0);
    let export = std::fs::read_to_string(file).unwrap();
    assert!(export.contains("sms_enabled") && !export.contains("at 8?"), "{export}");
}

#[test]
fn a_draft_is_edited_by_a_command_and_sent_by_none() {
    let phone = ready();
    draft(&phone, ALICE, "Hi");
    let nothing = phone.run(&["drafts", "edit", "1"]);
    assert!(nothing.code == 2 && nothing.err.contains("--text <TEXT>|--to <TO>"), "{nothing:?}");
    phone.run(&["drafts", "edit", "1", "--to", "Mom"]).refused(1, "phone number");
    phone.run(&["drafts", "edit", "1", "--text", " "]).refused(1, "can’t be empty");
    phone.run(&["drafts", "edit", "7", "--text", "x"]).refused(1, "no draft number 7");
    let before = phone.run(&["drafts", "list", "--json"]).json()[0]["digest"].clone();
    let saved = phone.run(&["drafts", "edit", "1", "--to", "+1 555 0199 0", "--text", "See you"]);
    assert!(saved.code == 0 && saved.out.starts_with("Saved. Nothing was sent.\n"), "{saved:?}");
    let warning = "! You haven’t exchanged messages with this number before.";
    assert!(saved.out.contains("To: +155501990\n") && saved.out.contains(warning), "{saved:?}");
    let listed = phone.run(&["drafts", "list"]).out;
    assert_eq!(listed, format!("1  PENDING  to +155501990: See you\n   {warning}\n"));
    let row = phone.run(&["drafts", "list", "--json"]).json()[0].clone();
    assert_eq!((&row["id"], &row["unknown_recipient"]), (&json!(1), &json!(true)));
    let told = phone.run(&["ledger", "show", "--json"]).json();
    let edited = told.as_array().unwrap().iter().find(|record| record["what"] == "edited").unwrap().clone();
    assert_eq!(
        (&edited["before"], &edited["digest"], &edited["to"]),
        (&before, &row["digest"], &json!("+155501990"))
    );
    assert!(phone.run(&["ledger", "show"]).out.contains("You edited draft 1, which now goes to +155501990"));
    assert_eq!(phone.left(), "");
}

#[test]
fn what_a_command_discards_comes_back_within_ten_seconds() {
    let phone = ready();
    for body in ["One", "Two", "Three"] {
        draft(&phone, ALICE, body);
    }
    let undo = "To take this back within 10 seconds: kai drafts undo\n";
    assert_eq!(phone.run(&["drafts", "discard", "2"]).out, format!("Discarded draft 2. {undo}"));
    assert_eq!(phone.run(&["drafts", "undo"]).out, "Draft 2 is back.\n");
    phone.run(&["drafts", "undo"]).refused(1, "too late");
    for wrong in [&["drafts", "discard"][..], &["drafts", "discard", "2", "--all"]] {
        let done = phone.run(wrong);
        assert!(done.code == 2 && done.err.contains("--all"), "{done:?}");
    }
    assert_eq!(phone.run(&["drafts", "discard", "--all"]).out, format!("Discarded 3 drafts. {undo}"));
    assert_eq!(phone.run(&["drafts", "list"]).out, "No drafts.\n");
    assert_eq!(phone.run(&["drafts", "discard", "--all"]).out, "There are no drafts to discard.\n");
    assert_eq!(phone.run(&["drafts", "undo", "--json"]).json(), json!({"restored": [1, 2, 3]}));
    let gone = phone.run(&["drafts", "discard", "--all", "--json"]).json();
    assert_eq!(gone, json!({"discarded": [1, 2, 3]}));
    phone.home.clock.advance(jiff::SignedDuration::from_secs(11));
    phone.run(&["drafts", "undo"]).refused(1, "too late");
    assert_eq!(phone.left(), "");
}

const LENA: &str = r#"echo '[{"name": "Lena", "number": "+1 555 0100"}]'"#;

#[test]
fn names_stand_beside_numbers_where_they_are_wanted() {
    let phone = ready();
    phone.program("termux-contact-list", LENA);
    let id = draft(&phone, ALICE, "Hi").to_string();
    let row = || phone.run(&["drafts", "list", "--json"]).json()[0].clone();
    let before = row();
    assert!(before.get("name").is_none(), "{before}");
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    assert_eq!(phone.run(&["sms", "poll"]).code, 0);
    assert!(!phone.run(&["sms", "list"]).out.contains("Lena"));
    let on = phone.run(&["settings", "set", "contact_names_enabled", "true"]);
    assert_eq!((on.code, on.out.as_str()), (0, "contact_names_enabled = true\n"), "{on:?}");
    let named = row();
    assert_eq!((&named["name"], &named["to"]), (&json!("Lena"), &json!(ALICE)));
    assert_eq!(named["digest"], before["digest"], "what is approved is the number");
    for words in [
        &["drafts", "list"][..],
        &["drafts", "show", &id],
        &["sms", "list"],
        &["sms", "read", "42"],
        &["sms", "search", "lena"],
    ] {
        let shown = phone.run(words).out;
        assert!(shown.contains("Lena · +15550100"), "{words:?}: {shown}");
    }
    let off = phone.run(&["settings", "set", "contact_names_enabled", "false"]);
    assert_eq!(off.code, 0, "{off:?}");
    assert_eq!(row(), before, "nothing is left of it");
    assert!(!phone.run(&["sms", "list"]).out.contains("Lena"));
}

#[test]
fn contacts_that_cannot_be_read_harm_nothing_and_are_told() {
    let phone = ready();
    phone.program("termux-contact-list", "echo the app is gone >&2; exit 1");
    assert_eq!(phone.run(&["settings", "set", "contact_names_enabled", "true"]).code, 0);
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner?")]);
    assert_eq!(phone.run(&["sms", "poll", "--json"]).json()["fresh"], 1);
    assert_eq!(phone.run(&["status", "--json"]).json()["sms"]["lastError"], json!(null));
    let checks = |phone: &Phone| phone.run(&["doctor"]).out;
    let told = checks(&phone);
    assert!(told.contains("contacts could not be read") && told.contains("the app is gone"), "{told}");
    phone.program("termux-contact-list", LENA);
    assert_eq!(phone.run(&["settings", "set", "contact_names_enabled", "true"]).code, 0);
    assert!(phone.run(&["sms", "list"]).out.contains("Lena · +15550100"));
    assert!(!checks(&phone).contains("contacts could not be read"));
}
