//! Turns with a small model: what it is sent from turn to turn, one call a round, and no call twice.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use kai_assistant::MIGRATIONS;
use kai_assistant::agent::conversation::{self, ConversationId, Which};
use kai_assistant::agent::{Driver, Nobody, Ready};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::ledger::{self, Record};
use kai_assistant::memory::store::Standing;
use kai_assistant::memory::{self, Category, MemoryKey};
use kai_assistant::models::vision::Vision;
use kai_assistant::tool::{AnyTool, Run, Tool, ToolError, ToolOutput};
use kai_assistant::toolbox::{EnabledBy, Entry, Toolbox};
use kai_llm::{Act, Message, ModelError, Request, Scripted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Stands for the tool of that name, and counts.
struct Search(Arc<AtomicUsize>);

#[derive(Deserialize, JsonSchema)]
struct SearchInput {
    query: String,
}

impl Tool for Search {
    const NAME: &'static str = "web_search";
    type Input = SearchInput;
    type Output = Value;

    async fn run(&self, input: SearchInput, _: &Run) -> Result<ToolOutput<Value>, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let messages = vec![format!("sms {}", input.query)];
        Ok(ToolOutput::with_messages(json!({"found": input.query}), messages))
    }
}

/// A tool that is in no set.
struct Other;

#[derive(Deserialize, JsonSchema)]
struct OtherInput {}

impl Tool for Other {
    const NAME: &'static str = "shell_command";
    type Input = OtherInput;
    type Output = Value;

    async fn run(&self, _: OtherInput, _: &Run) -> Result<ToolOutput<Value>, ToolError> {
        Ok(ToolOutput::own(json!({})))
    }
}

/// Stands for the tool of that name.
struct Remember(Db);

impl Tool for Remember {
    const NAME: &'static str = "memory_store";
    type Input = OtherInput;
    type Output = Value;

    async fn run(&self, _: OtherInput, _: &Run) -> Result<ToolOutput<Value>, ToolError> {
        remember(&self.0, "tea", jiff::Timestamp::UNIX_EPOCH);
        Ok(ToolOutput::own(json!({"stored": "tea"})))
    }
}

fn remember(db: &Db, key: &str, now: jiff::Timestamp) {
    let key = MemoryKey::new(key).unwrap();
    let kept = db.write_now(|tx| {
        memory::store::keep(tx, &key, "A fact.", Category::General, Standing::Confirmed, now).map(drop)
    });
    kept.map_err(|e: DbError| e).unwrap();
}

fn own(tool: Arc<dyn AnyTool>) -> Entry {
    Entry { tool, governed: EnabledBy::OwnSwitch { on_by_default: true } }
}

struct Stage {
    db: Db,
    clock: Arc<ManualClock>,
    toolbox: Toolbox,
    searched: Arc<AtomicUsize>,
    model: Arc<Scripted>,
    models: Vec<Ready>,
}

impl Stage {
    fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let db = Db::in_memory(MIGRATIONS).unwrap();
        let clock = Arc::new(ManualClock::at("2026-11-17T16:30:00Z".parse().unwrap()));
        let searched = Arc::new(AtomicUsize::new(0));
        let toolbox = Toolbox::new(vec![own(Arc::new(Search(searched.clone()))), own(Arc::new(Other))]);
        let model = Arc::new(Scripted::new(acts).small());
        let models = vec![Ready {
            label: "small".to_owned(),
            local: true,
            vision: Vision::No,
            model: Box::new(Arc::clone(&model)),
        }];
        Self { db, clock, toolbox, searched, model, models }
    }

    fn driver(&self) -> Driver<'_> {
        Driver {
            db: &self.db,
            clock: self.clock.as_ref(),
            toolbox: &self.toolbox,
            models: &self.models,
            face: &Nobody,
            kind: RunKind::Chat,
            level: Level::Nothing,
            shown: &[],
            platform: "test",
        }
    }

    async fn say(&self, which: Which, said: &str) -> (ConversationId, String) {
        let answer = self.driver().turn(which, said.to_owned()).await.unwrap();
        (answer.conversation, answer.text)
    }
}

