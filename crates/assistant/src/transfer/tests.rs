//! Tests that export from one home and import into another.

use kai_llm::{CallId, Key, Message, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::json;

use super::fuzz::{home, put, take, written};
use super::*;
use crate::agent::conversation::{self, Codes, Entry, Whole};
use crate::agent::listing;
use crate::attachments;
use crate::db::Db;
use crate::gate::Level;
use crate::memory::{Category, MemoryKey};
use crate::models::{self, ConfiguredModel};
use crate::settings::{self, THEME};
use crate::tasks::{self, Missed, NewTask, TriggerSpec};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A home with data in every section.
pub(super) fn filled(memories: &[(String, String, u32)], said: &[String]) -> Db {
    let db = home();
    let fill = |tx: &Transaction<'_>| {
        settings::store(tx, "theme", "dark")?;
        settings::store(tx, "web_search_brave_key", "BSA-very-secret")?;
        for (key, content, hits) in memories {
            let Ok(key) = MemoryKey::new(key) else { continue };
            let category = Category::Preference;
            let memory = crate::memory::Memory {
                key,
                content: content.clone(),
                category,
                hits: *hits,
                confirmed: *hits != 3,
            };
            if memory.checked().is_ok() {
                crate::memory::store::restore(tx, &memory, NOW)?;
            }
        }
        let model = ConfiguredModel {
            name: "mine".into(),
            preset: "openai".into(),
            base_url: "https://example.org/v1".into(),
            model: "m".into(),
            sees: Some(true),
            context: Some(32_768),
            key: Some(Key::new("sk-very-secret")),
        };
        models::store::keep(tx, &model)?;
        for (nth, when) in ["2026-03-09T15:00Z", "*/5 8-18 * * 1-5", ""].into_iter().enumerate() {
            let spec = TriggerSpec {
                execute_at: Some(when).filter(|_| nth == 0),
                cron: Some(when).filter(|_| nth == 1),
                on_heartbeat: nth == 2,
            };
            let trigger = spec.trigger(NOW, &TimeZone::UTC).unwrap();
            let (name, prompt, level) = (
                format!("Look {nth}"),
                format!("Look\nat {nth}."),
                if nth == 0 { Level::Web } else { Level::People },
            );
            let new = NewTask::new(&name, &prompt, trigger, Missed::Skip, level).unwrap();
            tasks::store::add(tx, &new, NOW, &TimeZone::UTC).unwrap();
        }
        conversation::restore(tx, &whole(said)).map(drop)
    };
    db.write_now(fill).unwrap_or_else(|e: DbError| panic!("{e}"));
    db
}

