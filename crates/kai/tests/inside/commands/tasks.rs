//! Tasks: scheduled by hand, run by the tick, seen on the command line.

use jiff::SignedDuration;
use kai_assistant::clock::Clock;
use kai_stand_ins::{Act, Provider};
use serde_json::{Value, json};

use super::kit::Home;
use crate::commands::tasks;

impl Home {
    fn schedule(&self, when: &Value) -> Value {
        let mut arguments = json!({"description": "Weather", "prompt": "Tell the weather."});
        arguments.as_object_mut().unwrap().extend(when.as_object().unwrap().clone());
        let done = self.run(&["tools", "call", "schedule_task", &arguments.to_string()]);
        assert_eq!(done.json()["success"] == true, done.code == 0, "{done:?}");
        done.json()
    }

    fn schedule_now(&self) {
        let at = self.clock.now() + SignedDuration::from_secs(1);
        assert_eq!(self.schedule(&json!({"execute_at": at.to_string()}))["success"], true);
        self.clock.advance(SignedDuration::from_secs(2));
    }

    fn task_after_a_tick(&self) -> Value {
        self.wait(async |app| tasks::tick(app).await);
        self.run(&["tasks", "show", "1", "--json"]).json()
    }

    /// What stands in the heartbeat's conversation.
    fn reports(&self) -> String {
        let chats = self.run(&["chats", "list", "--json"]).json();
        let kinds: Vec<&str> =
            chats.as_array().unwrap().iter().filter_map(|chat| chat["kind"].as_str()).collect();
        assert_eq!(kinds, ["heartbeat"], "{chats}");
        self.run(&["chats", "show", &chats[0]["id"].to_string()]).out
    }
}

#[test]
fn scheduled_listed_shown_and_cancelled_with_and_without_a_daemon() {
    for home in [Home::new(), Home::served()] {
        let soon = home.clock.now() + SignedDuration::from_hours(2);
        let once = home.schedule(&json!({"execute_at": soon.to_string(), "missed": "SKIP"}));
        assert_eq!(once["task_id"], 1, "{once}");
        let cron = home.schedule(&json!({"cron": "30  7 * * 1-5"}));
        assert_eq!(cron["message"], "Scheduled \"Weather\" every weekday at 7:30.");
        home.schedule(&json!({"on_heartbeat": true}));
        let rows = home.run(&["tasks", "list", "--json"]).json();
        let find = |id: i64| rows.as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
        let (time, weekly, standing) = (find(1), find(2), find(3));
        assert_eq!(time["trigger"], "TIME");
        assert_eq!(time["next_at"].as_i64().unwrap(), soon.as_millisecond());
        assert_eq!((&time["missed"], &time["cron"]), (&json!("SKIP"), &Value::Null));
        for (field, expected) in [
            ("description", json!("Weather")),
            ("trigger", json!("CRON")),
            ("cron", json!("30 7 * * 1-5")),
            ("readable", json!("every weekday at 7:30")),
            ("status", json!("PENDING")),
            ("failures", json!(0)),
            ("missed", json!("RUN_ONCE")),
            ("level", json!("nothing")),
        ] {
            assert_eq!(weekly[field], expected, "{field}");
        }
        assert_eq!((&standing["trigger"], &standing["next_at"]), (&json!("HEARTBEAT"), &Value::Null));
        let told = home.run(&["tasks", "list"]).out;
        assert!(told.contains("2  Weather: every weekday at 7:30, next run 20"), "{told}");
        assert!(told.contains("3  Weather: with every heartbeat\n"), "{told}");
        let shown = home.run(&["tasks", "show", "2"]).out;
        assert!(shown.contains("Tell the weather.") && shown.contains("It has not run yet."), "{shown}");
        let status = home.run(&["status", "--json"]).json()["tasks"].clone();
        assert_eq!((&status["enabled"], &status["count"]), (&json!(true), &json!(3)));
        assert!(status["next_at"].as_i64().is_some_and(|at| at <= soon.as_millisecond()), "{status}");
        assert_eq!(home.run(&["tasks", "cancel", "2"]).out, "Cancelled task 2.\n");
        home.run(&["tasks", "cancel", "2"]).refused(1, "There’s no task number 2");
        home.run(&["tasks", "show", "2"]).refused(1, "There’s no task number 2");
    }
}

