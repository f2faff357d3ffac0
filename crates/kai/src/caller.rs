//! Sends a call to the running daemon, or answers it in this process if there is none.

use std::cell::OnceCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kai_assistant::agent::{self, ApprovalRequest, Face, Nobody};
use kai_assistant::home::Home;
use kai_llm::{CallId, ToolCall};
use kai_words::Lang;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::answer::answer;
use crate::app::{App, Role};
use crate::call::hello::Hello;
use crate::call::{Call, Event, Word};
use crate::commands::noted;
use crate::failure::Failure;
use crate::home::Keys;
use crate::terminal::input;
use crate::terminal::waiting::Waiting;
use crate::{caller_env, socket, wire};

/// How long to wait for the daemon's answer to an ordinary call before it counts as stuck. Testing models takes
/// longest.
const PATIENCE: Duration = Duration::from_mins(5);
const _: () = assert!(
    PATIENCE.as_secs() >= crate::commands::models::LONGEST_TRIAL.as_secs() + 30,
    "a test must end first"
);

/// How long somebody who pressed Tab waits for the daemon.
const GLANCE: Duration = Duration::from_millis(500);

/// What a watched call says that ended with Ctrl-C.
pub(crate) const CANCELLED: &str = "Cancelled.";

/// The caller's side of a home: asks its daemon, or opens the store itself if none is running.
pub(crate) struct Caller {
    pub(crate) home: Home,
    pub(crate) keys: Keys,
    /// There is no home yet, and the command only looks: it must not create one.
    only_looks: bool,
    /// The store, opened at the first call without a daemon. Kept, so that the passphrase is asked for only once.
    app: OnceCell<Arc<App>>,
}

/// Shows the progress of a turn to the user and asks for approval.
pub(crate) trait Watcher: Send + Sync + 'static {
    fn sees(&self, event: &Event);
    /// Asks the user for approval; blocks. `None` if nobody can be asked.
    fn allows(&self, asking: &ApprovalRequest) -> Option<bool>;
}

impl Caller {
    pub(crate) fn new(home: Home, keys: Keys) -> Self {
        Self { home, keys, only_looks: false, app: OnceCell::new() }
    }

    /// A caller for a home that does not exist yet. It answers as a new home would, and creates nothing.
    pub(crate) fn looking(home: Home) -> Self {
        Self { only_looks: true, ..Self::new(home, Keys::default()) }
    }

    /// A caller whose store is already open.
    #[cfg(test)]
    pub(crate) fn of(app: Arc<App>) -> Self {
        let home = app.home.clone();
        Self { app: OnceCell::from(app), ..Self::new(home, Keys::default()) }
    }

    fn app(&self) -> Result<&App, Failure> {
        if let Some(app) = self.app.get() {
            return Ok(app);
        }
        let app = if self.only_looks {
            wire::imagined(self.home.clone())?
        } else {
            wire::open(self.home.clone(), self.keys, Role::Command)?
        };
        Ok(self.app.get_or_init(|| Arc::new(app)))
    }

    pub(crate) fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        serde_json::from_value(self.value(call)?).map_err(|_| other_version())
    }

    fn value(&self, call: Call) -> Result<serde_json::Value, Failure> {
        if let Some(stream) = socket::connect(&self.home) {
            let _sign = Waiting::start("Working");
            let patience = patience(&call);
            return over(stream, call, patience);
        }
        let app = self.app()?;
        let _sign = Waiting::start("Working");
        runtime()?.block_on(async {
            let answered = answer(app, call, &app.env, &Nobody).await;
            noted::note_quietly(app).await;
            answered
        })
    }

    /// Asks only the daemon; `None` if none is running.
    pub(crate) fn ask_daemon<T: DeserializeOwned>(&self, call: Call) -> Result<Option<T>, Failure> {
        let Some(stream) = socket::connect(&self.home) else { return Ok(None) };
        let patience = patience(&call);
        serde_json::from_value(over(stream, call, patience)?).map(Some).map_err(|_| other_version())
    }

    /// Asks without a word to the user and without waiting: `None` if that brings no answer. Without a daemon, the store
    /// is only opened if the caller knows that nobody has to be asked for its key.
    pub(crate) fn glance(&self, call: Call, may_open: bool) -> Option<serde_json::Value> {
        if let Some(stream) = socket::connect(&self.home) {
            return over(stream, call, Some(GLANCE)).ok();
        }
        let app = may_open.then(|| self.app().ok()).flatten()?;
        runtime().ok()?.block_on(answer(app, call, &app.env, &Nobody)).ok()
    }

    /// For watched calls, one after the other.
    pub(crate) fn line(&self) -> Result<Line<'_>, Failure> {
        Ok(Line { caller: self, runtime: Some(runtime()?) })
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::failed(format!("Kai could not start: {e}.")))
}