fn whole(said: &[String]) -> Whole {
    let call = ToolCall {
        id: CallId("c".into()),
        name: "t".into(),
        arguments: "{ }".into(),
        signature: Some("s".into()),
    };
    let entry = |message, answered_by: Option<&str>| Entry {
        message,
        answered_by: answered_by.map(str::to_owned),
        usage: answered_by.map(|_| Usage { input: 1, output: 2 }),
        at: 5,
        took: answered_by.map(|_| 1200),
        stopped: answered_by.is_some(),
        report: answered_by.is_some(),
        meaning: None,
        files: vec![],
        instead: None,
    };
    let mut entries: Vec<Entry> = said.iter().map(|text| entry(Message::user(text.clone()), None)).collect();
    entries
        .push(entry(Message::Assistant { text: "a".into(), calls: vec![call], signature: None }, Some("m")));
    Whole {
        title: "A title".into(),
        kind: crate::agent::conversation::Kind::Chat,
        created_at: 3,
        updated_at: 9,
        entries,
        name: Some("A name".into()),
        pinned: true,
        asked: true,
        level: Level::Web,
        model: Some("m".into()),
        codes: Codes::Hidden,
        unseen: false,
        shown: kai_codes::KnownCodes::default(),
        contents: BTreeMap::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_goes_out_comes_in_again(
        memories in proptest::collection::vec((".{0,20}", ".{0,40}", 0u32..9), 0..8),
        said in proptest::collection::vec(".{0,60}", 0..5),
    ) {
        let from = filled(&memories, &said);
        let taken = take(&from, None);
        let text = serde_json::to_string(&taken).unwrap();
        let parsed = Export::parse(&text).unwrap();
        for mode in [Mode::Merge, Mode::Replace] {
            let to = home();
            let outcomes = put(&to, &parsed, mode, None).unwrap();
            prop_assert!(outcomes.iter().all(|o| o.problem.is_none() && o.skipped.is_empty()), "{outcomes:?}");
            prop_assert_eq!(take(&to, None), taken.clone());
            let again = put(&to, &parsed, mode, None).unwrap();
            prop_assert!(again.iter().all(|o| o.new == 0 && o.changed == 0 && o.removed == 0), "{again:?}");
            prop_assert_eq!(take(&to, None), taken.clone());
        }
    }
}

/// Codes that the model was shown are redacted in an exported file, wherever and however they were written. The
/// conversation is still recognised when the file is imported again.
#[test]
fn codes_that_were_shown_are_in_no_file() {
    for codes in [Codes::Shown, Codes::HiddenAgain] {
        let db = home();
        let fill = move |tx: &Transaction<'_>| {
            let id = conversation::create(tx, Timestamp::UNIX_EPOCH)?;
            conversation::set_codes(tx, id, Codes::Shown)?;
            let user = |text: &str| Message::user(text);
            let said = |text: &str| Message::Assistant { text: text.into(), calls: vec![], signature: None };
            let all = [
                user("is 482913 it?"),
                said("Your login code is 482913."),
                said("So 482-913."),
                user("4 8 2 9 1 3"),
            ];
            conversation::append(tx, id, &all, None, Timestamp::UNIX_EPOCH)?;
            let note = attachments::read("note.txt", b"It is 482913 here.").unwrap();
            attachments::store::keep(tx, &note.file.hash, &note.bytes)?;
            attachments::store::attach(tx, 1, &[note.file])?;
            listing::set_name(tx, id, Some("About 482913"))?;
            conversation::set_codes(tx, id, codes)?;
            super::conversation(tx, id)
        };
        let one = db.write_now(fill).unwrap_or_else(|e: DbError| panic!("{e}")).unwrap();
        assert!(!serde_json::to_string(&one).unwrap().contains("482"), "nor in a file of its own: {one:?}");
        assert_eq!(one.name.as_deref(), Some("About [code]"));
        let taken = take(&db, None);
        let text = serde_json::to_string(&taken).unwrap();
        let conversation = text.split("created_at").nth(1).unwrap();
        assert!(!text.contains("482") && !text.contains("4 8 2"), "{text}");
        assert!(conversation.matches("[code]").count() >= 4, "{text}");
        let again = put(&db, &taken, Mode::Merge, None).unwrap();
        let told = again.iter().find(|outcome| outcome.section == "conversations").unwrap();
        assert_eq!((told.new, told.changed, told.same), (0, 0, 1), "{told:?}");
        let other = home();
        put(&other, &taken, Mode::Merge, None).unwrap();
        let note = other.read_now(|tx| {
            let files = conversation::entries(tx, conversation::ConversationId(1))?.remove(0).files;
            attachments::store::bytes(tx, &files[0].hash)
        });
        let note = note.unwrap_or_else(|e: DbError| panic!("{e}")).unwrap();
        assert_eq!(String::from_utf8_lossy(&note), "It is [code] here.", "another text, under its own hash");
    }
}

#[test]
fn secrets_leave_only_when_asked_for_and_only_sealed() {
    let (from, words) = (filled(&[], &[]), Passphrase::new("sesame".into()));
    assert!(!serde_json::to_string(&take(&from, None)).unwrap().contains("very-secret"));
    let sealed = take(&from, Some(&words));
    assert!(!serde_json::to_string(&sealed).unwrap().contains("very-secret"));
    let key_in =
        |to: &Db| to.write_now(models::store::all).unwrap_or_else(|e: DbError| panic!("{e}"))[0].key.clone();
    let to = home();
    put(&to, &sealed, Mode::Merge, None).unwrap();
    assert_eq!(key_in(&to), None);
    let wrong = put(&to, &sealed, Mode::Merge, Some(&Passphrase::new("wrong".into())));
    assert!(matches!(wrong, Err(TransferError::WrongPassphrase)));
    put(&to, &sealed, Mode::Merge, Some(&words)).unwrap();
    let brave = to.write_now(|tx| Ok::<_, DbError>(settings::load(tx)?.secrets())).unwrap();
    assert_eq!(brave.get("web_search_brave_key").map(String::as_str), Some("BSA-very-secret"));
    assert_eq!(key_in(&to), Some(Key::new("sk-very-secret")));
}

