//! Turns started from the page. They belong to the daemon and not to a browser tab: closing the page does not stop
//! them, and a page opened in the middle shows the progress so far.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use kai_assistant::agent::conversation::{ConversationId, Which};
use kai_assistant::agent::{self, ApprovalRequest, Face, Saying, queued};
use kai_assistant::lock::lock;
use kai_assistant::{hex, lease};
use kai_llm::ToolCall;
use kai_words::{Said, said};
use sha2::{Digest, Sha256};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::reasons;
use super::remedy::Trouble;
use crate::app::App;
use crate::commands::chats::{self, GoOn, Unanswered};

/// How long a question waits for a click; after that it counts as denied. Shorter than the lease of a turn, which would
/// otherwise expire meanwhile.
const PATIENCE: Duration = Duration::from_mins(10);

/// How long a stopped turn may take to give its conversation back.
const SETTLES: Duration = Duration::from_secs(3);

/// All turns of the page that are running, or that ended without an answer.
#[derive(Default)]
pub(super) struct Turns {
    known: Mutex<BTreeMap<ConversationId, Arc<Turn>>>,
    /// Why the first queued message of a conversation could not be sent by itself.
    unsent: Mutex<BTreeMap<ConversationId, Trouble>>,
    moved: watch::Sender<u64>,
}

#[derive(Default)]
struct Turn {
    cancel: CancellationToken,
    sight: Mutex<Sight>,
    /// Where to send the answer to each open question, by the question's hash.
    clicks: Mutex<BTreeMap<String, oneshot::Sender<bool>>>,
}

/// The state of a turn that pages show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// The reply that is being written, as far as it has come.
    pub(super) answer: String,
    pub(super) tools: Vec<RunningTool>,
    /// Why the turn takes longer than usual, and what Kai does about it.
    pub(super) note: Option<[Said; 2]>,
    /// How much of the request the model has read, if it tells.
    pub(super) reading: Option<u8>,
    pub(super) questions: Vec<PendingApproval>,
    /// `None` while the turn is running.
    pub(super) ended: Option<Ended>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunningTool {
    call: String,
    pub(super) tool: String,
    /// How far it is, in the words of an MCP server; empty if nothing was said.
    pub(super) progress: String,
}

/// How a turn ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    Stopped,
    Failed(Trouble),
}

/// A tool call that waits for the user's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingApproval {
    /// Identifies this exact call, and this one time that it was asked about.
    pub(super) hash: String,
    pub(super) tool: String,
    pub(super) arguments: String,
    /// What a number or a key in the arguments stands for.
    pub(super) about: Option<String>,
}

/// What a turn has to answer.
pub(super) enum TurnInput {
    Said(Saying, Which),
    /// Begins a conversation with a text that quotes others' messages, and the ledger's names of those.
    About(String, Vec<String>),
    /// Goes on in this conversation without a new message.
    GoOn(ConversationId, GoOn),
}

impl TurnInput {
    /// The conversation that it goes into, if there is one yet.
    fn conversation(&self) -> Option<ConversationId> {
        match self {
            Self::Said(_, Which::Id(id)) | Self::GoOn(id, _) => Some(*id),
            Self::Said(_, Which::New | Which::Newest | Which::Question) | Self::About(..) => None,
        }
    }
}

