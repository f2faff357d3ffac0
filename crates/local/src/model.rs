//! A model that runs inside Kai, behind the port for models.
//!
//! One worker serves all models and all conversations of a home, one question at a time. It is started by the first
//! question and ends when nobody asked anything for a while.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kai_llm::{
    CallId, Delta, Deltas, EngineTrouble, Judging, Model, ModelError, Place, Reply, Replying, Request, Scale,
    ToolCall,
};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, mpsc};
use tokio::time::timeout;

use crate::machine;
use crate::order::{Done, Event, Load, Order};
use crate::running::{Launch, Worker};
use crate::states::States;

/// The memory that a model needs besides its weights, at least.
const ROOM: u64 = 256 * 1024 * 1024;

/// The engine of a home: starts and ends the worker.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    launch: Launch,
    states: Option<States>,
    worker: Arc<Mutex<Option<Worker>>>,
    /// The file of the question that had the worker last. The worker has loaded this one, or is about to.
    asked: std::sync::Mutex<Option<PathBuf>>,
    /// Somebody asked, so the worker is not idle.
    used: Arc<Notify>,
}

/// A model's file and how to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    pub file: PathBuf,
    /// Its name, for what is learned about it.
    pub model: String,
    pub window: usize,
    pub threads: usize,
    /// How long the worker may be idle before it ends.
    pub idle: Duration,
    pub scale: Scale,
}

impl Engine {
    /// An engine whose states of prompts are kept in `states`, if that is given.
    pub fn new(launch: Launch, states: Option<States>) -> Self {
        let (worker, asked, used) = (Arc::default(), std::sync::Mutex::default(), Arc::default());
        Self { shared: Arc::new(Shared { launch, states, worker, asked, used }) }
    }

    /// The model in this file.
    pub fn model(&self, local: Local) -> Box<dyn Model> {
        Box::new(LocalModel { engine: self.clone(), local })
    }

    /// Ends the worker, after the question that it is answering.
    pub async fn end(&self) {
        let mut worker = self.shared.worker.lock().await;
        finish(&mut worker).await;
    }

    /// Ends the worker if it has loaded this file, after the question that it is answering. With another file it is left
    /// alone, and not waited for.
    pub async fn end_of(&self, file: &Path) {
        let is_asked = self.shared.asked.lock().is_ok_and(|asked| asked.as_deref() == Some(file));
        if !is_asked {
            return;
        }
        let mut worker = self.shared.worker.lock().await;
        // Meanwhile there may have been a question to another model.
        if worker.as_ref().is_some_and(|worker| worker.load.file == file) {
            finish(&mut worker).await;
        }
    }

    /// Asks the worker in a task of its own, so that a caller who goes away leaves it in order.
    fn ask(&self, local: &Local, order: Order) -> mpsc::UnboundedReceiver<Heard> {
        let (tell, heard) = mpsc::unbounded_channel();
        let (engine, local) = (self.clone(), local.clone());
        tokio::spawn(async move {
            let worker = tokio::select! {
                worker = Arc::clone(&engine.shared.worker).lock_owned() => worker,
                () = tell.closed() => return,
            };
            if let Ok(mut asked) = engine.shared.asked.lock() {
                *asked = Some(local.file.clone());
            }
            engine.shared.used.notify_waiters();
            let mut turn = Asking { shared: Arc::clone(&engine.shared), worker, tell, local };
            turn.run(order).await;
            turn.rest();
        });
        heard
    }
}

/// What is heard of a question.
enum Heard {
    Reading(u8),
    Text(String),
    Done(Box<Done>),
    Preferred(f32),
    Failed(Box<ModelError>),
}

/// One question, which has the worker for itself.
struct Asking {
    shared: Arc<Shared>,
    worker: OwnedMutexGuard<Option<Worker>>,
    tell: mpsc::UnboundedSender<Heard>,
    local: Local,
}

