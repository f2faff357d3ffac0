//! Does what a turn decides: asks, runs tools, stores, tells the face.
//!
//! Dropping a turn under way cancels it: the connection closes, tools stop, and what is stored stays a
//! conversation (a call without a result is repaired in the copy of the next request). The results of calls that had
//! come to their end are stored all the same: what they did is done.
//!
//! Two commits a round: one before a request leaves (the results since the last one, and the ledger's record of
//! the request), one when the reply is there (what the model said, and that its calls are about to run).

use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use kai_codes::KnownCodes;
use kai_llm::retry::TRIES;
use kai_llm::{
    Message, ModelError, Reply, Request, ToolCall, ToolSpec, Usage, fit_by, repair, request_tokens,
};
use rusqlite::Transaction;

use super::conversation::{self, Codes, ConversationId, Entry, Which};
use super::fallback::{self, Move};
use super::fitting::Fitting;
use super::likely::likely;
use super::meanings::Meanings;
use super::meter::Meter;
use super::turn::{End, Offer, ROUNDS, Step, Turn};
use super::unseen::{Kept, Veil};
use super::{Event, Face, Hands, Ready, prompt, reports};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::{self, Level, RunKind};
use crate::lease::{self, Lease};
use crate::ledger::{self, Record};
use crate::memory::{self, Memory};
use crate::models;
use crate::settings::{self, MEMORY_ENABLED, SOUL_TEXT, Values};
use crate::tool::{Meaning, Run, ToolResult};
use crate::toolbox::Toolbox;

/// Everything a turn needs.
#[derive(Clone, Copy)]
pub struct Driver<'a> {
    pub db: &'a Db,
    pub clock: &'a dyn Clock,
    pub toolbox: &'a Toolbox,
    /// In the order in which they are asked.
    pub models: &'a [Ready],
    pub face: &'a dyn Face,
    pub kind: RunKind,
    /// What a request holds from the start, before anything was read in it.
    pub level: Level,
    /// Messages that what is said tells of, by their identities; for the ledger.
    pub shown: &'a [String],
    pub platform: &'a str,
}

/// A finished turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub conversation: ConversationId,
    pub end: End,
    /// The model ran out of room for its answer.
    pub cut_off: bool,
    pub answered_by: String,
    pub usage: Usage,
}

/// Why there is no answer. What the user said, and every round until then, is kept.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error("No model is set up. Add one: kai models add PRESET (see kai models list)")]
    NoModel,
    #[error("There is no conversation number {}. See: kai chats list", .0.0)]
    Unknown(ConversationId),
    #[error("Conversation {} is being answered right now. Wait for it, or start another.", .0.0)]
    Busy(ConversationId),
    #[error(
        "Another Kai process took over conversation {} while this turn was silent, so nothing more of it was kept. \
         Look there, or ask again.",
        .0.0
    )]
    TakenOver(ConversationId),
    #[error("There is nothing in conversation {} that could be answered again.", .0.0)]
    NothingSaid(ConversationId),
    #[error("{label}: {error}")]
    Model { label: String, error: ModelError, usage: Usage },
    #[error("{label} gave an empty answer. Ask again, or try another model.")]
    Empty { label: String, usage: Usage },
    #[error("{0}")]
    Store(#[from] DbError),
}

impl TurnError {
    /// What it cost all the same.
    pub fn usage(&self) -> Usage {
        match self {
            Self::Model { usage, .. } | Self::Empty { usage, .. } => *usage,
            Self::NoModel
            | Self::Unknown(_)
            | Self::Busy(_)
            | Self::TakenOver(_)
            | Self::NothingSaid(_)
            | Self::Store(_) => Usage::default(),
        }
    }
}

/// Stands before the reports of a heartbeat when the person asks about them; not stored.
const REPORTS: &str = "What did the heartbeats report?";

/// A turn that says nothing for so long has died without a word.
const LEASE: SignedDuration = SignedDuration::from_mins(15);

/// What a request is made of besides the conversation; read anew for each.
struct Surroundings {
    values: Values,
    /// Those that the person confirmed: they are the person's own, and raise no level.
    memories: Vec<Memory>,
    /// What the model may not see: the person may click while a turn runs.
    kept: Kept,
    shown: KnownCodes,
}

