//! Tasks: scheduled by hand, run by the daemon, seen on the command line.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::ask::with_model;
use crate::kit::Home;
use crate::provider::{Act, Provider};

impl Home {
    fn schedule(&self, when: &Value) -> Value {
        let mut arguments = json!({"description": "Weather", "prompt": "Tell the weather."});
        arguments.as_object_mut().unwrap().extend(when.as_object().unwrap().clone());
        let done = self.run(&["tools", "call", "schedule_task", &arguments.to_string()]);
        assert_eq!(done.json()["success"] == true, done.code == 0, "{done:?}");
        done.json()
    }

    /// A task that is due now. Heartbeats are off: during their hours they would ask the model too.
    fn schedule_now(&self) {
        assert_eq!(self.run(&["settings", "set", "heartbeat_enabled", "false"]).code, 0);
        let now = Timestamp::now() - SignedDuration::from_secs(2);
        assert_eq!(self.schedule(&json!({"execute_at": now.to_string()}))["success"], true);
    }

    /// The task, once it is like this.
    fn task_that(&self, is: impl Fn(&Value) -> bool) -> Value {
        let mut task = Value::Null;
        for _ in 0..600 {
            task = self.run(&["tasks", "show", "1", "--json"]).json();
            if is(&task) {
                return task;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("{task}");
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
fn a_run_that_was_killed_is_said_and_not_simply_repeated() {
    let provider = Provider::start([Act::Hang]);
    let home = with_model(&provider);
    home.schedule_now();
    let mut daemon = home.start();
    provider.wait_for_requests(1);
    assert_eq!(home.task_that(|task| task["status"] == "RUNNING")["runs"][0]["outcome"], Value::Null);
    daemon.kill();
    assert_eq!(home.task_that(|_| true)["status"], "RUNNING", "nobody knows yet");
    let daemon = home.start();
    let task = home.task_that(|task| task["status"] == "PENDING");
    assert_eq!(task["runs"][0]["outcome"], "INTERRUPTED", "{task}");
    assert_eq!(task["failures"], 1);
    assert!(task["next_at"].as_i64().unwrap() > Timestamp::now().as_millisecond(), "{task}");
    assert!(home.reports().contains("Kai was stopped while this task ran"), "{}", home.reports());
    let (_, log) = daemon.stop("-TERM");
    assert!(log.contains("a task was cut off"), "{log}");
    assert_eq!(provider.asked().len(), 1, "it waits for its second try");
}
