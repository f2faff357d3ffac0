//! The worker as Kai sees it: a process that is started, asked and ended.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kai_llm::{EngineTrouble, ModelError};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::frame::Frame;
use crate::order::{Event, Failed, Load, Order};
use crate::states::{Keeping, States};

/// How the worker is started.
#[derive(Debug, Clone)]
pub struct Launch {
    program: PathBuf,
    args: Vec<String>,
    patience: Duration,
    stops_within: Duration,
}

impl Launch {
    /// This executable, started again. It has to call [`work`](crate::work) for [`SUBCOMMAND`](crate::SUBCOMMAND).
    pub fn ourselves() -> Self {
        Self::of("/proc/self/exe", [crate::SUBCOMMAND])
    }

    /// Another executable that calls [`work`](crate::work) when it is started like this.
    pub fn of<'a>(program: impl Into<PathBuf>, args: impl IntoIterator<Item = &'a str>) -> Self {
        let args = args.into_iter().map(str::to_owned).collect();
        Self { program: program.into(), args, patience: SILENCE, stops_within: STOPPING }
    }

    /// The same with a worker that may take this long to stop, before it is ended and the next question starts another.
    #[must_use]
    pub fn stopping_within(self, stops_within: Duration) -> Self {
        Self { stops_within, ..self }
    }
}

/// How long a model may take to load.
const LOADING: Duration = Duration::from_mins(5);
/// How long the worker may say or take nothing before it counts as stuck. One step of reading takes a few seconds.
const SILENCE: Duration = Duration::from_mins(2);
/// How long a worker may take to stop. One that is in the middle of a step of reading does not hear of it in time; it is
/// ended, and the next question starts another.
const STOPPING: Duration = Duration::from_millis(900);
/// How long the end of a process may take.
const ENDING: Duration = Duration::from_secs(5);
/// How much of its last words is kept.
const LAST_WORDS: usize = 2_000;

/// A worker with a loaded model. Dropping it ends the process.
pub(crate) struct Worker {
    pub(crate) load: Load,
    /// The identity of the file that it has loaded.
    identity: String,
    child: Child,
    input: ChildStdin,
    /// What it says, read by a task of its own: waiting for the next frame can be given up at any time.
    frames: mpsc::Receiver<io::Result<Frame>>,
    errors: Option<ChildStderr>,
    /// How long it may say or take nothing.
    patience: Duration,
    pub(crate) stops_within: Duration,
}

/// How many frames may wait. A state comes in pieces of a megabyte.
const WAITING: usize = 4;

fn listening(output: ChildStdout) -> mpsc::Receiver<io::Result<Frame>> {
    let (tell, frames) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut output = BufReader::new(output);
        loop {
            let frame = Frame::receive(&mut output).await;
            let ended = frame.is_err();
            if tell.send(frame).await.is_err() || ended {
                return;
            }
        }
    });
    frames
}

impl Worker {
    /// Starts a worker and waits until its model is loaded.
    pub(crate) async fn start(launch: &Launch, load: Load) -> Result<Self, ModelError> {
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().current_dir("/").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| crashed(error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else { return Err(crashed("it has no pipes".to_owned())) };
        let errors = child.stderr.take();
        let (identity, frames) = (identity(&load), listening(output));
        let (patience, stops_within) = (LOADING, launch.stops_within);
        let mut worker = Self { load, identity, child, input, frames, errors, patience, stops_within };
        worker.send(&Order::Load(worker.load.clone())).await?;
        let Event::Ready = worker.next().await? else {
            return Err(crashed("it does not say that it is ready".to_owned()));
        };
        worker.patience = launch.patience;
        Ok(worker)
    }

    pub(crate) async fn send(&mut self, order: &Order) -> Result<(), ModelError> {
        let frame = Frame::json(order).map_err(|error| crashed(error.to_string()))?;
        self.pass(&frame).await
    }

    /// Passes a frame to the worker. A large one has to be taken before all of it is written, and a frozen worker takes
    /// nothing.
    async fn pass(&mut self, frame: &Frame) -> Result<(), ModelError> {
        match timeout(self.patience, frame.send(&mut self.input)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.ended().await),
            Err(_elapsed) => Err(ModelError::Engine(EngineTrouble::Hung)),
        }
    }

