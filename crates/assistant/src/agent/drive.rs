//! Carries out what a turn decides: asks models, runs tools, stores messages and informs the face.
//!
//! Dropping a running turn cancels it: the connection closes, tools stop, and what is stored remains a valid
//! conversation (a call without a result is repaired in the copy for the next request). The results of calls that had
//! finished are stored anyway, because their effects cannot be undone.
//!
//! There are two commits per round: one before a request is sent (the results since the last request, and the ledger's
//! record of the request), and one when the reply has arrived (the reply, and the ledger's record of each call that is
//! about to run).

use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use futures_util::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use kai_codes::KnownCodes;
use kai_llm::retry::TRIES;
use kai_llm::{
    Delta, Message, ModelError, Reply, Request, Scale, ToolCall, ToolSpec, Usage, fit_by, newest_pictures,
    repair, without_pictures,
};
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::conversation::{self, Codes, ConversationId, Entry, Instead, Which};
use super::fallback::{self, Able, Move};
use super::fitting::Fitting;
use super::likely::likely;
use super::meanings::Meanings;
use super::meter::Meter;
use super::opening::{Opened, Opening};
use super::queued::QueuedId;
use super::saying::Saying;
use super::small::{self, Moments, ToolSet};
use super::turn::{End, Offer, ROUNDS, Step, Turn};
use super::unseen::{Kept, Veil};
use super::{CallRunner, Event, Face, Ready, continued, prompt, reports};
use crate::attachments::sent::{self, Contents};
use crate::attachments::{self, Attachment, Refused};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::{self, Level, RunKind};
use crate::lease::{self, Lease};
use crate::ledger::{self, Held, Record, SentFile};
use crate::mcp::tools::FindTools;
use crate::mcp::{self, KnownTool};
use crate::memory::{self, Memory};
use crate::models::vision::Vision;
use crate::models::{self, trouble};
use crate::settings::{self, MEMORY_ENABLED, SOUL_TEXT, Values};
use crate::tool::{Provenance, Run, Tool, ToolResult};
use crate::toolbox::Toolbox;

/// Everything a turn needs.
#[derive(Clone, Copy)]
pub struct Driver<'a> {
    pub db: &'a Db,
    pub clock: &'a dyn Clock,
    pub toolbox: &'a Toolbox,
    /// In the order in which they are tried.
    pub models: &'a [Ready],
    pub face: &'a dyn Face,
    pub kind: RunKind,
    /// The level of a request at the start, before any tool has read anything.
    pub level: Level,
    /// The ledger identities of the messages that the prompt itself quotes.
    pub shown: &'a [String],
    pub platform: &'a str,
}

/// What a turn does with the pictures of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pictures {
    Shown,
    /// The user asked for an answer without them.
    LeftOut,
}

/// A finished turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub conversation: ConversationId,
    pub end: End,
    /// The answer was cut off at the model's output limit.
    pub cut_off: bool,
    pub answered_by: String,
    pub usage: Usage,
}

/// Why a turn has no answer. The user's message and every finished round are stored all the same.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum TurnError {
    /// No model is set up.
    NoModel,
    /// There is no such conversation.
    Unknown(ConversationId),
    /// The conversation is being answered already.
    Busy(ConversationId),
    /// Another process took over the conversation, so the rest of the answer was not stored.
    TakenOver(ConversationId),
    /// The conversation has no message that could be answered again.
    NothingSaid(ConversationId),
    /// The conversation is not as the user saw it any more.
    Changed(ConversationId),
    /// The message has a picture, and the model is known not to see any. Nothing was stored or sent.
    CannotSee {
        label: String,
    },
    /// A file could not be attached. Nothing was stored or sent.
    File(Refused),
    Model {
        label: String,
        error: ModelError,
        usage: Usage,
    },
    /// The model gave an empty answer.
    Empty {
        label: String,
        usage: Usage,
    },
    Store(#[from] DbError),
}

impl TurnError {
    /// The error in the user's language. It names no command, because the page shows it too.
    pub fn said(&self) -> Said {
        match self {
            Self::NoModel => said::turn_no_model(),
            Self::Unknown(id) => said::turn_no_chat(id.0),
            Self::Busy(_) => said::turn_busy(),
            Self::TakenOver(_) => said::turn_taken_over(),
            Self::NothingSaid(_) => said::turn_nothing_said(),
            Self::Changed(_) => said::turn_changed(),
            Self::CannotSee { label } => said::turn_cannot_see(label),
            Self::File(refused) => refused.said(),
            Self::Model { label, error, .. } => trouble::said(label, error),
            Self::Empty { label, .. } => said::turn_empty(label),
            Self::Store(error) => error.said(),
        }
    }

    /// The tokens that the failed turn used.
    pub fn usage(&self) -> Usage {
        match self {
            Self::Model { usage, .. } | Self::Empty { usage, .. } => *usage,
            Self::NoModel
            | Self::Unknown(_)
            | Self::Busy(_)
            | Self::TakenOver(_)
            | Self::NothingSaid(_)
            | Self::Changed(_)
            | Self::CannotSee { .. }
            | Self::File(_)
            | Self::Store(_) => Usage::default(),
        }
    }
}

/// Sent before a heartbeat's reports when the user asks about them; never stored.
const REPORTS: &str = "What did the heartbeats report?";

/// How long a turn may go without renewing its lease before it counts as dead.
const LEASE: SignedDuration = SignedDuration::from_mins(15);

