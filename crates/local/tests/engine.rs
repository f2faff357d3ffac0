//! The engine with a real model: one with 135 million parameters, which knows little and is quick. `scripts/test`
//! fetches it; without it these tests say loudly that nothing was tried.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use kai_llm::{Delta, EngineTrouble, Message, Model, ModelError, Request, Scale, ToolSpec};
use kai_local::{Engine, Launch, Local, States};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const TINY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models/smollm2-135m-instruct-q4_1.gguf");

fn tiny() -> Option<PathBuf> {
    let file = PathBuf::from(TINY);
    if file.is_file() {
        return Some(file);
    }
    let missing = "\n!! The small model is not here, so the engine was NOT TRIED: run scripts/test, which fetches it.\n\n";
    // Past the test harness, which would swallow it.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), missing.as_bytes());
    None
}

struct House {
    engine: Engine,
    local: Local,
    folder: tempfile::TempDir,
}

impl House {
    fn new(file: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // However busy the machine is, these tests see the worker stop, and not how Kai ends one that does not.
        let engine = Self::engine(&folder, Duration::MAX);
        let local = Local {
            file,
            model: "tiny".to_owned(),
            window: 2_048,
            threads: 2,
            idle: Duration::from_mins(5),
            scale: Scale::Small,
        };
        Self { engine, local, folder }
    }

    fn engine(folder: &tempfile::TempDir, stops_within: Duration) -> Engine {
        let launch = Launch::of(env!("CARGO_BIN_EXE_local-worker"), []).stopping_within(stops_within);
        Engine::new(launch, Some(States::new(folder.path().join("states"), &[7; 32])))
    }

    fn model(&self) -> Box<dyn Model> {
        self.engine.model(self.local.clone())
    }

    fn states(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("states")).map_or(0, Iterator::count)
    }
}

fn request(system: &str, text: &str) -> Request {
    Request { system: system.to_owned(), messages: vec![Message::user(text)], tools: vec![] }
}

/// A system prompt that is long enough to be worth keeping.
fn long() -> String {
    "The sea is blue, the sand is yellow, and herons eat fish. ".repeat(60)
}

fn weather() -> ToolSpec {
    ToolSpec {
        name: "get_weather".to_owned(),
        description: "Tells the weather in a city.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        })
        .into(),
    }
}

/// The ids of the worker processes of this test.
fn workers() -> Vec<u32> {
    let ours = std::process::id();
    let parent = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?.to_owned();
        Some((state, fields.next()?.parse::<u32>().ok()?))
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| parent(*pid).is_some_and(|(state, parent)| parent == ours && state != "Z")).collect()
}

fn signal(worker: u32, signal: Signal) {
    // One of an engine that was dropped may just have ended.
    let _ = i32::try_from(worker).ok().and_then(Pid::from_raw).map(|pid| kill_process(pid, signal));
}

fn freeze() {
    for worker in workers() {
        signal(worker, Signal::STOP);
    }
}

/// How many bytes this worker was told and has not read.
fn unread(worker: u32) -> u64 {
    let input = File::open(format!("/proc/{worker}/fd/0"));
    input.ok().and_then(|input| ioctl_fionread(input).ok()).unwrap_or_default()
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_answers_streams_stops_and_comes_back() {
    let Some(file) = tiny() else { return };
    let mut house = House::new(file);
    streams(&house).await;
    keeps_and_restores(&mut house).await;
    stops(&house).await;
    ends_only_the_worker_of_a_file(&house).await;
    calls_only_what_exists(&house).await;
    weighs(&house).await;
    refuses_what_is_too_long(&house).await;
    outlives_its_worker(&house).await;
    ends_a_worker_that_does_not_stop(&mut house).await;
    ends_a_worker_that_does_not_listen(&mut house).await;
    ends_when_idle(&mut house).await;
}

async fn streams(house: &House) {
    let heard = Mutex::new(String::new());
    let hear = |delta: Delta<'_>| {
        if let Delta::Text(text) = delta {
            heard.lock().unwrap().push_str(text);
        }
    };
    let reply = house.model().reply(&request("You are brief.", "Say hello."), &hear).await.unwrap();
    assert!(!reply.text.trim().is_empty() && reply.calls.is_empty());
    assert_eq!(*heard.lock().unwrap(), reply.text, "what streams is what is answered");
    assert!(reply.usage.input > 5 && reply.usage.output > 0, "{:?}", reply.usage);
}