#[test]
fn what_cannot_be_is_refused_at_once() {
    let home = Home::new();
    for (when, word) in [
        (json!({}), "Say when"),
        (json!({"execute_at": "2020-01-01T10:00"}), "in the past"),
        (json!({"cron": "0 0 30 2 *"}), "never matches a date"),
        (json!({"cron": "0 0 * * * *"}), "five fields"),
    ] {
        let refused = home.schedule(&when);
        assert!(refused["error"].as_str().unwrap_or_default().contains(word), "{when}: {refused}");
    }
    assert_eq!(home.run(&["tasks", "list", "--json"]).json(), json!([]));
    home.run(&["settings", "set", "scheduling_enabled", "false"]);
    let off = home.schedule(&json!({"cron": "0 9 * * *"}));
    assert!(off["error"].as_str().unwrap_or_default().contains("scheduling_enabled true"), "{off}");
}

#[test]
fn a_due_task_runs_with_few_tools_and_reports_under_its_name() {
    let provider = Provider::start([Act::says("Sunny, 20 degrees.")]);
    let home = Home::with_model(&provider);
    home.schedule_now();
    let task = home.task_after_a_tick();
    assert_eq!(task["status"], "COMPLETED");
    let run = &task["runs"][0];
    assert_eq!(
        (&run["outcome"], &run["tokens"], &task["failures"]),
        (&json!("OK"), &json!(18), &json!(0)),
        "{task}"
    );
    let asked = provider.asked();
    assert_eq!(asked.len(), 1);
    let tools: Vec<&str> = asked[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert_eq!(
        tools,
        ["get_local_time", "web_search", "fetch_url", "memory_reinforce", "promote_learning", "list_tasks"]
    );
    let said = asked[0].body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(said.contains("Task: Weather") && said.contains("Tell the weather."), "{said}");
    let report = || home.run(&["status", "--json"]).json()["heartbeat"]["report"].clone();
    assert!(report().is_i64(), "the banner is raised");
    let reports = home.reports();
    assert!(reports.contains("**Weather**") && reports.contains("Sunny, 20 degrees."), "{reports}");
    assert!(report().is_null(), "it was looked at");
    let shown = home.run(&["tasks", "show", "1"]).out;
    assert!(shown.contains(", done") && shown.contains("ok (18 tokens"), "{shown}");
}

#[test]
fn a_run_without_a_model_fails_in_words_and_scheduling_off_runs_nothing() {
    let home = Home::new();
    home.schedule_now();
    home.run(&["settings", "set", "scheduling_enabled", "false"]);
    assert_eq!(home.task_after_a_tick()["runs"], json!([]), "it is off");
    home.run(&["settings", "set", "scheduling_enabled", "true"]);
    let task = home.task_after_a_tick();
    assert_eq!(task["failures"], 1);
    assert!(task["runs"][0]["reason"].as_str().unwrap().contains("No model is set up"), "{task}");
    assert_eq!(task["status"], "PENDING");
}

#[test]
fn the_heartbeat_is_told_of_tasks() {
    let home = Home::new();
    home.schedule(&json!({"cron": "30 7 * * 1-5"}));
    home.schedule(&json!({"on_heartbeat": true, "prompt": "Is the desk tidy?"}));
    let prompt = home.run(&["heartbeat", "dry-run", "--json"]).json()["prompt"].as_str().unwrap().to_owned();
    assert!(prompt.contains("## Heartbeat Additions\n- Is the desk tidy?\n\n## Pending Tasks\n- 1: Weather, every weekday at 7:30 (next: "), "{prompt}");
}