impl Turns {
    /// A counter that changes whenever the state of a turn does.
    pub(super) fn moves(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Starts a turn, and returns as soon as the user's message is stored.
    pub(super) async fn start(
        self: &Arc<Self>,
        app: &Arc<App>,
        saying: TurnInput,
        stop: CancellationToken,
    ) -> Result<ConversationId, Trouble> {
        if let Some(id) = saying.conversation() {
            self.settle(app, id).await;
        }
        let (began, stored) = oneshot::channel();
        let turn = Arc::new(Turn::default());
        let (turns, id, began) = (Arc::clone(self), OnceLock::new(), Mutex::new(Some(began)));
        let face = Arc::new(PageFace { turns, turn, id, began });
        let running = tokio::spawn(run(face, Arc::clone(app), saying, stop));
        match stored.await {
            Ok(id) => Ok(id),
            Err(_) => Err(match running.await {
                Ok(Some(Ended::Failed(trouble))) => trouble,
                _ => said::turn_kai_stops().into(),
            }),
        }
    }

    /// A turn that was stopped gives its conversation back a moment later: waits for that.
    pub(super) async fn settle(&self, app: &App, id: ConversationId) {
        let has_ended = self.sight(id).is_some_and(|sight| sight.ended.is_some());
        if has_ended {
            let _ = tokio::time::timeout(SETTLES, Self::until_free(app, id, SETTLES)).await;
        }
    }

    /// Waits until nobody answers in this conversation. `look` is how often another process is looked after.
    pub(super) async fn until_free(app: &App, id: ConversationId, look: Duration) {
        let mut changes = app.db.changes();
        loop {
            let now = app.clock.now();
            let held = app.db.read(move |tx| lease::held(tx, &id.lease(), now)).await;
            if !held.is_ok_and(|held: bool| held) {
                return;
            }
            let _ = tokio::time::timeout(look, changes.changed()).await;
        }
    }

    /// Sends the first message that was queued while a turn ran, once that was answered. Boxed, because the turn that
    /// this starts does the same.
    fn send_queued<'a>(
        self: &'a Arc<Self>,
        app: &'a Arc<App>,
        id: ConversationId,
        stop: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            if stop.is_cancelled() {
                return;
            }
            let due = app.db.write(move |tx| queued::turn_comes(tx, id)).await;
            if due.is_ok_and(|due: bool| due)
                && let Err(trouble) = self.start(app, TurnInput::GoOn(id, GoOn::Queued(None)), stop).await
            {
                self.keep_unsent(id, trouble);
            }
        })
    }

    /// Keeps why a queued message could not be sent by itself, for the page to show.
    pub(super) fn keep_unsent(&self, id: ConversationId, trouble: Trouble) {
        lock(&self.unsent).insert(id, trouble);
        self.move_on();
    }

    pub(super) fn unsent(&self, id: ConversationId) -> Option<Trouble> {
        lock(&self.unsent).get(&id).cloned()
    }

    /// Removes a turn that was answered; keeps one that was not, to show how it ended.
    fn end(&self, id: Option<ConversationId>, turn: &Arc<Turn>, ended: Option<Ended>) {
        let Some(id) = id else { return };
        let mut known = lock(&self.known);
        match ended {
            // Another turn may have started in this conversation meanwhile.
            None if known.get(&id).is_some_and(|there| Arc::ptr_eq(there, turn)) => drop(known.remove(&id)),
            None => {}
            Some(ended) => {
                let mut sight = lock(&turn.sight);
                (sight.tools, sight.questions, sight.note) = (vec![], vec![], None);
                sight.ended = Some(ended);
            }
        }
        drop(known);
        self.move_on();
    }

    /// Tells open pages that something changed that is not in the store.
    pub(super) fn move_on(&self) {
        self.moved.send_modify(|count| *count += 1);
    }

    pub(super) fn sight(&self, id: ConversationId) -> Option<Sight> {
        lock(&self.known).get(&id).map(|turn| lock(&turn.sight).clone())
    }

    pub(super) fn is_running(&self, id: ConversationId) -> bool {
        self.sight(id).is_some_and(|sight| sight.ended.is_none())
    }

    /// All questions that wait for a click, in any conversation.
    pub(super) fn questions(&self) -> Vec<(ConversationId, PendingApproval)> {
        let known = lock(&self.known);
        let of = |(id, turn): (&ConversationId, &Arc<Turn>)| {
            lock(&turn.sight)
                .questions
                .clone()
                .into_iter()
                .map(|question| (*id, question))
                .collect::<Vec<_>>()
        };
        known.iter().flat_map(of).collect()
    }

    /// Stops a turn, on the user's request. What was shown so far stays visible until the next turn.
    pub(super) fn stop(&self, id: ConversationId) {
        if let Some(turn) = lock(&self.known).get(&id) {
            turn.cancel.cancel();
        }
    }

    /// Drops the turn of a conversation that was deleted.
    pub(super) fn forget(&self, id: ConversationId) {
        lock(&self.known).remove(&id);
        lock(&self.unsent).remove(&id);
    }

    /// Answers a question. Only the first answer counts; returns `false` if the question is no longer open.
    pub(super) fn click(&self, hash: &str, yes: bool) -> bool {
        let known = lock(&self.known);
        let answered = known.values().find_map(|turn| lock(&turn.clicks).remove(hash));
        answered.is_some_and(|answer| answer.send(yes).is_ok())
    }
}

