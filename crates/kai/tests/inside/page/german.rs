//! Sentences that are made below the page, on a German page. Commands print the same ones in English.

use jiff::tz::TimeZone;
use kai_assistant::db::DbError;
use kai_assistant::gate::Level;
use kai_assistant::ledger::{self, Record};
use kai_assistant::tasks::store::{self, Ending};
use kai_assistant::tasks::{Missed, NewTask, Trigger};
use kai_words::said;
use serde_json::json;

use super::house::House;

const AGENT: &str = "/settings/agent";

/// Words that no German sentence has.
fn is_english(text: &str) -> bool {
    let words = [" the ", " is ", " was ", " not ", " it ", " with ", " and ", " for ", " cannot "];
    words.iter().any(|word| text.contains(word))
}

pub(super) fn assert_german(texts: &[impl AsRef<str>], expected: &str) {
    let text: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    let text = text.join("\n");
    assert!(text.contains(expected), "{text}");
    assert!(!is_english(&text), "{text}");
}

#[test]
fn why_a_heartbeat_failed_is_kept_for_every_language() {
    let house = House::new();
    let ran = house.run("heartbeat_run", &json!({"force": true}));
    assert!(ran["reason"].as_str().unwrap().starts_with("No model is set up."), "{ran}");
    // Nothing listens at this address.
    house.add_model("mine", "http://127.0.0.1:9/v1", None);
    let ran = house.run("heartbeat_run", &json!({"force": true}));
    let english = "Kai couldn’t reach mine at 127.0.0.1:9 (nothing is listening there). Check";
    assert!(ran["reason"].as_str().unwrap().starts_with(english), "{ran}");
    let mut visitor = house.visitor(AGENT);
    assert!(visitor.texts("heartbeat-log")[0].contains(english), "{:?}", visitor.texts("heartbeat-log"));
    house.set("language", "de");
    visitor.reload();
    let log = visitor.texts("heartbeat-log");
    assert_german(&log, "Es ist kein Modell eingerichtet. Richten Sie zuerst eines ein.");
    assert_german(
        &log,
        "Kai konnte mine unter 127.0.0.1:9 nicht erreichen (dort läuft kein Server). Prüfen Sie",
    );
    assert!(house.show("heartbeat_log")[0]["reason"].as_str().unwrap().starts_with(english));
}

/// What an older Kai wrote is a plain text, and stays one.
#[test]
fn a_reason_from_before_is_shown_as_it_is() {
    let house = House::new();
    house.run("heartbeat_run", &json!({"force": true}));
    let old = "It took longer than an hour. said:{\"key\":\"turn_no_text\"}";
    house
        .app
        .db
        .write_now(|tx| Ok::<_, DbError>(tx.execute("UPDATE heartbeat_log SET reason = ?1", [old])?))
        .unwrap();
    house.set("language", "de");
    assert!(house.visitor(AGENT).texts("heartbeat-log")[0].contains(old));
    assert_eq!(house.show("heartbeat_log")[0]["reason"], old);
}

#[test]
fn why_a_task_failed_was_skipped_or_interrupted_is_german() {
    let house = House::new();
    let (now, zone) = (house.app.clock.now(), TimeZone::UTC);
    let new =
        NewTask::new("Wetter", "Wie wird es?", Trigger::Time(now), Missed::RunOnce, Level::Nothing).unwrap();
    let failed = |why| Ending { outcome: Err(why), tokens: 0, ms: 5 };
    house
        .app
        .db
        .write_now(|tx| {
            store::add(tx, &new, now, &zone).unwrap();
            let claim = store::claim(tx, now, &zone)?.unwrap();
            store::end(tx, &claim, &failed(said::run_too_long(10_u32)), now, &zone)?;
            let later = now + jiff::SignedDuration::from_hours(1);
            store::claim(tx, later, &zone)?.unwrap();
            store::lost(tx, later, &zone).map(drop)
        })
        .unwrap();
    house.set("language", "de");
    let mut visitor = house.visitor(AGENT);
    visitor.press("task-details");
    let runs = visitor.texts("task-runs");
    assert_german(&runs, "Es hat länger als 10 Minuten gedauert und wurde abgebrochen.");
    assert_german(&runs, "Kai wurde beendet, während sie lief.");
    let shown = house.run("tasks_show", &json!({"id": 1}));
    assert_eq!(shown["runs"][1]["reason"], "It took longer than 10 minutes and was stopped.");
}

