//! What scripts rely on: the names in the JSON that commands print, the kinds of values, and the exact spelling of
//! words that stand for one of a few things. `shapes.txt` beside this file holds all of it, a line per name.
//!
//! Calls are made as they travel, and the store is filled by its own words, so that nothing here knows Kai's types.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::Nobody;
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::DbError;
use kai_assistant::lease;
use kai_bridges::simulated::Phone;
use kai_stand_ins::mail::PostOffice;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::answer::answer;
use crate::app::{App, Role, Running};
use crate::call::{Call, hello};
use crate::caller_env::CallerEnv;
use crate::commands::notifications;
use crate::follow_a_mail::trusting;
use crate::inside::hub::PlayedHub;
use crate::inside::server::PlayedServer;
use crate::machine::Machine;

/// Names whose values are words of a fixed set; these are recorded as they are spelled.
const SPELLED: [&str; 29] = [
    "access",
    "bridge",
    "category",
    "channel",
    "codes",
    "context_from",
    "did",
    "due",
    "edition",
    "end",
    "event",
    "kind",
    "level",
    "missed",
    "mode",
    "origin",
    "outcome",
    "pictures",
    "preset",
    "role",
    "section",
    "standing",
    "state",
    "status",
    "trigger",
    "type",
    "verdict",
    "welcome",
    "what",
];

fn is_spelled(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
    match path {
        // Where the key lies. Elsewhere a key is a name.
        "status.key" => true,
        // What is wrong with the ledger is a sentence.
        "ledger_verify.what" => false,
        _ => SPELLED.contains(&name),
    }
}

/// Everything that was printed, by the path of each value: what kinds of values stood there.
#[derive(Default)]
struct Shapes {
    kinds: BTreeMap<String, BTreeSet<String>>,
    /// How many objects there were at a path, and in how many of them a name stood.
    objects: BTreeMap<String, usize>,
    named: BTreeMap<String, usize>,
}

impl Shapes {
    fn note(&mut self, path: &str, value: &Value) {
        let kind = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(_) => "number".to_owned(),
            Value::String(word) if is_spelled(path) => format!("\"{word}\""),
            Value::String(_) => "text".to_owned(),
            Value::Array(items) => {
                for item in items {
                    self.note(&format!("{path}[]"), item);
                }
                "list".to_owned()
            }
            Value::Object(fields) => {
                *self.objects.entry(path.to_owned()).or_default() += 1;
                for (name, value) in fields {
                    let below = format!("{path}.{name}");
                    *self.named.entry(below.clone()).or_default() += 1;
                    self.note(&below, value);
                }
                "object".to_owned()
            }
        };
        self.kinds.entry(path.to_owned()).or_default().insert(kind);
    }

    /// A line per path; a name that is not always there has a question mark.
    fn lines(&self) -> String {
        let line = |(path, kinds): (&String, &BTreeSet<String>)| {
            let above = path.rsplit_once('.').map(|(above, _)| above);
            let all = above.and_then(|above| self.objects.get(above));
            let always =
                all.is_none_or(|all| self.named.get(path) == Some(all) || !self.named.contains_key(path));
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            format!("{path}{}: {}\n", if always { "" } else { "?" }, kinds.join(" | "))
        };
        self.kinds.iter().map(line).collect()
    }
}

/// An app whose answers are noted.
struct Scene {
    app: Arc<App>,
    clock: Arc<ManualClock>,
    shapes: Shapes,
    _folder: TempDir,
}

impl Scene {
    fn of(clock: Arc<ManualClock>, (mut app, folder): (App, TempDir)) -> Self {
        let bound = SocketAddr::from((Ipv4Addr::LOCALHOST, 8710));
        let address = format!("http://{bound}");
        app.daemon = Some(Running { pid: 1, address, bound, since: clock.now() });
        Self { app: Arc::new(app), clock, shapes: Shapes::default(), _folder: folder }
    }

    async fn call(&self, call: &str, arguments: Value) -> Result<Value, String> {
        let call = hello::read(call.to_owned(), arguments).unwrap();
        answer(&self.app, call, &CallerEnv::default(), &Nobody)
            .await
            .map_err(|failure| failure.message.to_string())
    }