/// Runs one turn to its end, whether or not a page is open. `None` if it was answered.
async fn run(
    face: Arc<PageFace>,
    app: Arc<App>,
    saying: TurnInput,
    stop: CancellationToken,
) -> Option<Ended> {
    let (watched, cancel) = (Arc::clone(&face), face.turn.cancel.clone());
    let (answering, stopping) = (Arc::clone(&app), stop.clone());
    // Runs in its own task, so that a panic ends the turn like any other failure.
    let task = tokio::spawn(async move {
        tokio::select! {
            outcome = answer(&answering, saying, watched.as_ref()) => Some(outcome),
            () = cancel.cancelled() => None,
            () = stopping.cancelled() => None,
        }
    });
    let ended = match task.await {
        Ok(Some(Ok(()))) => None,
        Ok(Some(Err(why))) => Some(Ended::Failed(reasons::unanswered(&why))),
        Ok(None) => Some(Ended::Stopped),
        Err(_) => Some(Ended::Failed(said::turn_bug().into())),
    };
    let id = face.id.get().copied();
    face.turns.end(id, &face.turn, ended.clone());
    if let (Some(id), None) = (id, &ended) {
        face.turns.send_queued(&app, id, stop).await;
    }
    ended
}

async fn answer(app: &App, saying: TurnInput, face: &dyn Face) -> Result<(), Unanswered> {
    match saying {
        TurnInput::Said(said, which) => chats::ask(app, &app.env, said, which, face).await.map(drop),
        TurnInput::About(text, quotes) => chats::ask_about(app, &app.env, text, quotes, face).await.map(drop),
        TurnInput::GoOn(id, how) => chats::go_on(app, &app.env, id, how, face).await.map(drop),
    }
}

/// Shows one turn on all open pages, and asks for approval there.
struct PageFace {
    turns: Arc<Turns>,
    turn: Arc<Turn>,
    id: OnceLock<ConversationId>,
    /// Tells [`Turns::start`] that the user's message is stored.
    began: Mutex<Option<oneshot::Sender<ConversationId>>>,
}

impl PageFace {
    fn begins(&self, id: ConversationId) {
        let _ = self.id.set(id);
        lock(&self.turns.unsent).remove(&id);
        lock(&self.turns.known).insert(id, Arc::clone(&self.turn));
        if let Some(began) = lock(&self.began).take() {
            let _ = began.send(id);
        }
    }

    /// Shows a question and waits for its answer, then removes it. `None` if nobody answered in time.
    async fn asks(&self, asking: &ApprovalRequest) -> Option<bool> {
        let ApprovalRequest { call, about } = asking.clone();
        let hash = self.hash(&call);
        let (click, clicked) = oneshot::channel();
        lock(&self.turn.clicks).insert(hash.clone(), click);
        let (tool, arguments) = (call.name, call.arguments);
        self.changes(|sight| {
            // What the model said before the call is stored by now.
            sight.answer.clear();
            sight.questions.push(PendingApproval { hash: hash.clone(), tool, arguments, about });
        });
        let said = tokio::time::timeout(PATIENCE, clicked).await.ok().and_then(Result::ok);
        lock(&self.turn.clicks).remove(&hash);
        self.changes(|sight| sight.questions.retain(|question| question.hash != hash));
        said
    }

    /// Hashes the exact call. The two counters make asking twice about the same call two different questions.
    fn hash(&self, call: &ToolCall) -> String {
        let asked = lock(&self.turn.clicks).len() as u64;
        let moment = *self.turns.moved.borrow();
        let mut hash = Sha256::new();
        hash.update(asked.to_be_bytes());
        hash.update(moment.to_be_bytes());
        for part in [&call.id.0, &call.name, &call.arguments] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(&hash.finalize())
    }

    fn changes(&self, change: impl FnOnce(&mut Sight)) {
        change(&mut lock(&self.turn.sight));
        self.turns.move_on();
    }
}