/// Makes watched calls one after the other; Ctrl-C cancels the current one.
pub(crate) struct Line<'a> {
    caller: &'a Caller,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Line<'_> {
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        call: Call,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<T, Failure> {
        serde_json::from_value(self.value(call, watcher)?).map_err(|_| other_version())
    }

    fn value(&self, call: Call, watcher: &Arc<dyn Watcher>) -> Result<serde_json::Value, Failure> {
        let home = &self.caller.home;
        let Some(runtime) = &self.runtime else { return Err(other_version()) };
        // Checked for every call: a daemon may have started or stopped meanwhile.
        match socket::connect(home) {
            Some(stream) => runtime.block_on(there(stream, call, watcher)),
            None => runtime.block_on(here(self.caller.app()?, call, watcher)),
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // After Ctrl-C a question may still be open on the terminal; do not wait for its answer.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(500));
        }
    }
}

async fn here(app: &App, call: Call, watcher: &Arc<dyn Watcher>) -> Result<serde_json::Value, Failure> {
    let face = LocalFace { watcher, language: App::lang(&app.values().await?, &app.env) };
    let answered = tokio::select! {
        answered = answer(app, call, &app.env, &face) => answered,
        _ = tokio::signal::ctrl_c() => Err(Failure::failed(CANCELLED)),
    };
    noted::note_quietly(app).await;
    answered
}

async fn there(
    stream: UnixStream,
    call: Call,
    watcher: &Arc<dyn Watcher>,
) -> Result<serde_json::Value, Failure> {
    stream.set_nonblocking(true).map_err(|e| broken(&e))?;
    let stream = tokio::net::UnixStream::from_std(stream).map_err(|e| broken(&e))?;
    let (from, mut to) = stream.into_split();
    let mut from = tokio::io::BufReader::new(from);
    let mut written = to.write_all(&hello(call)?).await;
    loop {
        let mut line = String::new();
        let read = tokio::select! {
            read = from.read_line(&mut line) => read,
            // The daemon notices that we disconnect and stops the turn.
            _ = tokio::signal::ctrl_c() => return Err(Failure::failed(CANCELLED)),
        };
        match event_in(&line, &written, &read)? {
            Event::Done { result } => return Ok(result),
            Event::Error { code, message } => return Err(Failure::told(code, message)),
            Event::Confirm { tool, arguments, about } => {
                let call = ToolCall { id: CallId(String::new()), name: tool, arguments, signature: None };
                let yes = tokio::select! {
                    yes = ask_person(watcher, ApprovalRequest { call, about }) => yes,
                    _ = tokio::signal::ctrl_c() => return Err(Failure::failed(CANCELLED)),
                };
                let word = Word::Allow { yes: yes.unwrap_or(false) };
                written = written.and(to.write_all(&json_line(&word)?).await);
            }
            event => watcher.sees(&event),
        }
    }
}

/// Asks on a blocking thread, so that everything else continues while the user decides.
async fn ask_person(watcher: &Arc<dyn Watcher>, asking: ApprovalRequest) -> Option<bool> {
    let watcher = Arc::clone(watcher);
    tokio::task::spawn_blocking(move || watcher.allows(&asking)).await.unwrap_or_default()
}