fn last(request: &Request) -> &str {
    match request.messages.last() {
        Some(Message::User { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

fn names(request: &Request) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn the_prefix_and_all_that_was_sent_stay_and_the_time_comes_with_each_message() {
    let stage = Stage::new([Act::text("Hello."), Act::text("Fine."), Act::text("Bye.")]);
    remember(&stage.db, "tea", stage.clock.now());
    let (chat, _) = stage.say(Which::New, "Hi there").await;
    stage.clock.advance(SignedDuration::from_mins(90));
    stage.say(Which::Id(chat), "Set an alarm and write a mail, then text Tom").await;
    stage.clock.advance(SignedDuration::from_hours(30));
    stage.say(Which::Id(chat), "Thanks").await;
    let requests = stage.model.requests();
    let [first, second, third] = &requests[..] else { panic!("{requests:?}") };
    assert!(
        first.system.starts_with("You are Kai")
            && first.system.ends_with("What you remember:\n- tea: A fact.")
    );
    assert_eq!(names(first), ["web_search"], "one of the set, and none besides");
    for later in [second, third] {
        assert_eq!((&later.system, &later.tools), (&first.system, &first.tools));
    }
    assert_eq!(last(first), "[Tue 2026-11-17 16:30 +00:00]\nHi there");
    assert!(last(second).starts_with("[Tue 2026-11-17 18:00 +00:00]\nSet an alarm"));
    assert_eq!(last(third), "[Thu 2026-11-19 00:00 +00:00]\nThanks");
    assert_eq!(second.messages[..1], first.messages[..]);
    assert_eq!(third.messages[..3], second.messages[..]);
    let stored: Result<_, DbError> = stage.db.read(move |tx| conversation::entries(tx, chat)).await;
    assert_eq!(stored.unwrap()[0].message, Message::user("Hi there"), "what is kept has no such line");
}

#[tokio::test]
async fn further_calls_are_dropped_and_a_repeated_one_is_retold() {
    let query = r#"{"query": "herons"}"#;
    let stage = Stage::new([
        Act::calls(&[("1", "web_search", query), ("2", "web_search", r#"{"query": "storks"}"#)]),
        Act::calls(&[("1", "web_search", r#"{ "query":"herons" }"#)]),
        Act::text("A bird."),
    ]);
    let (chat, said) = stage.say(Which::New, "What is a heron?").await;
    assert_eq!((said.as_str(), stage.searched.load(Ordering::SeqCst)), ("A bird.", 1));
    let requests = stage.model.requests();
    let retold = requests.last().unwrap();
    assert!(requests.len() == 3 && retold.tools.is_empty() && retold.messages.len() == 1, "{retold:?}");
    assert!(
        last(retold)
            .starts_with("[Tue 2026-11-17 16:30 +00:00]\nWhat is a heron?\n\nYour tools returned this.")
    );
    assert!(last(retold).contains("- web_search: {") && last(retold).contains("herons"), "{}", last(retold));
    let stored: Result<Vec<_>, DbError> = stage.db.read(move |tx| conversation::entries(tx, chat)).await;
    assert_eq!(stored.unwrap().len(), 4, "question, call, result, answer");
    let records: Result<_, DbError> = stage.db.read(ledger::all).await;
    let seen: Vec<Vec<String>> = records
        .unwrap()
        .into_iter()
        .filter_map(|record| match record {
            Record::Request { seen, here: true, .. } => Some(seen),
            _ => None,
        })
        .collect();
    let herons = || vec!["sms herons".to_owned()];
    assert_eq!(seen, [vec![], herons(), herons()], "the ledger knows what was told again as text");
}

#[tokio::test]
async fn a_run_without_a_conversation_is_told_the_time_and_gets_tools_by_its_words() {
    let stage = Stage::new([Act::text("Done."), Act::text("Written.")]);
    let driver = Driver { kind: RunKind::Task, ..stage.driver() };
    let meter = Arc::default();
    driver.unattended("This is a task.\n\nLook it up.".to_owned(), "Look it up.", &meter).await.unwrap();
    driver.worded("Say it.".to_owned(), &meter).await.unwrap();
    let requests = stage.model.requests();
    assert_eq!(last(&requests[0]), "[Tue 2026-11-17 16:30 +00:00]\nThis is a task.\n\nLook it up.");
    assert_eq!(names(&requests[0]), ["web_search"]);
    assert!(requests[1].tools.is_empty() && !requests[1].system.contains("tool"), "{}", requests[1].system);
}

/// Where the small model fails, another one on this computer gets the prompt that it can bear.
#[tokio::test(start_paused = true)]
async fn another_model_gets_its_own_prompt() {
    let busy = ModelError::RateLimited { wait: Some(Duration::from_mins(5)) };
    let mut stage = Stage::new([Act::fails(busy)]);
    let full = Arc::new(Scripted::new([Act::text("Here.")]));
    stage.models.push(Ready {
        label: "full".to_owned(),
        local: true,
        vision: Vision::Unknown,
        model: Box::new(Arc::clone(&full)),
    });
    stage.say(Which::New, "Hi").await;
    let request = full.requests().pop().unwrap();
    assert!(request.system.contains("## Context") && last(&request) == "Hi");
    assert!(last(&stage.model.requests()[0]).ends_with("]\nHi"));
    assert_eq!(names(&request), ["web_search", "shell_command"]);
}

/// A memory that a turn stores is read in the next turn: everything after it would have to be read anew.
#[tokio::test]
async fn what_a_turn_stores_does_not_change_what_it_sends() {
    let acts = [Act::calls(&[("1", "memory_store", "{}")]), Act::text("Stored."), Act::text("Tea.")];
    let mut stage = Stage::new(acts);
    stage.toolbox = Toolbox::new(vec![own(Arc::new(Remember(stage.db.clone())))]);
    let (chat, _) = stage.say(Which::New, "Remember that I like tea.").await;
    stage.say(Which::Id(chat), "What do I like?").await;
    let systems: Vec<String> = stage.model.requests().into_iter().map(|request| request.system).collect();
    let [first, second, next] = &systems[..] else { panic!("{systems:?}") };
    assert_eq!(first, second);
    assert!(!first.contains("tea:") && next.contains("- tea: A fact."), "{next}");
}
