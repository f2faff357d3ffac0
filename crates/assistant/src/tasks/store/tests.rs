//! Tests with an in-memory store, through simulated weeks: every time is used exactly once, by a run or by skipping it.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use crate::db::Db;
use crate::tasks::cron::Cron;
use crate::tasks::cron::tests::frequent;
use crate::tasks::due::LATE;

fn store() -> Db {
    Db::in_memory(&[settings::MIGRATION, crate::tasks::MIGRATION, crate::tasks::LEVELS]).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn new(description: &str, trigger: Trigger, missed: Missed) -> NewTask {
    NewTask::new(description, "Do it.", trigger, missed, Level::Nothing).unwrap()
}

fn cron(written: &str) -> Trigger {
    Trigger::Cron(written.parse().unwrap())
}

fn failed(reason: &str) -> Ending {
    Ending { outcome: Err(reason.into()), tokens: 0, ms: 5 }
}

const OK: Ending = Ending { outcome: Ok(()), tokens: 30, ms: 1_500 };

/// A store, a clock and a time zone.
struct Stage {
    db: Db,
    now: Timestamp,
    zone: TimeZone,
}

impl Stage {
    fn new(now: &str, place: &str) -> Self {
        Self { db: store(), now: at(now), zone: TimeZone::get(place).unwrap() }
    }

    fn add(&self, new: &NewTask) -> TaskId {
        self.db.write_now(|tx| add(tx, new, self.now, &self.zone)).unwrap().id
    }

    fn claim(&self) -> Option<Claim> {
        self.db.write_now(|tx| claim(tx, self.now, &self.zone)).unwrap()
    }

    fn end(&self, claim: &Claim, ending: &Ending) -> bool {
        self.db.write_now(|tx| end(tx, claim, ending, self.now, &self.zone)).unwrap()
    }

    fn lost(&self) -> Vec<Claim> {
        self.db.write_now(|tx| lost(tx, self.now, &self.zone)).unwrap()
    }

    fn task(&self, id: TaskId) -> Task {
        self.db.read_now(|tx| get(tx, id)).unwrap().unwrap()
    }

    fn runs(&self, id: TaskId) -> Vec<TaskRun> {
        self.db.read_now(|tx| runs(tx, id)).unwrap()
    }

    fn pass(&mut self, time: SignedDuration) {
        self.now = self.now.checked_add(time).unwrap();
    }
}

#[test]
fn a_single_time_is_tried_again_until_it_works() {
    let mut stage = Stage::new("2026-03-09T14:00Z", "Europe/Berlin");
    let id = stage.add(&new("once", Trigger::Time(at("2026-03-09T15:00Z")), Missed::RunOnce));
    assert_eq!(stage.claim(), None, "too early");
    stage.now = at("2026-03-09T15:00:30Z");
    for (failures, wait) in [(1, 60), (2, 120), (3, 240)] {
        let claim = stage.claim().unwrap();
        assert_eq!(stage.runs(id)[0].outcome, None, "written down before it starts");
        assert_eq!(stage.task(id).status, Status::Running);
        assert_eq!(stage.claim(), None, "it runs already");
        assert!(stage.end(&claim, &failed("no model")));
        assert_eq!(stage.task(id).failures, failures);
        stage.pass(SignedDuration::from_secs(wait - 1));
        assert_eq!(stage.claim(), None, "{wait} seconds are not over");
        stage.pass(SignedDuration::from_secs(1));
    }
    let claim = stage.claim().unwrap();
    assert!(stage.end(&claim, &OK));
    let task = stage.task(id);
    assert_eq!((task.status, task.failures, task.next), (Status::Completed, 0, None));
    stage.pass(SignedDuration::from_hours(1000));
    assert_eq!(stage.claim(), None, "once is once");
    let runs = stage.runs(id);
    let told: Vec<_> =
        runs.iter().map(|run| (run.outcome.unwrap(), run.reason.clone(), run.tokens)).collect();
    let failed = || (Outcome::Failed, "no model".into(), 0);
    assert_eq!(told, [(Outcome::Ok, Said::default(), 30), failed(), failed(), failed()], "newest first");
}

#[test]
fn what_died_is_said_and_a_single_time_is_tried_again() {
    let mut stage = Stage::new("2026-03-09T13:59Z", "Europe/Berlin");
    let once = stage.add(&new("once", Trigger::Time(stage.now), Missed::RunOnce));
    let daily = stage.add(&new("daily", cron("0 15 * * *"), Missed::RunOnce));
    stage.pass(SignedDuration::from_mins(1));
    let (first, second) = (stage.claim().unwrap(), stage.claim().unwrap());
    assert_eq!((first.task.id, second.task.id), (once, daily), "15:00 in Berlin is 14:00");
    stage.pass(SignedDuration::from_mins(3));
    let dead: Vec<TaskId> = stage.lost().iter().map(|claim| claim.task.id).collect();
    assert_eq!(dead, [once, daily]);
    assert_eq!(stage.lost(), [], "said once");
    for id in dead {
        let run = &stage.runs(id)[0];
        assert_eq!((run.outcome, &run.reason), (Some(Outcome::Interrupted), &said::run_interrupted()));
        assert_eq!(stage.task(id).failures, 1);
    }
    assert_eq!(stage.claim(), None, "not at once");
    assert_eq!(
        stage.task(daily).next.unwrap().at,
        at("2026-03-10T14:00Z"),
        "the next time, not the same again"
    );
    stage.pass(SignedDuration::from_mins(1));
    assert_eq!(stage.claim().unwrap().task.id, once);
}

#[test]
fn a_task_that_is_cancelled_while_it_runs_leaves_nothing() {
    let stage = Stage::new("2026-03-09T14:00Z", "UTC");
    let id = stage.add(&new("once", Trigger::Time(stage.now), Missed::RunOnce));
    let claim = stage.claim().unwrap();
    assert_eq!(stage.db.write_now(|tx| cancel(tx, id)).unwrap().unwrap().id, id);
    assert_eq!(stage.db.write_now(|tx| cancel(tx, id)).unwrap(), None);
    assert!(!stage.end(&claim, &OK));
    assert_eq!((stage.lost(), stage.claim()), (vec![], None));
}

#[test]
fn a_task_that_was_taken_away_comes_back_as_it_was() {
    let mut stage = Stage::new("2026-03-02T08:00:30Z", "Europe/Berlin");
    let id = stage.add(&new("review", cron("0 9 * * *"), Missed::RunOnce));
    for ending in [OK, failed("no model")] {
        stage.pass(SignedDuration::from_hours(24));
        let claim = stage.claim().unwrap();
        stage.end(&claim, &ending);
    }
    let seen = || stage.db.read_now(|tx| Ok::<_, DbError>((get(tx, id)?, runs(tx, id)?))).unwrap();
    let before = seen();
    let put_back = |(task, runs): &(Option<Task>, Vec<TaskRun>)| {
        stage.db.write_now(|tx| cancel(tx, id)).unwrap();
        assert_eq!(seen(), (None, vec![]));
        stage.db.write_now(|tx| restore(tx, task.as_ref().unwrap(), runs)).unwrap();
    };
    put_back(&before);
    assert_eq!(seen(), before);
    // Deleted and restored while it runs: the run ends as usual.
    let later = Stage {
        db: stage.db.clone(),
        zone: stage.zone.clone(),
        now: stage.now + SignedDuration::from_hours(24),
    };
    let claim = later.claim().unwrap();
    put_back(&seen());
    assert_eq!(seen().0.unwrap().status, Status::Pending);
    assert!(later.lost().is_empty(), "and it counts as no run that died");
    assert!(later.end(&claim, &OK));
    assert_eq!(seen().0.unwrap().failures, 0);
}

/// A one-time task that is deleted while it runs, and restored after the outcome of that run was lost, runs again.
#[test]
fn what_was_to_be_done_once_is_not_lost_by_undo() {
    let stage = Stage::new("2026-03-09T14:00Z", "UTC");
    let id = stage.add(&new("once", Trigger::Time(stage.now), Missed::RunOnce));
    let claim = stage.claim().unwrap();
    let running = stage.db.write_now(|tx| cancel(tx, id)).unwrap().unwrap();
    assert!(!stage.end(&claim, &OK));
    stage.db.write_now(|tx| restore(tx, &running, &[])).unwrap();
    assert_eq!(stage.claim().unwrap().task.id, id);
}

#[test]
fn a_run_that_was_given_up_has_no_more_to_say() {
    let stage = Stage::new("2026-03-09T14:00Z", "UTC");
    let id = stage.add(&new("once", Trigger::Time(stage.now), Missed::RunOnce));
    let claim = stage.claim().unwrap();
    assert_eq!(stage.lost().len(), 1);
    assert!(!stage.end(&claim, &OK));
    let outcome = stage.db.read_now(|tx| runs(tx, id)).unwrap()[0].outcome;
    assert_eq!(outcome, Some(Outcome::Interrupted));
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let stage = Stage::new("2026-03-09T14:00Z", "UTC");
    let add = |trigger: Trigger| {
        stage.db.write_now(|tx| add(tx, &new("x", trigger, Missed::Skip), stage.now, &stage.zone))
    };
    for _ in 0..MOST_ADDITIONS {
        add(Trigger::Heartbeat).unwrap();
    }
    assert!(matches!(add(Trigger::Heartbeat), Err(AddError::HeartbeatFull)));
    for _ in MOST_ADDITIONS..MOST {
        add(cron("0 9 * * *")).unwrap();
    }
    assert!(matches!(add(Trigger::Time(stage.now)), Err(AddError::Full)));
}

#[test]
fn finished_tasks_and_old_runs_make_room() {
    let mut stage = Stage::new("2026-03-09T14:00Z", "UTC");
    let often = stage.add(&new("often", cron("* * * * *"), Missed::RunOnce));
    for _ in 0..30 {
        stage.pass(SignedDuration::from_mins(1));
        stage.add(&new("once", Trigger::Time(stage.now), Missed::RunOnce));
        while let Some(claim) = stage.claim() {
            stage.end(&claim, &OK);
        }
    }
    assert_eq!(stage.runs(often).len(), 10);
    let all = stage.db.read_now(all).unwrap();
    assert_eq!(all.len(), 21, "the one that waits and the last twenty that are done");
    assert_eq!(all[0].id, often, "what comes next stands first");
    assert_eq!(all.iter().map(|task| task.id.0).max(), Some(31), "the newest stay");
}

#[test]
fn the_heartbeat_sees_its_own_and_what_waits() {
    let stage = Stage::new("2026-03-09T14:00Z", "UTC");
    let strange =
        NewTask::new("a", "Look at a.", Trigger::Heartbeat, Missed::RunOnce, Level::People).unwrap();
    let a = stage.add(&strange);
    let b = stage.add(&new("b", cron("0 9 * * *"), Missed::RunOnce));
    let c = stage.add(&new("c", Trigger::Time(at("2026-03-09T15:00Z")), Missed::RunOnce));
    let (added, waiting) = stage.db.read_now(|tx| Ok::<_, DbError>((additions(tx)?, pending(tx)?))).unwrap();
    let addition = Addition {
        id: a,
        description: "a".to_owned(),
        prompt: "Look at a.".to_owned(),
        level: Level::People,
    };
    assert_eq!(added, [addition]);
    let told: Vec<_> =
        waiting.iter().map(|row| (row.id, row.next.unwrap().to_string(), row.failures)).collect();
    assert_eq!(told, [(c, "2026-03-09T15:00:00Z".to_owned(), 0), (b, "2026-03-10T09:00:00Z".to_owned(), 0)]);
    assert_eq!(stage.db.read_now(outlook).unwrap(), (3, Some(at("2026-03-09T15:00Z"))));
    assert_eq!(stage.claim(), None, "a task of the heartbeat does not run by itself");
    let off = |tx: &Transaction<'_>| {
        settings::store(tx, "scheduling_enabled", "false")?;
        Ok::<_, DbError>((additions(tx)?, pending(tx)?))
    };
    assert_eq!(stage.db.write_now(off).unwrap(), (vec![], vec![]));
}

