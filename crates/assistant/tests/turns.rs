//! Whole turns: a scripted model, real tools, a real store, virtual time.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use kai_assistant::MIGRATIONS;
use kai_assistant::agent::conversation::{self, Codes, ConversationId, Which};
use kai_assistant::agent::turn::End;
use kai_assistant::agent::{Answer, Asking, Driver, Event, Face, Ready, TurnError};
use kai_assistant::clock::ManualClock;
use kai_assistant::db::{Db, DbError};
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::ledger::{self, Record};
use kai_assistant::memory::store::Standing;
use kai_assistant::memory::{self, Category, MemoryKey, MemoryStore};
use kai_assistant::tool::{AnyTool, Run, Tool, ToolError};
use kai_assistant::toolbox::{Entry, Feature, Governed, Toolbox};
use kai_llm::{Act, Message, Model, ModelError, Reply, Scripted, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Take a while, then tell the number.
#[derive(Deserialize, JsonSchema)]
struct SlowInput {
    number: i64,
}

/// A tool that takes 300 ms and counts how often it was started and how often it came to its end.
#[derive(Clone, Default)]
struct Slow {
    started: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Tool for Slow {
    const NAME: &'static str = "slow";
    type Input = SlowInput;
    type Output = Value;

    async fn run(&self, input: SlowInput, _: &Run) -> Result<Value, ToolError> {
        self.started.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(json!({"number": input.number}))
    }
}

/// A face that remembers, and says yes or no.
#[derive(Default)]
struct Watcher {
    events: Mutex<Vec<Event>>,
    asked: Mutex<Vec<String>>,
    yes: Option<bool>,
}

impl Face for Watcher {
    fn shows(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    fn allows<'a>(&'a self, asking: &'a Asking) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        self.asked.lock().unwrap().push(asking.call.arguments.clone());
        Box::pin(async { self.yes })
    }
}

struct Stage {
    db: Db,
    clock: Arc<ManualClock>,
    toolbox: Toolbox,
    slow: Slow,
    face: Watcher,
    conversation: ConversationId,
}

impl Stage {
    async fn new() -> Self {
        let db = Db::in_memory(MIGRATIONS).unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let slow = Slow::default();
        let own =
            |tool: Arc<dyn AnyTool>| Entry { tool, governed: Governed::OwnSwitch { on_by_default: true } };
        let store = MemoryStore { db: db.clone(), clock: clock.clone() };
        let toolbox = Toolbox::new(vec![
            own(Arc::new(slow.clone())),
            Entry { tool: Arc::new(store), governed: Governed::Features(&[Feature::Memory]) },
        ]);
        let conversation = db.write(|tx| conversation::create(tx, Timestamp::UNIX_EPOCH)).await;
        let conversation = conversation.unwrap_or_else(|e: DbError| panic!("{e}"));
        Self { db, clock, toolbox, slow, face: Watcher::default(), conversation }
    }

    fn with_memory_alone(&self) -> Toolbox {
        let store = MemoryStore { db: self.db.clone(), clock: self.clock.clone() };
        Toolbox::new(vec![Entry { tool: Arc::new(store), governed: Governed::Features(&[Feature::Memory]) }])
    }

    fn driver<'a>(&'a self, models: &'a [Ready]) -> Driver<'a> {
        Driver {
            db: &self.db,
            clock: self.clock.as_ref(),
            toolbox: &self.toolbox,
            models,
            face: &self.face,
            kind: RunKind::Chat,
            level: Level::Nothing,
            shown: &[],
            platform: "test",
        }
    }

    async fn say(&self, models: &[Ready], said: &str) -> Result<Answer, TurnError> {
        self.driver(models).turn(Which::Id(self.conversation), said.to_owned()).await
    }

    async fn hello(&self, which: Which) -> Result<Answer, TurnError> {
        let models = [ready("m", &script([Act::text("x")]))];
        self.driver(&models).turn(which, "hello".to_owned()).await
    }

    async fn messages(&self) -> Vec<Message> {
        let id = self.conversation;
        let entries: Result<_, DbError> = self.db.read(move |tx| conversation::entries(tx, id)).await;
        entries.unwrap().into_iter().map(|entry| entry.message).collect()
    }

    async fn ledger(&self) -> Vec<Record> {
        let records: Result<_, DbError> = self.db.read(ledger::all).await;
        records.unwrap()
    }
}

fn ready(label: &str, model: &Arc<Scripted>) -> Ready {
    Ready { label: label.to_owned(), local: false, model: Box::new(Arc::clone(model)) }
}

fn script(acts: impl IntoIterator<Item = Act>) -> Arc<Scripted> {
    Arc::new(Scripted::new(acts))
}

fn results(messages: &[Message]) -> Vec<(String, String)> {
    let result = |message: &Message| match message {
        Message::Tool { call, result, .. } => Some((call.0.clone(), result.clone())),
        Message::User { .. } | Message::Assistant { .. } => None,
    };
    messages.iter().filter_map(result).collect()
}

#[tokio::test(start_paused = true)]
async fn five_calls_of_300_ms_cost_one_round_of_300_ms() {
    let stage = Stage::new().await;
    let calls: Vec<(String, String)> =
        (1..=5).map(|n| (format!("c{n}"), format!("{{\"number\": {n}}}"))).collect();
    let calls: Vec<(&str, &str, &str)> =
        calls.iter().map(|(id, arguments)| (id.as_str(), "slow", arguments.as_str())).collect();
    let model = script([Act::calls(&calls), Act::text("done")]);
    let began = tokio::time::Instant::now();
    let answer = stage.say(&[ready("m", &model)], "go").await.unwrap();
    assert_eq!(began.elapsed().as_millis() / 10, 30, "as much as the slowest call");
    assert_eq!((answer.text.as_str(), answer.end, answer.answered_by.as_str()), ("done", End::Answered, "m"));
    let ids: Vec<String> = results(&stage.messages().await).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["c1", "c2", "c3", "c4", "c5"], "results are stored in call order");
}

#[tokio::test(start_paused = true)]
async fn a_loop_ends_in_an_answer_that_sees_every_result_and_no_tool() {
    let mut stage = Stage::new().await;
    stage.face.yes = Some(true);
    let rounds = (0..20).map(|n| {
        let arguments = format!("{{\"number\": {n}}}");
        Act::calls(&[(&format!("c{n}"), "slow", &arguments)])
    });
    let model = script(rounds.take(15).chain([Act::text("best so far")]));
    let answer = stage.say(&[ready("m", &model)], "go").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.end), ("best so far", End::OutOfRounds));
    let last = model.requests().pop().unwrap();
    assert!(last.tools.is_empty() && last.system.ends_with("with what you have so far."));
    let shown = serde_json::to_string(&last.messages).unwrap();
    for n in 0..15 {
        assert!(shown.contains(&format!("\\\"number\\\":{n}")), "result {n} is visible in {shown}");
    }
    let said = stage.messages().await.into_iter().filter(|m| matches!(m, Message::User { .. })).count();
    assert_eq!(said, 1, "the instruction of the last request is not stored as something the user said");
    assert_eq!(model.requests().len(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_stops_its_work_and_the_conversation_goes_on() {
    let stage = Stage::new().await;
    let model = script([Act::calls(&[("c1", "slow", "{\"number\": 1}")]), Act::text("hello again")]);
    let models = [ready("m", &model)];
    let cancelled = tokio::time::timeout(Duration::from_millis(100), stage.say(&models, "first")).await;
    assert!(cancelled.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let counts = (stage.slow.started.load(Ordering::SeqCst), stage.slow.ended.load(Ordering::SeqCst));
    assert_eq!(counts, (1, 0), "the tool was stopped");
    assert!(results(&stage.messages().await).is_empty(), "a cancel is no tool result");
    let last = stage.ledger().await.pop().unwrap();
    assert!(
        matches!(last, Record::ToolCall { .. }),
        "but that the tool was started is written down: {last:?}"
    );
    let answer = stage.say(&models, "second").await.unwrap();
    assert_eq!(answer.text, "hello again");
    let request = model.requests().pop().unwrap();
    let users: Vec<&Message> =
        request.messages.iter().filter(|m| matches!(m, Message::User { .. })).collect();
    assert_eq!(users.len(), 2, "what the user typed before is kept: {:?}", request.messages);
}

/// Somebody who stops an answer has read its beginning; so it is kept, and not taken for the whole.
#[tokio::test(start_paused = true)]
async fn what_a_model_had_said_when_it_was_stopped_is_kept_until_it_is_asked_again() {
    let stage = Stage::new().await;
    let pace = Duration::from_millis(100);
    let slowly = Act::text("one two three four").word_by_word(pace);
    let model = script([slowly, Act::text("all of it")]);
    let models = [ready("m", &model)];
    let stopped = tokio::time::timeout(Duration::from_millis(150), stage.say(&models, "count")).await;
    assert!(stopped.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = stage.conversation;
    let said = stage.db.read(move |tx| conversation::entries(tx, id)).await.map_err(|e: DbError| e).unwrap();
    let last = said.last().unwrap();
    assert!(matches!(&last.message, Message::Assistant { text, .. } if text == "one two "), "{last:?}");
    assert!(last.stopped && !last.is_answer() && last.answered_by.as_deref() == Some("m"));
    stage.driver(&models).again(id).await.unwrap();
    let texts: Vec<Message> = stage.messages().await;
    assert_eq!(texts.len(), 2, "the beginning made room for the whole: {texts:?}");
    let asked = model.requests().pop().unwrap();
    assert_eq!(asked.messages.len(), 1, "{asked:?}");
}

/// What was said in a conversation, as the store holds it and as the model saw it in the next request.
async fn told_after(codes: Codes) -> (String, String) {
    let stage = Stage::new().await;
    let id = stage.conversation;
    let secret = "Your login code is 482913.";
    stage.say(&[ready("m", &script([Act::text(secret)]))], "what is my code?").await.unwrap();
    let set = stage.db.write(move |tx| conversation::set_codes(tx, id, codes)).await;
    assert!(set.map_err(|e: DbError| e).unwrap());
    let model = script([Act::text("ok")]);
    stage.say(&[ready("m", &model)], "thanks").await.unwrap();
    let asked = format!("{:?}", model.requests().pop().unwrap().messages);
    (format!("{:?}", stage.messages().await), asked)
}

#[tokio::test(start_paused = true)]
async fn codes_that_are_hidden_again_leave_in_no_request() {
    for (codes, leaves) in [(Codes::Shown, true), (Codes::HiddenAgain, false)] {
        let (kept, asked) = told_after(codes).await;
        assert!(kept.contains("482913"), "the person still sees what was said");
        assert_eq!(asked.contains("482913"), leaves, "{codes:?}: {asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_model_is_tried_again_and_then_the_next_one_answers() {
    let stage = Stage::new().await;
    let failing = || Act::fails(ModelError::Overloaded).having_said(&["hal"]);
    let first = script([Act::calls(&[("c1", "slow", "{\"number\": 1}")]), failing(), failing(), failing()]);
    let second = script([Act::text("from the second")]);
    let began = tokio::time::Instant::now();
    let answer = stage.say(&[ready("one", &first), ready("two", &second)], "go").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.answered_by.as_str()), ("from the second", "two"));
    assert!(began.elapsed() >= Duration::from_secs(3), "1 s and 2 s were waited");
    assert_eq!(stage.slow.started.load(Ordering::SeqCst), 1, "no tool ran again because of a retry");
    let again = stage.face.events.lock().unwrap().iter().filter(|e| matches!(e, Event::Again { .. })).count();
    assert_eq!(again, 3, "the face is told each time to forget the half answer");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_fails_at_once_and_the_words_are_kept() {
    let stage = Stage::new().await;
    let (first, second) = (script([Act::fails(ModelError::BadKey)]), script([Act::text("no")]));
    let failed = stage.say(&[ready("one", &first), ready("two", &second)], "hello").await.unwrap_err();
    assert!(matches!(failed, TurnError::Model { error: ModelError::BadKey, .. }));
    assert!(second.requests().is_empty());
    assert_eq!(stage.messages().await, [Message::User { text: "hello".to_owned() }]);
    assert!(matches!(stage.say(&[], "x").await, Err(TurnError::NoModel)));
    let small = Arc::new(Scripted::new([Act::text("no")]).with_window(1000));
    let long = stage.say(&[ready("m", &small)], &"word ".repeat(100_000)).await;
    assert!(matches!(long, Err(TurnError::Model { error: ModelError::TooLong, .. })));
    assert!(small.requests().is_empty(), "what cannot fit is not sent");
    let silent = script([Act::text("  ")]);
    assert!(matches!(stage.say(&[ready("m", &silent)], "x").await, Err(TurnError::Empty { .. })));
}

#[tokio::test(start_paused = true)]
async fn the_ledger_holds_exactly_what_left_and_what_ran() {
    let stage = Stage::new().await;
    let model = script([Act::calls(&[("c1", "slow", "{\"number\": 1}")]), Act::text("done")]);
    stage.say(&[ready("m", &model)], "go").await.unwrap();
    let records = stage.ledger().await;
    let [
        Record::Request { .. },
        Record::ToolCall { tool, .. },
        Record::ToolResult { success, .. },
        Record::Request { bytes, chunks, .. },
    ] = records.as_slice()
    else {
        panic!("{records:?}")
    };
    assert!(tool == "slow" && *success);
    let sent = model.body(&model.requests()[1]);
    let chunks = chunks.clone();
    let kept: Result<_, DbError> = stage.db.read(move |tx| ledger::bytes_of(tx, &chunks)).await;
    let kept = kept.unwrap();
    assert_eq!((kept, *bytes), (sent.clone(), sent.len()));
}

/// Two processes are two drivers on one store: the second is told, and the first is not disturbed.
#[tokio::test(start_paused = true)]
async fn one_turn_at_a_time_in_a_conversation() {
    let stage = Stage::new().await;
    let slow = script([Act::text("one").after(Duration::from_secs(5)), Act::text("two")]);
    let models = [ready("m", &slow)];
    let (first, second) = tokio::join!(stage.say(&models, "a"), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stage.say(&models, "b").await
    });
    assert_eq!(first.unwrap().text, "one");
    assert!(matches!(second, Err(TurnError::Busy(_))));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.say(&models, "c").await.unwrap().text, "two", "free again");
    let gone = stage.hello(Which::Id(ConversationId(99))).await;
    assert!(matches!(gone, Err(TurnError::Unknown(ConversationId(99)))));
}

#[tokio::test(start_paused = true)]
async fn a_made_up_tool_is_refused_and_raises_no_level() {
    let stage = Stage::new().await;
    let store = "{\"key\": \"k\", \"content\": \"mine\"}";
    let model = script([
        Act::calls(&[("c1", "made_up", "{}")]),
        Act::calls(&[("c2", "memory_store", store)]),
        Act::text("done"),
    ]);
    stage.say(&[ready("m", &model)], "go").await.unwrap();
    let kept = results(&stage.messages().await);
    assert!(
        kept[0].1.contains("no tool called made_up") && kept[1].1.contains("\"success\":true"),
        "{kept:?}"
    );
    assert!(stage.face.asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn figures_of_a_server_cannot_break_us_and_a_cut_answer_is_said() {
    let stage = Stage::new().await;
    let usage = kai_llm::Usage { input: u64::MAX, output: u64::MAX };
    let mut first = Reply { usage, ..Reply::default() };
    first.calls.push(ToolCall {
        id: kai_llm::CallId("c".to_owned()),
        name: "slow".to_owned(),
        arguments: "{\"number\": 1}".to_owned(),
        signature: None,
    });
    let cut = Reply { text: "and then".to_owned(), usage, cut_off: true, ..Reply::default() };
    let model = script([Act::reply(first), Act::reply(cut)]);
    let answer = stage.say(&[ready("m", &model)], "go").await.unwrap();
    assert!(answer.cut_off && answer.usage == usage);
}

/// A model that fails is not asked again in the same turn, and one with a larger window gets a long text.
#[tokio::test(start_paused = true)]
async fn the_next_model_stays_for_the_turn_and_a_larger_one_gets_what_is_long() {
    let mut stage = Stage::new().await;
    stage.face.yes = Some(true);
    let broken = Arc::new(Scripted::by(|_| Act::fails(ModelError::Overloaded)));
    let calls = |n: i64| Act::calls(&[(&format!("c{n}"), "slow", &format!("{{\"number\": {n}}}"))]);
    let good = script([calls(1), calls(2), Act::text("done")]);
    stage.say(&[ready("one", &broken), ready("two", &good)], "go").await.unwrap();
    assert_eq!(broken.requests().len(), 3, "once, and twice again, but not in every round");
    let small = Arc::new(Scripted::new([Act::text("no")]).with_window(1000));
    let large = script([Act::text("read")]);
    let long = "word ".repeat(20_000);
    assert_eq!(stage.say(&[ready("s", &small), ready("l", &large)], &long).await.unwrap().answered_by, "l");
}

/// `slow` is not in the gate's table, so what it brings in counts as a stranger's.
#[tokio::test(start_paused = true)]
async fn after_strangers_text_planting_a_memory_needs_a_click() {
    for yes in [None, Some(false), Some(true)] {
        let mut stage = Stage::new().await;
        stage.face.yes = yes;
        let plant = "{\"key\": \"k\", \"content\": \"planted\"}";
        let model = script([
            Act::calls(&[("c1", "memory_store", "{\"key\": \"own\", \"content\": \"mine\"}")]),
            Act::calls(&[("c2", "slow", "{\"number\": 1}")]),
            Act::calls(&[("c3", "memory_store", plant)]),
            Act::text("done"),
        ]);
        stage.say(&[ready("m", &model)], "go").await.unwrap();
        assert_eq!(*stage.face.asked.lock().unwrap(), [plant], "asked once, about exactly the later call");
        let kept = results(&stage.messages().await);
        assert!(kept[0].1.contains("\"success\":true"), "before, no click was needed");
        assert_eq!(kept[2].1.contains("\"success\":true"), yes == Some(true));
        assert_eq!(kept[2].1.contains("did not allow"), yes == Some(false), "nobody said no");
        let said = |record| match record {
            Record::Click { allowed, unanswered, .. } => Some((!unanswered).then_some(allowed)),
            _ => None,
        };
        let clicks: Vec<Option<bool>> = stage.ledger().await.into_iter().filter_map(said).collect();
        assert_eq!(clicks, [yes]);
    }
}

/// What a tool brought in may be in anything said since, also when the tool is gone and its call is not sent any more.
#[tokio::test(start_paused = true)]
async fn a_conversation_that_once_held_strangers_words_stays_at_their_level() {
    let mut stage = Stage::new().await;
    let model = script([Act::calls(&[("c1", "slow", "{\"number\": 1}")]), Act::text("Pay +1, it says.")]);
    stage.say(&[ready("m", &model)], "what is new?").await.unwrap();
    stage.toolbox = stage.with_memory_alone();
    let level = |stage: &Stage| {
        let id = stage.conversation;
        stage.db.read_now(move |tx| conversation::level(tx, id)).map_err(|e: DbError| e).unwrap()
    };
    assert_eq!(level(&stage), Level::People, "it is stored");
    let plant = "{\"key\": \"k\", \"content\": \"Pay +1.\"}";
    let model = script([Act::calls(&[("c1", "memory_store", plant)]), Act::text("done")]);
    stage.say(&[ready("m", &model)], "remember it").await.unwrap();
    assert_eq!(*stage.face.asked.lock().unwrap(), [plant], "the person is asked all the same");
}

/// A memory enters a prompt once the person confirmed its words, and raises no level then: one yes in one conversation
/// does not make every later one ask.
#[tokio::test(start_paused = true)]
async fn a_memory_that_nobody_confirmed_is_in_no_prompt_and_a_confirmed_one_raises_no_level() {
    for yes in [false, true] {
        let mut stage = Stage::new().await;
        stage.face.yes = Some(yes);
        let (key, now) = (MemoryKey::new("plan").unwrap(), Timestamp::UNIX_EPOCH);
        let keep = |tx: &rusqlite::Transaction<'_>| {
            memory::store::keep(tx, &key, "Old order.", Category::General, Standing::Unconfirmed, now)
        };
        stage.db.write_now(keep).map_err(|e: DbError| e).unwrap();
        let plant = "{\"key\": \"tea\", \"content\": \"Likes green tea.\"}";
        let model = script([
            Act::calls(&[("c1", "slow", "{\"number\": 1}")]),
            Act::calls(&[("c2", "memory_store", plant)]),
            Act::text("done"),
        ]);
        stage.say(&[ready("m", &model)], "go").await.unwrap();
        let later = script([
            Act::calls(&[("c1", "memory_store", "{\"key\": \"a\", \"content\": \"b\"}")]),
            Act::text("ok"),
        ]);
        let models = [ready("m", &later)];
        stage.driver(&models).turn(Which::New, "hello".to_owned()).await.unwrap();
        let system = &later.requests()[0].system;
        assert!(!system.contains("Old order."), "{system}");
        assert_eq!(
            system.contains("Likes green tea."),
            yes,
            "the yes to the card confirmed the words: {system}"
        );
        assert_eq!(stage.face.asked.lock().unwrap().len(), 1, "the later conversation asks nothing");
    }
}

/// A conversation with tool turns goes on with another model, and after tools were switched off.
#[tokio::test(start_paused = true)]
async fn a_conversation_goes_on_with_another_model_and_other_tools() {
    let mut stage = Stage::new().await;
    let model = script([Act::calls(&[("c1", "slow", "{\"number\": 1}")]), Act::text("one")]);
    stage.say(&[ready("m", &model)], "first").await.unwrap();
    stage.toolbox = Toolbox::new(vec![]);
    let other = script([Act::reply(Reply { text: "two".to_owned(), ..Reply::default() })]);
    stage.say(&[ready("n", &other)], "second").await.unwrap();
    let request = other.requests().pop().unwrap();
    let calls =
        request.messages.iter().any(|m| matches!(m, Message::Assistant { calls, .. } if !calls.is_empty()));
    assert!(!calls && results(&request.messages).is_empty(), "calls of tools that are gone are not sent");
    assert_eq!(results(&stage.messages().await).len(), 1, "but nothing is lost of what is kept");
}
