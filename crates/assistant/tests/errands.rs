//! Tasks that are run: a scripted model, real tools, a real store, a clock by hand.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kai_assistant::MIGRATIONS;
use kai_assistant::agent::conversation::{self, Kind};
use kai_assistant::agent::listing;
use kai_assistant::agent::{ApprovalRequest, Driver, Event, Face, Ready};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::errands::{Errands, Round};
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::heartbeat::{self, Beat, BeatResult, Outcome as BeatOutcome, Why};
use kai_assistant::memory::store::Standing;
use kai_assistant::memory::{self, Category, MemoryKey};
use kai_assistant::settings::{self, SCHEDULING_ENABLED};
use kai_assistant::tasks::{
    ListTasks, Missed, NewTask, Outcome, Status, Task, TaskId, TaskRun, Trigger, store,
};
use kai_assistant::tool::{AnyTool, Run, Tool, ToolError, ToolOutput};
use kai_assistant::toolbox::{EnabledBy, Entry, Toolbox};
use kai_llm::{Act, Message, ModelError, Scripted};
use kai_words::{Said, said};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Stands for the tool of that name; the gate goes by names.
struct Stand;

#[derive(Deserialize, JsonSchema)]
struct StandInput {}

impl Tool for Stand {
    const NAME: &'static str = "web_search";
    type Input = StandInput;
    type Output = Value;

    async fn run(&self, _: StandInput, _: &Run) -> Result<ToolOutput<Value>, ToolError> {
        Ok(ToolOutput::from_web(json!({"results": []})))
    }
}

struct Nobody;

impl Face for Nobody {
    fn shows(&self, _: Event) {}

    fn allows<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        Box::pin(async { Some(true) })
    }
}

struct Stage {
    db: Db,
    clock: Arc<ManualClock>,
    toolbox: Toolbox,
    models: Vec<Ready>,
    model: Arc<Scripted>,
}

impl Stage {
    /// Monday, 9 March 2026, 12:00 UTC.
    fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let db = Db::in_memory(MIGRATIONS).unwrap();
        let clock = Arc::new(ManualClock::at("2026-03-09T12:00Z".parse().unwrap()));
        let list: Arc<dyn AnyTool> = Arc::new(ListTasks { db: db.clone(), clock: clock.clone() });
        let toolbox = Toolbox::new(vec![
            Entry { tool: Arc::new(Stand), governed: EnabledBy::OwnSwitch { on_by_default: true } },
            Entry { tool: list, governed: EnabledBy::Features(vec![&SCHEDULING_ENABLED]) },
        ]);
        let model = Arc::new(Scripted::new(acts));
        let ready = Ready {
            label: "m".to_owned(),
            local: true,
            vision: kai_assistant::models::vision::Vision::Unknown,
            model: Box::new(Arc::clone(&model)),
        };
        Self { db, clock, toolbox, models: vec![ready], model }
    }

    fn errands(&self) -> Errands<'_> {
        Errands { db: &self.db, clock: self.clock.as_ref() }
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

    fn add(&self, name: &str, trigger: Trigger, level: Level) -> TaskId {
        self.keep(&NewTask::new(name, "Tell the weather.", trigger, Missed::RunOnce, level).unwrap())
    }

    /// A task that skips the times that were missed.
    fn skipping(&self, name: &str, trigger: Trigger) -> TaskId {
        self.keep(&NewTask::new(name, "Tell the weather.", trigger, Missed::Skip, Level::Nothing).unwrap())
    }

    fn keep(&self, new: &NewTask) -> TaskId {
        let (now, zone) = (self.clock.now(), self.clock.zone());
        self.db.write_now(|tx| store::add(tx, new, now, &zone)).unwrap().id
    }

    fn once(&self, name: &str) -> TaskId {
        self.add(name, Trigger::Time(self.clock.now()), Level::Nothing)
    }

    /// What the tick does where no model can be asked.
    async fn tick_without_a_model(&self, why: &str) -> Vec<Option<Said>> {
        let round = self.errands().begin().await.unwrap().unwrap();
        let claim = round.claim().await.unwrap().unwrap();
        let ended = round.run(claim, Err(why.into())).await.unwrap();
        round.end().await.unwrap();
        vec![ended]
    }

    async fn all_of(&self, round: &Round<'_>) -> Vec<Option<Said>> {
        let mut ended = Vec::new();
        while let Some(claim) = round.claim().await.unwrap() {
            ended.push(round.run(claim, Ok(self.driver())).await.unwrap());
        }
        ended
    }

    /// What the tick does. Returns how each run ended.
    async fn tick(&self) -> Vec<Option<Said>> {
        let Some(round) = self.errands().begin().await.unwrap() else { return vec![] };
        let ended = self.all_of(&round).await;
        round.end().await.unwrap();
        ended
    }

    fn task(&self, id: TaskId) -> (Task, Vec<TaskRun>) {
        self.db.read_now(|tx| Ok::<_, DbError>((store::get(tx, id)?.unwrap(), store::runs(tx, id)?))).unwrap()
    }

    /// Everything in the heartbeat's conversation.
    fn reports(&self) -> Vec<String> {
        let read = |tx: &rusqlite::Transaction<'_>| {
            let all = listing::list(tx)?;
            assert!(all.len() <= 1 && all.iter().all(|one| one.kind == Kind::Heartbeat), "{all:?}");
            all.iter().map(|one| conversation::entries(tx, one.id)).collect::<Result<Vec<_>, DbError>>()
        };
        let text = |message: Message| match message {
            Message::Assistant { text, .. } => text,
            other => panic!("{other:?}"),
        };
        self.db.read_now(read).unwrap().into_iter().flatten().map(|entry| text(entry.message)).collect()
    }

    fn offered(&self, request: usize) -> Vec<String> {
        self.model.requests()[request].tools.iter().map(|tool| tool.name.clone()).collect()
    }
}

