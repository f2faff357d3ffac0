//! Paired phones on the command line, where no daemon runs: what is stored can be changed, and nothing else.

use kai_assistant::agent::Nobody;
use kai_assistant::ledger::{self, PhoneEvent, Record};
use kai_assistant::phones::SourceId;
use kai_assistant::phones::store::{self, NewPhone};
use serde_json::json;

use super::kit::Home;
use crate::answer::answer;
use crate::call::Call;
use crate::call::phones::PhonesCall;
use crate::caller_env::CallerEnv;

/// A home with paired phones of these names, numbered from 2.
fn paired(names: &[&str]) -> Home {
    let home = Home::new();
    pair(&home, names);
    home
}

fn pair(home: &Home, names: &[&str]) {
    let now = home.app.clock.now();
    for name in names {
        let (device, certificate) = (format!("device-of-{name}"), vec![1]);
        let new = NewPhone { device, name: (*name).to_owned(), certificate, protocol: 8 };
        home.app.db.write_now(|tx| store::pair(tx, &new, now).map(drop)).unwrap();
    }
}

#[test]
fn phones_are_listed_renamed_and_chosen() {
    let home = Home::new();
    let none = home.run(&["phones", "list"]);
    assert_eq!((none.code, none.out.as_str()), (0, "No phone is paired. To pair one: kai phones pair\n"));
    pair(&home, &["Pixel 8", "Work"]);
    assert_eq!(home.run(&["phones", "rename", "pixel 8", "Mine"]).out, "Phone 2 is now called Mine.\n");
    assert_eq!(home.run(&["phones", "default", "3"]).out, "New messages are sent from Work.\n");
    let rows = home.run(&["phones", "list", "--json"]).json();
    assert_eq!(
        (&rows[0]["id"], &rows[0]["name"], &rows[0]["connected"]),
        (&json!(2), &json!("Mine"), &json!(false))
    );
    assert_eq!((&rows[0]["sends_by_default"], &rows[1]["sends_by_default"]), (&json!(false), &json!(true)));
    let listed = home.run(&["phones", "list"]).out;
    assert!(listed.contains("Mine: last seen") && listed.contains("on: nothing"), "{listed}");
    home.run(&["phones", "rename", "mine", "work"]).refused(1, "already called “work”");
    home.run(&["phones", "rename", "mine", " "]).refused(2, "visible characters");
    home.run(&["phones", "default", "1"]).refused(1, "kai phones list");
    home.run(&["phones", "set", "Pixel 8", "names", "on"]).refused(1, "“Pixel 8”");
}

/// Everything is off to begin with. A switch turns its master on, and reading begins that moment.
#[test]
fn a_switch_turns_its_master_on() {
    let home = paired(&["Pixel"]);
    home.run(&["settings", "set", "sms_enabled", "true"]).refused(1, "stays off");
    for (switch, master) in [
        ("read_sms", Some("sms_enabled")),
        ("send_sms", Some("sms_send_enabled")),
        ("notifications", Some("notifications_enabled")),
        ("names", Some("contact_names_enabled")),
        ("tell", None),
    ] {
        if let Some(master) = master {
            assert_eq!(home.run(&["settings", "get", master]).out, "false\n");
        }
        assert_eq!(
            home.run(&["phones", "set", "pixel", switch, "on"]).out,
            format!("Pixel: {switch} = on\n")
        );
        if let Some(master) = master {
            assert_eq!(home.run(&["settings", "get", master]).out, "true\n", "{switch}");
        }
        let row = home.run(&["phones", "list", "--json"]).json();
        assert_eq!(row[0]["switches"][switch], true);
    }
    let since =
        |home: &Home| home.app.db.read_now(|tx| store::get(tx, SourceId(2))).unwrap().unwrap().read_since;
    assert_eq!(since(&home), Some(home.app.clock.now()));
    assert_eq!(home.run(&["settings", "set", "sms_enabled", "false"]).code, 0);
    assert_eq!(since(&home), None);
    home.clock.advance(jiff::SignedDuration::from_hours(1));
    assert_eq!(home.run(&["settings", "set", "sms_enabled", "true"]).code, 0, "a paired phone can be read");
    assert_eq!(since(&home), Some(home.app.clock.now()), "it begins anew");
    assert_eq!(home.run(&["phones", "set", "Pixel", "fly", "on"]).code, 2);
}