    /// Notes the answer under a name and returns it.
    async fn see(&mut self, name: &str, call: &str, arguments: Value) -> Value {
        let answered = self.call(call, arguments).await.unwrap_or_else(|why| panic!("{name}: {why}"));
        self.shapes.note(name, &answered);
        answered
    }

    async fn set(&mut self, key: &str, value: &str) {
        self.see("settings_set", "settings_set", json!({"key": key, "value": value})).await;
    }

    async fn tool(&mut self, tool: &str, arguments: Value) {
        let call = json!({"tool": tool, "arguments": arguments.to_string()});
        let answered = self.see("tools_call", "tools_call", call).await;
        assert_eq!(answered["success"], true, "{tool}: {answered}");
    }

    fn sql(&self, statements: &str) {
        let statements = statements.to_owned();
        self.app.db.write_now(|tx| tx.execute_batch(&statements).map_err(DbError::from)).unwrap();
    }

    async fn heartbeats(&mut self) {
        self.see("heartbeat_dry_run", "heartbeat_dry_run", Value::Null).await;
        let run = json!({"force": false});
        for expected in ["report", "nothing_new"] {
            let ran = self.see("heartbeat_run", "heartbeat_run", run.clone()).await;
            assert_eq!(ran["outcome"], expected);
        }
        self.see("status", "status", Value::Null).await;
        let now = self.clock.now();
        let another =
            self.app.db.write_now(|tx| lease::take(tx, "heartbeat", now, SignedDuration::from_mins(1)));
        assert_eq!(self.see("heartbeat_run", "heartbeat_run", run.clone()).await["outcome"], "busy");
        drop(another);
        self.set("heartbeat_daily_tokens", "1000").await;
        self.sql("UPDATE heartbeat SET spent = 2000");
        assert_eq!(self.see("heartbeat_run", "heartbeat_run", run).await["outcome"], "not_due");
        self.clock.advance(SignedDuration::from_mins(31));
        assert_eq!(self.see("status", "status", Value::Null).await["heartbeat"]["due"], "over_budget");
        self.sql(
            "INSERT INTO heartbeat_log (at, outcome, reason) VALUES (1, 'report', ''), (2, 'ok', ''), \
             (3, 'nothing_new', ''), (4, 'failed', 'The model was away.')",
        );
        self.see("heartbeat_log", "heartbeat_log", Value::Null).await;
        for (settings, expected) in [
            (&[("heartbeat_interval", "60")][..], "not_yet"),
            (&[("heartbeat_active_start", "1"), ("heartbeat_active_end", "2")], "asleep"),
            (&[("heartbeat_enabled", "false")], "off"),
        ] {
            for (key, value) in settings {
                self.set(key, value).await;
            }
            let status = self.see("status", "status", Value::Null).await;
            assert_eq!(status["heartbeat"]["due"], expected);
        }
    }

    async fn messages(&mut self, phone: &Phone) {
        self.see("status", "status", Value::Null).await;
        for key in ["sms_enabled", "sms_send_enabled"] {
            self.set(key, "true").await;
        }
        self.clock.advance(SignedDuration::from_mins(1));
        let id = phone.receive("+15550123", "Are you free for dinner tonight?", self.clock.now());
        self.see("sms_poll", "sms", json!("poll")).await;
        self.see("sms_list", "sms", json!("list")).await;
        self.see("sms_known", "sms", json!("known")).await;
        self.see("sms_read", "sms", json!({"read": {"id": id}})).await;
        self.see("sms_search", "sms", json!({"search": {"text": "dinner"}})).await;
    }