/// How time passes between two ticks.
#[derive(Debug, Clone, Copy)]
enum Step {
    Pass(i64),
    Sleep(i64),
    Back(i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Works,
    Fails,
    Dies,
}

fn steps(count: usize) -> impl Strategy<Value = Vec<(Step, Fate)>> {
    let step = prop_oneof![
        8 => (1..4_i64).prop_map(Step::Pass),
        4 => (4..200_i64).prop_map(Step::Pass),
        2 => (1..70_i64).prop_map(Step::Sleep),
        1 => (1..700_i64).prop_map(Step::Back),
    ];
    let fate = prop_oneof![6 => Just(Fate::Works), 2 => Just(Fate::Fails), 1 => Just(Fate::Dies)];
    prop::collection::vec((step, fate), 1..count)
}

fn places() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop::sample::select(vec![
        ("Europe/Berlin", "2026-03-25T12:00Z"),
        ("Europe/Berlin", "2026-10-21T12:00Z"),
        ("America/New_York", "2026-03-04T12:00Z"),
        ("America/New_York", "2026-10-28T12:00Z"),
    ])
}

/// Moves the clock, but never back by a day or more from the latest time seen, which would count as a wrong clock.
fn moved(stage: &mut Stage, latest: &mut Timestamp, step: Step) {
    match step {
        Step::Pass(minutes) => stage.pass(SignedDuration::from_mins(minutes)),
        Step::Sleep(hours) => stage.pass(SignedDuration::from_hours(hours)),
        Step::Back(minutes) => {
            let back = stage.now - SignedDuration::from_mins(minutes);
            stage.now = back.max(*latest - SignedDuration::from_hours(23));
        }
    }
    *latest = (*latest).max(stage.now);
}

