//! An app in memory whose page is served, and the commands on it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::agent::Nobody;
use kai_assistant::clock::ManualClock;
use kai_assistant::db::DbError;
use rusqlite::Transaction;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::model::Model;
use super::visitor::Visitor;
use crate::answer::answer;
use crate::app::Role;
use crate::app::facts::{PAGE, WELCOMED, remember};
use crate::app::{App, Running};
use crate::call::{Call, hello};
use crate::caller_env::CallerEnv;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::web;

/// Longer than anything takes; nobody waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(30);

/// An opened Kai and its page. Its clock stands unless it is moved.
pub(super) struct House {
    pub(super) app: Arc<App>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) address: SocketAddr,
    runtime: tokio::runtime::Runtime,
    stop: CancellationToken,
    _folder: TempDir,
}

impl House {
    /// On a machine that has nothing. Its user has seen the welcome.
    pub(super) fn new() -> Self {
        Self::on(|_| Machine::default())
    }

    /// On a machine that has nothing, for the first time.
    pub(super) fn empty() -> Self {
        let house = Self::new();
        house.forget_welcome();
        house
    }

    /// Its user has not seen the welcome.
    pub(super) fn forget_welcome(&self) {
        let forget = |tx: &Transaction<'_>| tx.execute("DELETE FROM daemon WHERE fact = ?1", [WELCOMED]);
        self.app.db.write_now(|tx| Ok::<_, DbError>(forget(tx)?)).unwrap();
    }

    /// On this machine, whose clock is ours.
    pub(super) fn on(machine: impl FnOnce(Arc<ManualClock>) -> Machine) -> Self {
        Self::built(on_machine(machine), |_| {})
    }

    /// A demo, as it is when its daemon has just started.
    #[cfg(feature = "foss")]
    pub(super) fn demo() -> Self {
        let with_phone = |clock: Arc<ManualClock>| {
            let phone = kai_bridges::simulated::Phone::with_inbox(clock.clone());
            App::with_phone(clock, Arc::new(phone))
        };
        let house = Self::built(with_phone, |_| {});
        house.wait(crate::demo::prepare(&house.app)).unwrap();
        let (app, stop) = (Arc::clone(&house.app), house.stop.clone());
        house.runtime.spawn(async move {
            let work = &app.messages.demo.as_ref().unwrap().work;
            app.messages.network.play(work, stop).await;
        });
        house
    }

    /// On a machine that has nothing, in a network of phones that only this machine can reach.
    #[cfg(feature = "foss")]
    pub(super) fn with_phones() -> Self {
        Self::with_phones_within(super::phones::quick())
    }

    /// The same with other limits.
    #[cfg(feature = "foss")]
    pub(super) fn with_phones_within(limits: kai_bridges::kdeconnect::Limits) -> Self {
        let network = |app: &mut App| app.messages.network = super::phones::loopback(app, limits);
        let house = Self::built(on_machine(|_| Machine::default()), network);
        let (app, stop) = (Arc::clone(&house.app), house.stop.clone());
        house.runtime.spawn(async move { app.messages.network.run(stop).await });
        house
    }

    /// Waits for what happens beside the page.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// On a machine that has nothing, with something else about the app.
    #[cfg(feature = "local")]
    pub(super) fn with(change: impl FnOnce(&mut App)) -> Self {
        Self::built(on_machine(|_| Machine::default()), change)
    }

    fn built(app: impl FnOnce(Arc<ManualClock>) -> (App, TempDir), change: impl FnOnce(&mut App)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let inside = runtime.enter();
        let (mut app, folder) = app(Arc::clone(&clock));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let origin = format!("http://{address}");
        let since = app.clock.now();
        change(&mut app);
        app.daemon = Some(Running { pid: 1, address: origin.clone(), bound: address, since });
        app.db.write_now(|tx| remember(tx, PAGE, &origin)).unwrap();
        app.db.write_now(|tx| remember(tx, WELCOMED, "yes")).unwrap();
        let (app, stop) = (Arc::new(app), CancellationToken::new());
        runtime.spawn(web::serve(Arc::clone(&app), listener, address, stop.clone()));
        #[cfg(feature = "foss")]
        runtime.spawn(crate::commands::notifications::listen_on(Arc::clone(&app), stop.clone()));
        drop(inside);
        Self { app, clock, address, runtime, stop, _folder: folder }
    }

    /// With one model.
    pub(super) fn with_model(model: &Model) -> Self {
        let house = Self::new();
        house.use_model(model);
        house
    }

    pub(super) fn use_model(&self, model: &Model) {
        self.add_model("mine", &model.base_url, None);
    }

    pub(super) fn add_model(&self, name: &str, base_url: &str, key: Option<&str>) {
        let new = json!({"preset": "openai-compatible", "name": name, "base_url": base_url, "model": "m", "key": key});
        self.run("models_add", &new);
    }

    /// What a command would hear.
    pub(super) fn call(&self, call: Call) -> Result<Value, Failure> {
        self.runtime.block_on(answer(&self.app, call, &CallerEnv::default(), &Nobody))
    }

