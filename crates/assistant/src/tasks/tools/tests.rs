//! Tests of the task tools, called as a model calls them.

use serde_json::{Value, json};

use super::*;
use crate::clock::ManualClock;
use crate::settings::Values;
use crate::tool::{AnyTool, execute};

const AFTER_A_PAGE: Run = Run { level: Level::Web, ..Run::BY_HAND };
const AFTER_AN_SMS: Run = Run { level: Level::People, ..Run::BY_HAND };

struct Stage {
    db: Db,
    clock: Arc<ManualClock>,
}

impl Stage {
    /// Monday, 9 March 2026, 12:00 UTC.
    fn new() -> Self {
        let db = Db::in_memory(crate::MIGRATIONS).unwrap();
        Self { db, clock: Arc::new(ManualClock::at("2026-03-09T12:00:00Z".parse().unwrap())) }
    }

    async fn call(&self, tool: &dyn AnyTool, arguments: &Value, run: &Run) -> Value {
        let result = execute(Ok(tool), &Values::default(), &arguments.to_string(), run).await;
        serde_json::from_str(&result.text).unwrap()
    }

    async fn schedule(&self, when: &Value, run: &Run) -> Value {
        let mut arguments = json!({"description": "Weather", "prompt": "Tell the weather."});
        let fields = arguments.as_object_mut().unwrap();
        fields.extend(when.as_object().unwrap().clone());
        let tool = ScheduleTask { db: self.db.clone(), clock: self.clock.clone() };
        self.call(&tool, &arguments, run).await
    }

    async fn list(&self) -> Value {
        let tool = ListTasks { db: self.db.clone(), clock: self.clock.clone() };
        self.call(&tool, &json!({}), &Run::BY_HAND).await
    }
}

#[tokio::test]
async fn the_three_ways_to_say_when() {
    let stage = Stage::new();
    for (when, schedule, next) in [
        (
            json!({"execute_at": "2026-03-10T15:00"}),
            "once, on Tuesday, 10 March 2026 at 15:00",
            json!("2026-03-10T15:00:00+00:00"),
        ),
        (
            json!({"execute_at": "2026-03-10T15:00:00+02:00", "cron": "", "on_heartbeat": false}),
            "once, on Tuesday, 10 March 2026 at 13:00",
            json!("2026-03-10T13:00:00+00:00"),
        ),
        (
            json!({"execute_at": "2026-03-09T11:59:00Z"}),
            "once, on Monday, 9 March 2026 at 11:59",
            json!("2026-03-09T11:59:00+00:00"),
        ),
        (json!({"cron": "30 7 * * 1-5"}), "every weekday at 7:30", json!("2026-03-10T07:30:00+00:00")),
        (json!({"on_heartbeat": true, "missed": "SKIP"}), "with every heartbeat", Value::Null),
    ] {
        let scheduled = stage.schedule(&when, &Run::BY_HAND).await;
        assert_eq!(scheduled["success"], true, "{when}: {scheduled}");
        assert_eq!(
            (scheduled["schedule"].as_str(), &scheduled["next_at"]),
            (Some(schedule), &next),
            "{when}"
        );
    }
    assert_eq!(stage.list().await["tasks"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn what_cannot_be_is_refused_when_it_is_asked_for() {
    let stage = Stage::new();
    for (when, word) in [
        (json!({}), "Say when"),
        (json!({"on_heartbeat": false}), "Say when"),
        (json!({"execute_at": " "}), "Say when"),
        (json!({"execute_at": "2026-03-10T15:00", "cron": "0 9 * * *"}), "only one"),
        (json!({"cron": "0 9 * * *", "on_heartbeat": true}), "only one"),
        (json!({"execute_at": "2026-03-09T11:58:59Z"}), "in the past: it is 2026-03-09T12:00:00+00:00"),
        (json!({"execute_at": "tomorrow"}), "must be a date and time"),
        (json!({"execute_at": "2026-03-10"}), "needs a time of day"),
        (json!({"execute_at": "2400-01-01T00:00"}), "between 1970 and 2199"),
        (json!({"cron": "61 * * * *"}), "is not a valid minute"),
        (json!({"cron": "0 0 30 2 *"}), "never matches a date"),
        (json!({"cron": "0 9 * * *", "missed": "LATER"}), "RUN_ONCE"),
        (json!({"cron": "0 9 * * *", "prompt": "x".repeat(4_001)}), "at most 4000"),
        (json!({"cron": "0 9 * * *", "prompt": " \n"}), "prompt of a task must not be empty"),
        (json!({"cron": "0 9 * * *", "description": "x".repeat(101)}), "at most 100"),
        (json!({"cron": "0 9 * * *", "description": ""}), "description of a task must not be empty"),
    ] {
        let refused = stage.schedule(&when, &Run::BY_HAND).await;
        let said = refused["error"].as_str().unwrap_or_default();
        assert!(refused["success"] == false && said.contains(word), "{when}: {refused}");
    }
    assert_eq!(stage.list().await, json!({"success": true, "tasks": []}));
}

#[tokio::test]
async fn a_task_carries_the_level_of_its_request_and_the_list_says_so() {
    let stage = Stage::new();
    stage.schedule(&json!({"cron": "0 9 * * *"}), &Run::BY_HAND).await;
    assert_eq!(stage.list().await["untrusted"], Value::Null);
    stage.schedule(&json!({"cron": "0 9 * * *", "description": "two\nlines"}), &AFTER_A_PAGE).await;
    let listed = stage.list().await;
    assert_eq!((&listed["untrusted"], &listed["level"]), (&json!(true), &json!("web")));
    assert_eq!(listed["tasks"][1]["description"], "two lines");
    let tasks = stage.db.read_now(store::all).unwrap();
    assert_eq!(tasks.iter().map(|task| task.level).collect::<Vec<_>>(), [Level::Nothing, Level::Web]);
    stage.schedule(&json!({"cron": "0 9 * * *", "description": "three"}), &AFTER_AN_SMS).await;
    assert_eq!(stage.list().await["level"], "people");
}

#[tokio::test]
async fn cancelled_is_gone() {
    let stage = Stage::new();
    let id = stage.schedule(&json!({"cron": "0 9 * * *"}), &Run::BY_HAND).await["task_id"].clone();
    let tool = CancelTask { db: stage.db.clone() };
    for (name, word) in [("message", "Cancelled task 1."), ("error", "There is no task number 1.")] {
        let answer = stage.call(&tool, &json!({"task_id": id}), &Run::BY_HAND).await;
        assert!(answer[name].as_str().unwrap_or_default().contains(word), "{answer}");
    }
    assert_eq!(stage.list().await["tasks"], json!([]));
}