#[test]
fn a_file_without_keys_takes_none_away_and_gives_none_to_another_server() {
    let key_in =
        |to: &Db| to.write_now(models::store::all).unwrap_or_else(|e: DbError| panic!("{e}"))[0].key.clone();
    let file = take(&filled(&[], &[]), None);
    for mode in [Mode::Merge, Mode::Replace] {
        let to = filled(&[], &[]);
        put(&to, &file, mode, None).unwrap();
        assert_eq!(key_in(&to), Some(Key::new("sk-very-secret")), "{mode:?}");
        let brave = to.write_now(|tx| Ok::<_, DbError>(settings::load(tx)?.secrets())).unwrap();
        assert_eq!(
            brave.get("web_search_brave_key").map(String::as_str),
            Some("BSA-very-secret"),
            "{mode:?}"
        );
        let elsewhere = |tx: &Transaction<'_>| {
            let sql = "UPDATE models SET base_url = 'https://elsewhere.example/v1'";
            tx.execute(sql, []).map(drop).map_err(DbError::from)
        };
        to.write_now(elsewhere).unwrap();
        put(&to, &file, mode, None).unwrap();
        assert_eq!(key_in(&to), None, "{mode:?}: the key belongs to another address");
    }
}

#[test]
fn a_section_that_makes_no_sense_does_not_stop_the_others() {
    let file = json!({
        "kai_export": 1,
        "from_the_future": true,
        "sections": {
            "memory": "not a list",
            "settings": {"theme": "dark", "language": "klingon", "no_such_setting": "x"},
            "models": [{"name": "m"}],
            "horoscopes": [1, 2, 3],
        },
    });
    let export = Export::parse(&file.to_string()).unwrap();
    let to = home();
    let outcomes = put(&to, &export, Mode::Merge, None).unwrap();
    let of = |name: &str| outcomes.iter().find(|o| o.section == name).unwrap();
    assert!(of("memory").problem.is_some() && of("models").problem.is_some());
    let settings = of("settings");
    assert_eq!((settings.new, settings.skipped.len()), (1, 2), "{settings:?}");
    assert!(outcomes.iter().all(|o| o.section != "horoscopes"));
    let theme = to.write_now(|tx| Ok::<_, DbError>(settings::load(tx)?.of(&THEME))).unwrap();
    assert_eq!(theme, "dark");
}

#[test]
fn merge_keeps_what_is_there_and_replace_does_not() {
    let memory = |key: &str, content: &str| (key.to_owned(), content.to_owned(), 0);
    let file = take(&filled(&[memory("a", "new"), memory("b", "b")], &["hello".into()]), None);
    for (mode, expected) in [(Mode::Merge, vec!["a", "b", "c"]), (Mode::Replace, vec!["a", "b"])] {
        let to = filled(&[memory("a", "old"), memory("c", "c")], &["other".into()]);
        let outcomes = put(&to, &file, mode, None).unwrap();
        let memories = outcomes.iter().find(|o| o.section == "memory").unwrap();
        assert_eq!((memories.new, memories.changed), (1, 1));
        assert_eq!(memories.removed, usize::from(mode == Mode::Replace));
        let mut keys: Vec<String> = to
            .write_now(crate::memory::store::all)
            .unwrap_or_else(|e: DbError| panic!("{e}"))
            .into_iter()
            .map(|m| m.key.as_str().to_owned())
            .collect();
        keys.sort();
        assert_eq!(keys, expected, "{mode:?}");
    }
}

#[test]
fn tasks_are_taken_in_once_and_what_cannot_come_any_more_is_said() {
    let task = |name: &str, when: Value| {
        let mut task = json!({"description": name, "prompt": "Do it."});
        task.as_object_mut().unwrap().extend(when.as_object().unwrap().clone());
        task
    };
    let sections = json!({"tasks": [
        task("Daily", json!({"cron": "0 8 * * *"})),
        task("Daily", json!({"cron": "0 8 * * *"})),
        task("Dentist", json!({"execute_at": "1969-03-09T15:00Z"})),
        task("Never", json!({})),
        task("Both", json!({"cron": "0 8 * * *", "on_heartbeat": true})),
        task("", json!({"on_heartbeat": true})),
    ]});
    let file = Export::parse(&json!({"kai_export": 1, "sections": sections}).to_string()).unwrap();
    for (mode, removed, left) in [(Mode::Merge, 0, 4), (Mode::Replace, 3, 1)] {
        let to = filled(&[], &[]);
        let outcome = put(&to, &file, mode, None).unwrap().remove(0);
        assert_eq!((outcome.new, outcome.same, outcome.removed), (1, 1, removed), "{outcome:?}");
        assert_eq!(outcome.changes, ["Daily: every day at 8:00"]);
        let said = outcome.skipped.join("\n");
        for why in ["Dentist: The execute_at", "Never: Say when", "Both: Give only one", "must not be empty"]
        {
            assert!(said.contains(why), "{why}: {said}");
        }
        assert_eq!(to.write_now(tasks::store::all).unwrap_or_else(|e: DbError| panic!("{e}")).len(), left);
    }
}

