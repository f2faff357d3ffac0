//! Runs one heartbeat: gathers what is new, asks a model, and stores the outcome.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_llm::retry::{self, TRIES};
use kai_llm::{ModelError, Request, Scale, Usage};
use kai_words::{Lang, Said, said};
use rusqlite::Transaction;

use super::arrivals::FeatureState;
use super::brief::{self, Brief, Sources};
use super::due::{self, Due, Rules, ScheduleState};
use super::order::{self, Able};
use super::prompt::{self, Parts, Rendered};
use super::store::{self, Cost};
use super::{Outcome, email, notifications, ranked, sms};
use crate::agent::reports::{self, Report};
use crate::agent::{Answer, Driver, Meter, Ready, Spent, TurnError};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::{Level, RunKind};
use crate::lease::{self, Lease};
use crate::models::trouble;
use crate::settings::{
    self, HEARTBEAT_ACTIVE_END, HEARTBEAT_ACTIVE_START, HEARTBEAT_DAILY_TOKENS, HEARTBEAT_ENABLED,
    HEARTBEAT_INTERVAL, HEARTBEAT_PROMPT, Values,
};

/// Why a heartbeat runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The tick triggered it; it runs only if it is due.
    Tick,
    /// The user asked for it: it runs at any hour, but not if nothing is new.
    Asked,
    /// The user forced it: a model is asked even if nothing is new.
    Forced,
}

impl Why {
    /// The user runs it by hand.
    pub fn by_hand(forced: bool) -> Self {
        if forced { Self::Forced } else { Self::Asked }
    }
}

/// What came of an attempt to run a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeatResult {
    Ran(Outcome),
    /// It was not due, or over the daily budget.
    NotDue(Due),
    /// Another run, or a chat, is under way.
    Busy,
}

/// The store and the clock of a heartbeat; the models come with each run.
#[derive(Clone, Copy)]
pub struct Beat<'a> {
    pub db: &'a Db,
    pub clock: &'a dyn Clock,
    /// The language of the reports that Kai composes itself.
    pub lang: Lang,
}

/// The prompt of the next run, and whether there is anything new to ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    pub text: String,
    pub is_new: bool,
}

/// Every request of the next run with a small model, and whether there is anything new to ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRequests {
    pub requests: Vec<Request>,
    pub is_new: bool,
}

/// What a run read from the store when it began, in one transaction.
struct Begun {
    lease: Lease,
    brief: Brief,
    wording: Wording,
}

/// The inputs of the prompt besides the brief, kept so that it can be rendered again for a smaller window.
struct Wording {
    opening: String,
    mark: String,
    now: jiff::Zoned,
}

impl Wording {
    fn render(&self, brief: &Brief, window: usize) -> Rendered {
        prompt::heartbeat(&self.parts(brief, window))
    }

    fn parts<'a>(&'a self, brief: &'a Brief, window: usize) -> Parts<'a> {
        let (opening, mark) = (&self.opening, &self.mark);
        Parts { opening, brief, now: &self.now, mark, room: prompt::arrivals_room(window) }
    }
}

const NAME: &str = "heartbeat";
/// The timeout of a run.
const LONGEST: Duration = Duration::from_hours(1);
const LEASE: SignedDuration = SignedDuration::from_mins(65);
/// How often the prompt is shortened after every model refused it as too long.
const SHORTER: usize = 3;

/// Whether a heartbeat is running right now.
pub fn under_way(tx: &Transaction<'_>, now: Timestamp) -> Result<bool, DbError> {
    lease::held(tx, NAME, now)
}