#[test]
fn what_tools_and_models_lack_is_german() {
    let house = House::new();
    house.run("models_add", &json!({"preset": "openai", "name": "mine", "key": "k"}));
    house.app.db.write_now(|tx| Ok::<_, DbError>(tx.execute("UPDATE models SET key = NULL", [])?)).unwrap();
    house.set("language", "de");
    let mut visitor = house.visitor("/settings/tools");
    assert_german(
        &visitor.texts("tool-lacks"),
        "Kai kann auf diesem Rechner keine Benachrichtigungen anzeigen.",
    );
    visitor.open("/settings/models");
    assert_german(
        &visitor.texts("model-why-not"),
        "mine hat keinen API-Schlüssel. Geben Sie zuerst einen ein.",
    );
    let row = &house.show("models_list")[0]["why_not"];
    assert_eq!(row, "mine has no API key. Enter one first.");
}

#[test]
fn what_is_wrong_with_the_ledger_is_german() {
    let house = House::new();
    let now = house.app.clock.now();
    let record = Record::Discarded { draft: 4, status: "FAILED".to_owned() };
    house.app.db.write_now(|tx| ledger::append(tx, &record, now)).unwrap();
    house.set("language", "de");
    let mut visitor = house.visitor("/ledger?open=record:1");
    assert!(
        visitor.says("nicht gesendet") && !visitor.says("FAILED"),
        "{:?}",
        visitor.texts("ledger-record")
    );
    let spoilt =
        |tx: &rusqlite::Transaction<'_>| Ok::<_, DbError>(tx.execute("UPDATE ledger SET at = at + 1", [])?);
    house.app.db.write_now(spoilt).unwrap();
    visitor.press("ledger-verify");
    visitor.until_says(
        "Das Protokoll wurde verändert. Bei Eintrag 1: er oder ein Eintrag davor wurde verändert.",
    );
    let check = house.run("ledger", &json!("verify"));
    assert_eq!(check["what"], "it or a record before it was altered");
}

#[test]
fn the_details_of_an_import_are_german() {
    let house = House::new();
    house.set("language", "de");
    let sections = json!({
        "memory": [{"key": "a\nb", "content": "c", "category": "GENERAL", "hits": 0, "confirmed": true}],
        "settings": {"made_up": "1", "heartbeat_interval": "soon"},
        "tasks": [
            {"description": "Alt", "prompt": "p", "execute_at": "2001-01-01T08:00:00Z"},
            {"description": "Neu", "prompt": "p", "cron": "30 7 * * 1-5"},
        ],
    });
    let file = json!({"kai_export": 1, "sections": sections}).to_string();
    let visitor = house.visitor("/settings/general");
    let body = format!(
        "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{}\r\n\
         --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"kai.json\"\r\n\r\n{file}\r\n--x--\r\n",
        visitor.answer.csrf()
    );
    let headers = [("Cookie", visitor.cookie.as_str()), ("Content-Type", "multipart/form-data; boundary=x")];
    let sent = house.send("POST", "/settings/general/import", &headers, &body);
    let preview = house.visitor(sent.header("location").unwrap_or_default().split('#').next().unwrap());
    let told = preview.texts("outcome");
    assert_german(&told, "made_up: hier unbekannt");
    assert_german(&told, "„soon“ ist für heartbeat_interval nicht gültig");
    assert_german(&told, "Der Schlüssel einer Erinnerung muss eine Zeile einfacher Text sein.");
    assert_german(&told, "Alt: Der Zeitpunkt 2001-01-01T08:00:00Z liegt in der Vergangenheit");
    assert_german(&told, "Neu: montags bis freitags um 7:30 Uhr");
}
