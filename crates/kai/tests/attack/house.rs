//! The house that is attacked: a phone made of scripts, a server that is the internet, a model that plays along.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::conversation::Which;
use kai_assistant::agent::{Answer, ApprovalRequest, Driver, Event, Face, Ready};
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::errands::Errands;
use kai_assistant::gate::{Level, RunKind};
use kai_assistant::heartbeat::{Beat, BeatResult, Why};
use kai_assistant::notifications::Source;
use kai_assistant::tasks::{Missed, NewTask, Trigger, store as tasks};
use kai_bridges::termux::Termux;
use kai_llm::{Act, Scripted};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::liar::{Liar, ToLiar};
use super::pocket::Pocket;
use crate::answer;
use crate::app::App;
use crate::call::Call;
use crate::call::guests::{GuestCall, GuestsCall, Wants, Who};
use crate::caller_env::CallerEnv;
use crate::commands::{guests, sms};
use crate::machine::Machine;
use crate::machine::messages::{Messages, PhoneParts};
use kai_assistant::agent::Nobody;

/// Notes the name and the arguments of every call, a line each.
const NOTE: &str =
    r#"line=$(basename "$0"); for a in "$@"; do line="$line|$a"; done; printf '%s\n' "$line" >> "$DIR/left""#;
const LIST: &str =
    r#"case "$*" in *--help*) exit 1;; *'-t sent'*) echo '[]';; *) cat "$DIR/inbox.json";; esac"#;
const SEND: &str = r#"cat > /dev/null; printf 'termux-sms-send|%s\n' "$2" >> "$DIR/left""#;

pub(super) struct House {
    pub(super) app: Arc<App>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) internet: Internet,
    /// Every MCP server that somebody adds.
    pub(super) liar: Arc<Liar>,
    /// A paired phone, if there is one.
    pub(super) pocket: Option<Pocket>,
    /// What the attacker's message and notification are called.
    pub(super) bait: (i64, String),
    phone: TempDir,
    _home: TempDir,
}

impl House {
    /// Everything on that can be turned on, and nothing in it yet.
    pub(super) async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let phone = TempDir::new().unwrap();
        for (name, script) in [
            ("termux-sms-list", LIST),
            ("termux-sms-send", SEND),
            ("termux-notification-list", r#"cat "$DIR/tray.json""#),
            ("termux-notification", NOTE),
            ("termux-open-url", NOTE),
            ("termux-open", NOTE),
        ] {
            program(&phone, name, script);
        }
        let termux = Arc::new(Termux::in_folder(phone.path().to_owned()).with_clock(clock.clone()));
        let liar = Arc::new(Liar::default());
        let machine = Machine {
            servers: Some(Arc::new(ToLiar(Arc::clone(&liar)))),
            opener: Some(termux.clone()),
            notifier: Some(termux.clone()),
            messages: Messages {
                notifications: Some(Arc::new(Source::new(termux.clone()))),
                phone: Some(PhoneParts { bridge: "termux", reader: termux.clone(), sender: termux }),
                ..Messages::default()
            },
            ..Machine::default()
        };
        let internet = Internet::start().await;
        let (app, home) = App::under_attack(clock.clone(), machine, internet.address);
        let house = Self {
            app: Arc::new(app),
            clock,
            internet,
            liar,
            pocket: None,
            bait: (1, "k1".to_owned()),
            phone,
            _home: home,
        };
        house.inbox(&[]);
        house.tray(&[]);
        tokio::spawn(crate::commands::notifications::listen_on(
            Arc::clone(&house.app),
            tokio_util::sync::CancellationToken::new(),
        ));
        for key in [
            "sms_enabled",
            "sms_send_enabled",
            "notifications_enabled",
            "notifications_dismiss_enabled",
            "notifications_reply_enabled",
            "mcp_server_enabled",
            "tool_enabled_shell_command",
        ] {
            house.set(key, "true").await;
        }
        house.look().await;
        house
    }

    /// The same, with a paired phone that calls itself so.
    pub(super) async fn with_pocket(name: &str) -> Self {
        let house = Self::new().await;
        let pocket = Pocket::of(&house, name).await;
        Self { pocket: Some(pocket), ..house }
    }

