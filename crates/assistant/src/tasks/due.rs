//! Decides whether a task runs now, and when it runs next. Pure.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{Missed, Next, Status, Task, Trigger, zone_name};

/// What to do with a task now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    Wait,
    Run,
    /// Its time was missed and is skipped; `next` is its next time, if it has one.
    SkipRun {
        next: Option<Timestamp>,
    },
    /// Its next time is outdated, because the clock was set back or the time zone changed.
    Recompute {
        next: Timestamp,
    },
}

/// What happens to a task after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// A one-time task that ran successfully.
    Completed,
    /// It runs at the next time, which was computed when it was claimed.
    AsPlanned,
    Again {
        at: Timestamp,
    },
}

/// A time that passed this long ago counts as missed. Shorter delays are normal, because ticks are a minute apart. How
/// long a task waits for other tasks does not count, see [`next_move_since`].
pub const LATE: SignedDuration = SignedDuration::from_mins(5);
/// If the clock goes back by more than this, it was wrong before, and cron times are recomputed. After a smaller
/// correction they are kept, so that a time that was used does not run again.
const WRONG_CLOCK: SignedDuration = SignedDuration::from_hours(24);
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(60);
const LAST_RETRY: SignedDuration = SignedDuration::from_hours(1);

/// Decides what to do with `task` now, for a Kai that has nothing else to do.
pub fn next_move(task: &Task, now: Timestamp, zone: &TimeZone) -> Move {
    next_move_since(task, now, now, zone)
}

/// Decides what to do with `task` now, for a Kai that has been awake and busy with other tasks since `awake`. A time
/// that came meanwhile was not missed: only the task's turn is late.
pub fn next_move_since(task: &Task, awake: Timestamp, now: Timestamp, zone: &TimeZone) -> Move {
    let (Some(next), Status::Pending) = (&task.next, task.status) else { return Move::Wait };
    if next.at > now {
        return recomputed(task, next, now, zone).map_or(Move::Wait, |next| Move::Recompute { next });
    }
    match task.missed {
        Missed::Skip if !in_time(task, next, awake.min(now), now, zone) => {
            Move::SkipRun { next: when_claimed(&task.trigger, now, zone) }
        }
        Missed::Skip | Missed::RunOnce => Move::Run,
    }
}

/// Whether its time, or a later one of its times, came less than [`LATE`] before `awake`, or after it.
fn in_time(task: &Task, next: &Next, awake: Timestamp, now: Timestamp, zone: &TimeZone) -> bool {
    let barely = awake.saturating_sub(LATE).unwrap_or(awake);
    let again = match &task.trigger {
        Trigger::Cron(cron) => cron.after(barely, zone).is_some_and(|at| at <= now),
        Trigger::Time(_) | Trigger::Heartbeat => false,
    };
    next.at > barely || again
}

fn recomputed(task: &Task, next: &Next, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let ahead = next.computed_at.duration_since(now);
    match &task.trigger {
        Trigger::Cron(cron) if ahead > WRONG_CLOCK || next.zone != zone_name(zone) => cron.after(now, zone),
        // A retry keeps its delay after the clock was set back, but never runs before the task's time.
        Trigger::Time(at) if ahead > SignedDuration::ZERO && task.failures > 0 => {
            now.checked_add(next.at.duration_since(next.computed_at)).ok().map(|again| again.max(*at))
        }
        Trigger::Cron(_) | Trigger::Time(_) | Trigger::Heartbeat => None,
    }
}

/// When a new task runs for the first time.
pub fn first(trigger: &Trigger, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    match trigger {
        Trigger::Time(at) => Some(*at),
        Trigger::Cron(cron) => cron.after(now, zone),
        Trigger::Heartbeat => None,
    }
}

/// When a task that is claimed now runs next; this run uses up all times until now.
pub fn when_claimed(trigger: &Trigger, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    match trigger {
        Trigger::Cron(cron) => cron.after(now, zone),
        Trigger::Time(_) | Trigger::Heartbeat => None,
    }
}

pub fn after_success(trigger: &Trigger) -> AfterRun {
    match trigger {
        Trigger::Time(_) => AfterRun::Completed,
        Trigger::Cron(_) | Trigger::Heartbeat => AfterRun::AsPlanned,
    }
}