impl Beat<'_> {
    /// Runs a heartbeat if `why` permits it now. `driver` asks the model, with the kind of run and the level set here.
    /// An `Err` says why no model can be asked; it matters only if there is something to ask about.
    pub async fn run(&self, why: Why, driver: Result<Driver<'_>, Said>) -> Result<BeatResult, DbError> {
        let (now, started) = (self.clock.now().to_zoned(self.clock.zone()), self.clock.now());
        let begun = match self.db.write(move |tx| begin(tx, why, &now)).await? {
            Ok(begun) => begun,
            Err(not) => return Ok(not),
        };
        let Begun { lease, brief, wording } = begun;
        if why != Why::Forced && !brief.is_new() {
            return self.settle(lease, Settled::nothing_new(&brief), started).await;
        }
        let driver = match driver {
            Ok(driver) => driver,
            Err(why) => return self.settle(lease, Settled::failed(&brief, why), started).await,
        };
        let meter = Arc::new(Meter::default());
        let asking = self.ask(&driver, &brief, &wording, &meter);
        let settled = match tokio::time::timeout(LONGEST, asking).await {
            Ok(settled) => settled,
            Err(_elapsed) => Settled::failed(&brief, said::run_too_long_hour()),
        };
        self.settle(lease, Settled { spent: meter.spent(), ..settled }, started).await
    }

    /// Asks the models in their order, each in the way that it bears, until one answers.
    async fn ask(
        &self,
        driver: &Driver<'_>,
        brief: &Brief,
        wording: &Wording,
        meter: &Arc<Meter>,
    ) -> Settled {
        let able = |ready: &Ready| Able { local: ready.local, scale: ready.model.scale() };
        let able: Vec<Able> = driver.models.iter().map(able).collect();
        let mut settled = Settled::failed(brief, TurnError::NoModel.said());
        let mut from = 0;
        while let Some(group) = order::group(&able, from) {
            from = group.end;
            let models = driver.models.get(group).unwrap_or_default();
            let next = self.ask_alike(&Driver { models, ..*driver }, brief, wording, meter).await;
            if !next.another_may_answer() {
                return next;
            }
            // As in a chat: what only the user can mend is told rather than what failed last.
            if !settled.is_to_be_mended() {
                settled = next;
            }
        }
        settled
    }

    /// Asks models that are all asked in the same way.
    async fn ask_alike(
        &self,
        driver: &Driver<'_>,
        brief: &Brief,
        wording: &Wording,
        meter: &Arc<Meter>,
    ) -> Settled {
        if driver.scale() == Scale::Full {
            let (rendered, answer) = ask(driver, brief, wording, meter).await;
            return Settled::of(brief, rendered, answer);
        }
        let parts = wording.parts(brief, driver.window());
        let run = ranked::ask(driver, &parts, self.lang, meter).await;
        let settled = Settled::of(brief, run.rendered, run.answer);
        let standing = if run.heard { settled.standing } else { brief.answered.clone() };
        Settled { alerts: run.alerts, standing, ..settled }
    }

    /// Every request that a run with a small model of this window would make right now. Changes nothing.
    pub async fn dry_requests(&self, window: usize) -> Result<NextRequests, DbError> {
        let (now, lang) = (self.clock.now().to_zoned(self.clock.zone()), self.lang);
        self.db
            .read(move |tx| {
                let values = settings::load(tx)?;
                let brief = brief::gather(tx, &sources(&values), now.time_zone())?;
                let wording = wording(tx, &values, now)?;
                let requests = ranked::requests(&wording.parts(&brief, window), lang);
                Ok(NextRequests { requests, is_new: brief.is_new() })
            })
            .await
    }

    /// The exact prompt that a run would send right now to a model with this window. Changes nothing.
    pub async fn dry_run(&self, window: usize) -> Result<Next, DbError> {
        let now = self.clock.now().to_zoned(self.clock.zone());
        self.db
            .read(move |tx| {
                let values = settings::load(tx)?;
                let brief = brief::gather(tx, &sources(&values), now.time_zone())?;
                let text = wording(tx, &values, now)?.render(&brief, window).text;
                Ok(Next { text, is_new: brief.is_new() })
            })
            .await
    }

    /// Stores the outcome in one transaction: the report, the timestamps and the log, and removes what was shown from
    /// the queues. Does nothing if the lease was lost.
    async fn settle(
        &self,
        lease: Lease,
        settled: Settled,
        started: Timestamp,
    ) -> Result<BeatResult, DbError> {
        let now = self.clock.now();
        let ms = u64::try_from(now.duration_since(started).as_millis()).unwrap_or_default();
        let write = move |tx: &Transaction<'_>| {
            if !lease::ours(tx, &lease)? {
                return Ok(BeatResult::Busy);
            }
            lease::give_back(tx, &lease)?;
            notifications::sweep(tx, now)?;
            let Settled { outcome, usage, label, spent: Spent { tokens, estimated }, .. } = &settled;
            store::record(tx, outcome, Cost { tokens: *tokens, estimated: *estimated, ms }, now)?;
            if let Outcome::Report(said) = outcome {
                let (said, spoken) = (said.clone(), Some((label.clone(), *usage)));
                reports::keep(tx, &Report { said, spoken, at: now, raises: settled.alerts })?;
            }
            if matches!(outcome, Outcome::Report(_) | Outcome::Ok) {
                settled.forget(tx)?;
            }
            Ok(BeatResult::Ran(settled.outcome))
        };
        self.db.write(write).await
    }
}