    async fn set(&self, key: &str, value: &str) {
        let set = Call::SettingsSet { key: key.to_owned(), value: value.to_owned() };
        answer::answer(&self.app, set, &CallerEnv::default(), &Nobody).await.unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.phone.path().join(name)
    }

    /// What lies in the phone's inbox: number, sender, text.
    pub(super) fn inbox(&self, messages: &[(i64, String, String)]) {
        let at = |id: &i64| {
            Timestamp::from_second(1_799_000_000 + id).unwrap().strftime("%Y-%m-%d %H:%M:%S").to_string()
        };
        let row = |(id, from, text): &(i64, String, String)| json!({"_id": id, "type": "inbox", "read": false, "address": from, "received": at(id), "body": text});
        fs::write(self.file("inbox.json"), messages.iter().map(row).collect::<Value>().to_string()).unwrap();
    }

    /// What other apps show: key, title, text.
    pub(super) fn tray(&self, shown: &[(String, String, String)]) {
        let entry = |(key, title, text): &(String, String, String)| json!({"key": key, "packageName": "org.example.app", "title": title, "content": text});
        fs::write(self.file("tray.json"), shown.iter().map(entry).collect::<Value>().to_string()).unwrap();
    }

    /// Kai looks at both, as it does by itself now and then.
    pub(super) async fn look(&self) {
        sms::poll(&self.app).await.unwrap();
        self.app.messages.notifications.check_now(Duration::from_secs(10)).await;
    }

    /// What left through the phone's programs, a line each.
    pub(super) fn left(&self) -> Vec<String> {
        let noted = fs::read_to_string(self.file("left")).unwrap_or_default();
        noted.lines().map(str::to_owned).collect()
    }

    pub(super) fn driver<'a>(&'a self, models: &'a [Ready], face: &'a dyn Face, kind: RunKind) -> Driver<'a> {
        Driver {
            db: &self.app.db,
            clock: self.clock.as_ref(),
            toolbox: &self.app.toolbox,
            models,
            face,
            kind,
            level: Level::Nothing,
            shown: &[],
            platform: "test",
        }
    }

    /// The person asks something in a new conversation.
    pub(super) async fn chat(&self, model: &Arc<Scripted>, face: &dyn Face) -> Answer {
        let models = [ready(model)];
        let driver = self.driver(&models, face, RunKind::Chat);
        driver.turn(Which::New, "Please have a look.".to_owned()).await.unwrap()
    }

    /// Something that is to be part of every heartbeat was planned at that level.
    pub(super) fn plan(&self, level: Level) {
        let (now, zone) = (self.clock.now(), self.clock.zone());
        let new = NewTask::new("Plan", "Look around.", Trigger::Heartbeat, Missed::RunOnce, level).unwrap();
        self.app.db.write_now(|tx| tasks::add(tx, &new, now, &zone)).unwrap();
    }

    pub(super) async fn beat(&self, model: &Arc<Scripted>) -> BeatResult {
        self.clock.advance(SignedDuration::from_hours(1));
        let models = [ready(model)];
        let beat = Beat { db: &self.app.db, clock: self.clock.as_ref(), lang: kai_words::Lang::ENGLISH };
        beat.run(Why::Forced, Ok(self.driver(&models, &Nobody, RunKind::Heartbeat))).await.unwrap()
    }

    /// A program that the user allowed calls this, and everything else that it may, to read first.
    pub(super) async fn guest(&self, tool: &str, arguments: &Value) {
        let who = Who::Named("Eve".to_owned());
        let ask = async |wants| guests::host(&self.app, GuestCall { who: who.clone(), wants }).await.unwrap();
        ask(Wants::Enter).await;
        let allowed = GuestsCall::Allow { name: "Eve".to_owned() };
        guests::answer(&self.app, allowed).await.unwrap();
        let offered = ask(Wants::Tools).await.unwrap().tools;
        assert!(offered.iter().any(|tool| tool.name == "read_sms"), "it is let in");
        for (tool, arguments) in [("check_sms", "{}".to_owned()), (tool, arguments.to_string())] {
            let reply = ask(Wants::Call { tool: tool.to_owned(), arguments }).await.unwrap();
            let is_offered = offered.iter().any(|offered| offered.name == tool);
            assert_eq!(reply.result.is_some(), is_offered, "{tool}");
        }
    }

    /// A task that was made in a request at that level comes due.
    pub(super) async fn errand(&self, model: &Arc<Scripted>, level: Level) {
        let (now, zone) = (self.clock.now(), self.clock.zone());
        let new = NewTask::new("Errand", "Do it.", Trigger::Time(now), Missed::RunOnce, level).unwrap();
        self.app.db.write_now(|tx| tasks::add(tx, &new, now, &zone)).unwrap();
        self.clock.advance(SignedDuration::from_secs(1));
        let models = [ready(model)];
        let round = Errands { db: &self.app.db, clock: self.clock.as_ref() }.begin().await.unwrap().unwrap();
        let claim = round.claim().await.unwrap().unwrap();
        assert_eq!(round.run(claim, Ok(self.driver(&models, &Nobody, RunKind::Task))).await.unwrap(), None);
        round.end().await.unwrap();
    }
}