/// What happens after a failed run; `failures` counts the failures before this one.
pub fn after_failure(trigger: &Trigger, failures: u32, now: Timestamp) -> AfterRun {
    match trigger {
        // The clock may have been set back during the run, and a retry must not run before the task's time.
        Trigger::Time(at) => {
            AfterRun::Again { at: now.saturating_add(back_off(failures)).unwrap_or(now).max(*at) }
        }
        Trigger::Cron(_) | Trigger::Heartbeat => AfterRun::AsPlanned,
    }
}

fn back_off(failures: u32) -> SignedDuration {
    let factor = 2_i32.checked_pow(failures);
    factor.and_then(|factor| FIRST_RETRY.checked_mul(factor)).unwrap_or(LAST_RETRY).min(LAST_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Level;
    use crate::tasks::TaskId;

    const BERLIN: &str = "Europe/Berlin";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A task that waits for `next`, which was computed at `computed_at` in Berlin.
    fn task(trigger: Trigger, missed: Missed, next: &str, computed_at: &str) -> Task {
        let next = Next { at: at(next), computed_at: at(computed_at), zone: BERLIN.to_owned() };
        Task {
            id: TaskId(1),
            description: "d".to_owned(),
            prompt: "p".to_owned(),
            trigger,
            missed,
            level: Level::Nothing,
            status: Status::Pending,
            next: Some(next),
            failures: 0,
            created_at: at(computed_at),
        }
    }

    #[test]
    fn a_cron_runs_in_time_and_what_was_missed_goes_by_its_policy() {
        use Missed::{RunOnce, Skip};
        use Move::{Recompute, Run, SkipRun, Wait};
        let (next, computed_at) = ("2026-03-09T06:30Z", "2026-03-06T06:30Z");
        let tuesday = Some(at("2026-03-10T06:30Z"));
        for (name, cron, missed, place, now, expected) in [
            ("too early", "30 7 * * 1-5", RunOnce, BERLIN, "2026-03-09T06:29:59Z", Wait),
            ("in time", "30 7 * * 1-5", RunOnce, BERLIN, "2026-03-09T06:30Z", Run),
            ("in time, skip", "30 7 * * 1-5", Skip, BERLIN, "2026-03-09T06:30:59Z", Run),
            ("a few minutes late, skip", "30 7 * * 1-5", Skip, BERLIN, "2026-03-09T06:34Z", Run),
            ("missed", "30 7 * * 1-5", RunOnce, BERLIN, "2026-03-09T12:00Z", Run),
            ("missed, skip", "30 7 * * 1-5", Skip, BERLIN, "2026-03-09T12:00Z", SkipRun { next: tuesday }),
            ("slept for months", "30 7 * * 1-5", RunOnce, BERLIN, "2026-08-01T12:00Z", Run),
            ("the last of many is in time", "30 7 * * 1-5", Skip, BERLIN, "2026-03-10T06:31Z", Run),
            ("often, slept", "*/5 * * * *", Skip, BERLIN, "2026-03-09T12:01Z", Run),
            // The clock is set back: a time that was used is not used again, unless the clock had been wrong.
            ("back by hours", "30 7 * * 1-5", RunOnce, BERLIN, "2026-03-06T02:00Z", Wait),
            (
                "back by years",
                "30 7 * * 1-5",
                RunOnce,
                BERLIN,
                "2024-03-06T12:00Z",
                Recompute { next: at("2024-03-07T06:30Z") },
            ),
            // 7:30 is a different moment in New York.
            (
                "travelled",
                "30 7 * * 1-5",
                RunOnce,
                "America/New_York",
                "2026-03-08T12:00Z",
                Recompute { next: at("2026-03-09T11:30Z") },
            ),
            ("travelled asleep", "30 7 * * 1-5", RunOnce, "America/New_York", "2026-03-09T07:00Z", Run),
        ] {
            let task = task(Trigger::Cron(cron.parse().unwrap()), missed, next, computed_at);
            let zone = TimeZone::get(place).unwrap();
            assert_eq!(next_move(&task, at(now), &zone), expected, "{name}");
        }
    }

    /// Only the time before Kai was awake makes a task late, not the time that it waits for others.
    #[test]
    fn what_waits_for_other_tasks_is_not_late() {
        use Move::{Run, SkipRun};
        let zone = TimeZone::UTC;
        let (time, daily) = ("2026-03-09T15:00Z", "0 15 * * *");
        let tomorrow = Some(at("2026-03-10T15:00Z"));
        for (name, awake, now, once, often) in [
            ("another ran before it", time, "2026-03-09T15:09Z", Run, Run),
            ("several did", time, "2026-03-09T15:40Z", Run, Run),
            ("it came meanwhile", "2026-03-09T14:50Z", "2026-03-09T15:09Z", Run, Run),
            ("a little late before", "2026-03-09T15:04:59Z", "2026-03-09T15:09Z", Run, Run),
            (
                "too late before",
                "2026-03-09T15:05Z",
                "2026-03-09T15:06Z",
                SkipRun { next: None },
                SkipRun { next: tomorrow },
            ),
            ("the clock was set back", "2026-03-09T20:00Z", "2026-03-09T15:01Z", Run, Run),
        ] {
            for (trigger, expected) in
                [(Trigger::Time(at(time)), once), (Trigger::Cron(daily.parse().unwrap()), often)]
            {
                let task = Task {
                    next: Some(Next { at: at(time), computed_at: at(time), zone: zone_name(&zone) }),
                    ..task(trigger, Missed::Skip, time, time)
                };
                assert_eq!(next_move_since(&task, at(awake), at(now), &zone), expected, "{name}");
            }
        }
    }

    #[test]
    fn a_single_time_runs_once_or_is_passed_over_and_is_tried_again() {
        use Missed::{RunOnce, Skip};
        use Move::{Recompute, Run, SkipRun, Wait};
        let (next, computed_at) = ("2026-03-09T15:00Z", "2026-03-09T14:00Z");
        let zone = TimeZone::get("America/New_York").unwrap();
        for (name, missed, failures, now, expected) in [
            ("too early", RunOnce, 0, "2026-03-09T14:59:59Z", Wait),
            ("in time", Skip, 0, "2026-03-09T15:00Z", Run),
            ("just in time", Skip, 0, "2026-03-09T15:04:59Z", Run),
            ("missed", RunOnce, 0, "2027-01-01T00:00Z", Run),
            ("missed, skip", Skip, 0, "2026-03-09T15:05Z", SkipRun { next: None }),
            ("the clock goes back by years", RunOnce, 0, "2020-01-01T00:00Z", Wait),
            (
                "it goes back while a second try waits",
                RunOnce,
                3,
                "2020-01-01T00:00Z",
                Recompute { next: at(next) },
            ),
            ("by a little", RunOnce, 3, "2026-03-09T13:50Z", Recompute { next: at("2026-03-09T14:50Z") }),
            ("a second try waits", RunOnce, 3, "2026-03-09T14:30Z", Wait),
        ] {
            let executed = if name == "by a little" { "2026-03-09T13:00Z" } else { next };
            let task = Task { failures, ..task(Trigger::Time(at(executed)), missed, next, computed_at) };
            assert_eq!(next_move(&task, at(now), &zone), expected, "{name}");
        }
    }

    #[test]
    fn only_what_waits_is_run() {
        let one = task(
            Trigger::Time(at("2026-01-01T00:00Z")),
            Missed::RunOnce,
            "2026-01-01T00:00Z",
            "2026-01-01T00:00Z",
        );
        let now = at("2026-01-01T00:00Z");
        for status in [Status::Running, Status::Completed, Status::Skipped] {
            assert_eq!(
                next_move(&Task { status, ..one.clone() }, now, &TimeZone::UTC),
                Move::Wait,
                "{status:?}"
            );
        }
        let standing = Task { trigger: Trigger::Heartbeat, next: None, ..one };
        assert_eq!(next_move(&standing, now, &TimeZone::UTC), Move::Wait);
        assert_eq!(first(&Trigger::Heartbeat, now, &TimeZone::UTC), None);
    }

    #[test]
    fn waiting_doubles_up_to_an_hour() {
        let (now, once) = (at("2026-01-01T00:00Z"), Trigger::Time(at("2026-01-01T00:00Z")));
        for (failures, seconds) in
            [(0, 60), (1, 120), (2, 240), (5, 1920), (6, 3600), (40, 3600), (u32::MAX, 3600)]
        {
            let again = now + SignedDuration::from_secs(seconds);
            assert_eq!(after_failure(&once, failures, now), AfterRun::Again { at: again }, "{failures}");
        }
        let early = at("2025-12-31T00:00Z");
        assert_eq!(
            after_failure(&once, 0, early),
            AfterRun::Again { at: now },
            "the clock went back meanwhile"
        );
        let cron = Trigger::Cron("0 9 * * *".parse().unwrap());
        assert_eq!(after_failure(&cron, 3, now), AfterRun::AsPlanned);
        assert_eq!(after_success(&cron), AfterRun::AsPlanned);
        assert_eq!(after_success(&once), AfterRun::Completed);
    }
}
