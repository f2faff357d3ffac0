//! Does what a turn decides: asks, runs tools, stores, tells the face.
//!
//! Dropping a turn under way cancels it: the connection closes, tools stop, and what is stored stays a
//! conversation (a call without a result is repaired in the copy of the next request).
//!
//! Two commits a round: one before a request leaves (the results since the last one, and the ledger's record of
//! the request), one when the reply is there.

use futures_util::future::join_all;
use kai_llm::{Message, ModelError, Reply, Request, ToolCall, ToolSpec, Usage, fit, repair, request_tokens};
use rusqlite::Transaction;

use super::conversation::{self, ConversationId};
use super::fallback::{self, Move};
use super::turn::{End, Offer, ROUNDS, Step, Turn};
use super::{Event, Face, Ready, prompt};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::{self, RunKind, Taint, Verdict};
use crate::ledger::{self, Record};
use crate::memory::{self, Memory};
use crate::settings::{self, MEMORY_ENABLED, SOUL_TEXT, Values};
use crate::tool;
use crate::toolbox::Toolbox;

/// Everything a turn needs.
pub struct Driver<'a> {
    pub db: &'a Db,
    pub clock: &'a dyn Clock,
    pub toolbox: &'a Toolbox,
    /// In the order in which they are asked; never empty.
    pub models: &'a [Ready],
    pub face: &'a dyn Face,
    pub kind: RunKind,
    pub conversation: ConversationId,
    pub platform: &'a str,
}

/// A finished turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub end: End,
    pub answered_by: String,
    pub usage: Usage,
}

/// Why there is no answer. What the user said, and every round until then, is kept.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error("No model is set up. Add one: kai models add PRESET (see kai models list)")]
    NoModel,
    #[error("{error}")]
    Model { label: String, error: ModelError },
    #[error("{label} gave an empty answer. Ask again, or try another model.")]
    Empty { label: String },
    #[error("{0}")]
    Store(#[from] DbError),
}

/// What a request is made of besides the conversation; read anew for each.
struct Surroundings {
    values: Values,
    memories: Vec<Memory>,
}

/// A turn in the making: the decisions, and what is not stored yet.
struct Progress {
    turn: Turn,
    /// Messages up to here are stored.
    stored: usize,
    records: Vec<Record>,
    answered_by: String,
    usage: Usage,
}

