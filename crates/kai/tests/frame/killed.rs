//! What is under way when Kai is killed or stopped: finished or asked about, and never done twice.

use std::io::Write;
use std::net::TcpStream;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::ask::{piped, with_model};
use crate::kit::{Daemon, Home, wait_for};
use crate::phone::{NOTE, Phone};
use crate::provider::{Act, Provider};
use crate::sms::{ALICE, draft, ready};

#[test]
fn what_was_under_way_when_kai_was_killed_is_said_and_never_repeated() {
    a_conversation_goes_on_after_a_restart_with_another_provider();
    a_task_that_was_killed_is_said_and_not_simply_repeated();
    an_alarm_and_a_message_are_not_sent_twice();
}

/// Waits until the test says so, or is over.
const UNTIL_GO: &str = r#"until [ -e "$DIR/go" ] || [ ! -d "$DIR" ]; do sleep 0.02; done"#;

fn an_alarm_and_a_message_are_not_sent_twice() {
    let phone = ready();
    phone.program("termux-notification", &format!("{NOTE}; kill -9 $PPID"));
    let daemon = phone.start();
    phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"}));
    phone.wait_for("Tea");
    drop(daemon);
    phone.program("termux-notification", NOTE);
    let mut daemon = phone.start();
    // Whatever was left to ring would ring before this one.
    phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Cake"}));
    let log = phone.wait_for("Cake");
    assert_eq!(log.matches("Tea").count(), 1, "an alarm whose ring killed Kai rings once: {log}");

    draft(&phone, ALICE, "Hi");
    phone.program("termux-sms-send", &format!(r#"cat > /dev/null; echo "$2" >> "$DIR/left"; {UNTIL_GO}"#));
    let tap = tap_first_draft(&daemon);
    wait_for("the message to leave", || !phone.left().is_empty());
    daemon.kill();
    drop(tap);
    let daemon = phone.start();
    let row = phone.run(&["drafts", "list", "--json"]).json()[0].clone();
    assert_eq!(row["status"], "UNKNOWN", "{row}");
    assert!(row["reason"].as_str().unwrap().contains("Kai stopped while sending it"), "{row}");
    assert_eq!(phone.left(), format!("{ALICE}\n"), "nothing is sent again by itself");
    assert_eq!(daemon.stop("-TERM").0, Some(0), "it had nothing left to ring or to send");
    // The phone's own box settles it.
    let sent = json!([{"_id": 90, "type": "sent", "address": ALICE, "received": local_now(), "body": "Hi"}]);
    std::fs::write(phone.programs.path().join("sent.json"), sent.to_string()).unwrap();
    let _daemon = phone.start();
    wait_for("the draft to be settled", || {
        phone.run(&["drafts", "list", "--json"]).json()[0]["status"] == "SENT"
    });
    assert_eq!(phone.left(), format!("{ALICE}\n"), "nor when its outcome is known");
}

/// A stop waits for an alarm that a slow phone shows, and does not cut off a message that is on its way.
#[test]
fn what_is_under_way_when_kai_stops_is_finished_once() {
    let phone = ready();
    let start = || Daemon::start(phone.command().env("KAI_LOG", "debug").args(["serve", "--port", "0"]));
    phone.program("termux-notification", &format!("touch \"$DIR/rings\"; {UNTIL_GO}; {NOTE}"));
    let daemon = start();
    phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Tea"}));
    wait_for("the ring to begin", || phone.programs.path().join("rings").exists());
    stop_and_let_go(daemon, &phone, "waiting for an alarm that is ringing");
    assert!(phone.log().contains("Tea"), "the alarm rang to its end: {}", phone.log());

    phone.program("termux-notification", NOTE);
    std::fs::remove_file(phone.programs.path().join("go")).unwrap();
    let daemon = start();
    phone.call("set_alarm", &json!({"duration_seconds": 1, "label": "Cake"}));
    let log = phone.wait_for("Cake");
    assert_eq!(log.matches("Tea").count(), 1, "an alarm that was waited for rings once: {log}");

    phone.call("set_alarm", &json!({"duration_seconds": 3_600, "label": "Pie"}));
    draft(&phone, ALICE, "Hi");
    phone.program("termux-sms-send", &format!(r#"cat > /dev/null; {UNTIL_GO}; echo "$2" >> "$DIR/left""#));
    let tap = tap_first_draft(&daemon);
    let status = || phone.run(&["drafts", "list", "--json"]).json()[0]["status"].clone();
    wait_for("the draft to be on its way", || status() == "SENDING");
    stop_and_let_go(daemon, &phone, "waiting for a message that is being sent");
    drop(tap);
    assert_eq!(phone.left(), format!("{ALICE}\n"), "the message left once");
    assert_eq!(status(), "SENT");

    // An alarm that has not rung can be cancelled without a daemon.
    let alarms = || phone.run(&["alarms", "list", "--json"]).json();
    let id = alarms()[0]["id"].to_string();
    assert_eq!(phone.run(&["alarms", "cancel", &id]).out, format!("Cancelled alarm {id}.\n"));
    assert_eq!(alarms(), json!([]));
}

/// Asks the daemon to stop, and lets the phone go on once the daemon says that it waits for it.
fn stop_and_let_go(mut daemon: Daemon, phone: &Phone, waits: &str) {
    daemon.ask_to_stop("-TERM");
    daemon.until_logs(waits);
    std::fs::write(phone.programs.path().join("go"), "").unwrap();
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
}

/// Presses the Send of the first draft. Whoever waits for the answer holds the connection.
fn tap_first_draft(daemon: &Daemon) -> TcpStream {
    let cookie = daemon.sign_in();
    let page = daemon.get("/", &cookie);
    let tap = post_of(&page.text, &page.csrf());
    let head = format!("POST /drafts/1/tap HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}", daemon.address);
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    write!(stream, "{head}\r\n{kind}\r\nContent-Length: {}\r\n\r\n{tap}", tap.len()).unwrap();
    stream
}

/// The body that the first draft's Send button posts.
pub(crate) fn post_of(page: &str, csrf: &str) -> String {
    let field = |name: &str| {
        let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    format!("csrf={csrf}&shown={}&attempts={}&button={}", field("shown"), field("attempts"), field("button"))
}

fn local_now() -> String {
    jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::get("Europe/Berlin").unwrap())
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

fn tea() -> serde_json::Value {
    json!({"key": "tea", "content": "Likes green tea."})
}

fn a_conversation_goes_on_after_a_restart_with_another_provider() {
    let first = Provider::start([Act::calls("memory_store", &tea()), Act::says("Noted.")]);
    let home = with_model(&first);
    let mut daemon = home.start();
    home.run(&["ask", "remember my tea"]);
    daemon.kill();
    let second = Provider::start([Act::says_as_anthropic("Green.")]);
    let base = second.base_url.trim_end_matches("/v1").to_owned();
    let added = piped(
        &home,
        &["models", "add", "anthropic", "--base-url", &base, "--model", "c", "--key-stdin"],
        "sk-ant-x\n",
    );
    assert_eq!(added.code, 0, "{added:?}");
    home.run(&["models", "first", "anthropic"]);
    let done = home.run(&["ask", "--last", "which tea?"]);
    assert_eq!((done.code, done.out.as_str()), (0, "Green.\n"), "{done:?}");
    let asked = &second.asked()[0];
    assert!(asked.head.to_lowercase().contains("x-api-key: sk-ant-x"), "{}", asked.head);
    let said = asked.body["messages"].to_string();
    for part in ["remember my tea", "tool_use", "tool_result", "Noted.", "which tea?"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let shown = home.run(&["chats", "show", "1"]).out;
    assert!(shown.contains("Kai (mine): Noted.") && shown.contains("Kai (anthropic): Green."), "{shown}");
}

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
        wait_for("the task to be so", || {
            task = self.run(&["tasks", "show", "1", "--json"]).json();
            is(&task)
        });
        task
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

fn a_task_that_was_killed_is_said_and_not_simply_repeated() {
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
    assert_eq!(task["failures"], 1, "{task}");
    assert!(task["next_at"].as_i64().unwrap() > Timestamp::now().as_millisecond(), "{task}");
    assert!(home.reports().contains("Kai was stopped while this task was running"), "{}", home.reports());
    let (_, log) = daemon.stop("-TERM");
    assert!(log.contains("a task was cut off"), "{log}");
    assert_eq!(provider.asked().len(), 1, "it waits for its second try");
}