async fn keeps_and_restores(house: &mut House) {
    let system = long();
    let reading = async |house: &House| {
        let seen = Mutex::new(Vec::new());
        let hear = |delta: Delta<'_>| {
            if let Delta::Reading { percent } = delta {
                seen.lock().unwrap().push(percent);
            }
        };
        let reply = house.model().reply(&request(&system, "Which colour has the sea?"), &hear).await.unwrap();
        assert!(!reply.text.trim().is_empty());
        seen.into_inner().unwrap()
    };
    let read = reading(house).await;
    assert!(read.first().is_some_and(|percent| *percent < 10) && read.is_sorted(), "{read:?}");
    assert_eq!(house.states(), 1, "the state of the long beginning is kept");
    // Another Kai, with another worker.
    house.engine = House::engine(&house.folder, Duration::MAX);
    let read = reading(house).await;
    assert!(read.is_empty(), "with the state from the disk it reads nothing but the question: {read:?}");
    // A state that was spoiled is not used.
    let folder = house.folder.path().join("states");
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    house.engine = House::engine(&house.folder, Duration::MAX);
    let read = reading(house).await;
    assert!(!read.is_empty(), "it was read anew");
}

/// Asks for a long answer and drops it after its first word.
async fn drops_an_answer(house: &House, at_first_word: impl Fn() + Send + Sync) {
    let model = house.model();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let hear = move |delta: Delta<'_>| {
        if let Delta::Text(_) = delta {
            at_first_word();
            let _ = tell.send(());
        }
    };
    let asked = request("You are a storyteller.", "Tell a very long story about the sea.");
    tokio::select! {
        reply = model.reply(&asked, &hear) => panic!("it was not stopped: {reply:?}"),
        Some(()) = told.recv() => {}
    }
}

async fn stops(house: &House) {
    drops_an_answer(house, || ()).await;
    // The same worker answers the next question.
    let before = workers();
    assert_eq!(before.len(), 1);
    assert!(house.model().reply(&request("You are brief.", "Say hello."), &|_| ()).await.is_ok());
    assert_eq!(workers(), before);
}

async fn ends_only_the_worker_of_a_file(house: &House) {
    let before = workers();
    let model = house.model();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let hear = move |delta: Delta<'_>| {
        if let Delta::Text(_) = delta {
            freeze();
            let _ = tell.send(());
        }
    };
    let asked = request("You are a storyteller.", "Tell a very long story about the sea.");
    let mut reply = model.reply(&asked, &hear);
    tokio::select! {
        reply = &mut reply => panic!("it was not frozen: {reply:?}"),
        Some(()) = told.recv() => {}
    }
    // This question does not end, so whoever waited for it would wait for ever.
    house.engine.end_of(Path::new("/another.gguf")).await;
    for worker in &before {
        signal(*worker, Signal::CONT);
    }
    drop(reply);
    assert!(house.model().reply(&request("You are brief.", "Say hello."), &|_| ()).await.is_ok());
    assert_eq!(workers(), before, "it still has the other file");
    house.engine.end_of(&house.local.file).await;
    until("the worker is still there", || workers().is_empty()).await;
}