impl Driver<'_> {
    /// The user said something; returns the answer.
    pub async fn turn(&self, said: String) -> Result<Answer, TurnError> {
        let history = self.hear(said).await?;
        let stored = history.len();
        let (turn, mut step) = Turn::start(history, ROUNDS);
        let (records, answered_by, usage) = (vec![], String::new(), Usage::default());
        let mut progress = Progress { turn, stored, records, answered_by, usage };
        loop {
            step = match step {
                Step::AskModel { offer } => {
                    let reply = self.ask(&mut progress, offer).await?;
                    let usage = reply.usage;
                    let step = progress.turn.on_reply(reply);
                    self.store_reply(&mut progress, usage).await?;
                    step
                }
                Step::RunTools(calls) => {
                    let (results, records) = self.run_all(&progress.turn, &calls).await?;
                    progress.records.extend(records);
                    progress.turn.on_results(results)
                }
                Step::Done { text, .. } if text.trim().is_empty() => {
                    return Err(TurnError::Empty { label: progress.answered_by });
                }
                Step::Done { text, end } => {
                    let Progress { answered_by, usage, .. } = progress;
                    return Ok(Answer { text, end, answered_by, usage });
                }
            };
        }
    }

    /// Stores what the user said, before anything can go wrong, and returns the whole conversation.
    async fn hear(&self, said: String) -> Result<Vec<Message>, DbError> {
        let (id, now) = (self.conversation, self.clock.now());
        let heard = move |tx: &Transaction<'_>| {
            conversation::append(tx, id, &[Message::User { text: said }], None, now)?;
            Ok(conversation::entries(tx, id)?.into_iter().map(|entry| entry.message).collect())
        };
        self.db.write(heard).await
    }

    async fn surroundings(&self) -> Result<Surroundings, DbError> {
        self.db
            .read(|tx| {
                let values = settings::load(tx)?;
                let memories = if values.on(&MEMORY_ENABLED) { memory::store::all(tx)? } else { vec![] };
                Ok(Surroundings { values, memories })
            })
            .await
    }

    /// Asks the models in their order until one replies.
    async fn ask(&self, progress: &mut Progress, offer: Offer) -> Result<Reply, TurnError> {
        let around = self.surroundings().await?;
        let local: Vec<bool> = self.models.iter().map(|ready| ready.local).collect();
        let (mut at, mut failures) = (0, 0);
        loop {
            let ready = self.models.get(at).ok_or(TurnError::NoModel)?;
            let request =
                fit(&self.request(&progress.turn, &around, offer, &ready.label), ready.model.window());
            if hopeless(&request, ready.model.window()) {
                return Err(TurnError::Model { label: ready.label.clone(), error: ModelError::TooLong });
            }
            self.store_request(progress, ready, ready.model.body(&request)).await?;
            let deltas = |text: &str| self.face.shows(Event::Delta { text: text.to_owned() });
            let error = match ready.model.reply(&request, &deltas).await {
                Ok(reply) => {
                    progress.answered_by.clone_from(&ready.label);
                    return Ok(reply);
                }
                Err(error) => error,
            };
            failures += 1;
            match fallback::after(&error, failures, at, &local) {
                Move::Again(pause) => tokio::time::sleep(pause).await,
                Move::Other(other) => (at, failures) = (other, 0),
                Move::Stop => return Err(TurnError::Model { label: ready.label.clone(), error }),
            }
            let asking = self.models.get(at).map(|next| next.label.clone()).unwrap_or_default();
            self.face.shows(Event::Again { why: error.to_string(), asking });
        }
    }

    fn request(&self, turn: &Turn, around: &Surroundings, offer: Offer, model: &str) -> Request {
        let tools = match offer {
            Offer::Tools => self.offered(&around.values, gate::taint(turn.messages())),
            Offer::Nothing => vec![],
        };
        let messages = repair(turn.messages(), &tools, turn.began_at());
        let parts = prompt::Chat {
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

    fn offered(&self, values: &Values, taint: Taint) -> Vec<ToolSpec> {
        let mut tools = self.toolbox.offered(values);
        tools.retain(|tool| gate::offered(self.kind, taint, &tool.name));
        tools
    }

    async fn store_request(
        &self,
        progress: &mut Progress,
        ready: &Ready,
        body: Vec<u8>,
    ) -> Result<(), DbError> {
        let (id, now, model) = (self.conversation, self.clock.now(), ready.label.clone());
        let results = progress.turn.messages()[progress.stored..].to_vec();
        let records = std::mem::take(&mut progress.records);
        progress.stored = progress.turn.messages().len();
        let leaving = move |tx: &Transaction<'_>| {
            conversation::append(tx, id, &results, None, now)?;
            records.iter().try_for_each(|record| ledger::append(tx, record, now))?;
            ledger::request(tx, id.0, &model, &body, now)
        };
        self.db.write(leaving).await
    }

    async fn store_reply(&self, progress: &mut Progress, usage: Usage) -> Result<(), DbError> {
        let (id, now, label) = (self.conversation, self.clock.now(), progress.answered_by.clone());
        let new = progress.turn.messages()[progress.stored..].to_vec();
        progress.stored = progress.turn.messages().len();
        progress.usage.input += usage.input;
        progress.usage.output += usage.output;
        let heard = move |tx: &Transaction<'_>| {
            let (reply, rest) = new.split_at(new.len().min(1));
            conversation::append(tx, id, reply, Some((&label, usage)), now)?;
            conversation::append(tx, id, rest, None, now)
        };
        self.db.write(heard).await
    }

    /// All calls of a round at once; results in call order.
    async fn run_all(&self, turn: &Turn, calls: &[ToolCall]) -> Result<(Vec<String>, Vec<Record>), DbError> {
        let values = self.surroundings().await?.values;
        let running =
            calls.iter().map(|call| self.run(call, &values, gate::judge(self.kind, turn.messages(), call)));
        let (results, records): (Vec<_>, Vec<_>) = join_all(running).await.into_iter().unzip();
        Ok((results, records.into_iter().flatten().collect()))
    }

    async fn run(&self, call: &ToolCall, values: &Values, verdict: Verdict) -> (String, Vec<Record>) {
        let mut records = vec![];
        let allowed = match verdict {
            Verdict::Run => true,
            Verdict::Refuse => false,
            Verdict::AskFirst => {
                let allowed = self.face.allows(call).await;
                let (tool, arguments) = (call.name.clone(), call.arguments.clone());
                records.push(Record::Click { conversation: self.conversation.0, tool, arguments, allowed });
                allowed
            }
        };
        let tool =
            if allowed { self.toolbox.usable(&call.name, values) } else { Err(refusal(verdict, &call.name)) };
        let (id, name) = (call.id.0.clone(), call.name.clone());
        self.face.shows(Event::ToolStarted { call: id.clone(), tool: name.clone() });
        let result = tool::execute(tool, values, &call.arguments).await;
        self.face.shows(Event::ToolFinished { call: id, tool: name.clone(), success: result.success });
        records.push(Record::ToolCall {
            conversation: self.conversation.0,
            tool: name,
            arguments: call.arguments.clone(),
            success: result.success,
            result_chars: result.text.chars().count(),
        });
        (result.text, records)
    }
}

/// What the user just said is never cut, so it may be more than the model can hold. The estimate is at most twice
/// too high: beyond twice the window there is no need to send it to find out.
fn hopeless(request: &Request, window: usize) -> bool {
    request_tokens(request) > window.saturating_mul(2)
}

fn refusal(verdict: Verdict, tool: &str) -> String {
    match verdict {
        Verdict::AskFirst => {
            format!("The user did not allow {tool}. Go on without it, or say why it is needed.")
        }
        Verdict::Run | Verdict::Refuse => format!("{tool} is not available in a run that nobody watches."),
    }
}
