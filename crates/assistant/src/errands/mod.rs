//! Runs the tasks that are due.
//!
//! The tick begins a [`Round`]; a lease ensures that only one is under way across all processes. The round first finds
//! runs that died and reports them. It then claims each task that is due, durably, and asks a model as in any
//! unattended run, with the task's [`prompt`] (pure) and the level at which it was created. One transaction then
//! records the run, schedules the task's next time, and adds the answer to the heartbeat's conversation under the
//! task's name.

pub mod prompt;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use rusqlite::Transaction;

use crate::agent::reports::{self, Report};
use crate::agent::{Answer, Driver, Meter, Spent};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::gate::RunKind;
use crate::lease::{self, Lease};
use crate::lock::lock;
use crate::settings::{self, SCHEDULING_ENABLED};
use crate::tasks::store::{self, Claim, Ending};

/// The store and the clock with which tasks are run.
#[derive(Clone, Copy)]
pub struct Errands<'a> {
    pub db: &'a Db,
    pub clock: &'a dyn Clock,
}

/// A round of running due tasks; no other process runs tasks until it ends.
pub struct Round<'a> {
    errands: Errands<'a>,
    lease: Lease,
    awake: Mutex<Awake>,
    /// The runs that died before this round.
    pub lost: Vec<Claim>,
}

/// Since when Kai has been awake in a round. Tasks run one after the other, so one may wait for others for much longer
/// than a missed time is late. What came due while Kai was awake was not missed.
#[derive(Debug, Clone, Copy)]
struct Awake {
    since: Timestamp,
    /// When the round last looked at the clock.
    looked: Timestamp,
}

impl Awake {
    fn new(began: Timestamp) -> Self {
        Self { since: began, looked: began }
    }

    /// Since when Kai has been awake, now that a run has ended. A machine that is closed in the middle of a run sleeps
    /// without the run's timeout noticing, and what came due during that was missed.
    fn at(&mut self, now: Timestamp) -> Timestamp {
        if now.duration_since(self.looked) >= ASLEEP {
            self.since = now;
        }
        self.looked = now;
        self.since
    }
}

const NAME: &str = "tasks";
/// The timeout of a run: a model may be slow, but it must not block the other tasks for ever.
const LONGEST: Duration = Duration::from_mins(10);
/// The duration of the round's lease; renewed with every claim, and longer than any run.
const LEASE: SignedDuration = SignedDuration::from_mins(15);
/// No run takes this long while the machine is awake, because it is given up before.
const ASLEEP: SignedDuration = SignedDuration::from_mins(15);

impl<'a> Errands<'a> {
    /// Begins a round; `None` if there is nothing to do or another process is running one.
    pub async fn begin(&self) -> Result<Option<Round<'a>>, DbError> {
        let (now, zone) = (self.clock.now(), self.clock.zone());
        let here = zone.clone();
        let has_work =
            move |tx: &Transaction<'_>| Ok::<_, DbError>(enabled(tx)? && store::has_work(tx, now, &here)?);
        if !self.db.read(has_work).await? {
            return Ok(None);
        }
        let begun = move |tx: &Transaction<'_>| {
            let Some(lease) = lease::take(tx, NAME, now, LEASE)? else { return Ok(None) };
            let lost = store::lost(tx, now, &zone)?;
            for claim in &lost {
                let said = prompt::cut_off(&claim.task, &zone);
                reports::keep(tx, &Report { said, spoken: None, at: now, raises: false })?;
            }
            Ok::<_, DbError>(Some((lease, lost)))
        };
        let begun = self.db.write(begun).await?;
        let awake = Mutex::new(Awake::new(now));
        Ok(begun.map(|(lease, lost)| Round { errands: *self, lease, awake, lost }))
    }
}

fn enabled(tx: &Transaction<'_>) -> Result<bool, DbError> {
    Ok(settings::load(tx)?.on(&SCHEDULING_ENABLED))
}

impl Round<'_> {
    /// Claims the next run; `None` if nothing is due, scheduling was disabled, or the round's lease was lost.
    pub async fn claim(&self) -> Result<Option<Claim>, DbError> {
        let (now, zone, lease) = (self.now(), self.errands.clock.zone(), self.lease.clone());
        let awake = lock(&self.awake).at(now);
        let claimed = move |tx: &Transaction<'_>| {
            if !lease::ours(tx, &lease)? || !lease::renew(tx, &lease, now, LEASE)? || !enabled(tx)? {
                return Ok(None);
            }
            store::claim_since(tx, awake, now, &zone)
        };
        self.errands.db.write(claimed).await
    }

    /// Runs a claimed task. `driver` asks the model, with the kind of run and the level set here; an `Err` says why no
    /// model can be asked. Returns why the run failed, if it did.
    pub async fn run(&self, claim: Claim, driver: Result<Driver<'_>, Said>) -> Result<Option<Said>, DbError> {
        let started = self.now();
        let meter = Arc::new(Meter::default());
        let answer = match driver {
            Ok(driver) => self.ask(&claim, driver, started, &meter).await,
            Err(reason) => Err(reason),
        };
        let failure = answer.as_ref().err().cloned();
        self.settle(claim, answer, meter.spent(), started).await?;
        Ok(failure)
    }

    async fn ask(
        &self,
        claim: &Claim,
        driver: Driver<'_>,
        started: Timestamp,
        meter: &Arc<Meter>,
    ) -> Result<Answer, Said> {
        let driver = Driver { kind: RunKind::Task, level: claim.task.level, ..driver };
        let said = prompt::task(&claim.task, claim.due, &started.to_zoned(self.errands.clock.zone()));
        match tokio::time::timeout(LONGEST, driver.unattended(said, &claim.task.prompt, meter)).await {
            Ok(answer) => answer.map_err(|error| error.said()),
            Err(_elapsed) => Err(said::run_too_long(LONGEST.as_secs() / 60)),
        }
    }

    /// Stores the outcome in one transaction: the run, the task's next time, and its report. Nothing is stored for a
    /// task that was cancelled meanwhile.
    async fn settle(
        &self,
        claim: Claim,
        answer: Result<Answer, Said>,
        spent: Spent,
        started: Timestamp,
    ) -> Result<(), DbError> {
        let (now, zone) = (self.now(), self.errands.clock.zone());
        let ms = u64::try_from(now.duration_since(started).as_millis()).unwrap_or_default();
        let settled = move |tx: &Transaction<'_>| {
            let outcome = answer.as_ref().map(|_| ()).map_err(Clone::clone);
            let ending = Ending { outcome, tokens: spent.tokens, ms };
            if !store::end(tx, &claim, &ending, now, &zone)? {
                return Ok(());
            }
            let Ok(answer) = answer else { return Ok(()) };
            let said = prompt::report(&claim.task, &answer.text);
            reports::keep(
                tx,
                &Report { said, spoken: Some((answer.answered_by, answer.usage)), at: now, raises: true },
            )
        };
        self.errands.db.write(settled).await
    }

    /// Ends the round and releases its lease.
    pub async fn end(self) -> Result<(), DbError> {
        let lease = self.lease;
        self.errands.db.write(move |tx| lease::give_back(tx, &lease)).await
    }

    fn now(&self) -> Timestamp {
        self.errands.clock.now()
    }
}