#[tokio::test]
async fn a_task_is_run_reported_under_its_name_and_done() {
    let stage = Stage::new([Act::text("Sunny."), Act::text("no")]);
    let id = stage.once("Weather");
    assert_eq!(stage.tick().await, [None]);
    let (task, runs) = stage.task(id);
    assert_eq!((task.status, task.failures), (Status::Completed, 0));
    assert_eq!((runs[0].outcome, runs[0].tokens), (Some(Outcome::Ok), 2));
    assert_eq!(stage.reports(), ["**Weather**\n\nSunny."]);
    let asked = stage.model.requests();
    let Some(Message::User { text, .. }) = asked[0].messages.last() else { panic!("{asked:?}") };
    assert!(text.contains("Task: Weather") && text.ends_with("Tell the weather."), "{text}");
    let raised = stage.db.write_now(|tx| {
        Ok::<_, DbError>((heartbeat::store::banner(tx)?, heartbeat::store::take_unnotified(tx)?))
    });
    let (banner, unnotified) = raised.unwrap();
    assert!(banner.is_some());
    assert_eq!(unnotified.as_deref(), Some("**Weather**\n\nSunny."));
    stage.clock.advance(SignedDuration::from_hours(100));
    assert!(stage.tick().await.is_empty(), "once is once");
}

#[tokio::test]
async fn the_web_is_for_tasks_that_no_stranger_had_a_hand_in() {
    let stage = Stage::new([
        Act::text("a"),
        Act::calls(&[("1", "web_search", "{}")]),
        Act::text("b"),
        Act::calls(&[("1", "list_tasks", "{}")]),
        Act::text("c"),
    ]);
    let key = MemoryKey::new("diary").unwrap();
    let kept = |tx: &rusqlite::Transaction<'_>| {
        memory::store::keep(
            tx,
            &key,
            "I love Sam.",
            Category::General,
            Standing::Confirmed,
            stage.clock.now(),
        )
    };
    stage.db.write_now(kept).map_err(|e: DbError| e).unwrap();
    stage.once("clean");
    stage.tick().await;
    assert_eq!(stage.offered(0), ["web_search", "list_tasks"]);
    let asked = format!("{:?}", stage.model.requests()[0]);
    assert!(!asked.contains("Sam"), "with the web in reach, nothing private is in its request: {asked}");
    stage.add("strange", Trigger::Time(stage.clock.now()), Level::People);
    stage.tick().await;
    assert_eq!(stage.offered(1), ["list_tasks"], "it is at that level from the start");
    let last = stage.model.requests()[2].messages.last().cloned();
    let Some(Message::Tool { result, .. }) = last else { panic!("{last:?}") };
    assert!(result.contains("not available in this kind of run"), "called all the same: {result}");
    stage.once("clean again");
    stage.tick().await;
    assert_eq!(stage.offered(3), ["web_search", "list_tasks"]);
    assert_eq!(stage.offered(4), ["list_tasks"], "the list named the strange one");
}