/// The inputs of a request besides the conversation; read again for each request.
struct RequestContext {
    values: Values,
    /// Confirmed memories only: they count as the user's own words, so they do not raise the level.
    memories: Vec<Memory>,
    /// The tools of MCP servers that may be used.
    foreign: Vec<KnownTool>,
    /// Which codes to hide from the model. The user may change this while a turn runs.
    kept: Kept,
    shown: KnownCodes,
}

impl RequestContext {
    /// `look` has the tools check what the store says of them.
    fn read(
        tx: &Transaction<'_>,
        id: ConversationId,
        kind: RunKind,
        look: impl Fn(&Transaction<'_>, &Values) -> Result<(), DbError>,
    ) -> Result<Self, DbError> {
        let values = settings::load(tx)?;
        look(tx, &values)?;
        // A task may search the web, and its prompt contains all it needs. Without memories, its requests contain
        // nothing private that could leak.
        let remembers = kind != RunKind::Task && values.on(&MEMORY_ENABLED);
        let memories = if remembers { memory::store::confirmed(tx)? } else { vec![] };
        let kept = conversation::kept(tx, id, &values)?;
        let shown = conversation::shown_codes(tx, id)?;
        let foreign = mcp::store::usable(tx)?;
        Ok(Self { values, memories, foreign, kept, shown })
    }

    /// Builds the veil that hides codes shown in these messages or earlier; `None` if the model may see them.
    fn veil(&self, messages: &[Message], meanings: &Meanings) -> Option<Veil> {
        Some(Veil::new(self.kept.for_model()?, self.shown.clone(), meanings.with(messages)))
    }
}

/// A [`RequestContext`] and when it was read.
struct Surroundings {
    context: RequestContext,
    /// How many changes the store had seen by then, the one that it was read with included.
    changes: u64,
    at: Timestamp,
}

/// For how long a context counts that no change of this process followed. Another process may have changed something in
/// that time; it might as well have done so just after the request was sent.
const STILL_TRUE: SignedDuration = SignedDuration::from_secs(1);

impl Surroundings {
    fn hold(&self, db: &Db, now: Timestamp) -> bool {
        *db.changes().borrow() == self.changes && now.duration_since(self.at).abs() < STILL_TRUE
    }
}

/// The state of a running turn: its decisions, and what is not stored yet.
struct Progress {
    /// 0 for a turn without a conversation.
    conversation: ConversationId,
    /// `None` for a turn without a conversation.
    lease: Option<TurnLease>,
    /// The highest level so far.
    level: Level,
    /// The user just sent the message that this turn began with; false if an earlier message is answered again.
    said_now: bool,
    /// How many of the user's last messages belong to this turn.
    asked: usize,
    turn: Turn,
    pictures: Pictures,
    /// The files of the conversation, oldest first, and what is in the newest of them.
    files: Vec<Attachment>,
    contents: Contents,
    /// The meanings of the results among the turn's messages.
    meanings: Meanings,
    /// When the user's messages were sent, and which tools a small model gets.
    moments: Moments,
    set: ToolSet,
    /// What a small model remembers in this turn. It stays the same when the turn stores a memory: the model would have
    /// to read everything after it again.
    remembered: OnceLock<Vec<Memory>>,
    /// How many of the turn's messages are stored.
    stored: usize,
    finished: Finished,
    /// Index of the model that is asked. One that failed is not asked again in this turn.
    asking: usize,
    answered_by: String,
    /// The first model of this turn that could not answer, if another one was asked for it, and why.
    replaced: Option<(String, ModelError)>,
    usage: Usage,
    /// When the last request was sent.
    sent_at: Timestamp,
    cut_off: bool,
    /// The request size that fits the model that is asked.
    fitting: Fitting,
    meter: Arc<Meter>,
}

impl Progress {
    /// Begins a turn. Everything in `history` counts as stored: either it is, or this turn stores nothing.
    fn of(
        conversation: ConversationId,
        lease: Option<TurnLease>,
        level: Level,
        history: Vec<Message>,
    ) -> (Self, Step) {
        Self::at(conversation, lease, level, Turn::start(history, ROUNDS))
    }

    fn at(
        conversation: ConversationId,
        lease: Option<TurnLease>,
        level: Level,
        (turn, step): (Turn, Step),
    ) -> (Self, Step) {
        let stored = turn.messages().len();
        let finished = lease.as_ref().map(|held| held.finished.clone()).unwrap_or_default();
        let progress = Self {
            conversation,
            lease,
            level,
            said_now: true,
            asked: 1,
            turn,
            pictures: Pictures::Shown,
            files: vec![],
            contents: Contents::default(),
            meanings: Meanings::default(),
            moments: Moments::new(),
            set: ToolSet::default(),
            remembered: OnceLock::new(),
            stored,
            finished,
            asking: 0,
            answered_by: String::new(),
            replaced: None,
            usage: Usage::default(),
            sent_at: Timestamp::default(),
            cut_off: false,
            fitting: Fitting::default(),
            meter: Arc::default(),
        };
        (progress, step)
    }

    /// Whether the message that is answered has pictures that are to be seen.
    fn shows_pictures(&self) -> bool {
        let asked = self.turn.messages().get(self.turn.began_at());
        let has_some = matches!(asked, Some(Message::User { pictures, .. }) if !pictures.is_empty());
        has_some && self.pictures == Pictures::Shown
    }