    /// The name under which the state with this key is kept. The same prompt has other states with other models.
    fn name(&self, key: &str) -> String {
        format!("{}-{key}", self.identity)
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> Result<Event, ModelError> {
        match self.frame().await?.parse() {
            Ok(Event::Failed(failed)) => Err(ModelError::Engine(trouble(failed))),
            Ok(Event::TooLong { window }) => Err(ModelError::TooLong { limit: Some(window) }),
            Ok(event) => Ok(event),
            Err(error) => Err(crashed(error.to_string())),
        }
    }

    async fn frame(&mut self) -> Result<Frame, ModelError> {
        match timeout(self.patience, self.frames.recv()).await {
            Ok(Some(Ok(frame))) => Ok(frame),
            Ok(Some(Err(error))) if error.kind() == io::ErrorKind::InvalidData => {
                Err(crashed(error.to_string()))
            }
            Ok(Some(Err(_)) | None) => Err(self.ended().await),
            Err(_elapsed) => Err(ModelError::Engine(EngineTrouble::Hung)),
        }
    }

    /// Why the process ended.
    async fn ended(&mut self) -> ModelError {
        match timeout(ENDING, self.child.wait()).await {
            Ok(Ok(status)) => {
                self.log_last_words(status).await;
                end_of(status)
            }
            _ => ModelError::Engine(EngineTrouble::Hung),
        }
    }

    /// Ends the process and waits until it is gone: only then its memory is free for another model.
    pub(crate) async fn finish(mut self) {
        if self.child.start_kill().is_ok() {
            let _ = timeout(ENDING, self.child.wait()).await;
        }
    }

    async fn log_last_words(&mut self, status: ExitStatus) {
        let Some(mut errors) = self.errors.take() else { return };
        let mut said = Vec::new();
        // Everything that it wrote fits into the pipe, or it would have waited.
        let _ = timeout(ENDING, (&mut errors).take(64 * 1024).read_to_end(&mut said)).await;
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(LAST_WORDS)..]).into_owned();
        tracing::warn!(%status, %said, "the model's process ended");
    }

    /// Stops what is under way and waits until the worker is ready for the next question. A worker that does not stop in
    /// time is of no use any more.
    pub(crate) async fn stop(&mut self, states: Option<&States>) -> Result<(), ModelError> {
        let stopped = timeout(self.stops_within, self.quiet(states));
        stopped.await.unwrap_or(Err(ModelError::Engine(EngineTrouble::Hung)))
    }

    async fn quiet(&mut self, states: Option<&States>) -> Result<(), ModelError> {
        self.send(&Order::Stop).await?;
        loop {
            match self.next().await {
                Ok(Event::Stopped | Event::Done(_) | Event::Preferred { .. })
                | Err(ModelError::TooLong { .. }) => return Ok(()),
                Ok(Event::Wants { .. }) => self.send(&Order::State { bytes: 0 }).await?,
                Ok(Event::Keep { key, bytes }) => self.keep(states, &key, bytes).await?,
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives a state and keeps it. What cannot be kept is read and thrown away: the worker sends it anyway.
    pub(crate) async fn keep(
        &mut self,
        states: Option<&States>,
        key: &str,
        bytes: u64,
    ) -> Result<(), ModelError> {
        let name = self.name(key);
        let states = states.filter(|states| !states.has(&name)).cloned();
        let mut keeping: Option<Keeping> = states.as_ref().and_then(|states| states.begin(&name, bytes).ok());
        let mut left = bytes;
        while left > 0 {
            let Frame::Raw(piece) = self.frame().await? else {
                return Err(crashed("words came where bytes were expected".to_owned()));
            };
            let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            left = left
                .checked_sub(length)
                .filter(|_| length > 0)
                .ok_or_else(|| crashed("too many bytes".to_owned()))?;
            keeping = blocking(move || keeping.and_then(|mut it| it.add(&piece).ok().map(|()| it))).await;
        }
        if let (Some(keeping), Some(states)) = (keeping, states) {
            blocking(move || Some(keeping).filter(|it| it.left() == 0).map(|it| it.finish(&states))).await;
        }
        Ok(())
    }

    /// Sends a kept state, or says that there is none.
    pub(crate) async fn give(&mut self, states: Option<&States>, key: &str) -> Result<(), ModelError> {
        let Some(states) = states.cloned() else { return self.send(&Order::State { bytes: 0 }).await };
        let name = self.name(key);
        let (from, wanted) = (states.clone(), name.clone());
        let Some(mut kept) = blocking(move || from.open(&wanted).ok()).await else {
            return self.send(&Order::State { bytes: 0 }).await;
        };
        self.send(&Order::State { bytes: kept.bytes }).await?;
        loop {
            let read = blocking(move || {
                let piece = kept.next();
                Some((kept, piece))
            });
            let Some((next, piece)) = read.await else { return self.spoiled(&states, &name).await };
            kept = next;
            match piece {
                Ok(Some(piece)) => self.pass(&Frame::Raw(piece)).await?,
                Ok(None) => return Ok(()),
                Err(_) => return self.spoiled(&states, &name).await,
            }
        }
    }

    async fn spoiled(&mut self, states: &States, name: &str) -> Result<(), ModelError> {
        states.remove(name);
        self.pass(&Frame::Raw(vec![])).await
    }
}

/// Tells states of different files apart, and those of the same file after it was exchanged.
fn identity(load: &Load) -> String {
    let Load { file, window, .. } = load;
    let about =
        std::fs::metadata(file).map(|about| (about.len(), about.ino(), about.mtime())).unwrap_or_default();
    let (length, inode, time) = about;
    format!("{length:x}-{inode:x}-{time:x}-{window:x}")
}

/// Runs what touches the disk away from the async threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

fn crashed(why: String) -> ModelError {
    ModelError::Engine(EngineTrouble::Crashed(why))
}

fn trouble(failed: Failed) -> EngineTrouble {
    match failed {
        Failed::BadFile(why) => EngineTrouble::BadFile(why),
        Failed::OldProcessor(lacks) => EngineTrouble::OldProcessor(lacks),
        Failed::Broken(why) => EngineTrouble::Crashed(why),
    }
}

/// What the end of the process means.
fn end_of(status: ExitStatus) -> ModelError {
    const KILL: i32 = 9;
    ModelError::Engine(match (status.signal(), status.code()) {
        (Some(KILL), _) => EngineTrouble::Killed,
        (Some(signal), _) => EngineTrouble::Crashed(format!("signal {signal}")),
        (None, code) => EngineTrouble::Crashed(format!("code {}", code.unwrap_or_default())),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use kai_llm::Request;

    use super::*;
    use crate::frame::PIECE;

    /// A worker that says this as soon as it runs, and takes nothing of what it is told.
    fn deaf(folder: &Path, says: &[Frame]) -> Launch {
        let file = folder.join("says");
        let mut said = File::create(&file).unwrap();
        Frame::json(&Event::Ready).unwrap().write(&mut said).unwrap();
        for frame in says {
            frame.write(&mut said).unwrap();
        }
        Launch::of("/bin/sh", ["-c", "cat \"$0\" && exec sleep 1000", file.to_str().unwrap()])
    }

    async fn started(launch: &Launch) -> Worker {
        let load = Load { file: PathBuf::from("/no/model.gguf"), window: 1, threads: 1 };
        Worker::start(launch, load).await.unwrap()
    }

    #[tokio::test]
    async fn a_worker_that_takes_nothing_counts_as_hung() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch { patience: Duration::ZERO, ..deaf(folder.path(), &[]) };
        let hung: Result<(), ModelError> = Err(ModelError::Engine(EngineTrouble::Hung));
        // Neither fits into the pipe.
        let answers = ["a".repeat(PIECE), String::new()];
        let order = Order::Prefer { request: Request::default(), answers };
        assert_eq!(started(&launch).await.send(&order).await, hung, "a question");
        let piece = Frame::Raw(vec![0; PIECE]);
        assert_eq!(started(&launch).await.pass(&piece).await, hung, "a piece of a state");
    }

    #[tokio::test]
    async fn a_worker_that_was_ended_takes_no_memory_from_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let worker = started(&deaf(folder.path(), &[])).await;
        let process = Path::new("/proc").join(worker.child.id().unwrap().to_string());
        assert!(process.exists());
        worker.finish().await;
        assert!(!process.exists(), "it is gone, and not only told to go");
    }

    #[tokio::test]
    async fn a_state_that_comes_after_a_stop_is_kept_where_it_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let states = States::new(folder.path().join("states"), &[7; 32]);
        let says = [
            Frame::json(&Event::Keep { key: "k".to_owned(), bytes: 3 }).unwrap(),
            Frame::Raw(b"abc".to_vec()),
            Frame::json(&Event::Stopped).unwrap(),
        ];
        let launch = deaf(folder.path(), &says).stopping_within(Duration::MAX);
        let mut worker = started(&launch).await;
        worker.stop(Some(&states)).await.unwrap();
        assert!(states.has(&worker.name("k")) && !states.has("k"));
    }
}