impl Surroundings {
    /// Hides the codes that these messages, and whatever was said before them, were shown; `None` if the model may see
    /// them.
    fn veil(&self, messages: &[Message], meanings: &Meanings) -> Option<Veil> {
        Some(Veil::new(self.kept.for_model()?, self.shown.clone(), meanings.with(messages)))
    }
}

/// A turn in the making: the decisions, and what is not stored yet.
struct Progress {
    /// 0 for a turn that is not kept.
    conversation: ConversationId,
    /// `None` for a turn that is not kept.
    lease: Option<TurnLease>,
    /// Of what it held so far.
    level: Level,
    /// The person just said what this turn began with; it was not said earlier, and is to be answered again.
    said_now: bool,
    turn: Turn,
    /// Of the results among the turn's messages.
    meanings: Meanings,
    /// Messages up to here are stored.
    stored: usize,
    finished: Finished,
    /// Place of the model that is asked; one that failed is not asked again in this turn.
    asking: usize,
    answered_by: String,
    usage: Usage,
    cut_off: bool,
    /// Of the model that is asked.
    fitting: Fitting,
    meter: Arc<Meter>,
}

impl Progress {
    /// Everything in `history` is stored, or is not to be.
    fn of(
        conversation: ConversationId,
        lease: Option<TurnLease>,
        level: Level,
        history: Vec<Message>,
    ) -> (Self, Step) {
        let stored = history.len();
        let (turn, step) = Turn::start(history, ROUNDS);
        let finished = lease.as_ref().map(|held| held.finished.clone()).unwrap_or_default();
        let progress = Self {
            conversation,
            lease,
            level,
            said_now: true,
            turn,
            meanings: Meanings::default(),
            stored,
            finished,
            asking: 0,
            answered_by: String::new(),
            usage: Usage::default(),
            cut_off: false,
            fitting: Fitting::default(),
            meter: Arc::default(),
        };
        (progress, step)
    }

    /// The calls of a round have come to their end.
    fn on_results(&mut self, results: Vec<ToolResult>) -> Step {
        let first = self.turn.messages().len();
        let (texts, meanings): (Vec<_>, Vec<_>) =
            results.into_iter().map(|result| (result.text, result.meaning)).unzip();
        (first..).zip(meanings).for_each(|(place, meaning)| self.meanings.keep(place, meaning));
        self.turn.on_results(texts)
    }

    /// The model replied. Calls that the turn itself refuses have results that mean nothing.
    fn on_reply(&mut self, reply: Reply) -> Step {
        let refused = self.turn.messages().len() + 1;
        let step = self.turn.on_reply(reply);
        (refused..self.turn.messages().len()).for_each(|place| self.meanings.keep(place, Meaning::default()));
        step
    }

    /// The messages since the last time, if this turn is kept.
    fn unstored(&mut self) -> Vec<Message> {
        let all = self.turn.messages();
        let from = std::mem::replace(&mut self.stored, all.len());
        if self.lease.is_some() { all[from..].to_vec() } else { vec![] }
    }
}

/// What the calls of a round brought, as far as they have come, by their place in it. Whichever transaction runs first
/// takes it: the next request's, or the one that ends the turn.
#[derive(Clone, Default)]
struct Finished(Arc<Mutex<BTreeMap<usize, Ended>>>);

/// A call that came to its end.
struct Ended {
    result: Message,
    meaning: Meaning,
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

    /// Stores everything that is not stored yet: the results in `conversation`, if there is one, and in the ledger; and
    /// `rest` in the same transaction. If that fails, they wait for the next one.
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

/// Writes down what calls of a run without a conversation brought, however the run ends.
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

/// The lease on a conversation that is being answered: it is ours until this is dropped.
struct TurnLease {
    db: Db,
    conversation: ConversationId,
    lease: Lease,
    given_back: bool,
    begun: Timestamp,
    partial_reply: Mutex<PartialReply>,
    finished: Finished,
}

/// What has come in of a reply so far; the person may stop it any time.
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