impl Face for PageFace {
    fn shows(&self, event: agent::Event) {
        if let agent::Event::Began { conversation } = event {
            self.begins(conversation);
        }
        self.changes(|sight| match event {
            agent::Event::Began { .. } => {}
            agent::Event::Reading { percent } => sight.reading = Some(percent),
            agent::Event::Delta { text } => {
                (sight.note, sight.reading) = (None, None);
                sight.answer.push_str(&text);
            }
            agent::Event::Again { why, asking } => {
                sight.answer.clear();
                sight.reading = None;
                sight.note = Some([why, asking]);
            }
            agent::Event::ToolStarted { call, tool } => {
                // What the model said before the call is stored by now.
                sight.answer.clear();
                sight.reading = None;
                sight.tools.push(RunningTool { call, tool, progress: String::new() });
            }
            agent::Event::ToolProgress { call, progress, .. } => {
                if let Some(running) = sight.tools.iter_mut().find(|running| running.call == call) {
                    running.progress = progress;
                }
            }
            agent::Event::ToolFinished { call, .. } => sight.tools.retain(|running| running.call != call),
        });
    }

    fn elsewhere(&self) -> bool {
        true
    }

    fn allows<'a>(
        &'a self,
        asking: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Option<bool>> + Send + 'a>> {
        Box::pin(self.asks(asking))
    }
}

#[cfg(test)]
mod tests {
    use kai_llm::CallId;

    use super::*;

    fn face() -> PageFace {
        let face = PageFace {
            turns: Arc::default(),
            turn: Arc::default(),
            id: OnceLock::new(),
            began: Mutex::new(None),
        };
        face.begins(ConversationId(7));
        face
    }

    fn call(arguments: &str) -> ApprovalRequest {
        let (name, arguments) = ("memory_store".to_owned(), arguments.to_owned());
        let call = ToolCall { id: CallId("1".to_owned()), name, arguments, signature: None };
        ApprovalRequest { call, about: None }
    }

    #[tokio::test]
    async fn the_first_click_counts_and_only_for_its_own_question() {
        for yes in [true, false] {
            let face = Arc::new(face());
            let (one, other) = (Arc::clone(&face), Arc::clone(&face));
            let first = tokio::spawn(async move { one.allows(&call("{}")).await });
            let second = tokio::spawn(async move { other.allows(&call("{\"key\": 1}")).await });
            let turns = &face.turns;
            while turns.questions().len() < 2 {
                tokio::task::yield_now().await;
            }
            let hash = |arguments: &str| {
                let asked = turns.questions().into_iter().find(|(_, q)| q.arguments == arguments);
                asked.unwrap().1.hash
            };
            let (plain, keyed) = (hash("{}"), hash("{\"key\": 1}"));
            assert_ne!(plain, keyed);
            assert!(!turns.click("made up", true));
            assert!(turns.click(&plain, yes));
            assert!(!turns.click(&plain, !yes), "it was answered");
            assert_eq!(first.await.unwrap(), Some(yes));
            assert_eq!(turns.questions().len(), 1);
            assert!(turns.click(&keyed, !yes));
            assert_eq!(second.await.unwrap(), Some(!yes));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_nobody_answers_is_no_word_of_theirs() {
        let face = face();
        assert_eq!(face.allows(&call("{}")).await, None);
        assert!(face.turns.questions().is_empty());
    }

    #[test]
    fn what_was_said_before_a_call_is_not_shown_twice() {
        let face = face();
        face.shows(agent::Event::Delta { text: "Let me see.".to_owned() });
        let (call, tool) = ("1".to_owned(), "get_local_time".to_owned());
        face.shows(agent::Event::ToolStarted { call: call.clone(), tool: tool.clone() });
        let sight = face.turns.sight(ConversationId(7)).unwrap();
        assert_eq!((sight.answer.as_str(), sight.tools.len()), ("", 1));
        face.shows(agent::Event::ToolFinished { call, tool, failed: None });
        face.shows(agent::Event::Delta { text: "Noon.".to_owned() });
        let sight = face.turns.sight(ConversationId(7)).unwrap();
        assert_eq!((sight.answer.as_str(), sight.tools.len()), ("Noon.", 0));
    }
}