    /// Whether any message of the conversation has a picture that goes along.
    fn sends_pictures(&self) -> bool {
        let has_some =
            |message: &Message| matches!(message, Message::User { pictures, .. } if !pictures.is_empty());
        self.pictures == Pictures::Shown && self.turn.messages().iter().any(has_some)
    }

    /// Handles the results of a round of calls.
    fn on_results(&mut self, results: Vec<ToolResult>) -> Step {
        let first = self.turn.messages().len();
        let (texts, meanings): (Vec<_>, Vec<_>) =
            results.into_iter().map(|result| (result.text, result.meaning)).unzip();
        (first..).zip(meanings).for_each(|(place, meaning)| self.meanings.keep(place, meaning));
        self.turn.on_results(texts)
    }

    /// Handles the model's reply. Calls that the turn itself refuses get results with the default meaning.
    fn on_reply(&mut self, reply: Reply, scale: Scale) -> Step {
        let refused = self.turn.messages().len() + 1;
        let step = match scale {
            Scale::Full => self.turn.on_reply(reply),
            Scale::Small => self.turn.on_small_reply(reply),
        };
        (refused..self.turn.messages().len())
            .for_each(|place| self.meanings.keep(place, Provenance::default()));
        step
    }

    /// Returns the messages that are not stored yet and marks them as stored; empty for a turn without a conversation.
    fn unstored(&mut self) -> Vec<Message> {
        let all = self.turn.messages();
        let from = std::mem::replace(&mut self.stored, all.len());
        if self.lease.is_some() { all[from..].to_vec() } else { vec![] }
    }
}

/// The results of a round's finished calls that are not stored yet, by the call's index in the round. Whichever
/// transaction runs first stores them: that of the next request, or the one that ends the turn.
#[derive(Clone, Default)]
struct Finished(Arc<Mutex<BTreeMap<usize, Ended>>>);

/// A finished call.
struct Ended {
    result: Message,
    meaning: Provenance,
    record: Record,
    at: Timestamp,
}

impl Finished {
    fn add(&self, place: usize, ended: Ended) {
        self.calls().insert(place, ended);
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<usize, Ended>> {
        lock(&self.0)
    }

    /// Stores the pending results in the ledger and, if there is one, in `conversation`, and runs `rest` in the same
    /// transaction. If that fails, the results stay pending for the next transaction.
    fn store<E: From<DbError>>(
        &self,
        tx: &Transaction<'_>,
        conversation: Option<ConversationId>,
        rest: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let ended = std::mem::take(&mut *self.calls());
        let kept = ended.values().try_for_each(|ended| ended.store(tx, conversation));
        let stored = kept.map_err(E::from).and_then(|()| rest());
        if stored.is_err() {
            self.calls().extend(ended);
        }
        stored
    }
}

impl Ended {
    fn store(&self, tx: &Transaction<'_>, conversation: Option<ConversationId>) -> Result<(), DbError> {
        if let Some(id) = conversation {
            conversation::append_result(tx, id, &self.result, &self.meaning, self.at)?;
        }
        ledger::append(tx, &self.record, self.at)
    }
}

/// When dropped, records the finished calls of a run without a conversation in the ledger, however the run ended.
struct Unwatched {
    db: Db,
    finished: Finished,
}

impl Drop for Unwatched {
    fn drop(&mut self) {
        if self.finished.calls().is_empty() {
            return;
        }
        let (db, finished) = (self.db.clone(), self.finished.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime
                .spawn_blocking(move || db.write_now(|tx| finished.store(tx, None, || Ok::<_, DbError>(()))));
        }
    }
}

/// The lease on the conversation that is being answered; held until this is dropped.
struct TurnLease {
    db: Db,
    conversation: ConversationId,
    lease: Lease,
    given_back: bool,
    begun: Timestamp,
    partial_reply: Mutex<PartialReply>,
    finished: Finished,
}

/// The part of a reply that has arrived so far, which is stored if the user stops the turn.
#[derive(Clone, Default)]
struct PartialReply {
    from: String,
    since: Timestamp,
    text: String,
}

impl TurnLease {
    fn partial_reply(&self) -> MutexGuard<'_, PartialReply> {
        lock(&self.partial_reply)
    }

    /// Releases the lease. Called before the answer is returned, so that the user's next message does not find the
    /// conversation busy.
    async fn give_back(mut self, now: Timestamp) -> Result<(), DbError> {
        self.given_back = true;
        let end = self.end(String::new(), now);
        self.db.write(end).await
    }

    /// Ends the turn in one transaction: stores what is pending, releases the lease, and adds the reports that waited
    /// for it. `said` is the partial text of a model that was stopped.
    fn end(
        &self,
        said: String,
        now: Timestamp,
    ) -> impl FnOnce(&Transaction<'_>) -> Result<(), DbError> + Send + 'static {
        let (id, lease, finished) = (self.conversation, self.lease.clone(), self.finished.clone());
        let PartialReply { from, since, .. } = self.partial_reply().clone();
        move |tx| {
            let ours = conversation::exists(tx, id)? && !lease::taken_over(tx, &lease)?;
            finished.store(tx, ours.then_some(id), || {
                if ours && !said.trim().is_empty() {
                    conversation::append_stopped(tx, id, &said, &from, since)?;
                }
                lease::give_back(tx, &lease)?;
                reports::land(tx, now)
            })
        }
    }
}

impl Drop for TurnLease {
    fn drop(&mut self) {
        if self.given_back {
            return;
        }
        let PartialReply { since, text, .. } = self.partial_reply().clone();
        let (db, end) = (self.db.clone(), self.end(text, since.max(self.begun)));
        // A cancelled turn is dropped and cannot await, so this writes in the background. Without a runtime the process
        // is ending, and the lease ends with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || db.write_now(end));
        }
    }
}

impl Driver<'_> {
    /// Answers a new message of the user.
    pub async fn turn(&self, which: Which, said: impl Into<Saying>) -> Result<Answer, TurnError> {
        self.answer(which, Opening::Said(said.into())).await
    }