    /// A call as it comes over the socket; it must work.
    pub(super) fn run(&self, cmd: &str, args: &Value) -> Value {
        self.try_to(cmd, args).unwrap_or_else(|failure| panic!("{cmd} {args}: {failure:?}"))
    }

    pub(super) fn try_to(&self, cmd: &str, args: &Value) -> Result<Value, Failure> {
        self.call(hello::read(cmd.to_owned(), args.clone()).unwrap())
    }

    /// One without arguments.
    pub(super) fn show(&self, cmd: &str) -> Value {
        self.run(cmd, &Value::Null)
    }

    /// One that goes on by itself.
    pub(super) fn begin(&self, call: Call) -> tokio::task::JoinHandle<Result<Value, Failure>> {
        let app = Arc::clone(&self.app);
        self.runtime.spawn(async move { answer(&app, call, &CallerEnv::default(), &Nobody).await })
    }

    pub(super) fn get_setting(&self, key: &str) -> String {
        self.run("settings_get", &json!({ "key": key }))["value"].as_str().unwrap().to_owned()
    }

    pub(super) fn set(&self, key: &str, value: &str) {
        self.run("settings_set", &json!({"key": key, "value": value}));
    }

    /// A tool, called as `kai tools call` does; what it says.
    pub(super) fn tool(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.run("tools_call", &json!({"tool": tool, "arguments": arguments.to_string()}));
        assert_eq!(answer["success"], true, "{tool} {arguments}: {answer}");
        serde_json::from_str(answer["text"].as_str().unwrap()).unwrap_or_default()
    }

    /// A moment after everything else that is remembered.
    pub(super) fn remember(&self, key: &str, content: &str) {
        self.clock.advance(SignedDuration::from_secs(1));
        self.tool("memory_store", &json!({"key": key, "content": content}));
    }

    /// Takes in a file that was exported.
    pub(super) fn take_in(&self, sections: &Value) {
        let text = json!({"kai_export": 1, "sections": sections}).to_string();
        let import =
            json!({"text": text, "sections": [], "mode": "merge", "passphrase": null, "preview": false});
        self.run("import", &import);
    }

    /// Says something in a new conversation and waits for the answer.
    pub(super) fn ask(&self, text: &str) -> Value {
        self.run("ask", &json!({"text": text, "chat": "new"}))
    }

    /// The path of a link that signs in.
    pub(super) fn link(&self) -> String {
        let url = self.show("link")["url"].as_str().unwrap().to_owned();
        url.split_once(&self.address.to_string()).unwrap().1.to_owned()
    }

    /// Signs in and returns the cookie.
    pub(super) fn sign_in(&self) -> String {
        let answer = self.get(&self.link(), "");
        assert_eq!(answer.status, 303, "{}", answer.text);
        answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    /// Somebody who is signed in and looks at this page.
    pub(super) fn visitor(&self, path: &str) -> Visitor<'_> {
        Visitor::new(self, path)
    }

    pub(super) fn get(&self, path: &str, cookie: &str) -> Answer {
        self.send("GET", path, &[("Cookie", cookie)], "")
    }

    pub(super) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut head = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned()];
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push(format!("Host: {}", self.address));
        }
        if !body.is_empty() {
            if !headers.iter().any(|(name, _)| *name == "Content-Type") {
                head.push("Content-Type: application/x-www-form-urlencoded".to_owned());
            }
            head.push(format!("Content-Length: {}", body.len()));
        }
        head.extend(headers.iter().filter(|(_, value)| !value.is_empty()).map(|(n, v)| format!("{n}: {v}")));
        self.send_raw(format!("{}\r\n\r\n{body}", head.join("\r\n")).as_bytes())
    }

    pub(super) fn send_raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // It may refuse before it has heard everything.
        drop(stream.write_all(request));
        let mut bytes = vec![];
        drop(stream.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&in_one(bytes)).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        Answer { status, text }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

/// An app on this machine.
fn on_machine(
    machine: impl FnOnce(Arc<ManualClock>) -> Machine,
) -> impl FnOnce(Arc<ManualClock>) -> (App, TempDir) {
    |clock| App::on(clock.clone(), machine(clock), Role::Daemon)
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// An answer whose body was sent in chunks, with its body in one.
fn in_one(answer: Vec<u8>) -> Vec<u8> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return answer };
    let (head, mut rest) = answer.split_at(end + 4);
    if !String::from_utf8_lossy(head).to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return answer;
    }
    let mut whole = head.to_vec();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = str::from_utf8(&rest[..line]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(length) = length.filter(|length| *length > 0 && line + 2 + length <= rest.len()) else {
            break;
        };
        whole.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = rest.get(line + 4 + length..).unwrap_or_default();
    }
    whole
}

/// An HTTP answer, as it came.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next().unwrap();
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    pub(super) fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    /// The hidden field of the page's forms.
    pub(super) fn csrf(&self) -> String {
        let (_, rest) = self.text.split_once("name=\"csrf\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}