impl Asking {
    async fn run(&mut self, order: Order) {
        if let Err(error) = self.conversation(order).await {
            if matches!(error, ModelError::Engine(_)) {
                // Whatever state it is in, it is of no use any more, and the next question needs its memory.
                finish(&mut self.worker).await;
            }
            let _ = self.tell.send(Heard::Failed(Box::new(error)));
        }
    }

    async fn conversation(&mut self, order: Order) -> Result<(), ModelError> {
        self.ready().await?;
        let (states, tell) = (self.shared.states.clone(), self.tell.clone());
        let Some(worker) = self.worker.as_mut() else { return Err(ModelError::Engine(EngineTrouble::Hung)) };
        let stops_within = worker.stops_within;
        sent(worker.send(&order), &tell, stops_within).await?;
        loop {
            let Some(event) = next(worker, &tell).await? else { return worker.stop(states.as_ref()).await };
            match event {
                Event::Reading { percent } => drop(tell.send(Heard::Reading(percent))),
                Event::Text { text } => drop(tell.send(Heard::Text(text))),
                Event::Wants { key } => {
                    sent(worker.give(states.as_ref(), &key), &tell, stops_within).await?;
                }
                Event::Keep { key, bytes } => worker.keep(states.as_ref(), &key, bytes).await?,
                Event::Done(done) => {
                    let _ = tell.send(Heard::Done(Box::new(done)));
                    return Ok(());
                }
                Event::Preferred { margin } => {
                    let _ = tell.send(Heard::Preferred(margin));
                    return Ok(());
                }
                Event::Ready | Event::Writing | Event::Stopped | Event::TooLong { .. } | Event::Failed(_) => {
                }
            }
        }
    }

    /// Makes sure that the worker runs and has this model.
    async fn ready(&mut self) -> Result<(), ModelError> {
        let Local { file, window, threads, .. } = self.local.clone();
        let load = Load { file, window, threads };
        if self.worker.as_ref().is_some_and(|worker| worker.load == load) {
            return Ok(());
        }
        // The old one goes first: two models may not fit into memory.
        finish(&mut self.worker).await;
        if !load.file.is_file() {
            return Err(ModelError::Engine(EngineTrouble::NoFile));
        }
        bearable(&load)?;
        *self.worker = Some(Worker::start(&self.shared.launch, load).await?);
        Ok(())
    }

    /// Leaves the worker to the next question, and ends it if none comes. An engine that is gone ends its worker at once.
    fn rest(self) {
        let Self { shared, worker: held, local, .. } = self;
        let (used, worker) = (Arc::clone(&shared.used), Arc::downgrade(&shared.worker));
        tokio::spawn(async move {
            let next = used.notified();
            tokio::pin!(next);
            // From here on no question goes unnoticed; only then the next one may begin.
            next.as_mut().enable();
            drop(held);
            drop(shared);
            if timeout(local.idle, next).await.is_err()
                && let Some(worker) = worker.upgrade()
                // Somebody who has it is asking.
                && let Ok(mut worker) = worker.try_lock()
            {
                finish(&mut worker).await;
            }
        });
    }
}

/// Ends the worker, if there is one.
async fn finish(worker: &mut Option<Worker>) {
    if let Some(worker) = worker.take() {
        worker.finish().await;
    }
}

/// Refuses a model that this machine's memory cannot hold now: it would only make everything else slow, or be ended.
fn bearable(load: &Load) -> Result<(), ModelError> {
    const MIB: u64 = 1024 * 1024;
    let Ok(file) = std::fs::metadata(&load.file) else { return Ok(()) };
    let (needs, free) = (file.len() + ROOM, machine::look(&load.file).available);
    if free == 0 || free >= needs {
        return Ok(());
    }
    Err(ModelError::Engine(EngineTrouble::NoMemory { needs_mib: needs / MIB, free_mib: free / MIB }))
}

/// The next event, or `None` if nobody waits for the answer any more.
async fn next(worker: &mut Worker, tell: &mpsc::UnboundedSender<Heard>) -> Result<Option<Event>, ModelError> {
    tokio::select! {
        biased;
        () = tell.closed() => Ok(None),
        event = worker.next() => event.map(Some),
    }
}