    /// Sends the first message that is queued in this conversation, and answers it. If one is meant, it has to be that.
    pub async fn queued(
        &self,
        conversation: ConversationId,
        meant: Option<QueuedId>,
    ) -> Result<Answer, TurnError> {
        self.answer(Which::Id(conversation), Opening::Queued(meant)).await
    }

    /// Replaces the user's last message, and answers it. `seen` names that message: [`conversation::mark_of_last`].
    pub async fn rewritten(
        &self,
        conversation: ConversationId,
        seen: String,
        words: String,
    ) -> Result<Answer, TurnError> {
        self.answer(Which::Id(conversation), Opening::Rewritten { seen, words }).await
    }

    /// Answers the user's last message again.
    pub async fn again(&self, conversation: ConversationId) -> Result<Answer, TurnError> {
        self.answer(Which::Id(conversation), Opening::Again).await
    }

    /// Answers the user's last message again, without showing the model any picture.
    pub async fn again_without_pictures(&self, conversation: ConversationId) -> Result<Answer, TurnError> {
        self.answer_with(Which::Id(conversation), Opening::Again, Pictures::LeftOut).await
    }

    /// Goes on with the answer that the user stopped.
    pub async fn continued(&self, conversation: ConversationId) -> Result<Answer, TurnError> {
        self.answer(Which::Id(conversation), Opening::Continued).await
    }

    async fn answer(&self, which: Which, opening: Opening) -> Result<Answer, TurnError> {
        self.answer_with(which, opening, Pictures::Shown).await
    }

    async fn answer_with(
        &self,
        which: Which,
        opening: Opening,
        pictures: Pictures,
    ) -> Result<Answer, TurnError> {
        if self.models.is_empty() {
            return Err(TurnError::NoModel);
        }
        let (mut progress, step) = self.begin(which, opening, pictures).await?;
        self.face.shows(Event::Began { conversation: progress.conversation });
        let answer = self.go_on(&mut progress, step).await;
        if let Some(held) = progress.lease.take() {
            held.give_back(self.clock.now()).await?;
        }
        answer
    }

    /// Runs a turn that nobody watches, without a conversation: its messages are recorded only in the ledger, and the
    /// caller stores what it needs of the answer. `about` holds the words that say what it is about: a small model gets
    /// its tools by them. `meter` counts the cost, even if the run is dropped half-way.
    pub async fn unattended(
        &self,
        said: String,
        about: &str,
        meter: &Arc<Meter>,
    ) -> Result<Answer, TurnError> {
        self.unwatched(Turn::start(vec![Message::user(said)], ROUNDS), ToolSet::of(about), meter).await
    }

    /// The same, without tools: the model only writes.
    pub async fn worded(&self, said: String, meter: &Arc<Meter>) -> Result<Answer, TurnError> {
        self.unwatched(Turn::without_tools(vec![Message::user(said)]), ToolSet::default(), meter).await
    }

    async fn unwatched(
        &self,
        turn: (Turn, Step),
        set: ToolSet,
        meter: &Arc<Meter>,
    ) -> Result<Answer, TurnError> {
        if self.models.is_empty() {
            return Err(TurnError::NoModel);
        }
        let (progress, step) = Progress::at(ConversationId(0), None, self.level, turn);
        let moments = Moments::from([(0, self.clock.now())]);
        let mut progress = Progress { set, moments, meter: Arc::clone(meter), ..progress };
        let _unwatched = Unwatched { db: self.db.clone(), finished: progress.finished.clone() };
        self.go_on(&mut progress, step).await
    }

    async fn go_on(&self, progress: &mut Progress, mut step: Step) -> Result<Answer, TurnError> {
        let mut known = None;
        loop {
            step = match step {
                Step::AskModel { offer } => {
                    let around = self.surroundings(progress, known.take()).await?;
                    let reply = self.ask(progress, &around.context, offer).await?;
                    let (next, read) = self.keep_reply(progress, reply).await?;
                    known = read;
                    next
                }
                Step::RunTools(calls) => {
                    let around = self.surroundings(progress, known.take()).await?;
                    let results = self.run_all(progress, &around.context, &calls).await?;
                    known = Some(around);
                    progress.on_results(results)
                }
                Step::Done { text, .. } if text.trim().is_empty() => {
                    return Err(TurnError::Empty {
                        label: progress.answered_by.clone(),
                        usage: progress.usage,
                    });
                }
                Step::Done { text, end } => {
                    let Progress { conversation, usage, cut_off, .. } = *progress;
                    let answered_by = progress.answered_by.clone();
                    return Ok(Answer { text, conversation, end, cut_off, answered_by, usage });
                }
            };
        }
    }