/// Asks with a prompt that fits the model. The driver never cuts it, because it counts as the user's message; if it
/// turns out too long, a shorter one is rendered.
async fn ask(
    driver: &Driver<'_>,
    brief: &Brief,
    wording: &Wording,
    meter: &Arc<Meter>,
) -> (Rendered, Result<Answer, TurnError>) {
    let mut window = driver.window();
    let mut rendered = wording.render(brief, window);
    for _ in 0..SHORTER {
        let answer = ask_once(driver, brief.level(), &rendered, meter).await;
        let Err(TurnError::Model { error: ModelError::TooLong { limit }, .. }) = &answer else {
            return (rendered, answer);
        };
        window = limit.filter(|limit| *limit < window).unwrap_or(window / 2);
        let shorter = wording.render(brief, window);
        if shorter.text.len() >= rendered.text.len() {
            return (rendered, answer);
        }
        rendered = shorter;
    }
    let answer = ask_once(driver, brief.level(), &rendered, meter).await;
    (rendered, answer)
}

async fn ask_once(
    driver: &Driver<'_>,
    level: Level,
    rendered: &Rendered,
    meter: &Arc<Meter>,
) -> Result<Answer, TurnError> {
    let Rendered { email, sms, notifications, .. } = rendered;
    let shown = [&email.identities[..], &sms.identities, &notifications.identities].concat();
    let driver = Driver { kind: RunKind::Heartbeat, level, shown: &shown, ..*driver };
    driver.unattended(rendered.text.clone(), "", meter).await
}

/// The outcome of a run, with what it showed.
struct Settled {
    outcome: Outcome,
    spent: Spent,
    usage: Usage,
    label: String,
    standing: String,
    rendered: Option<Rendered>,
    /// The user is alerted to the report.
    alerts: bool,
    /// Why the models gave no answer.
    trouble: Option<ModelError>,
}

impl Settled {
    fn nothing_new(brief: &Brief) -> Self {
        Self {
            outcome: Outcome::NothingNew,
            spent: Spent::default(),
            usage: Usage::default(),
            label: String::new(),
            standing: brief.standing(),
            rendered: None,
            alerts: true,
            trouble: None,
        }
    }

    fn failed(brief: &Brief, why: Said) -> Self {
        Self { outcome: Outcome::Failed(why), ..Self::nothing_new(brief) }
    }

    fn of(brief: &Brief, rendered: Rendered, answer: Result<Answer, TurnError>) -> Self {
        let (outcome, usage, label, trouble) = match answer {
            Ok(answer) => (Outcome::of_answer(&answer.text), answer.usage, answer.answered_by, None),
            Err(error) => {
                let (said, usage) = (error.said(), error.usage());
                let trouble = if let TurnError::Model { error, .. } = error { Some(error) } else { None };
                (Outcome::Failed(said), usage, String::new(), trouble)
            }
        };
        let (spent, standing) = (Spent::default(), brief.standing());
        Self { outcome, spent, usage, label, standing, rendered: Some(rendered), alerts: true, trouble }
    }

