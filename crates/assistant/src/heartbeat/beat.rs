//! One run: gather, ask, settle.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_llm::Usage;
use rusqlite::Transaction;

use super::Outcome;
use super::brief::{self, Brief, Sources};
use super::due::{self, Due, Rules, Standing};
use super::prompt::{self, Parts, Rendered};
use super::store::{self, Cost};
use crate::agent::conversation;
use crate::agent::{Answer, Driver, TurnError};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::RunKind;
use crate::lease::{self, Lease};
use crate::settings::{
    self, HEARTBEAT_ACTIVE_END, HEARTBEAT_ACTIVE_START, HEARTBEAT_DAILY_TOKENS, HEARTBEAT_ENABLED,
    HEARTBEAT_INTERVAL, HEARTBEAT_PROMPT, Setting, Values,
};

/// Why it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The tick: only when it is due.
    Tick,
    /// The person wants it now, whatever the hour; but not when nothing is new.
    Asked,
    /// The person wants a model asked in any case.
    Forced,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beaten {
    Ran(Outcome),
    /// It was not the time for it.
    NotDue(Due),
    /// Another run, or a chat, is under way.
    Busy,
}

/// Where and when a beat happens; what it asks with comes with each run.
#[derive(Clone, Copy)]
pub struct Beat<'a> {
    pub db: &'a Db,
    pub clock: &'a dyn Clock,
}

/// What the next run would ask with, and whether it would ask at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    pub text: String,
    pub is_new: bool,
}

/// Everything that a run needs of the store, in one view.
struct Begun {
    lease: Lease,
    brief: Brief,
    rendered: Rendered,
}

const NAME: &str = "heartbeat";
/// A run takes no longer than this, whatever its model does.
const LONGEST: Duration = Duration::from_hours(1);
const LEASE: SignedDuration = SignedDuration::from_mins(65);

/// Does one run right now?
pub fn under_way(tx: &Transaction<'_>, now: Timestamp) -> Result<bool, DbError> {
    lease::held(tx, NAME, now)
}

impl Beat<'_> {
    /// Runs if it may. `driver` asks: it is told the kind of run and what the request holds. Where nobody can be
    /// asked it is the reason, which only a run that would ask comes to.
    pub async fn run(&self, why: Why, driver: Result<Driver<'_>, String>) -> Result<Beaten, DbError> {
        let (now, started) = (self.clock.now().to_zoned(self.clock.zone()), self.clock.now());
        let begun = match self.db.write(move |tx| begin(tx, why, &now)).await? {
            Ok(begun) => begun,
            Err(not) => return Ok(not),
        };
        let Begun { lease, brief, rendered } = begun;
        if why != Why::Forced && !brief.is_new() {
            return self.settle(lease, Settled::nothing_new(&brief), started).await;
        }
        let driver = match driver {
            Ok(driver) => driver,
            Err(why) => return self.settle(lease, Settled::of(&brief, rendered, Err(&why)), started).await,
        };
        let level = brief.level();
        let shown = [&rendered.sms.identities[..], &rendered.notifications.identities].concat();
        let driver = Driver { kind: RunKind::Heartbeat, level, shown: &shown, ..driver };
        let asking = driver.unattended(rendered.text.clone());
        let answer = tokio::time::timeout(LONGEST, asking).await.map_err(|_| "It took longer than an hour.");
        self.settle(lease, Settled::of(&brief, rendered, answer), started).await
    }

    /// The exact prompt of the next run at this moment; nothing changes.
    pub async fn dry_run(&self) -> Result<Next, DbError> {
        let now = self.clock.now().to_zoned(self.clock.zone());
        self.db
            .read(move |tx| {
                let values = settings::load(tx)?;
                let brief = brief::gather(tx, &sources(&values), now.time_zone())?;
                let text = render(tx, &values, &brief, &now)?.text;
                Ok(Next { text, is_new: brief.is_new() })
            })
            .await
    }

    /// One transaction: the report, the stamps, the log, and what is forgotten, or none of it.
    async fn settle(&self, lease: Lease, settled: Settled, started: Timestamp) -> Result<Beaten, DbError> {
        let now = self.clock.now();
        let ms = u64::try_from(now.duration_since(started).as_millis()).unwrap_or_default();
        let write = move |tx: &Transaction<'_>| {
            if !lease::ours(tx, &lease)? {
                return Ok(Beaten::Busy);
            }
            lease::give_back(tx, &lease)?;
            let Settled { outcome, usage, label, .. } = &settled;
            let tokens = usage.input.saturating_add(usage.output);
            store::record(tx, outcome, Cost { tokens, ms }, now)?;
            if let Outcome::Report(said) = outcome {
                let id = conversation::report(tx, said, Some((label, *usage)), now)?;
                store::raise(tx, id)?;
            }
            if matches!(outcome, Outcome::Report(_) | Outcome::Ok) {
                settled.forget(tx)?;
            }
            Ok(Beaten::Ran(settled.outcome))
        };
        self.db.write(write).await
    }
}