/// Written by another process, so that no fork of a neighbouring test holds it open when it is started.
fn program(phone: &TempDir, name: &str, script: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(phone.path().join(name))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let text = format!("#!/bin/sh\nDIR='{}'\n{script}\n", phone.path().display());
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

fn ready(model: &Arc<Scripted>) -> Ready {
    Ready {
        label: "attacker".to_owned(),
        local: true,
        vision: kai_assistant::models::vision::Vision::Unknown,
        model: Box::new(Arc::clone(model)),
    }
}

/// Calls these tools, a round each, then says something.
pub(super) fn model(rounds: &[Vec<(&str, String)>], says: &str) -> Arc<Scripted> {
    let act = |calls: &Vec<(&str, String)>| {
        let ids: Vec<String> = (0..calls.len()).map(|n| format!("call{n}")).collect();
        let calls: Vec<(&str, &str, &str)> = calls
            .iter()
            .zip(&ids)
            .map(|((name, arguments), id)| (id.as_str(), *name, arguments.as_str()))
            .collect();
        Act::calls(&calls)
    };
    let acts = rounds.iter().map(act).chain([Act::text(says), Act::text(says)]);
    Arc::new(Scripted::new(acts.collect::<Vec<_>>()))
}

/// A person who reads every card and allows nothing.
#[derive(Default)]
pub(super) struct Wary {
    pub(super) asked: Mutex<usize>,
    /// What servers told of how far they are.
    pub(super) progress: Mutex<Vec<String>>,
}

impl Face for Wary {
    fn shows(&self, event: Event) {
        if let Event::ToolProgress { progress, .. } = event {
            self.progress.lock().unwrap().push(progress);
        }
    }

    fn allows<'a>(
        &'a self,
        _: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        *self.asked.lock().unwrap() += 1;
        Box::pin(async { Some(false) })
    }
}

/// A page that gives orders.
pub(super) const PAGE: &str = "/orders";

/// One server that is every page and every service, and remembers what it was asked.
pub(super) struct Internet {
    pub(super) address: SocketAddr,
    pub(super) seen: Arc<Mutex<Vec<String>>>,
    /// Whole answers by path.
    pub(super) pages: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Internet {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let internet =
            Self { address: listener.local_addr().unwrap(), seen: Arc::default(), pages: Arc::default() };
        let (seen, pages) = (Arc::clone(&internet.seen), Arc::clone(&internet.pages));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&pages)));
            }
        });
        internet
    }

    pub(super) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often it was asked for anything but the page that was read on purpose.
    pub(super) fn requests(&self) -> usize {
        let page = format!("GET {PAGE} ");
        self.seen.lock().unwrap().iter().filter(|request| !request.starts_with(&page)).count()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: Arc<Mutex<Vec<String>>>,
    pages: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
) {
    let mut bytes = vec![0; 16_384];
    let Ok(length) = stream.read(&mut bytes).await else { return };
    let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().unwrap().push(request);
    let page = pages.lock().unwrap().get(&path).cloned();
    drop(stream.write_all(&page.unwrap_or_else(|| http("text/html", b"<p>Nothing here.</p>"))).await);
}

pub(super) fn http(content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