#[test]
fn composing_on_the_phone_needs_drafts() {
    let home = paired(&["Pixel"]);
    assert_eq!(home.run(&["phones", "set", "2", "composer", "on"]).code, 0);
    assert_eq!(home.run(&["settings", "get", "sms_send_enabled"]).out, "true\n");
}

/// Deleting what is stored is asked about, and nobody can be asked here.
#[test]
fn a_phone_is_removed() {
    let home = paired(&["Pixel", "Work"]);
    home.run(&["phones", "remove", "Pixel"]).refused(1, "--keep-messages");
    home.run(&["phones", "remove", "Nokia"]).refused(1, "“Nokia”");
    let gone = home.run(&["phones", "remove", "Pixel", "--keep-messages", "--json"]);
    assert_eq!(gone.json(), json!({"id": 2, "removed": true, "kept_messages": true}));
    let gone = home.run(&["phones", "remove", "3", "--keep-messages"]);
    assert_eq!(gone.out, "Unpaired Work. Kai keeps its messages.\n");
    let left = home.run(&["phones", "list"]).out;
    assert!(left.contains("Pixel: no longer paired") && left.contains("kai phones remove 3"), "{left}");
    home.run(&["phones", "set", "Pixel", "read_sms", "on"]).refused(1, "no longer paired");
    let remove = PhonesCall::Remove { phone: "2".to_owned(), keep_messages: false };
    home.wait(async |app| answer(app, Call::from(remove), &CallerEnv::default(), &Nobody).await.unwrap());
    assert_eq!(home.run(&["phones", "list", "--json"]).json().as_array().unwrap().len(), 1);
}

/// As with a daemon, the ledger has it, once for each phone and whatever becomes of the messages.
#[test]
fn unpairing_is_recorded_without_a_daemon_too() {
    let home = paired(&["Pixel", "Work"]);
    home.run(&["phones", "remove", "Pixel", "--keep-messages"]);
    let forget = |phone: &str| PhonesCall::Remove { phone: phone.to_owned(), keep_messages: false };
    for phone in ["Pixel", "Work"] {
        let call = Call::from(forget(phone));
        home.wait(async |app| answer(app, call, &CallerEnv::default(), &Nobody).await.unwrap());
    }
    let unpaired =
        |phone: i64, name: &str| Record::Phone { phone, name: name.to_owned(), event: PhoneEvent::Unpaired };
    let recorded = home.app.db.read_now(ledger::all).unwrap();
    assert_eq!(recorded, [unpaired(2, "Pixel"), unpaired(3, "Work")]);
}

/// Only a daemon reaches phones, and only somebody who sees the key can pair.
#[test]
fn pairing_needs_a_terminal_and_a_daemon() {
    let home = paired(&[]);
    home.run(&["phones", "pair"]).refused(1, "terminal");
    let failed = home.wait(async |app| {
        let call = Call::from(PhonesCall::Search { on: true });
        answer(app, call, &CallerEnv::default(), &Nobody).await.unwrap_err()
    });
    assert!(failed.to_string().ends_with("Start Kai first: kai serve"), "{failed}");
}

#[test]
fn status_and_doctor_say_how_it_stands() {
    let home = Home::new();
    let status = home.run(&["status"]).out;
    assert!(status.contains("none paired. No port is open"), "{status}");
    assert!(!home.run(&["doctor"]).out.contains("phones"), "nothing to say");
    pair(&home, &["Pixel"]);
    let phones = &home.run(&["status", "--json"]).json()["phones"];
    assert_eq!(
        (&phones["paired"], &phones["connected"], &phones["port"]),
        (&json!(1), &json!(0), &json!(null))
    );
    let doctor = home.run(&["doctor"]).out;
    assert!(doctor.contains("Pixel: Kai reaches it only while it is running"), "{doctor}");
}