/// What a run came to, with what it showed.
struct Settled {
    outcome: Outcome,
    usage: Usage,
    label: String,
    standing: String,
    rendered: Option<Rendered>,
}

impl Settled {
    fn nothing_new(brief: &Brief) -> Self {
        Self {
            outcome: Outcome::NothingNew,
            usage: Usage::default(),
            label: String::new(),
            standing: brief.standing(),
            rendered: None,
        }
    }

    fn of(brief: &Brief, rendered: Rendered, answer: Result<Result<Answer, TurnError>, &str>) -> Self {
        let (outcome, usage, label) = match answer {
            Ok(Ok(answer)) => (Outcome::of_answer(&answer.text), answer.usage, answer.answered_by),
            Err(why) => (Outcome::Failed(why.to_owned()), Usage::default(), String::new()),
            Ok(Err(error)) => (Outcome::Failed(error.to_string()), error.usage(), String::new()),
        };
        Self { outcome, usage, label, standing: brief.standing(), rendered: Some(rendered) }
    }

    /// Exactly what was shown, and only of what is still on: who turns a feature off keeps what waits.
    fn forget(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        store::answered(tx, &self.standing)?;
        let Some(rendered) = &self.rendered else { return Ok(()) };
        let sources = sources(&settings::load(tx)?);
        #[cfg(feature = "sms")]
        if sources.sms {
            rendered.sms.forget(tx, crate::sms::store::QUEUE)?;
        }
        #[cfg(feature = "notifications")]
        if sources.notifications {
            rendered.notifications.forget(tx, crate::notifications::QUEUE)?;
        }
        let _ = (rendered, sources);
        Ok(())
    }
}

fn begin(tx: &Transaction<'_>, why: Why, now: &jiff::Zoned) -> Result<Result<Begun, Beaten>, DbError> {
    let at = now.timestamp();
    store::begin_day(tx, now.date())?;
    let values = settings::load(tx)?;
    let standing = store::standing(tx, now.date())?;
    if let Some(not) = refused(why, &rules(&values), &standing, now) {
        return Ok(Err(Beaten::NotDue(not)));
    }
    // A chat never waits for a heartbeat, and so a heartbeat waits for a chat.
    if why == Why::Tick && lease::any_held(tx, "turn/", at)? {
        return Ok(Err(Beaten::Busy));
    }
    let Some(lease) = lease::take(tx, NAME, at, LEASE)? else { return Ok(Err(Beaten::Busy)) };
    let brief = brief::gather(tx, &sources(&values), now.time_zone())?;
    let rendered = render(tx, &values, &brief, now)?;
    Ok(Ok(Begun { lease, brief, rendered }))
}

/// A person who asks is answered at any hour, but not for more tokens than they allowed a day.
fn refused(why: Why, rules: &Rules, standing: &Standing, now: &jiff::Zoned) -> Option<Due> {
    match (why, due::due(rules, standing, now)) {
        (_, Due::Now) | (Why::Forced, _) => None,
        (Why::Tick, not) => Some(not),
        (Why::Asked, _) => due::is_over_budget(rules, standing).then_some(Due::OverBudget),
    }
}

fn render(
    tx: &Transaction<'_>,
    values: &Values,
    brief: &Brief,
    now: &jiff::Zoned,
) -> Result<Rendered, DbError> {
    let mark = store::next_mark(tx)?;
    let opening = values.of(&HEARTBEAT_PROMPT);
    Ok(prompt::heartbeat(&Parts { opening: &opening, brief, now, mark: &mark }))
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

/// An edition without a feature has no switch for it either.
fn sources(values: &Values) -> Sources {
    let on = |setting: Option<&Setting>| setting.is_some_and(|setting| values.on(setting));
    #[cfg(feature = "sms")]
    let sms = Some(&settings::SMS_ENABLED);
    #[cfg(not(feature = "sms"))]
    let sms = None;
    #[cfg(feature = "notifications")]
    let notifications = Some(&settings::NOTIFICATIONS_ENABLED);
    #[cfg(not(feature = "notifications"))]
    let notifications = None;
    Sources { sms: on(sms), notifications: on(notifications) }
}