    /// Before the answer is handed on: whoever speaks at once must not find the conversation busy.
    async fn give_back(mut self, now: Timestamp) -> Result<(), DbError> {
        self.given_back = true;
        let end = self.end(String::new(), now);
        self.db.write(end).await
    }

    /// Ends the turn in one transaction: what was not stored yet, the lease, and the reports that waited for it. `said`
    /// is what a model had said when it was stopped.
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
        // Also when a turn is cancelled, which leaves no chance to wait. Without a runtime the process ends, and
        // the lease with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || db.write_now(end));
        }
    }
}

impl Driver<'_> {
    /// The user said something; returns the answer.
    pub async fn turn(&self, which: Which, said: String) -> Result<Answer, TurnError> {
        self.answer(which, Some(said)).await
    }

    /// Answers once more what the user said last.
    pub async fn again(&self, conversation: ConversationId) -> Result<Answer, TurnError> {
        self.answer(Which::Id(conversation), None).await
    }

    async fn answer(&self, which: Which, said: Option<String>) -> Result<Answer, TurnError> {
        if self.models.is_empty() {
            return Err(TurnError::NoModel);
        }
        let (mut progress, step) = self.begin(which, said).await?;
        self.face.shows(Event::Began { conversation: progress.conversation });
        let answer = self.go_on(&mut progress, step).await;
        if let Some(held) = progress.lease.take() {
            held.give_back(self.clock.now()).await?;
        }
        answer
    }

    /// A run that nobody watches and that belongs to no conversation: what was said in it is nowhere but in the
    /// ledger, and whoever runs it keeps what they want of the answer. `meter` counts what it costs, also if it is
    /// dropped half-way.
    pub async fn unattended(&self, said: String, meter: &Arc<Meter>) -> Result<Answer, TurnError> {
        if self.models.is_empty() {
            return Err(TurnError::NoModel);
        }
        let (mut progress, step) =
            Progress::of(ConversationId(0), None, self.level, vec![Message::User { text: said }]);
        progress.meter = Arc::clone(meter);
        let _unwatched = Unwatched { db: self.db.clone(), finished: progress.finished.clone() };
        self.go_on(&mut progress, step).await
    }

    async fn go_on(&self, progress: &mut Progress, mut step: Step) -> Result<Answer, TurnError> {
        loop {
            step = match step {
                Step::AskModel { offer } => {
                    let reply = self.ask(progress, offer).await?;
                    self.keep_reply(progress, reply).await?
                }
                Step::RunTools(calls) => {
                    let results = self.run_all(progress, &calls).await?;
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

    /// Takes the conversation and stores what the user said, in one step, before anything can go wrong. `None` means
    /// what was said last.
    async fn begin(&self, which: Which, said: Option<String>) -> Result<(Progress, Step), TurnError> {
        let (now, said_now) = (self.clock.now(), said.is_some());
        let begun = move |tx: &Transaction<'_>| {
            let id = conversation::find_or_begin(tx, which, now)?.ok_or(TurnError::Unknown(which.id()))?;
            // What a turn that died left waiting comes before what is said now.
            reports::land(tx, now)?;
            let lease = lease::take(tx, &id.lease(), now, LEASE)?.ok_or(TurnError::Busy(id))?;
            match said {
                Some(text) => conversation::append(tx, id, &[Message::User { text }], None, now)?,
                None if conversation::reopen(tx, id)? => {}
                None => return Err(TurnError::NothingSaid(id)),
            }
            // Reports tell what people wrote, though no tool's result is among them.
            let level = conversation::level(tx, id)?;
            Ok((id, lease, conversation::entries(tx, id)?, level))
        };
        let (conversation, lease, entries, level) = self.db.write(begun).await.map_err(|e: TurnError| e)?;
        let (history, meanings) = history(entries);
        let (db, partial_reply, finished) = (self.db.clone(), Mutex::default(), Finished::default());
        let held =
            TurnLease { db, conversation, lease, given_back: false, begun: now, partial_reply, finished };
        let (progress, step) = Progress::of(conversation, Some(held), level.max(self.level), history);
        Ok((Progress { said_now, meanings, ..progress }, step))
    }

    async fn surroundings(&self, progress: &Progress) -> Result<Surroundings, DbError> {
        let id = progress.conversation;
        // A task may search the web, and says itself what it needs: nothing private is in its request to be carried out.
        let remembers = self.kind != RunKind::Task;
        let around: Surroundings = self
            .db
            .read(move |tx| {
                let values = settings::load(tx)?;
                let remembers = remembers && values.on(&MEMORY_ENABLED);
                let memories = if remembers { memory::store::confirmed(tx)? } else { vec![] };
                let kept = conversation::kept(tx, id, &values)?;
                let shown = conversation::shown_codes(tx, id)?;
                Ok::<_, DbError>(Surroundings { values, memories, kept, shown })
            })
            .await?;
        self.toolbox.probe_access(&around.values).await;
        Ok(around)
    }

    /// Asks the models in their order until one replies.
    async fn ask(&self, progress: &mut Progress, offer: Offer) -> Result<Reply, TurnError> {
        let around = self.surroundings(progress).await?;
        let local: Vec<bool> = self.models.iter().map(|ready| ready.local).collect();
        let mut failures = 0;
        progress.fitting.begin();
        loop {
            let ready = self.models.get(progress.asking).ok_or(TurnError::NoModel)?;
            let error = match self.attempt(progress, ready, &around, offer).await? {
                Ok(reply) => {
                    progress.answered_by.clone_from(&ready.label);
                    self.learn(progress, ready).await?;
                    return Ok(reply);
                }
                Err(error) => error,
            };
            if self.goes_shorter(progress, ready, &error).await? {
                continue;
            }
            failures += 1;
            let next = fallback::after(&error, failures, progress.asking, &local);
            let again = |asking: String| Event::Again { why: error.to_string(), asking };
            match next {
                Move::Again(pause) => {
                    let nth = format!("{} again, try {} of {TRIES}", ready.label, failures + 1);
                    self.face.shows(again(nth));
                    tokio::time::sleep(pause).await;
                }
                Move::Other(other) => {
                    (progress.asking, failures) = (other, 0);
                    progress.fitting = Fitting::default();
                    let label = self.models.get(other).map(|other| other.label.clone());
                    self.face.shows(again(label.unwrap_or_default()));
                }
                Move::Stop => {
                    let (label, usage) = (ready.label.clone(), progress.usage);
                    return Err(TurnError::Model { label, error, usage });
                }
            }
        }
    }

    /// Was it refused as too long, and is a shorter one worth a try? A limit that the refusal named is kept at once.
    async fn goes_shorter(
        &self,
        progress: &mut Progress,
        ready: &Ready,
        error: &ModelError,
    ) -> Result<bool, DbError> {
        let ModelError::TooLong { limit } = error else { return Ok(false) };
        if !progress.fitting.refused(*limit, ready.model.window()) {
            return Ok(false);
        }
        // One that is no smaller than what was assumed says nothing about the window: what was said is too long for it.
        if limit.is_some() && *limit == progress.fitting.shown() {
            self.learn(progress, ready).await?;
        }
        let asking = format!("{} again with a shorter request", ready.label);
        self.face.shows(Event::Again { why: error.to_string(), asking });
        Ok(true)
    }

    /// Keeps what refusals showed of the model's window, for the next turns.
    async fn learn(&self, progress: &Progress, ready: &Ready) -> Result<(), DbError> {
        let (Some(shown), Some(place)) = (progress.fitting.shown(), ready.model.place()) else {
            return Ok(());
        };
        self.db.write(move |tx| models::window::learned(tx, &place, shown)).await
    }

    /// One request to one model. It is in the ledger before it leaves.
    async fn attempt(
        &self,
        progress: &mut Progress,
        ready: &Ready,
        around: &Surroundings,
        offer: Offer,
    ) -> Result<Result<Reply, ModelError>, TurnError> {
        let whole = self.request(progress, around, offer, &ready.label);
        let window = progress.fitting.window(ready.model.window());
        let request = fit_by(&whole, window, |tool| likely(tool, &whole.messages));
        let tokens = request_tokens(&request);
        if hopeless(tokens, window) || !progress.fitting.sends(tokens) {
            return Ok(Err(ModelError::TooLong { limit: None }));
        }
        // It never goes down: what was read once may be in anything said since.
        progress.level = self.level(progress);
        let mut seen = progress.meanings.mentions(progress.turn.messages(), &request.messages);
        seen.extend(self.shown.iter().cloned());
        self.store_request(progress, ready, ready.model.body(&request), seen).await?;
        let held = progress.lease.as_ref();
        if let Some(held) = held {
            let (from, since) = (ready.label.clone(), self.clock.now());
            *held.partial_reply() = PartialReply { from, since, text: String::new() };
        }
        let meter = &progress.meter;
        meter.leaves(tokens);
        let deltas = |text: &str| {
            meter.hears(text);
            if let Some(held) = held {
                held.partial_reply().text.push_str(text);
            }
            self.face.shows(Event::Delta { text: text.to_owned() });
        };
        let outcome = ready.model.reply(&request, &deltas).await;
        match &outcome {
            Ok(reply) => meter.answered(reply),
            Err(error) => meter.failed(error),
        }
        Ok(outcome)
    }

    /// The window of the model that is asked first.
    pub fn window(&self) -> usize {
        self.models.first().map_or(kai_llm::window::UNKNOWN, |ready| ready.model.window())
    }

    fn request(&self, progress: &Progress, around: &Surroundings, offer: Offer, model: &str) -> Request {
        let turn = &progress.turn;
        let tools = match offer {
            Offer::Tools => self.offered(&around.values, self.level(progress)),
            Offer::Nothing => vec![],
        };
        let veil = around.veil(turn.messages(), &progress.meanings);
        let said_now = progress.said_now.then(|| turn.began_at());
        let messages = match &veil {
            Some(veil) => &veil.over_all(turn.messages(), said_now),
            None => turn.messages(),
        };
        let messages = repair(messages, &tools, turn.began_at());
        // What the person and memories say may tell what was shown; the time and the rest of our own words do not.
        let hide = |text: String| veil.as_ref().map_or_else(|| text.clone(), |veil| veil.over_text(&text));
        let parts = prompt::Chat {
            hide: &hide,
            soul: &around.values.of(&SOUL_TEXT),
            has_tools: !tools.is_empty(),
            memories: &around.memories,
            now: &self.clock.now().to_zoned(self.clock.zone()),
            platform: self.platform,
            model,
        };
        let mut system = prompt::chat(&parts);
        if offer == Offer::Nothing {
            // Not as a message: some providers refuse a user's word directly after a result.
            system = format!("{system}\n\n{}", prompt::FINAL.trim());
        }
        Request { system, messages, tools }
    }

    fn level(&self, progress: &Progress) -> Level {
        let read = progress.meanings.level(progress.turn.messages(), |tool| self.toolbox.has(tool));
        read.max(progress.level)
    }

    fn offered(&self, values: &Values, level: Level) -> Vec<ToolSpec> {
        let mut tools = self.toolbox.offered(values);
        tools.retain(|tool| gate::offered(self.kind, level, &tool.name));
        tools
    }

    async fn store_request(
        &self,
        progress: &mut Progress,
        ready: &Ready,
        body: Vec<u8>,
        seen: Vec<String>,
    ) -> Result<(), TurnError> {
        let (id, now, model) = (progress.conversation, self.clock.now(), ready.label.clone());
        let lease = progress.lease.as_ref().map(|held| held.lease.clone());
        let level = progress.level;
        progress.stored = progress.turn.messages().len();
        let finished = progress.finished.clone();
        let leaving = move |tx: &Transaction<'_>| {
            still_ours(tx, lease.as_ref(), id, now)?;
            finished.store(tx, lease.is_some().then_some(id), || {
                // Of a turn that is not kept there is no conversation to raise.
                conversation::raise(tx, id, level)?;
                Ok(ledger::request(tx, id.0, &model, &body, &seen, now)?)
            })
        };
        self.db.write(leaving).await
    }

    /// Stores what the model said, and that its calls are about to run, before any of them does.
    async fn keep_reply(&self, progress: &mut Progress, reply: Reply) -> Result<Step, TurnError> {
        let (usage, hands) = (reply.usage, self.hands(progress, Codes::Hidden));
        progress.usage.input = progress.usage.input.saturating_add(usage.input);
        progress.usage.output = progress.usage.output.saturating_add(usage.output);
        progress.cut_off = reply.cut_off;
        let step = progress.on_reply(reply);
        let announced: Vec<Record> = match &step {
            Step::RunTools(calls) => calls.iter().map(|call| hands.announced(call)).collect(),
            Step::AskModel { .. } | Step::Done { .. } => vec![],
        };
        let (id, now, label) = (progress.conversation, self.clock.now(), progress.answered_by.clone());
        // From here on it is a reply like any other, also if the turn is stopped before it is stored.
        if let Some(held) = &progress.lease {
            held.partial_reply().text.clear();
        }
        let new = progress.unstored();
        let lease = progress.lease.as_ref().map(|held| held.lease.clone());
        let heard = move |tx: &Transaction<'_>| {
            still_ours(tx, lease.as_ref(), id, now)?;
            let (reply, rest) = new.split_at(new.len().min(1));
            conversation::append(tx, id, reply, Some((&label, usage)), now)?;
            // Calls that were refused right away.
            let nothing = Meaning::default();
            rest.iter().try_for_each(|result| conversation::append_result(tx, id, result, &nothing, now))?;
            announced.iter().try_for_each(|record| ledger::append(tx, record, now)).map_err(TurnError::from)
        };
        self.db.write(heard).await.map(|()| step)
    }

    /// All calls of a round at once; results in call order.
    async fn run_all(&self, progress: &mut Progress, calls: &[ToolCall]) -> Result<Vec<ToolResult>, DbError> {
        let around = self.surroundings(progress).await?;
        progress.level = self.level(progress);
        let messages = progress.turn.messages();
        let hands = self.hands(progress, around.kept.codes);
        let (hands, values, finished) = (&hands, &around.values, &progress.finished);
        let ran = calls.iter().enumerate().map(|(place, call)| async move {
            let verdict = gate::judge(self.kind, hands.run.level, messages, call);
            let (result, record) = hands.run(call, values, verdict).await?;
            let (id, tool) = (call.id.clone(), call.name.clone());
            let ToolResult { text, meaning, .. } = result.clone();
            let ended = Message::Tool { call: id, tool, result: text };
            // Not when all have come to their end: the person may stop the turn before that.
            finished.add(place, Ended { result: ended, meaning, record, at: self.clock.now() });
            Ok::<_, DbError>(result)
        });
        try_join_all(ran).await
    }

    fn hands(&self, progress: &Progress, codes: Codes) -> Hands<'_> {
        let Self { db, clock, toolbox, face, kind, .. } = *self;
        let (conversation, elsewhere) = (progress.conversation.0, face.elsewhere());
        let (level, codes_shown) = (progress.level, codes == Codes::Shown);
        let run = Run { kind, conversation, elsewhere, level, confirmed: false, codes_shown };
        Hands { db, clock, toolbox, face, run }
    }
}

/// What was said so far, and what the results in it mean.
fn history(entries: Vec<Entry>) -> (Vec<Message>, Meanings) {
    let (mut messages, mut meanings) = (vec![], Meanings::default());
    if matches!(entries.first(), Some(Entry { message: Message::Assistant { .. }, .. })) {
        // No provider begins with an answer, and reports that nobody asked for would be left out.
        messages.push(Message::User { text: REPORTS.to_owned() });
    }
    for Entry { message, meaning, .. } in entries {
        if let Some(meaning) = meaning {
            meanings.keep(messages.len(), meaning);
        }
        messages.push(message);
    }
    (messages, meanings)
}

/// Holds on to the conversation, or ends the turn: nobody writes into one that somebody else answers by now.
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

/// What the user just said is never cut, so it may be more than the model can hold. The estimate is a few times
/// too high at most: far beyond the window there is no need to send it to find out.
fn hopeless(tokens: usize, window: usize) -> bool {
    tokens > window.saturating_mul(3)
}