/// Sends something to the worker. When nobody waits for the answer any more, the worker may take as long as for a stop:
/// after half a frame it would be of no use for the next question, and a frozen one takes nothing.
async fn sent(
    sending: impl Future<Output = Result<(), ModelError>>,
    tell: &mpsc::UnboundedSender<Heard>,
    stops_within: Duration,
) -> Result<(), ModelError> {
    tokio::pin!(sending);
    tokio::select! {
        biased;
        taken = &mut sending => return taken,
        () = tell.closed() => {}
    }
    timeout(stops_within, sending).await.unwrap_or(Err(ModelError::Engine(EngineTrouble::Hung)))
}

/// A model in a file, run by the engine.
struct LocalModel {
    engine: Engine,
    local: Local,
}

impl LocalModel {
    async fn answered(&self, request: &Request, deltas: Deltas<'_>) -> Result<Reply, ModelError> {
        let mut heard = self.engine.ask(&self.local, Order::Ask { request: request.clone() });
        loop {
            match heard.recv().await {
                Some(Heard::Reading(percent)) => deltas(Delta::Reading { percent }),
                Some(Heard::Text(text)) => deltas(Delta::Text(&text)),
                Some(Heard::Done(done)) => return reply(*done),
                Some(Heard::Failed(error)) => return Err(*error),
                Some(Heard::Preferred(_)) | None => return Err(ModelError::Engine(EngineTrouble::Hung)),
            }
        }
    }

    async fn weighed(&self, request: &Request, answers: [&str; 2]) -> Result<f32, ModelError> {
        let answers = answers.map(str::to_owned);
        let mut heard = self.engine.ask(&self.local, Order::Prefer { request: request.clone(), answers });
        loop {
            match heard.recv().await {
                Some(Heard::Reading(_) | Heard::Text(_)) => {}
                Some(Heard::Preferred(margin)) => return Ok(margin),
                Some(Heard::Failed(error)) => return Err(*error),
                Some(Heard::Done(_)) | None => return Err(ModelError::Engine(EngineTrouble::Hung)),
            }
        }
    }
}

fn reply(done: Done) -> Result<Reply, ModelError> {
    let Done { text, call, usage, cut_off, .. } = done;
    let call = call.map(|call| {
        let id = CallId(format!("call_{:016x}", getrandom::u64().map_err(crashed)?));
        Ok(ToolCall { id, name: call.name, arguments: call.arguments, signature: None })
    });
    let calls = call.transpose()?.into_iter().collect();
    Ok(Reply { text, calls, signature: None, usage, cut_off })
}

fn crashed(error: getrandom::Error) -> ModelError {
    ModelError::Engine(EngineTrouble::Crashed(error.to_string()))
}

impl Model for LocalModel {
    fn body(&self, request: &Request) -> Vec<u8> {
        serde_json::to_vec(request).unwrap_or_default()
    }

    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a> {
        Box::pin(self.answered(request, deltas))
    }

    fn window(&self) -> usize {
        self.local.window
    }

    fn place(&self) -> Option<Place> {
        Some(Place { base_url: self.local.file.display().to_string(), model: self.local.model.clone() })
    }

    fn scale(&self) -> Scale {
        self.local.scale
    }

    fn prefers<'a>(&'a self, request: &'a Request, answers: [&'a str; 2]) -> Option<Judging<'a>> {
        Some(Box::pin(self.weighed(request, answers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_worker_never_takes_is_given_up_with_the_question() {
        let (tell, heard) = mpsc::unbounded_channel();
        let hung = ModelError::Engine(EngineTrouble::Hung);
        let waiting = sent(std::future::pending(), &tell, Duration::ZERO);
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            taken = &mut waiting => panic!("somebody still waits for the answer: {taken:?}"),
            () = std::future::ready(()) => drop(heard),
        }
        assert_eq!(waiting.await, Err(hung));
        assert_eq!(sent(std::future::ready(Ok(())), &tell, Duration::ZERO).await, Ok(()), "it was taken");
    }
}