async fn calls_only_what_exists(house: &House) {
    // This model knows no tools. It is made to write a call by being shown many.
    let id = kai_llm::CallId("1".to_owned());
    let shown = |city: &str| {
        let arguments = format!(r#"{{"city": "{city}"}}"#);
        let call =
            kai_llm::ToolCall { id: id.clone(), name: "get_weather".to_owned(), arguments, signature: None };
        [
            Message::user(format!("Weather in {city}?")),
            Message::Assistant { text: String::new(), calls: vec![call], signature: None },
        ]
    };
    let cities = ["Rome", "Paris", "London", "Madrid", "Berlin", "Vienna", "Prague", "Athens"];
    let mut messages: Vec<Message> = cities.into_iter().flat_map(shown).collect();
    messages.push(Message::user("Weather in Oslo?"));
    let asked = Request { system: "You call tools.".to_owned(), messages, tools: vec![weather()] };
    let reply = house.model().reply(&asked, &|_| ()).await.unwrap();
    for call in &reply.calls {
        assert_eq!(call.name, "get_weather");
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
        assert!(arguments["city"].is_string(), "{arguments}");
    }
    assert!(!reply.calls.is_empty(), "shown a call, it writes one: {reply:?}");
}

async fn weighs(house: &House) {
    let model = house.model();
    let asked = request("You complete sentences with one word.", "The sky on a clear day is");
    let margin = model.prefers(&asked, ["blue", "xylophone"]).unwrap().await.unwrap();
    let other = model.prefers(&asked, ["xylophone", "blue"]).unwrap().await.unwrap();
    assert!(margin > 0.0, "{margin}");
    assert!((margin + other).abs() < 0.01, "{margin} and {other}");
}

async fn refuses_what_is_too_long(house: &House) {
    let endless = "word ".repeat(5_000);
    let error = house.model().reply(&request("", &endless), &|_| ()).await.unwrap_err();
    assert_eq!(error, ModelError::TooLong { limit: Some(2_048) });
    assert!(house.model().reply(&request("You are brief.", "Say hello."), &|_| ()).await.is_ok());
}

async fn outlives_its_worker(house: &House) {
    let model = house.model();
    let asked = request("You are a storyteller.", "Tell a very long story about the sea.");
    let [worker] = workers()[..] else { panic!("{:?}", workers()) };
    let killed = Mutex::new(false);
    let hear = |delta: Delta<'_>| {
        if let Delta::Text(_) = delta
            && !std::mem::replace(&mut *killed.lock().unwrap(), true)
        {
            signal(worker, Signal::KILL);
        }
    };
    let error = model.reply(&asked, &hear).await.unwrap_err();
    assert_eq!(error, ModelError::Engine(EngineTrouble::Killed));
    assert!(house.model().reply(&request("You are brief.", "Say hello."), &|_| ()).await.is_ok());
    let mut gone = house.local.clone();
    gone.file = house.folder.path().join("gone.gguf");
    let error = house.engine.model(gone.clone()).reply(&asked, &|_| ()).await.unwrap_err();
    assert_eq!(error, ModelError::Engine(EngineTrouble::NoFile));
    std::fs::write(&gone.file, "no model").unwrap();
    let error = house.engine.model(gone).reply(&asked, &|_| ()).await.unwrap_err();
    assert!(matches!(error, ModelError::Engine(EngineTrouble::BadFile(_))), "{error}");
}

async fn ends_a_worker_that_does_not_stop(house: &mut House) {
    house.engine = House::engine(&house.folder, Duration::ZERO);
    drops_an_answer(house, freeze).await;
    assert!(
        house.model().reply(&request("You are brief.", "Say hello."), &|_| ()).await.is_ok(),
        "another one answers"
    );
}

async fn ends_a_worker_that_does_not_listen(house: &mut House) {
    house.engine = House::engine(&house.folder, Duration::ZERO);
    let hello = request("You are brief.", "Say hello.");
    assert!(house.model().reply(&hello, &|_| ()).await.is_ok());
    freeze();
    let (model, hear) = (house.model(), |_: Delta<'_>| ());
    // This does not fit into the pipe.
    let asked = request("You are brief.", &"word ".repeat(100_000));
    tokio::select! {
        reply = model.reply(&asked, &hear) => panic!("it was not frozen: {reply:?}"),
        () = until("it is told nothing", || workers().into_iter().any(|worker| unread(worker) > 0)) => {}
    }
    assert!(house.model().reply(&hello, &|_| ()).await.is_ok(), "another one answers");
}

async fn ends_when_idle(house: &mut House) {
    house.local.idle = Duration::ZERO;
    assert!(house.model().reply(&request("You are brief.", "Say hello."), &|_| ()).await.is_ok());
    until("the worker is still there", || workers().is_empty()).await;
}