    /// Takes the lease on the conversation and stores the user's message, in one transaction, before anything can fail.
    async fn begin(
        &self,
        which: Which,
        opening: Opening,
        pictures: Pictures,
    ) -> Result<(Progress, Step), TurnError> {
        let (now, said_now, request) = (self.clock.now(), opening.is_said_now(), opening.request());
        // The message that is answered, and what is asked besides.
        let asked = 1 + usize::from(request.is_some());
        let blind = self.models.first().filter(|first| first.vision == Vision::No);
        let blind = blind.filter(|_| pictures == Pictures::Shown).map(|first| first.label.clone());
        let begun = move |tx: &Transaction<'_>| {
            let id = conversation::find_or_begin(tx, which, now)?.ok_or(TurnError::Unknown(which.id()))?;
            // Reports that a dead turn left waiting go before the new message.
            reports::land(tx, now)?;
            let lease = lease::take(tx, &id.lease(), now, LEASE)?.ok_or(TurnError::Busy(id))?;
            match opening.store(tx, id, now)? {
                Opened::Ready => {}
                Opened::NothingSaid => return Err(TurnError::NothingSaid(id)),
                Opened::Changed => return Err(TurnError::Changed(id)),
                Opened::Refused(refused) => return Err(TurnError::File(refused)),
            }
            // A heartbeat's reports repeat what people wrote, although no tool result is among them; the stored level
            // covers that.
            let level = conversation::level(tx, id)?;
            let entries = conversation::entries(tx, id)?;
            if let Some(label) = blind.filter(|_| asks_about_picture(&entries)) {
                return Err(TurnError::CannotSee { label });
            }
            let files: Vec<Attachment> = entries.iter().flat_map(|entry| entry.files.clone()).collect();
            let contents = contents(tx, &files)?;
            Ok(Begun { id, lease, level, entries, files, contents })
        };
        let Begun { id: conversation, lease, level, entries, files, contents } =
            self.db.write(begun).await.map_err(|e: TurnError| e)?;
        let History { mut messages, meanings, moments, set } = history(entries, &contents);
        messages.extend(request);
        let (db, partial_reply, finished) = (self.db.clone(), Mutex::default(), Finished::default());
        let held =
            TurnLease { db, conversation, lease, given_back: false, begun: now, partial_reply, finished };
        let (progress, step) = Progress::of(conversation, Some(held), level.max(self.level), messages);
        Ok((
            Progress { said_now, asked, pictures, files, contents, meanings, moments, set, ..progress },
            step,
        ))
    }

    /// What the next request or call takes besides the conversation: what is known, as long as that holds, or read anew.
    async fn surroundings(
        &self,
        progress: &Progress,
        known: Option<Surroundings>,
    ) -> Result<Surroundings, DbError> {
        let now = self.clock.now();
        let around = match known.filter(|known| known.hold(self.db, now)) {
            Some(known) => known,
            None => self.read_surroundings(progress.conversation, now).await?,
        };
        self.toolbox.probe_access(&around.context.values).await;
        Ok(around)
    }

    async fn read_surroundings(&self, id: ConversationId, now: Timestamp) -> Result<Surroundings, DbError> {
        let (kind, look, changes) = (self.kind, self.toolbox.look(), self.db.changes());
        let read = move |tx: &Transaction<'_>| {
            let context = RequestContext::read(tx, id, kind, look)?;
            Ok(Surroundings { context, changes: *changes.borrow(), at: now })
        };
        self.db.read(read).await
    }

    /// Asks the models in order until one replies.
    async fn ask(
        &self,
        progress: &mut Progress,
        around: &RequestContext,
        offer: Offer,
    ) -> Result<Reply, TurnError> {
        let sees = |ready: &Ready| !progress.shows_pictures() || ready.vision != Vision::No;
        let able: Vec<Able> =
            self.models.iter().map(|ready| Able { local: ready.local, sees: sees(ready) }).collect();
        let mut failures = 0;
        progress.fitting.begin();
        loop {
            let ready = self.models.get(progress.asking).ok_or(TurnError::NoModel)?;
            let error = match self.attempt(progress, ready, around, offer).await? {
                Ok(reply) => {
                    progress.answered_by.clone_from(&ready.label);
                    self.learn(progress, ready).await?;
                    return Ok(reply);
                }
                Err(error) => error,
            };
            if self.retry_shorter(progress, ready, &error).await? {
                continue;
            }
            self.learn_blind(progress, ready, &error).await?;
            failures += 1;
            let next = fallback::after(&error, failures, progress.asking, &able);
            let again = |asking: Said| Event::Again { why: trouble::said(&ready.label, &error), asking };
            match next {
                Move::Again(pause) => {
                    self.face.shows(again(said::turn_again_attempt(&ready.label, failures + 1, TRIES)));
                    tokio::time::sleep(pause).await;
                }
                Move::Other(other) => {
                    (progress.asking, failures) = (other, 0);
                    progress.replaced.get_or_insert_with(|| (ready.label.clone(), error.clone()));
                    progress.fitting = Fitting::default();
                    let label = self.models.get(other).map(|other| other.label.clone());
                    self.face.shows(again(said::turn_again_other(label.unwrap_or_default())));
                }
                Move::Stop => {
                    let (label, error) = to_be_mended(progress, ready, error);
                    let usage = progress.usage;
                    return Err(TurnError::Model { label, error, usage });
                }
            }
        }
    }

    /// Whether the request was refused as too long and a shorter one should be tried. A limit that the model named is
    /// stored at once.
    async fn retry_shorter(
        &self,
        progress: &mut Progress,
        ready: &Ready,
        error: &ModelError,
    ) -> Result<bool, DbError> {
        let ModelError::TooLong { limit } = error else { return Ok(false) };
        if !progress.fitting.refused(*limit, ready.model.window()) {
            return Ok(false);
        }
        // A named limit that is not below the assumed window teaches nothing about the window: the request is simply
        // too long for it.
        if limit.is_some() && *limit == progress.fitting.shown() {
            self.learn(progress, ready).await?;
        }
        let asking = said::turn_again_shorter(&ready.label);
        self.face.shows(Event::Again { why: trouble::said(&ready.label, error), asking });
        Ok(true)
    }

    /// Stores the window size learned from refusals, for later turns.
    async fn learn(&self, progress: &Progress, ready: &Ready) -> Result<(), DbError> {
        let (Some(shown), Some(place)) = (progress.fitting.shown(), ready.model.place()) else {
            return Ok(());
        };
        self.db.write(move |tx| models::window::learned(tx, &place, shown)).await
    }

    /// Stores that a model's server refused a picture, so that the user is told before the next one is sent.
    async fn learn_blind(
        &self,
        progress: &Progress,
        ready: &Ready,
        error: &ModelError,
    ) -> Result<(), DbError> {
        let refused = matches!(error, ModelError::NoPictures { .. }) && progress.sends_pictures();
        match ready.model.place().filter(|_| refused) {
            Some(place) => self.db.write(move |tx| models::store::refused_picture(tx, &place)).await,
            None => Ok(()),
        }
    }

    /// Sends one request to one model. The ledger records it before it is sent.
    async fn attempt(
        &self,
        progress: &mut Progress,
        ready: &Ready,
        around: &RequestContext,
        offer: Offer,
    ) -> Result<Result<Reply, ModelError>, TurnError> {
        let window = progress.fitting.window(ready.model.window());
        let whole = self.request(progress, around, offer, ready, window);
        let (request, tokens) = fit_by(whole, window, progress.asked, likely);
        if hopeless(tokens, window) || !progress.fitting.sends(tokens) {
            return Ok(Err(ModelError::TooLong { limit: None }));
        }
        // The level never goes down: text that was read once may influence every later message.
        progress.level = self.level(progress);
        let held = Held { here: ready.local, ..self.held(progress, &request, offer) };
        let body = ready.model.body(&request);
        self.store_request(progress, ready, body.clone(), held).await?;
        let since = self.clock.now();
        progress.sent_at = since;
        let held = progress.lease.as_ref();
        if let Some(held) = held {
            let from = ready.label.clone();
            *held.partial_reply() = PartialReply { from, since, text: String::new() };
        }
        let meter = &progress.meter;
        meter.leaves(tokens);
        let deltas = |delta: Delta<'_>| {
            let text = match delta {
                Delta::Text(text) => text,
                Delta::Reading { percent } => return self.face.shows(Event::Reading { percent }),
            };
            meter.hears(text);
            if let Some(held) = held {
                held.partial_reply().text.push_str(text);
            }
            self.face.shows(Event::Delta { text: text.to_owned() });
        };
        let outcome = ready.model.reply_to(&request, body, &deltas).await;
        match &outcome {
            Ok(reply) => meter.answered(reply),
            Err(error) => meter.failed(error),
        }
        Ok(outcome)
    }

    /// What a request contains of others.
    fn held(&self, progress: &Progress, request: &Request, offer: Offer) -> Held {
        let turn = &progress.turn;
        // Without tools, this turn's results may be told again as text.
        let retold = if offer == Offer::Tools { &[] } else { &turn.messages()[turn.began_at()..] };
        let sent = [&request.messages[..], retold].concat();
        let mut seen = progress.meanings.mentions(turn.messages(), &sent);
        seen.extend(self.shown.iter().cloned());
        let sent = progress.contents.among(&request.messages, &progress.files);
        let mut files: Vec<SentFile> = vec![];
        for file in sent {
            let file = SentFile { hash: file.hash.clone(), bytes: file.size };
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Held { seen, files, here: false }
    }

    /// How much the first model can bear.
    pub fn scale(&self) -> Scale {
        self.models.first().map_or(Scale::Full, |ready| ready.model.scale())
    }

    /// The context window of the first model.
    pub fn window(&self) -> usize {
        self.models.first().map_or(kai_llm::window::UNKNOWN, |ready| ready.model.window())
    }

    fn request(
        &self,
        progress: &Progress,
        around: &RequestContext,
        offer: Offer,
        ready: &Ready,
        window: usize,
    ) -> Request {
        let turn = &progress.turn;
        let tools = match offer {
            Offer::Tools => self.offered(around, self.level(progress), turn.messages()),
            Offer::Nothing | Offer::Retold => vec![],
        };
        let veil = around.veil(turn.messages(), &progress.meanings);
        let said_now = progress.said_now.then(|| turn.began_at());
        let messages = match &veil {
            Some(veil) => &veil.over_all(turn.messages(), said_now),
            None => turn.messages(),
        };
        let is_blind = progress.pictures == Pictures::LeftOut || ready.vision == Vision::No;
        let messages = if is_blind { without_pictures(messages) } else { newest_pictures(messages, window) };
        // The user's soul text and the memories may contain codes that were shown; our own text does not.
        let hide = |text: String| veil.as_ref().map_or_else(|| text.clone(), |veil| veil.over_text(&text));
        if ready.model.scale() == Scale::Small {
            return small::request(&small::Parts {
                hide: &hide,
                soul: &around.values.of(&SOUL_TEXT),
                memories: progress.remembered.get_or_init(|| around.memories.clone()),
                set: progress.set,
                tools: &tools,
                offer,
                messages: &messages,
                began_at: turn.began_at(),
                moments: &progress.moments,
                zone: &self.clock.zone(),
                window,
            });
        }
        let messages = repair(&messages, &tools, turn.began_at());
        let parts = prompt::Chat {
            hide: &hide,
            soul: &around.values.of(&SOUL_TEXT),
            has_tools: !tools.is_empty(),
            memories: &around.memories,
            now: &self.clock.now().to_zoned(self.clock.zone()),
            platform: self.platform,
            model: &ready.label,
        };
        let mut system = prompt::chat(&parts);
        if offer != Offer::Tools {
            // Not as a message: some providers reject a user message directly after a tool result.
            system = format!("{system}\n\n{}", prompt::FINAL.trim());
        }
        Request { system, messages, tools }
    }

    fn level(&self, progress: &Progress) -> Level {
        let read = progress.meanings.level(progress.turn.messages(), |tool| self.toolbox.has(tool));
        read.max(progress.level)
    }

    fn offered(&self, around: &RequestContext, level: Level, messages: &[Message]) -> Vec<ToolSpec> {
        let (foreign, are_many) = mcp::tools::offered(&around.foreign, self.kind, level, messages);
        let mut tools = self.toolbox.offered(&around.values);
        tools.retain(|tool| {
            gate::offered(self.kind, level, &tool.name) && (are_many || tool.name != FindTools::NAME)
        });
        tools.extend(foreign);
        tools
    }

    async fn store_request(
        &self,
        progress: &mut Progress,
        ready: &Ready,
        body: Vec<u8>,
        held: Held,
    ) -> Result<(), TurnError> {
        let (id, now, model) = (progress.conversation, self.clock.now(), ready.label.clone());
        let lease = progress.lease.as_ref().map(|held| held.lease.clone());
        let level = progress.level;
        progress.stored = progress.turn.messages().len();
        let finished = progress.finished.clone();
        let leaving = move |tx: &Transaction<'_>| {
            still_ours(tx, lease.as_ref(), id, now)?;
            finished.store(tx, lease.is_some().then_some(id), || {
                // Does nothing for a turn without a conversation.
                conversation::raise(tx, id, level)?;
                Ok(ledger::request(tx, id.0, &model, &body, held, now)?)
            })
        };
        self.db.write(leaving).await
    }

    /// Stores the reply, and the ledger's record of each call, before any of the calls runs. With the next step it returns
    /// what running them takes, read in the same transaction.
    async fn keep_reply(
        &self,
        progress: &mut Progress,
        reply: Reply,
    ) -> Result<(Step, Option<Surroundings>), TurnError> {
        let are_ours = reply.calls.iter().all(|call| self.toolbox.has(&call.name));
        let foreign = if are_ours { vec![] } else { self.db.read(mcp::store::usable).await? };
        let (usage, hands) = (reply.usage, self.hands(progress, Codes::Hidden, &foreign));
        progress.usage.input = progress.usage.input.saturating_add(usage.input);
        progress.usage.output = progress.usage.output.saturating_add(usage.output);
        progress.cut_off = reply.cut_off;
        let scale = self.models.get(progress.asking).map(|ready| ready.model.scale());
        let step = progress.on_reply(reply, scale.unwrap_or_default());
        let announced: Vec<Record> = match &step {
            Step::RunTools(calls) => calls.iter().map(|call| hands.announced(call)).collect(),
            Step::AskModel { .. } | Step::Done { .. } => vec![],
        };
        let (id, now, label) = (progress.conversation, self.clock.now(), progress.answered_by.clone());
        // From here on the reply is stored as a whole, so the partial text must not be stored too if the turn is
        // stopped.
        if let Some(held) = &progress.lease {
            held.partial_reply().text.clear();
        }
        let took = u64::try_from(now.duration_since(progress.sent_at).as_millis()).unwrap_or_default();
        let new = progress.unstored();
        let instead = progress.replaced.as_ref().map(instead);
        let lease = progress.lease.as_ref().map(|held| held.lease.clone());
        let (kind, look) = (self.kind, self.toolbox.look());
        let calls_follow = matches!(step, Step::RunTools(_));
        let changes = self.db.changes();
        let heard = move |tx: &Transaction<'_>| {
            still_ours(tx, lease.as_ref(), id, now)?;
            let (reply, rest) = new.split_at(new.len().min(1));
            if !reply.is_empty() {
                conversation::append(tx, id, reply, Some((&label, usage)), now)?;
                conversation::mark_took(tx, id, took)?;
                instead.iter().try_for_each(|instead| conversation::mark_instead(tx, id, instead))?;
            }
            // The results of calls that the turn refused without running them.
            let nothing = Provenance::default();
            rest.iter().try_for_each(|result| conversation::append_result(tx, id, result, &nothing, now))?;
            announced.iter().try_for_each(|record| ledger::append(tx, record, now))?;
            let context = calls_follow.then(|| RequestContext::read(tx, id, kind, look)).transpose()?;
            // This change is counted when it is committed.
            Ok(context.map(|context| Surroundings { context, changes: *changes.borrow() + 1, at: now }))
        };
        self.db.write(heard).await.map(|around: Option<Surroundings>| (step, around))
    }

    /// Runs all calls of a round concurrently; returns the results in call order.
    async fn run_all(
        &self,
        progress: &mut Progress,
        around: &RequestContext,
        calls: &[ToolCall],
    ) -> Result<Vec<ToolResult>, DbError> {
        progress.level = self.level(progress);
        let messages = progress.turn.messages();
        let hands = self.hands(progress, around.kept.codes, &around.foreign);
        let (hands, values, finished) = (&hands, &around.values, &progress.finished);
        let ran = calls.iter().enumerate().map(|(place, call)| async move {
            let verdict = hands.verdict(messages, call);
            let (result, record) = hands.run(call, values, verdict).await?;
            let (id, tool) = (call.id.clone(), call.name.clone());
            let ToolResult { text, meaning, .. } = result.clone();
            let ended = Message::Tool { call: id, tool, result: text };
            // Added as soon as each call ends, because the user may stop the turn before the others do.
            finished.add(place, Ended { result: ended, meaning, record, at: self.clock.now() });
            Ok::<_, DbError>(result)
        });
        try_join_all(ran).await
    }

    fn hands<'a>(&'a self, progress: &Progress, codes: Codes, foreign: &'a [KnownTool]) -> CallRunner<'a> {
        let Self { db, clock, toolbox, face, kind, .. } = *self;
        let (conversation, elsewhere) = (progress.conversation.0, face.elsewhere());
        let (level, codes_shown) = (progress.level, codes == Codes::Shown);
        let run = Run { kind, conversation, elsewhere, level, confirmed: false, codes_shown, guest: None };
        CallRunner { db, clock, toolbox, foreign, face, run }
    }
}

