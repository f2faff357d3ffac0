//! A model's server on loopback that plays a script, is told when to go on, and remembers what it was asked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything takes; nobody waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the server does with one request.
#[derive(Clone)]
pub(super) enum Act {
    /// These bytes, then the connection is closed.
    Raw(String),
    /// The beginning of an answer, and then nothing until the caller hangs up.
    Hang,
    /// A stream in pieces; each but the first waits for [`Model::go_on`].
    Steps(Vec<String>),
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn piece(text: &str) -> String {
    event(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

impl Act {
    pub(super) fn status(status: &str, body: &str) -> Self {
        let length = body.len();
        Self::Raw(format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    fn stream(events: &[String]) -> Self {
        Self::Raw(format!("{STREAM}{}data: [DONE]\n\n", events.concat()))
    }

    /// An answer in two pieces.
    pub(super) fn says(text: &str) -> Self {
        let half = text.floor_char_boundary(text.len() / 2);
        let (a, b) = text.split_at(half);
        let end = event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
        let usage = event(&json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}));
        Self::stream(&[piece(a), piece(b), end, usage])
    }

    /// An answer whose pieces come as [`Model::go_on`] says; its end is one more.
    pub(super) fn says_in_steps(pieces: &[&str]) -> Self {
        Self::Steps(pieces.iter().map(|text| piece(text)).chain(["data: [DONE]\n\n".to_owned()]).collect())
    }

    pub(super) fn calls(tool: &str, arguments: &Value) -> Self {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        let calls = event(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}));
        let end = event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
        Self::stream(&[calls, end])
    }
}

/// One request as it came.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) head: String,
    pub(super) body: Value,
    /// The body as it came.
    pub(super) raw: String,
}

#[derive(Default)]
struct State {
    script: Vec<Act>,
    asked: Vec<Asked>,
    /// Pieces that may still be said.
    steps: usize,
    /// What it answers when it is asked which models it has.
    list: Option<Act>,
}

#[derive(Clone)]
pub(super) struct Model {
    pub(super) base_url: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Model {
    /// Plays `script` in order; the last act is repeated.
    pub(super) fn start(script: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = State { script: script.into_iter().collect(), ..State::default() };
        let model = Self { base_url, state: Arc::new((Mutex::new(state), Condvar::new())) };
        let serving = model.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        model
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap()
    }

    fn changed(&self) {
        self.state.1.notify_all();
    }

    /// Waits until this is so.
    fn wait(&self, what: &str, so: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.state.1.wait_timeout_while(self.lock(), PATIENCE, |state| !so(state));
        let (state, late) = waited.unwrap();
        assert!(!late.timed_out(), "{what} did not happen");
        state
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(asked) = read_request(&mut stream) else { return };
        let list = self.lock().list.clone();
        if let Some(list) = list.filter(|_| asked.head.starts_with("GET /v1/models ")) {
            return self.play(&mut stream, list);
        }
        // It is asked how large its window is, and does not know.
        if !asked.head.contains("/chat/completions ") {
            return self.play(&mut stream, Act::status("404 Not Found", "{}"));
        }
        let mut state = self.lock();
        state.asked.push(asked);
        let act = if state.script.len() > 1 { state.script.remove(0) } else { state.script[0].clone() };
        drop(state);
        self.changed();
        self.play(&mut stream, act);
    }

    fn play(&self, stream: &mut TcpStream, act: Act) {
        match act {
            Act::Raw(bytes) => drop(stream.write_all(bytes.as_bytes())),
            Act::Steps(pieces) => {
                drop(stream.write_all(STREAM.as_bytes()));
                for (n, piece) in pieces.iter().enumerate() {
                    if n > 0 {
                        self.wait("a step", |state| state.steps > 0).steps -= 1;
                    }
                    drop(stream.write_all(piece.as_bytes()));
                }
            }
            Act::Hang => {
                drop(stream.write_all(STREAM.as_bytes()));
                drop(stream.read(&mut [0; 16]));
            }
        }
    }

    /// So many more pieces of [`Act::says_in_steps`] are said.
    pub(super) fn go_on(&self, pieces: usize) {
        self.lock().steps += pieces;
        self.changed();
    }

    /// From now on, answers so when it is asked which models it has.
    pub(super) fn lists(&self, list: &Act) {
        self.lock().list = Some(list.clone());
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    pub(super) fn wait_for_requests(&self, count: usize) {
        drop(self.wait("a request", |state| state.asked.len() >= count));
    }

    /// The names of the tools that the last request offered.
    pub(super) fn offered(&self) -> Vec<String> {
        let asked = self.asked().pop().unwrap().body;
        let tools = asked["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65536];
    loop {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&buffer[..length]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_string();
        let wanted: Option<usize> =
            head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if bytes.len() >= end + 4 + wanted.unwrap_or(0) {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            let raw = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
            return Some(Asked { head, body, raw });
        }
    }
}