    async fn chats_and_drafts(&mut self) {
        let said = json!({"text": "Please answer the dinner message.", "chat": "new"});
        self.see("ask", "ask", said).await;
        self.see("chats_list", "chats_list", Value::Null).await;
        self.see("chats_search", "chats_search", json!({"text": "dinner"})).await;
        for id in 1..=2 {
            self.see("chats_show", "chats_show", json!({"id": id})).await;
        }
        for show in [true, false] {
            self.see("chats_codes", "chats_codes", json!({"chat": {"id": 2}, "show": show})).await;
        }
        let draft = self.see("draft", "drafts", json!({"show": {"id": 1}})).await;
        let tap = json!({"id": 1, "button": "send", "shown": draft["digest"], "attempts": draft["attempts"]});
        assert_eq!(self.see("tap", "drafts", json!({"tap": tap})).await["status"], "SENT");
        self.tool("send_sms", json!({"to": "+15550199", "body": "Hello"})).await;
        self.sql(
            "INSERT INTO drafts (channel, recipient, body, first_contact, origin, conversation, created_at, status, \
             reason) VALUES ('sms', '+15550100', 'a', 1, 'heartbeat', 1, 1, 'SENDING', ''), \
             ('sms', '+15550100', 'b', 0, 'task', 0, 1, 'FAILED', 'No network.'), \
             ('sms', '+15550100', 'c', 0, 'chat', 1, 1, 'UNKNOWN', 'It was cut off.')",
        );
        self.see("drafts", "drafts", json!("list")).await;
        let waiting = self.see("draft", "drafts", json!({"show": {"id": 2}})).await;
        let edit = json!({"id": 2, "seen": waiting["digest"], "to": null, "body": "Hello again"});
        self.see("drafts_edit", "drafts", json!({"edit": edit})).await;
        self.see("drafts_discard_all", "drafts", json!({"discard_all": {"ids": [2]}})).await;
        self.see("drafts_undo", "drafts", json!("undo")).await;
        self.see("discard", "drafts", json!({"discard": {"id": 2}})).await;
        self.see("chats_rename", "chats_rename", json!({"id": 2, "name": "Dinner"})).await;
        self.see("chats_pin", "chats_pin", json!({"id": 2, "pinned": true})).await;
        self.see("chats_list", "chats_list", Value::Null).await;
        self.see("chats_export", "chats_export", json!({"id": 2})).await;
        self.see("chats_delete", "chats_delete", json!({"id": 2})).await;
        let back = self.see("chats_undo", "chats_undo", Value::Null).await;
        self.see("chats_delete", "chats_delete", json!({"id": back})).await;
    }