/// What a turn begins with.
struct Begun {
    id: ConversationId,
    lease: Lease,
    level: Level,
    entries: Vec<Entry>,
    files: Vec<Attachment>,
    contents: Contents,
}

/// Which failure to report when no model is left: the first one whose setup is wrong, because only the user can mend
/// that, and otherwise the last.
fn to_be_mended(progress: &Progress, last: &Ready, error: ModelError) -> (String, ModelError) {
    let first = progress.replaced.clone().filter(|(_, error)| trouble::fault(error).is_some());
    first.unwrap_or_else(|| (last.label.clone(), error))
}

/// What the chat says about the model that another one answered for.
fn instead((label, error): &(String, ModelError)) -> Instead {
    Instead { of: label.clone(), why: Some(trouble::said(label, error)), fault: trouble::fault(error) }
}

/// Whether the user's last message has a picture.
fn asks_about_picture(entries: &[Entry]) -> bool {
    let asked = entries.iter().rfind(|entry| matches!(entry.message, Message::User { .. }));
    asked.is_some_and(|asked| asked.files.iter().any(Attachment::is_picture))
}

/// Reads the newest files of a conversation.
fn contents(tx: &Transaction<'_>, files: &[Attachment]) -> Result<Contents, DbError> {
    let mut contents = Contents::default();
    for file in sent::newest(files) {
        if let Some(bytes) = attachments::store::bytes(tx, &file.hash)? {
            contents.add(file, bytes);
        }
    }
    Ok(contents)
}

