//! A model's server on loopback that plays a script and remembers what it was asked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// What the server does with one request.
#[derive(Clone)]
pub enum Act {
    /// These bytes, then the connection is closed.
    Raw(String),
    /// Headers, and then nothing until the caller hangs up.
    Hang,
    /// A stream in pieces; each but the first waits for [`Provider::go_on`].
    Steps(Vec<String>),
    /// Whatever these make of the request.
    Answers(fn(&Asked) -> Act),
    /// The same piece, until the caller hangs up or so many bytes are gone.
    Floods(String, u64),
}

impl Act {
    pub fn status(status: &str, kind: &str, body: &str) -> Self {
        let length = body.len();
        Self::Raw(format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    fn stream(events: &[Value]) -> Self {
        let lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        Self::status("200 OK", "text/event-stream", &format!("{}data: [DONE]\n\n", lines.concat()))
    }

    /// An answer in `OpenAI`'s format, in two pieces.
    pub fn says(text: &str) -> Self {
        let (a, b) = text.split_at(text.len() / 2);
        let piece = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}});
        Self::stream(&[piece(a), piece(b), end, usage])
    }

    /// An answer whose pieces come as [`Provider::go_on`] says; its end is one more.
    pub fn says_in_steps(pieces: &[&str]) -> Self {
        let piece = |text: &&str| {
            let event = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
            format!("data: {event}\n\n")
        };
        let mut pieces: Vec<String> = pieces.iter().map(piece).collect();
        pieces.push("data: [DONE]\n\n".to_owned());
        Self::Steps(pieces)
    }

    /// A call in `OpenAI`'s format.
    pub fn calls(tool: &str, arguments: &Value) -> Self {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        let piece = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        Self::stream(&[piece, end])
    }

    /// An answer in the Anthropic format.
    pub fn says_as_anthropic(text: &str) -> Self {
        let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
        let usage = json!({"input_tokens": 3, "output_tokens": 1});
        let message =
            json!({"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage});
        let body = [
            event("message_start", json!({"type": "message_start", "message": message})),
            event(
                "content_block_start",
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ),
            event(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            ),
            event("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
            event(
                "message_delta",
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}),
            ),
            event("message_stop", json!({"type": "message_stop"})),
        ];
        Self::status("200 OK", "text/event-stream", &body.concat())
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// One request as it came.
#[derive(Clone)]
pub struct Asked {
    pub head: String,
    pub body: Value,
    /// The body as it came.
    pub raw: String,
}

/// So long the server, and those who look at it, wait for something.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    script: Vec<Act>,
    asked: Vec<Asked>,
    hung_up: usize,
    flooded: u64,
    /// Pieces that may still be said.
    steps: usize,
    /// The path at which it tells its window, and what it says there; it knows no other.
    tells: Option<(&'static str, String)>,
    /// First lines of the requests for it.
    told: Vec<String>,
}

#[derive(Clone)]
pub struct Provider {
    pub base_url: String,
    state: Arc<Mutex<State>>,
    /// Something happened.
    news: Arc<Condvar>,
}

impl Provider {
    /// Plays `script` in order; the last act is repeated.
    pub fn start(script: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { script: script.into_iter().collect(), ..State::default() }));
        let provider = Self { base_url, state, news: Arc::default() };
        let serving = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        provider
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(asked) = read_request(&mut stream) else { return };
        let act = {
            let mut state = self.state.lock().unwrap();
            if asks_for_window(&asked.head) {
                let line = asked.head.lines().next().unwrap_or_default().to_owned();
                let here = state.tells.clone().filter(|(path, _)| line.contains(path));
                state.told.push(line);
                drop(state);
                let (status, body) =
                    here.map_or(("404 Not Found", "{}".to_owned()), |(_, body)| ("200 OK", body));
                return self.play(&mut stream, Act::status(status, "application/json", &body));
            }
            state.asked.push(asked.clone());
            self.news.notify_all();
            if state.script.len() > 1 { state.script.remove(0) } else { state.script[0].clone() }
        };
        let act = if let Act::Answers(of) = act { of(&asked) } else { act };
        self.play(&mut stream, act);
    }

    fn play(&self, stream: &mut TcpStream, act: Act) {
        match act {
            Act::Answers(_) => panic!("what answers makes an act that does something"),
            Act::Floods(piece, bytes) => {
                drop(stream.write_all(STREAM.as_bytes()));
                let many = piece.repeat((1 << 20) / piece.len() + 1);
                let mut left = bytes;
                while left > 0 && stream.write_all(many.as_bytes()).is_ok() {
                    left = left.saturating_sub(many.len() as u64);
                }
                self.change(|state| state.flooded += bytes - left);
            }
            Act::Raw(bytes) => drop(stream.write_all(bytes.as_bytes())),
            Act::Steps(pieces) => {
                drop(stream.write_all(STREAM.as_bytes()));
                for (n, piece) in pieces.iter().enumerate() {
                    if n > 0 && !self.may_go_on() {
                        return;
                    }
                    drop(stream.write_all(piece.as_bytes()));
                }
            }
            Act::Hang => {
                drop(stream.write_all(STREAM.as_bytes()));
                // Reads nothing more until the caller closes.
                drop(stream.read(&mut [0; 16]));
                self.change(|state| state.hung_up += 1);
            }
        }
    }

    /// So many more pieces of [`Act::says_in_steps`] are said.
    pub fn go_on(&self, pieces: usize) {
        self.change(|state| state.steps += pieces);
    }

    fn change(&self, what: impl FnOnce(&mut State)) {
        what(&mut self.state.lock().unwrap());
        self.news.notify_all();
    }

    /// Waits for the next step; false if nobody asks for it any more.
    fn may_go_on(&self) -> bool {
        let Some(mut state) = self.wait(|state| state.steps > 0) else { return false };
        state.steps -= 1;
        true
    }

    /// Bytes that callers took of floods.
    pub fn flooded(&self) -> u64 {
        self.state.lock().unwrap().flooded
    }

    /// From now on it tells this at this path.
    pub fn tells(&self, path: &'static str, body: &str) {
        self.state.lock().unwrap().tells = Some((path, body.to_owned()));
    }

    /// How often it was asked for its window, at any path.
    pub fn asked_for_window(&self) -> usize {
        self.state.lock().unwrap().told.len()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// Waits until so many callers hung up on [`Act::Hang`].
    pub fn wait_for_hang_ups(&self, count: usize) {
        assert!(self.wait(|state| state.hung_up >= count).is_some(), "nobody hung up");
    }

    pub fn wait_for_requests(&self, count: usize) {
        assert!(self.wait(|state| state.asked.len() >= count).is_some(), "nobody asked");
    }

    /// `None` if it never came.
    fn wait(&self, done: impl Fn(&State) -> bool) -> Option<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap();
        let (state, waited) = self.news.wait_timeout_while(state, PATIENCE, |state| !done(state)).unwrap();
        (!waited.timed_out()).then_some(state)
    }
}

/// Does Kai ask a server here how large its window is? Everything else plays the script.
fn asks_for_window(head: &str) -> bool {
    let path = head.split([' ', '?']).nth(1).unwrap_or_default();
    ["/props", "/api/ps", "/api/show", "/api/v0/models", "/models"].iter().any(|known| path.ends_with(known))
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
        let wanted = wanted.unwrap_or(0);
        if bytes.len() >= end + 4 + wanted {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            let raw = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
            return Some(Asked { head, body, raw });
        }
    }
}