#[test]
fn files_that_are_none_or_too_new_are_refused() {
    for (text, word) in [
        ("", "not a file that Kai exported"),
        ("{}", "not a file that Kai exported"),
        ("[1]", "not a file that Kai exported"),
        ("{\"kai_export\": 99}", "newer Kai"),
    ] {
        let refused = Export::parse(text).unwrap_err().to_string();
        assert!(refused.contains(word), "{text}: {refused}");
    }
    assert!(Export::parse("{\"kai_export\": 0}").is_ok(), "older forms are read");
}

/// A home whose conversations are more than one piece has room for.
fn long() -> Db {
    let db = home();
    db.write_now(|tx| {
        for n in 0..40 {
            let id = conversation::create(tx, NOW)?;
            let said = Message::user(format!("{n}: \"quoted\"\n{}", "on and on ".repeat(2_000)));
            conversation::append(tx, id, &[said], None, NOW)?;
        }
        Ok::<_, DbError>(())
    })
    .unwrap();
    db
}

#[test]
fn a_long_export_comes_in_pieces_and_is_one_file() {
    let db = long();
    let (text, pieces) = written(&db, &Section::ALL, None);
    assert!(pieces > 2, "{pieces} pieces of {} bytes", text.len());
    let export = Export::parse(&text).unwrap();
    let conversations = export.sections["conversations"].as_array().unwrap();
    assert_eq!(conversations.len(), 40);
    for (n, conversation) in conversations.iter().enumerate() {
        let said = conversation["entries"][0]["message"]["text"].as_str().unwrap();
        assert!(said.starts_with(&format!("{n}: \"quoted\"\n")), "{said:.40}");
    }
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text.lines().count(), serde_json::to_string_pretty(&value).unwrap().lines().count());
}

#[test]
fn a_section_without_items_and_a_section_named_twice_are_valid_json() {
    let (db, sections) = (home(), [Section::Tasks, Section::Conversations, Section::Tasks]);
    let (text, pieces) = written(&db, &sections, None);
    assert_eq!(pieces, 1);
    assert_eq!(Export::parse(&text).unwrap().sections.keys().collect::<Vec<_>>(), ["conversations", "tasks"]);
    assert_eq!(text.matches("\"tasks\"").count(), 1, "{text}");
}

/// What happens between two pieces: what was written stays written once, and what came is at the end.
#[test]
fn what_changes_between_two_pieces_doubles_nothing() {
    let db = long();
    let first = db.read_now(|tx| piece(tx, &[Section::Conversations], None, NOW)).unwrap();
    db.write_now(|tx| {
        for id in [1, 30] {
            conversation::delete(tx, conversation::ConversationId(id))?;
        }
        let id = conversation::create(tx, NOW)?;
        conversation::append(tx, id, &[Message::user("the last one")], None, NOW)
    })
    .unwrap();
    let (mut text, mut from) = (first.text, first.next);
    while let Some(place) = from {
        let next = db.read_now(|tx| piece(tx, &[Section::Conversations], Some(place), NOW)).unwrap();
        text.push_str(&next.text);
        from = next.next;
    }
    let export = Export::parse(&(text + &end(None).unwrap())).unwrap();
    let said = |value: &Value| {
        value["entries"][0]["message"]["text"].as_str().unwrap().chars().take(12).collect::<String>()
    };
    let said: Vec<String> = export.sections["conversations"].as_array().unwrap().iter().map(said).collect();
    assert_eq!((said.len(), said.last().map(String::as_str)), (40, Some("the last one")));
    assert!(said[0].starts_with("0: ") && !said.iter().any(|said| said.starts_with("29: ")), "{said:?}");
}