/// A stored conversation as a turn needs it.
struct History {
    messages: Vec<Message>,
    meanings: Meanings,
    moments: Moments,
    set: ToolSet,
}

/// Splits stored entries into messages, with their files in them, the meanings of their results, and when the user's
/// messages were sent.
fn history(entries: Vec<Entry>, contents: &Contents) -> History {
    let (mut messages, mut meanings, mut moments) = (vec![], Meanings::default(), Moments::new());
    let first = entries.iter().find_map(|entry| match &entry.message {
        Message::User { text, .. } => Some(ToolSet::of(text)),
        Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    if matches!(entries.first(), Some(Entry { message: Message::Assistant { .. }, .. })) {
        // Providers require a user message first, and unsolicited reports would otherwise be left out.
        messages.push(Message::user(REPORTS.to_owned()));
    }
    let mut was_stopped = false;
    for entry in entries {
        let goes_on = std::mem::replace(&mut was_stopped, entry.is_stopped()) && !entry.report;
        let Entry { message, meaning, files, at, .. } = entry;
        if matches!(message, Message::User { .. }) {
            moments.insert(messages.len(), Timestamp::from_millisecond(at).unwrap_or_default());
        }
        if let Some(meaning) = meaning {
            meanings.keep(messages.len(), meaning);
        }
        match (messages.last_mut(), message) {
            (Some(Message::Assistant { text: stopped, .. }), Message::Assistant { text, calls, .. })
                if goes_on =>
            {
                let text = continued::joined(stopped, &text);
                messages.pop();
                messages.push(Message::Assistant { text, calls, signature: None });
            }
            (_, message) => messages.push(contents.with_files(message, &files)),
        }
    }
    if let Some(Message::Assistant { text, .. }) = messages.last_mut().filter(|_| was_stopped) {
        *text = continued::whole_words(text).to_owned();
    }
    History { messages, meanings, moments, set: first.unwrap_or_default() }
}

/// Renews the lease, or fails with [`TurnError::TakenOver`]: a turn must not write into a conversation that another
/// process answers by now.
fn still_ours(
    tx: &Transaction<'_>,
    lease: Option<&Lease>,
    id: ConversationId,
    now: Timestamp,
) -> Result<(), TurnError> {
    match lease {
        Some(lease) if !lease::renew(tx, lease, now, LEASE)? => Err(TurnError::TakenOver(id)),
        _ => Ok(()),
    }
}

/// Whether a request is so far beyond the window that sending it is pointless. The user's newest message is never cut,
/// so it may exceed the window; the token estimate is at most a few times too high, hence the factor.
fn hopeless(tokens: usize, window: usize) -> bool {
    tokens > window.saturating_mul(3)
}