/// One tick: finds the runs that died and runs everything that is due. Returns the times that were used, in order.
fn tick(stage: &mut Stage, id: TaskId, fate: Fate) -> Vec<TaskRun> {
    let mut used = Vec::new();
    let dead = stage.lost();
    assert!(dead.iter().all(|claim| claim.task.status == Status::Pending));
    loop {
        let before = stage.runs(id).first().cloned();
        let claim = stage.claim();
        let newest = stage.runs(id).first().cloned();
        if newest != before {
            used.extend(newest);
        }
        let Some(claim) = claim else { return used };
        assert!(used.len() < 10, "it does not come to an end");
        assert_eq!(used.last().unwrap().outcome, None, "claimed before it runs");
        match fate {
            Fate::Works => assert!(stage.end(&claim, &OK)),
            Fate::Fails => assert!(stage.end(&claim, &failed("x"))),
            Fate::Dies => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_time_of_a_cron_is_used_once(
        written in frequent(),
        skip in any::<bool>(),
        (place, start) in places(),
        steps in steps(80),
    ) {
        let cron: Cron = written.parse().unwrap();
        let mut stage = Stage::new(start, place);
        let zone = stage.zone.clone();
        let missed = if skip { Missed::Skip } else { Missed::RunOnce };
        let id = stage.add(&new("x", Trigger::Cron(cron.clone()), missed));
        let (mut latest, mut used_up_to) = (stage.now, stage.now);
        for (step, fate) in steps {
            moved(&mut stage, &mut latest, step);
            for run in tick(&mut stage, id, fate) {
                prop_assert_eq!(Some(run.due), cron.after(used_up_to, &zone), "none is left out, none comes again");
                prop_assert!(run.due <= run.started);
                let fresh = cron.after(run.started - LATE, &zone);
                let in_time = fresh.is_some_and(|at| at <= run.started);
                prop_assert_eq!(run.outcome == Some(Outcome::Skipped), skip && !in_time, "as the policy says");
                used_up_to = run.started;
            }
            let next = cron.after(used_up_to, &zone).unwrap();
            prop_assert!(next > stage.now, "nothing that is due is left lying");
            prop_assert_eq!(stage.task(id).next.map(|next| next.at), Some(next));
        }
    }

    #[test]
    fn a_single_time_works_once(
        ahead in 0..3_000_i64,
        skip in any::<bool>(),
        (place, start) in places(),
        steps in steps(60),
    ) {
        let mut stage = Stage::new(start, place);
        let due = stage.now + SignedDuration::from_mins(ahead);
        let missed = if skip { Missed::Skip } else { Missed::RunOnce };
        let id = stage.add(&new("x", Trigger::Time(due), missed));
        let (mut latest, mut ended) = (stage.now, None);
        for (step, fate) in steps {
            moved(&mut stage, &mut latest, step);
            let before = stage.task(id).status;
            let used = tick(&mut stage, id, fate);
            if let Some(run) = used.first() {
                prop_assert!(ended.is_none(), "it came again after {ended:?}");
                prop_assert_eq!(used.len(), 1);
                prop_assert!(run.started >= due && run.due >= due);
                let passed_over = skip && run.started.duration_since(run.due) >= LATE;
                prop_assert_eq!(run.outcome == Some(Outcome::Skipped), passed_over);
                if passed_over || fate == Fate::Works {
                    ended = Some(stage.task(id).status);
                }
            }
            prop_assert!(before != Status::Running || fate == Fate::Dies || stage.task(id).status != Status::Running);
        }
        let status = stage.task(id).status;
        prop_assert!(ended.is_none_or(|ended| ended == status));
    }
}