/// The [`Face`] of a call that is answered in this process.
struct LocalFace<'a> {
    watcher: &'a Arc<dyn Watcher>,
    language: Lang,
}

impl Face for LocalFace<'_> {
    fn shows(&self, event: agent::Event) {
        self.watcher.sees(&socket::to_wire(event, self.language));
    }

    fn allows<'a>(
        &'a self,
        asking: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        Box::pin(ask_person(self.watcher, asking.clone()))
    }
}

fn hello(call: Call) -> Result<Vec<u8>, Failure> {
    json_line(&Hello { tty: input::has_person(), env: caller_env::here(), call })
}

fn json_line(value: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(value).map_err(|e| Failure::failed(e.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// How long to wait for an answer. A heartbeat takes as long as its model needs.
fn patience(call: &Call) -> Option<Duration> {
    (!matches!(call, Call::HeartbeatRun { .. })).then_some(PATIENCE)
}

fn over(stream: UnixStream, call: Call, patience: Option<Duration>) -> Result<serde_json::Value, Failure> {
    stream.set_read_timeout(patience).map_err(|e| broken(&e))?;
    let written = (&stream).write_all(&hello(call)?);
    let mut answer = String::new();
    let read = BufReader::new(stream).read_line(&mut answer);
    match event_in(&answer, &written, &read)? {
        Event::Done { result } => Ok(result),
        Event::Error { code, message } => Err(Failure::told(code, message)),
        _ => Err(other_version()),
    }
}

/// The event in a line that the daemon sent. A daemon that refuses a call hangs up before it has read all of it, so an
/// error in writing counts only if no whole line came.
fn event_in(
    line: &str,
    written: &std::io::Result<()>,
    read: &std::io::Result<usize>,
) -> Result<Event, Failure> {
    if !line.ends_with('\n') {
        let cut_off = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let error = written.as_ref().err().or(read.as_ref().err());
        return Err(broken(error.unwrap_or(&cut_off)));
    }
    serde_json::from_str(line).map_err(|_| other_version())
}

/// The failure of a lost connection. The daemon may have carried out the call already, so it is not retried
/// automatically.
fn broken(error: &std::io::Error) -> Failure {
    if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) {
        return Failure::failed(
            "The daemon is not responding. If that continues, check its log and restart it.",
        );
    }
    Failure::failed("The daemon stopped before it answered. Check with `kai status` and try again.")
}

fn other_version() -> Failure {
    Failure::failed(
        "The running daemon has a different version. Restart it (kai stop, then kai) and try again.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody: sees nothing and allows nothing.
    struct Absent;

    impl Watcher for Absent {
        fn sees(&self, _event: &Event) {}

        fn allows(&self, _asking: &ApprovalRequest) -> Option<bool> {
            None
        }
    }

    /// A daemon that sent this and hung up before it read the call.
    fn hung_up(sent: &str) -> UnixStream {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(sent.as_bytes()).unwrap();
        ours
    }

    #[test]
    fn what_the_daemon_said_before_it_hung_up_is_told() {
        let reason = "Kai is still reading another large file. Try again when it is done.";
        let refusal = Event::Error { code: 1, message: reason.to_owned() };
        let whole = String::from_utf8(json_line(&refusal).unwrap()).unwrap();
        let stopped = "The daemon stopped before it answered";
        let watcher: Arc<dyn Watcher> = Arc::new(Absent);
        for (sent, expected) in [
            (whole.as_str(), reason),
            (whole.trim_end(), stopped),
            ("{\"event\":\"do", stopped),
            ("", stopped),
            ("{\"event\":\"unheard\"}\n", "different version"),
        ] {
            let plain = over(hung_up(sent), Call::Status, None).unwrap_err();
            let asked = there(hung_up(sent), Call::Status, &watcher);
            let asked = runtime().unwrap().block_on(asked).unwrap_err();
            for told in [plain, asked] {
                assert!(told.message.to_string().contains(expected), "{sent:?}: {}", told.message);
            }
        }
    }
}