    /// The models failed in a way that others may not.
    fn another_may_answer(&self) -> bool {
        self.trouble.as_ref().is_some_and(|error| retry::after(error, TRIES) == retry::Next::NextModel)
    }

    /// The setup of a model is wrong.
    fn is_to_be_mended(&self) -> bool {
        self.trouble.as_ref().is_some_and(|error| trouble::fault(error).is_some())
    }

    /// Removes exactly what was shown from the queues, and only for features that are still enabled: a user who
    /// disables a feature keeps its queue.
    fn forget(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        store::answered(tx, &self.standing)?;
        let Some(rendered) = &self.rendered else { return Ok(()) };
        let sources = sources(&settings::load(tx)?);
        rendered.email.answered(tx, email::QUEUE, FeatureState::of(sources.email))?;
        if sources.email {
            email::told(tx)?;
        }
        rendered.sms.answered(tx, sms::QUEUE, FeatureState::of(sources.sms))?;
        rendered.notifications.answered(tx, notifications::QUEUE, FeatureState::of(sources.notifications))
    }
}

fn begin(tx: &Transaction<'_>, why: Why, now: &jiff::Zoned) -> Result<Result<Begun, BeatResult>, DbError> {
    let at = now.timestamp();
    store::begin_day(tx, now.date())?;
    let values = settings::load(tx)?;
    let standing = store::standing(tx, now.date())?;
    if let Some(not) = refused(why, &rules(&values), &standing, now) {
        return Ok(Err(BeatResult::NotDue(not)));
    }
    // A chat must never wait for a heartbeat, so the heartbeat waits for running chats.
    if why == Why::Tick && lease::any_held(tx, "turn/", at)? {
        return Ok(Err(BeatResult::Busy));
    }
    let Some(lease) = lease::take(tx, NAME, at, LEASE)? else { return Ok(Err(BeatResult::Busy)) };
    let brief = brief::gather(tx, &sources(&values), now.time_zone())?;
    brief.email.begin(tx, email::QUEUE)?;
    email::begin(tx)?;
    brief.sms.begin(tx, sms::QUEUE)?;
    brief.notifications.begin(tx, notifications::QUEUE)?;
    let wording = wording(tx, &values, now.clone())?;
    Ok(Ok(Begun { lease, brief, wording }))
}

/// Why a run is refused, if it is. A run that the user asked for may start at any hour, but not beyond the daily token
/// budget; a forced run always may.
fn refused(why: Why, rules: &Rules, standing: &ScheduleState, now: &jiff::Zoned) -> Option<Due> {
    match (why, due::due(rules, standing, now)) {
        (_, Due::Now) | (Why::Forced, _) => None,
        (Why::Tick, not) => Some(not),
        (Why::Asked, _) => due::is_over_budget(rules, standing).then_some(Due::OverBudget),
    }
}

fn wording(tx: &Transaction<'_>, values: &Values, now: jiff::Zoned) -> Result<Wording, DbError> {
    Ok(Wording { opening: values.of(&HEARTBEAT_PROMPT), mark: store::next_mark(tx)?, now })
}

pub fn rules(values: &Values) -> Rules {
    Rules {
        enabled: values.on(&HEARTBEAT_ENABLED),
        interval: values.number(&HEARTBEAT_INTERVAL),
        active_start: values.number(&HEARTBEAT_ACTIVE_START),
        active_end: values.number(&HEARTBEAT_ACTIVE_END),
        daily_tokens: values.number(&HEARTBEAT_DAILY_TOKENS),
    }
}

/// Which queues to read. An edition without a feature has no setting for it either.
fn sources(values: &Values) -> Sources {
    Sources {
        email: email::is_on(values),
        sms: sms::is_on(values),
        notifications: notifications::is_on(values),
    }
}