    /// A program that asks over MCP, and what the user decides about it.
    async fn guests(&mut self) {
        let asks = |wants: Value| json!({"who": {"named": "Zed"}, "wants": wants});
        let send = json!({"call": {"tool": "send_sms", "arguments": r#"{"to": "+15550100", "body": "Hi"}"#}});
        let read = json!({"call": {"tool": "read_sms", "arguments": r#"{"id": 4711}"#}});
        let check = json!({"call": {"tool": "check_sms", "arguments": "{}"}});
        self.see("guest", "guest", asks(json!("enter"))).await;
        self.set("mcp_server_enabled", "true").await;
        self.see("guest", "guest", asks(json!("enter"))).await;
        self.see("guests_token", "guests", json!({"token": {"name": "Never"}})).await;
        self.see("guests_list", "guests", json!("list")).await;
        self.see("guests_allow", "guests", json!({"allow": {"name": "Zed"}})).await;
        for wants in [json!("nothing"), send, read, check] {
            self.see("guest", "guest", asks(wants)).await;
        }
        let mut offered = self.call("guest", asks(json!("tools"))).await.unwrap();
        // The schemas are the tools' own.
        for tool in offered["tools"].as_array_mut().unwrap() {
            tool["schema"] = Value::Null;
        }
        self.shapes.note("guest", &offered);
        let holder = json!({"who": {"holder": "00"}, "wants": "nothing"});
        assert_eq!(self.see("guest", "guest", holder).await, Value::Null);
        self.see("guests_block", "guests", json!({"block": {"name": "Zed"}})).await;
        self.see("guest", "guest", asks(json!("tools"))).await;
        self.see("guests_list", "guests", json!("list")).await;
        self.see("drafts", "drafts", json!("list")).await;
        self.see("guests_forget", "guests", json!({"forget": {"name": "Zed"}})).await;
    }

    /// An MCP server, what the user decides about its tools, and another program's list.
    async fn servers(&mut self, server: &PlayedServer) {
        let new = |name: &str| json!({"add": {"name": name, "command": ["x"], "url": null, "headers": [], "env": ["A=b"]}});
        self.see("mcp_list", "mcp", json!("list")).await;
        self.see("mcp_add", "mcp", new("time")).await;
        self.see("mcp_add", "mcp", new("broken")).await;
        let tools = self.see("mcp_tools", "mcp", json!({"tools": {"server": "time"}})).await;
        let seen = json!([{"name": "now", "seen": tools[0]["seen"]}]);
        self.see("mcp_approve", "mcp", json!({"approve": {"server": "time", "tools": seen}})).await;
        server.says(&[("now", "Tells another time", true)]);
        self.see("mcp_test", "mcp", json!({"test": {"server": "time"}})).await;
        self.see("mcp_tools", "mcp", json!({"tools": {"server": null}})).await;
        let set = |on: bool| json!({"server": "time", "tool": "now", "on": on});
        self.see("mcp_dont_ask", "mcp", json!({"dont_ask": set(true)})).await;
        self.see("mcp_in_tasks", "mcp", json!({"in_tasks": set(true)})).await;
        self.see("mcp_switch", "mcp", json!({"switch": {"server": "time", "tool": null, "on": false}})).await;
        self.see("mcp_list", "mcp", json!("list")).await;
        let file = json!({"mcpServers": {"a": {"command": "x", "env": {"K": "v"}}, "b": {}}}).to_string();
        self.see("mcp_import", "mcp", json!({"import": {"text": file, "preview": true}})).await;
        self.see("mcp_sign_out", "mcp", json!({"sign_out": {"server": "time"}})).await;
        self.see("mcp_remove", "mcp", json!({"remove": {"server": "time"}})).await;
    }

    async fn shown_by_apps(&mut self) {
        self.see("notifications_known", "notifications", json!("known")).await;
        self.set("notifications_enabled", "true").await;
        let sources = Arc::clone(&self.app.messages.notifications);
        sources.check_now(Duration::from_secs(10)).await;
        let posted = self.see("demo_notification", "demo", notification()).await;
        self.until_kept(&posted).await;
        self.sql(
            "INSERT INTO notification_gaps (began, ended, why) VALUES
             (1, 2, 'Kai was not running'), (3, NULL, 'The bus is gone')",
        );
        let now = self.clock.now().as_millisecond();
        self.sql(&format!(
            "UPDATE notification_gaps SET began = began + {now} - 1000, ended = ended + {now} - 1000"
        ));
        self.see("notifications_refresh", "notifications", json!("refresh")).await;
        self.see("notifications_list", "notifications", json!({"list": {"all": true}})).await;
        let search = json!({"search": {"text": "tonight", "package_name": null}});
        self.see("notifications_search", "notifications", search).await;
        self.see("notifications_read", "notifications", json!({"read": {"id": posted}})).await;
        self.see("notifications_clear", "notifications", json!("clear")).await;
        self.set("notifications_enabled", "false").await;
        self.see("notifications_forget", "notifications", json!("forget")).await;
        self.set("sms_enabled", "false").await;
        self.see("sms_forget", "sms", json!("forget")).await;
    }

    /// Until the listener has written down what an app showed.
    async fn until_kept(&self, id: &Value) {
        let is_kept = async {
            while self.call("notifications", json!({"read": {"id": id}})).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), is_kept).await.unwrap();
    }

    async fn books(&mut self) {
        self.see("ledger_verify", "ledger", json!("verify")).await;
        self.see("ledger_accept", "ledger", json!("accept")).await;
        self.sql(
            r#"INSERT INTO ledger (at, record, hash) VALUES
               (1, '{"what":"click","conversation":1,"tool":"t","arguments":"{}","allowed":false,"unanswered":true}', x''),
               (1, '{"what":"sent","draft":9,"outcome":"FAILED"}', x''),
               (1, '{"what":"sent","draft":9,"outcome":"UNKNOWN"}', x''),
               (1, '{"what":"restored","last":2,"noted":4}', x'')"#,
        );
        let shown = self.see("ledger_show", "ledger", json!({"show": {"limit": 1000}})).await;
        let is_request = |row: &&Value| row["what"] == "request" && row["seen"].is_array();
        let request = shown.as_array().unwrap().iter().find(is_request).unwrap();
        let seen = request["seen"][0].as_str().unwrap().split(' ').nth(1).unwrap();
        let who = self.see("ledger_who", "ledger", json!({"who": {"id": seen}})).await;
        assert_eq!(who[0]["what"], "request", "{who}");
        self.see("ledger_bytes", "ledger", json!({"bytes": {"seq": request["seq"]}})).await;
        assert_eq!(self.see("ledger_verify", "ledger", json!("verify")).await["whole"], false);
    }

    async fn tasks_and_alarms(&mut self) {
        let at = self.clock.now() + SignedDuration::from_hours(2);
        for when in [
            json!({"execute_at": at.to_string()}),
            json!({"cron": "0 8 * * *"}),
            json!({"on_heartbeat": true}),
        ] {
            let mut task = json!({"description": "Plants", "prompt": "Water them."});
            task.as_object_mut().unwrap().extend(when.as_object().unwrap().clone());
            self.tool("schedule_task", task).await;
        }
        self.sql(
            "INSERT INTO task_runs (task, due_at, started_at, outcome, reason) VALUES (1, 1, 1, 'OK', ''), \
             (1, 1, 1, 'FAILED', 'No model.'), (1, 1, 1, 'INTERRUPTED', ''), (1, 1, 1, 'SKIPPED', ''), \
             (1, 1, 1, NULL, '')",
        );
        self.see("tasks_list", "tasks_list", Value::Null).await;
        self.see("status", "status", Value::Null).await;
        for (status, level, missed) in
            [("RUNNING", 0, "SKIP"), ("COMPLETED", 1, "SKIP"), ("SKIPPED", 2, "RUN_ONCE")]
        {
            self.sql(&format!(
                "UPDATE tasks SET status = '{status}', level = {level}, missed = '{missed}' WHERE id = 1"
            ));
            self.see("tasks_list", "tasks_list", Value::Null).await;
            self.see("tasks_show", "tasks_show", json!({"id": 1})).await;
        }
        self.see("tasks_cancel", "tasks_cancel", json!({"id": 1})).await;
        self.sql("INSERT INTO alarms (due_at, label) VALUES (1, 'Tea')");
        self.see("alarms_list", "alarms_list", Value::Null).await;
        self.see("alarms_cancel", "alarms_cancel", json!({"id": 1})).await;
    }

    async fn memories(&mut self) {
        self.tool("memory_store", json!({"key": "tea", "content": "Likes green tea."})).await;
        for category in ["LEARNING", "ERROR", "PREFERENCE"] {
            let learned = json!({"key": category, "content": "x", "category": category});
            self.tool("memory_learn", learned).await;
        }
        self.see("memory_list", "memory_list", Value::Null).await;
        self.see("memory_confirm", "memory_confirm", json!({"key": "tea"})).await;
        self.sql("INSERT INTO promotions VALUES ('tea', 'Offer tea.', 'proposed', 5, 1), ('ERROR', 'y', 'proposed', 5, 1)");
        self.see("memory_proposals", "memory_proposals", Value::Null).await;
        self.see("memory_accept", "memory_accept", json!({"key": "tea"})).await;
        self.see("memory_decline", "memory_decline", json!({"key": "ERROR"})).await;
        self.see("memory_forget", "memory_forget", json!({"key": "tea"})).await;
    }

    async fn house(&mut self) {
        self.see("settings_list", "settings_list", Value::Null).await;
        self.see("settings_get", "settings_get", json!({"key": "theme"})).await;
        self.see("tools_list", "tools_list", Value::Null).await;
        for on in [false, true] {
            self.see("tools_switch", "tools_switch", json!({"tool": "get_local_time", "on": on})).await;
        }
        self.see("doctor", "doctor", Value::Null).await;
        self.see("link", "link", Value::Null).await;
        self.see("revoke_links", "revoke_links", Value::Null).await;
        let export = json!({"sections": [], "passphrase": null, "from": null});
        let piece = self.call("export", export).await.unwrap();
        let text = piece["text"].as_str().unwrap();
        assert!(piece["next"].is_null(), "one piece is the whole file");
        self.shapes.note("export", &serde_json::from_str(text).unwrap());
        for mode in ["merge", "replace"] {
            let import =
                json!({"text": text, "sections": [], "mode": mode, "passphrase": null, "preview": true});
            self.see("import", "import", import).await;
        }
    }

    /// A mail account, what is in it, and one whose server is away.
    async fn mail(&mut self, office: &PostOffice) {
        let (imap, smtp) =
            (format!("localhost:{}", office.ports.imaps), format!("localhost:{}", office.ports.smtps));
        let (address, password) = (office.address("alice"), office.password("alice"));
        let new = json!({"address": address, "imap": imap, "smtp": smtp, "user": null, "password": password, "token_command": null});
        self.see("email_list", "email", json!("list")).await;
        self.see("email_add", "email", json!({"add": new})).await;
        office.deliver("alice", MAIL);
        office.deliver("alice", [MAIL, &b"x".repeat(300_000)].concat().as_slice());
        office.deliver("alice", b"Subject: Sale\r\nList-Id: x\r\n\r\nCheap!\r\n");
        self.see("email_poll", "email", json!({"poll": {"account": address}})).await;
        self.sql(
            "INSERT INTO email_accounts (address, spelling, user, imap, smtp, password, token_command, added)
             SELECT 'away@post.test', 'away@post.test', user, '{\"host\":\"localhost\",\"port\":9,\"security\":\"tls\"}', smtp, NULL,
             'echo token', added FROM email_accounts",
        );
        self.see("email_poll", "email", json!({"poll": {"account": null}})).await;
        self.see("email_list", "email", json!("list")).await;
        for account in [address.as_str(), "away@post.test"] {
            self.see("email_test", "email", json!({"test": {"account": account}})).await;
        }
        let found = self.see("email_search", "email", json!({"search": {"text": "dinner"}})).await;
        for mail in found["emails"].as_array().unwrap() {
            self.see("email_read", "email", json!({"read": {"id": mail["id"]}})).await;
        }
        self.see("status", "status", Value::Null).await;
        self.see("email_remove", "email", json!({"remove": {"account": "away@post.test"}})).await;
        self.see("email_search", "email", json!({"search": {"text": "dinner"}})).await;
    }

    /// A phone that was paired and is away.
    async fn phones(&mut self) {
        self.sql(
            "INSERT INTO phones (device, name, certificate, protocol, paired_at, last_seen, address) VALUES
             ('d', 'Pixel', x'01', 8, 1, 1, '192.168.1.20:1716')",
        );
        self.see("phones_list", "phones", json!("list")).await;
        self.see("phones_network", "phones", json!("network")).await;
        self.see("status", "status", Value::Null).await;
        self.sql("INSERT INTO sms_phones VALUES (2, 5, 1, 'The phone did not answer.')");
        self.see("status", "status", Value::Null).await;
        self.sql("UPDATE phones SET certificate = x''");
        self.see("status", "status", Value::Null).await;
        self.see("sms_known", "sms", json!("known")).await;
        self.sql("UPDATE phones SET certificate = x'01'; DELETE FROM sms_phones");
        let set = json!({"set": {"phone": "2", "switch": "names", "on": true}});
        self.see("phones_set", "phones", set).await;
        self.see("phones_rename", "phones", json!({"rename": {"phone": "2", "name": "Mine"}})).await;
        self.see("phones_default", "phones", json!({"default": {"phone": "mine"}})).await;
        let remove = json!({"remove": {"phone": "mine", "keep_messages": false}});
        self.see("phones_remove", "phones", remove).await;
    }

    /// Models that were added, found in the environment, asked and refused.
    async fn models(&mut self) {
        let new = json!({"preset": "openai-compatible", "name": "mine", "base_url": "http://127.0.0.1:9/v1", "model": "m", "key": null});
        self.see("models_add", "models_add", new).await;
        self.see("models_list", "models_list", Value::Null).await;
        self.see("status", "status", Value::Null).await;
        self.see("models_context", "models_context", json!({"name": "mine", "context": "32768"})).await;
        for pictures in ["no", "yes", "auto"] {
            let call = json!({"name": "mine", "pictures": pictures});
            self.see("models_pictures", "models_pictures", call).await;
        }
        self.sql("UPDATE models SET context = NULL; DELETE FROM model_windows");
        for (told, learned) in [("16384", "NULL"), ("NULL", "2048")] {
            self.sql(&format!(
                "INSERT OR REPLACE INTO model_windows VALUES ('http://127.0.0.1:9/v1', 'm', {told}, 1, {learned})"
            ));
            self.see("models_list", "models_list", Value::Null).await;
        }
        let keys = vec![("OPENAI_API_KEY".to_owned(), "sk-1".to_owned())];
        let around = CallerEnv { keys, ..CallerEnv::default() };
        let rows = answer(&self.app, Call::ModelsList, &around, &Nobody).await.unwrap();
        self.shapes.note("models_list", &rows);
        self.see("models_test", "models_test", json!({"name": "mine"})).await;
        self.see("models_first", "models_first", json!({"name": "mine"})).await;
        self.house().await;
        self.see("models_remove", "models_remove", json!({"name": "mine"})).await;
    }

    /// A model that runs inside Kai, downloaded and given up.
    async fn local(&mut self) {
        self.see("models_catalogue", "local", json!("catalogue")).await;
        self.see("models_get", "local", json!({"get": {"name": "tiny"}})).await;
        self.see("models_catalogue", "local", json!("catalogue")).await;
        let file = self.app.home.models().join("tiny.gguf");
        let new = json!({"file": file.to_str().unwrap(), "name": "again", "context": null});
        self.see("models_add_file", "local", json!({"add": new})).await;
        for name in ["tiny", "again"] {
            self.see("models_remove", "models_remove", json!({"name": name})).await;
        }
        self.see("models_delete_file", "local", json!({"delete_file": {"file": "tiny.gguf"}})).await;
    }
}

const MAIL: &[u8] = b"From: Bob <bob@post.test>\r\nTo: alice@post.test\r\nCc: carol@post.test\r\nSubject: Dinner\r\n\
    MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\
    Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=menu.pdf\r\n\r\nx\r\n--b\r\n\r\nAt eight?\r\n";

fn notification() -> Value {
    json!({"notification": {"app": "Chat", "title": "Alice", "text": "Are we on for tonight?"}})
}

/// Noon in the zone of the clock.
fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_second(1_800_014_400).unwrap()))
}

#[tokio::test]
async fn the_json_of_commands_is_as_it_was_recorded() {
    let clock = clock();
    let phone = Arc::new(Phone::new(clock.clone()));
    let mut demo = Scene::of(clock.clone(), App::with_phone(clock, Arc::clone(&phone)));
    let stop = CancellationToken::new();
    let listening = tokio::spawn(notifications::listen_on(Arc::clone(&demo.app), stop.clone()));
    demo.messages(&phone).await;
    demo.heartbeats().await;
    demo.chats_and_drafts().await;
    demo.guests().await;
    demo.tasks_and_alarms().await;
    demo.memories().await;
    demo.shown_by_apps().await;
    demo.house().await;
    demo.books().await;
    stop.cancel();
    listening.await.unwrap();

    let clock = self::clock();
    let mut plain = Scene::of(clock.clone(), App::for_tests(clock));
    plain.shapes = demo.shapes;
    plain.models().await;
    Arc::get_mut(&mut plain.app).unwrap().downloads = PlayedHub::start().downloads();
    plain.local().await;
    plain.phones().await;

    let clock = self::clock();
    let server = PlayedServer::with(&[("now", "Tells the time", true)]);
    let machine = Machine { servers: Some(Arc::new(server.clone())), ..Machine::default() };
    let mut with_server = Scene::of(clock.clone(), App::on(clock, machine, Role::Daemon));
    with_server.shapes = plain.shapes;
    with_server.servers(&server).await;

    let clock = self::clock();
    let office = PostOffice::open(&["alice"]);
    let machine = Machine { mail: Some(Arc::new(trusting(&office))), ..Machine::default() };
    let mut with_mail = Scene::of(clock.clone(), App::on(clock, machine, Role::Daemon));
    with_mail.shapes = with_server.shapes;
    with_mail.mail(&office).await;
    let plain = with_mail;

    let found = plain.shapes.lines();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inside/commands/shapes.txt");
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    let only = |these: &str, those: &str| -> Vec<String> {
        let those: BTreeSet<&str> = those.lines().collect();
        these.lines().filter(|line| !those.contains(line)).map(str::to_owned).collect()
    };
    let (missing, new) = (only(&recorded, &found), only(&found, &recorded));
    assert!(
        missing.is_empty() && new.is_empty(),
        "The JSON of commands is not as shapes.txt has it, and scripts rely on that.\n\nWas:\n{}\n\nIs:\n{}\n",
        missing.join("\n"),
        new.join("\n")
    );
}