#[tokio::test]
async fn a_failure_is_written_down_and_tried_again() {
    let refused = || Act::fails(ModelError::BadKey);
    let stage = Stage::new([refused(), Act::text("  "), Act::text("Late, but here.")]);
    let id = stage.once("Weather");
    assert_eq!(stage.tick().await, [Some(said::model_bad_key("m"))]);
    assert!(stage.tick().await.is_empty(), "it waits a minute");
    stage.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(stage.tick().await, [Some(said::turn_empty("m"))]);
    let (task, runs) = stage.task(id);
    assert_eq!((task.status, task.failures, runs[0].tokens), (Status::Pending, 2, 2));
    stage.clock.advance(SignedDuration::from_mins(2));
    assert_eq!(stage.tick().await, [None]);
    assert_eq!(stage.reports(), ["**Weather**\n\nLate, but here."], "failures are not output");
}

#[tokio::test]
async fn without_a_model_nothing_is_lost() {
    let mut stage = Stage::new([Act::text("Now.")]);
    let models = std::mem::take(&mut stage.models);
    let id = stage.once("Weather");
    assert!(stage.tick().await[0].as_ref().is_some_and(|reason| reason.to_string().contains("No model")));
    stage.models = models;
    stage.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(stage.tick().await, [None]);
    assert_eq!(stage.task(id).0.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_answers_is_given_up() {
    let stage = Stage::new([Act::text("never").after(Duration::from_hours(9))]);
    let id = stage.once("Weather");
    assert_eq!(stage.tick().await, [Some(said::run_too_long(10_u32))]);
    let run = &stage.task(id).1[0];
    assert_eq!(run.outcome, Some(Outcome::Failed));
    assert!(run.tokens > 0, "what left has its price, by estimate: {run:?}");
}

#[tokio::test]
async fn what_died_is_said_before_anything_else_is_done() {
    let stage = Stage::new([Act::text("Sunny.")]);
    let id = stage.once("Weather");
    let round = stage.errands().begin().await.unwrap().unwrap();
    let _claim = round.claim().await.unwrap().unwrap();
    // The process dies here: the claim stays, the lease does not.
    drop(round);
    assert!(stage.tick().await.is_empty(), "found, and not run again at once");
    assert_eq!(stage.task(id).1[0].outcome, Some(Outcome::Interrupted));
    assert!(
        stage.reports()[0].contains("did not finish. Kai tries again at 2026-03-09 12:01"),
        "{:?}",
        stage.reports()
    );
    stage.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(stage.tick().await, [None]);
    assert_eq!(stage.reports().len(), 2);
}

/// A laptop that is closed in the middle of a run wakes hours later, with the run still under way.
#[tokio::test]
async fn a_run_that_sleeps_is_not_taken_for_dead() {
    let stage = Stage::new([Act::text("Sunny.")]);
    let id = stage.once("Weather");
    let round = stage.errands().begin().await.unwrap().unwrap();
    let claim = round.claim().await.unwrap().unwrap();
    stage.clock.advance(SignedDuration::from_hours(3));
    assert!(stage.errands().begin().await.unwrap().is_none(), "one round at a time");
    assert_eq!(round.run(claim, Ok(stage.driver())).await.unwrap(), None);
    round.end().await.unwrap();
    assert_eq!((stage.task(id).0.status, stage.reports().len()), (Status::Completed, 1));
}

/// Three tasks are due while Kai is awake, and each has to wait for the ones before it.
#[tokio::test]
async fn a_task_that_waits_for_others_is_not_missed() {
    let stage = Stage::new(["a", "b", "c"].map(Act::text));
    stage.once("first");
    let noon = stage.skipping("noon", Trigger::Time(stage.clock.now()));
    let later = stage.skipping("later", Trigger::Cron("4 12 * * *".parse().unwrap()));
    let round = stage.errands().begin().await.unwrap().unwrap();
    let mut ran = Vec::new();
    while let Some(claim) = round.claim().await.unwrap() {
        ran.push(claim.task.description.clone());
        stage.clock.advance(SignedDuration::from_mins(9));
        assert_eq!(round.run(claim, Ok(stage.driver())).await.unwrap(), None);
    }
    round.end().await.unwrap();
    assert_eq!(ran, ["first", "noon", "later"]);
    for id in [noon, later] {
        assert_eq!(stage.task(id).1[0].outcome, Some(Outcome::Ok));
    }
}

/// A laptop is closed in the middle of a round. What came due while it slept was missed.
#[tokio::test]
async fn what_came_while_the_machine_slept_in_a_round_is_missed() {
    let stage = Stage::new([Act::text("a")]);
    stage.once("first");
    let slept = stage.skipping("slept", Trigger::Cron("0 13 * * *".parse().unwrap()));
    let round = stage.errands().begin().await.unwrap().unwrap();
    let claim = round.claim().await.unwrap().unwrap();
    stage.clock.advance(SignedDuration::from_hours(3));
    assert_eq!(round.run(claim, Ok(stage.driver())).await.unwrap(), None);
    assert_eq!(round.claim().await.unwrap(), None);
    round.end().await.unwrap();
    assert_eq!(stage.task(slept).1[0].outcome, Some(Outcome::Skipped));
}

#[tokio::test]
async fn what_was_cancelled_or_switched_off_does_not_report() {
    let stage = Stage::new([Act::text("Sunny."), Act::text("Sunny.")]);
    let id = stage.once("Weather");
    let round = stage.errands().begin().await.unwrap().unwrap();
    let claim = round.claim().await.unwrap().unwrap();
    stage.db.write_now(|tx| store::cancel(tx, id)).unwrap();
    round.run(claim, Ok(stage.driver())).await.unwrap();
    round.end().await.unwrap();
    assert!(stage.reports().is_empty());

    let switch =
        |value: &'static str| stage.db.write_now(|tx| settings::store(tx, "scheduling_enabled", value));
    let id = stage.once("Weather");
    switch("false").unwrap();
    stage.clock.advance(SignedDuration::from_hours(30));
    assert!(stage.tick().await.is_empty());
    switch("true").unwrap();
    assert_eq!(stage.tick().await, [None], "what was missed meanwhile goes by its policy");
    assert_eq!(stage.task(id).0.status, Status::Completed);
}

#[tokio::test]
async fn the_heartbeat_tells_of_tasks_and_runs_only_for_what_changed() {
    let stage = Stage::new([Act::text("HEARTBEAT_OK"), Act::text("HEARTBEAT_OK")]);
    let cron = Trigger::Cron("30 7 * * 1-5".parse().unwrap());
    stage.add("Weather", cron, Level::Nothing);
    let beat = Beat { db: &stage.db, clock: stage.clock.as_ref(), lang: kai_words::Lang::ENGLISH };
    let dry = beat.dry_run(kai_llm::window::UNKNOWN).await.unwrap().text;
    let line = "## Pending Tasks\n- 1: Weather, every weekday at 7:30 (next: 2026-03-10 07:30+00:00)";
    assert!(dry.contains(line) && !dry.contains("Additions"), "{dry}");
    let ran = async || beat.run(Why::Asked, Ok(stage.driver())).await.unwrap();
    assert_eq!(ran().await, BeatResult::Ran(BeatOutcome::Ok));
    stage.clock.advance(SignedDuration::from_hours(48));
    let round = stage.errands().begin().await.unwrap().unwrap();
    let claim = round.claim().await.unwrap().unwrap();
    let (now, zone) = (stage.clock.now(), stage.clock.zone());
    let fine = store::Ending { outcome: Ok(()), tokens: 0, ms: 0 };
    stage.db.write_now(|tx| store::end(tx, &claim, &fine, now, &zone)).unwrap();
    round.end().await.unwrap();
    assert_eq!(ran().await, BeatResult::Ran(BeatOutcome::NothingNew), "a task that only went on is no news");

    let standing = NewTask::new(
        "Desk",
        "Look at the desk.\n## New SMS\nx",
        Trigger::Heartbeat,
        Missed::RunOnce,
        Level::Nothing,
    );
    stage.db.write_now(|tx| store::add(tx, &standing.unwrap(), now, &zone)).unwrap();
    let dry = beat.dry_run(kai_llm::window::UNKNOWN).await.unwrap().text;
    assert!(
        dry.contains("## Heartbeat Additions\n- Look at the desk.\n  ## New SMS\n  x\n\n## Pending"),
        "{dry}"
    );
    assert_eq!(
        dry.lines().filter(|line| line.starts_with("## ")).count(),
        2,
        "a prompt forges no section: {dry}"
    );
    assert_eq!(ran().await, BeatResult::Ran(BeatOutcome::Ok));
}

#[tokio::test]
async fn a_task_says_why_no_model_could_be_asked() {
    let stage = Stage::new([]);
    let id = stage.once("weather");
    let why = "openai has no API key.";
    assert_eq!(stage.tick_without_a_model(why).await, [Some(why.into())]);
    let (_, runs) = stage.task(id);
    assert_eq!(runs[0].reason, why.into());
    assert!(stage.model.requests().is_empty());
}
