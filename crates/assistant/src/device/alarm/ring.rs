//! Rings the alarms that are due, and sleeps until the next one.
//!
//! An alarm is deleted from the store, durably, before it rings, so it does not ring again if Kai is killed after the
//! ring. The price is that a kill between the two steps, which lasts as long as the notifier takes, loses the alarm.
//! The other order would ring twice after every crash that the ring itself causes. An alarm that failed to ring is put
//! back and retried, because then we know that nobody heard it. Until it is back in the store, it stays in [`Ringing`],
//! so that it outlives a store that cannot be written for a while. An alarm that was still ringing when Kai was told to
//! stop is put back too: it is better to ring twice than not at all.

use crate::lock::lock;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kai_words::Lang;
use rusqlite::Transaction;
use tokio::sync::Notify;

use super::{Alarm, store};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::device::{Notification, Notifier, Urgency};
use crate::settings::{self, LANGUAGE};

/// Wakes the sleeping ringer when a new alarm was set.
#[derive(Debug, Default)]
pub struct Waker(Notify);

impl Waker {
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

/// Rings alarms; run by the daemon.
pub struct Ringer {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub notifier: Arc<dyn Notifier>,
    pub waker: Arc<Waker>,
    /// The language of the notification, unless the user chose one in the settings.
    pub locale: String,
    pub ringing: Ringing,
}

/// Alarms that were deleted from the store and have neither rung nor been put back yet.
#[derive(Debug, Default)]
pub struct Ringing(Mutex<Vec<Alarm>>);

impl Ringing {
    fn alarms(&self) -> MutexGuard<'_, Vec<Alarm>> {
        lock(&self.0)
    }

    /// Removes alarms that have rung, or that are in the store again.
    fn is_over_for(&self, over: &[Alarm]) {
        self.alarms().retain(|alarm| over.iter().all(|other| other.id != alarm.id));
    }
}

/// When to check for due alarms again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    due: Option<Timestamp>,
    /// How many attempts in a row failed.
    failures: u32,
}

impl Next {
    /// No alarm is known and nothing has failed: the state before the first [`Ringer::ring_due`].
    pub const START: Self = Self { due: None, failures: 0 };
}

/// How often the clock is checked while an alarm is pending. Timers stop while the machine is asleep and do not notice
/// when the clock is set. The cost is negligible.
const NAP: Duration = Duration::from_secs(30);
/// An alarm that rings later than this after its time says when it was due.
const LATE: SignedDuration = SignedDuration::from_secs(5);

impl Ringer {
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Rings all alarms that are due. The future must run to completion: an alarm that was deleted here but has not
    /// rung is lost if it is dropped.
    pub async fn ring_due(&self, before: Next) -> Next {
        let outcome = self.try_to_ring().await;
        let failures = match &outcome {
            Ok((_, true)) => 0,
            Ok((_, false)) | Err(_) => before.failures.saturating_add(1),
        };
        if let Err(error) = &outcome {
            tracing::warn!(%error, "alarms could not be read");
        }
        Next { due: outcome.map_or(before.due, |(due, _)| due), failures }
    }

    /// Whether an alarm is ringing now.
    pub fn is_ringing(&self) -> bool {
        !self.ringing.alarms().is_empty()
    }

    /// Puts the alarms that have not rung back into the store: those that failed to ring, and when Kai stops also those
    /// that are still ringing, so that they ring again at the next start. They are forgotten here only once they are
    /// in the store.
    pub async fn put_back(&self) -> Result<(), DbError> {
        let silent = self.ringing.alarms().clone();
        if silent.is_empty() {
            return Ok(());
        }
        let back = silent.clone();
        self.db.write(move |tx| back.iter().try_for_each(|alarm| store::put_back(tx, alarm))).await?;
        self.ringing.is_over_for(&silent);
        Ok(())
    }

    /// Waits until the next alarm is due, a new one is set, or it is time to retry.
    pub async fn wait(&self, next: Next) {
        let now = self.clock.now();
        let until_due = next.due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
        let again = (next.failures > 0).then(|| patience(next.failures));
        let nap = next.due.map(|_| NAP);
        let Some(sleep) = [until_due, again, nap].into_iter().flatten().min() else {
            return self.waker.0.notified().await;
        };
        tokio::select! {
            () = self.waker.0.notified() => {}
            () = tokio::time::sleep(sleep) => {}
        }
    }

    /// Rings the alarms that are due. Returns when the next one is due, and whether all of them rang.
    async fn try_to_ring(&self) -> Result<(Option<Timestamp>, bool), DbError> {
        // What failed to ring before may still be here, if the store could not be written then.
        self.put_back().await?;
        let (now, zone) = (self.clock.now(), self.clock.zone());
        let (next, due, language) = self.db.read(move |tx| read_next(tx, now)).await?;
        if !due {
            return Ok((next, true));
        }
        let taken = self.db.write(move |tx| store::take_due(tx, now)).await?;
        self.ringing.alarms().clone_from(&taken);
        let lang = Lang::chosen(&language, &self.locale);
        let rings = taken.into_iter().map(|alarm| self.ring(alarm, now, &zone, lang));
        let all_rang = join_all(rings).await.into_iter().all(|rang| rang);
        self.put_back().await?;
        Ok((next, all_rang))
    }

    /// Rings one alarm. If it fails, the alarm stays among those that have not rung, for the caller to put back.
    async fn ring(&self, alarm: Alarm, now: Timestamp, zone: &TimeZone, lang: Lang) -> bool {
        let rung = self.notifier.notify(&notification(&alarm, now, zone, lang)).await;
        match &rung {
            Ok(()) => {
                tracing::info!(alarm = alarm.id.0, due = %alarm.due, "an alarm rang");
                self.ringing.is_over_for(&[alarm]);
            }
            Err(error) => {
                tracing::warn!(alarm = alarm.id.0, %error, "an alarm could not ring and is tried again");
            }
        }
        rung.is_ok()
    }
}

/// Returns when the next alarm is due, whether any is due now, and the language setting.
fn read_next(tx: &Transaction<'_>, now: Timestamp) -> Result<(Option<Timestamp>, bool, String), DbError> {
    let next = store::next(tx, now)?;
    let due = store::next(tx, Timestamp::MIN)?.is_some_and(|first| first <= now);
    Ok((next, due, settings::load(tx)?.of(&LANGUAGE)))
}

/// The delay before the next retry of something that could not be shown: ten seconds, then twice as long each time, up
/// to ten minutes.
pub fn patience(failures: u32) -> Duration {
    Duration::from_secs(10 << failures.saturating_sub(1).min(6)).min(Duration::from_mins(10))
}

fn notification(alarm: &Alarm, now: Timestamp, zone: &TimeZone, lang: Lang) -> Notification {
    let due = alarm.due.to_zoned(zone.clone());
    let message = if now.duration_since(alarm.due) > LATE {
        lang.alarm_late(due.strftime("%Y-%m-%d %H:%M"))
    } else {
        lang.alarm_now(due.strftime("%H:%M"))
    };
    let title = if alarm.label.is_empty() { lang.alarm_title() } else { &alarm.label };
    Notification {
        title: title.to_owned(),
        message,
        urgency: Urgency::Alarm,
        key: Some(format!("kai-alarm-{}", alarm.id.0)),
        leads_to: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::ManualClock;
    use crate::device::{PortError, PortFuture};

    /// A notifier that records what it shows, and fails as often as it is told to.
    #[derive(Default)]
    struct Bell {
        shown: Mutex<Vec<String>>,
        fails: Mutex<u32>,
    }

    impl Notifier for Bell {
        fn notify<'a>(&'a self, n: &'a Notification) -> PortFuture<'a> {
            Box::pin(async move {
                let mut fails = self.fails.lock().unwrap();
                if *fails > 0 {
                    *fails -= 1;
                    return Err(PortError::Failed("nobody is there".to_owned()));
                }
                self.shown.lock().unwrap().push(format!("{}: {}", n.title, n.message));
                Ok(())
            })
        }
    }

    struct House {
        ringer: Ringer,
        clock: Arc<ManualClock>,
        bell: Arc<Bell>,
    }

    fn house() -> House {
        let clock = Arc::new(ManualClock::at("2026-03-09T06:00:00Z".parse().unwrap()));
        let bell = Arc::new(Bell::default());
        let ringer = Ringer {
            db: Db::in_memory(crate::MIGRATIONS).unwrap(),
            clock: clock.clone(),
            notifier: bell.clone(),
            waker: Arc::default(),
            locale: "en".to_owned(),
            ringing: Ringing::default(),
        };
        House { ringer, clock, bell }
    }

    impl House {
        async fn set(&self, seconds: i64, label: &'static str) {
            let due = self.clock.now().checked_add(SignedDuration::from_secs(seconds)).unwrap();
            let added = self.ringer.db.write(move |tx| store::add(tx, due, label, 3)).await;
            assert!(added.map_err(|e: DbError| e.to_string()).unwrap().is_some());
        }

        fn shown(&self) -> Vec<String> {
            self.bell.shown.lock().unwrap().clone()
        }
    }

    #[tokio::test]
    async fn an_alarm_rings_when_due_and_only_once() {
        let house = house();
        assert_eq!(house.ringer.ring_due(Next::START).await, Next::START);
        house.set(60, "Tea").await;
        house.set(90, "").await;
        let next = house.ringer.ring_due(Next::START).await;
        assert_eq!(next.due.unwrap().to_string(), "2026-03-09T06:01:00Z");
        house.clock.advance(SignedDuration::from_secs(60));
        let next = house.ringer.ring_due(next).await;
        assert_eq!(house.shown(), ["Tea: It is 06:01."]);
        assert_eq!(next.due.unwrap().to_string(), "2026-03-09T06:01:30Z");
        house.clock.advance(SignedDuration::from_hours(2));
        assert_eq!(house.ringer.ring_due(next).await, Next::START);
        house.ringer.ring_due(Next::START).await;
        let late = "Alarm: This alarm was due at 2026-03-09 06:01, when Kai could not ring it.";
        assert_eq!(house.shown(), ["Tea: It is 06:01.", late]);
    }

    /// A notifier that finishes ringing only when it is told to.
    struct Gong {
        struck: Arc<Notify>,
        sounds: Arc<Notify>,
    }

    impl Notifier for Gong {
        fn notify<'a>(&'a self, _: &'a Notification) -> PortFuture<'a> {
            Box::pin(async {
                self.struck.notify_one();
                self.sounds.notified().await;
                Ok(())
            })
        }
    }

    /// If Kai stops while a slow notifier is ringing, the alarm rings exactly once at the next start, even if the first
    /// ring completed.
    #[tokio::test]
    async fn an_alarm_that_still_rings_at_the_stop_is_not_lost() {
        let House { ringer, clock, bell } = house();
        let (struck, sounds) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let gong = Arc::new(Gong { struck: struck.clone(), sounds: sounds.clone() });
        let db = ringer.db.clone();
        let slow = Ringer { notifier: gong, ..ringer };
        let (due, now) = (clock.now(), clock.now());
        db.write(move |tx| store::add(tx, due, "Tea", 3)).await.map_err(|e: DbError| e).unwrap();
        let waits = || {
            db.write(move |tx| {
                Ok::<_, DbError>(store::next(tx, now - SignedDuration::from_secs(1))?.is_some())
            })
        };
        let ring = slow.ring_due(Next::START);
        let stop = async {
            struck.notified().await;
            assert!(!waits().await.unwrap(), "it was taken");
            slow.put_back().await.unwrap();
            sounds.notify_one();
        };
        tokio::join!(ring, stop);
        assert!(waits().await.unwrap(), "it is there again, though the ring came to its end after all");
        slow.put_back().await.unwrap();
        let next = Ringer { notifier: bell.clone(), ..slow };
        next.ring_due(Next::START).await;
        next.ring_due(Next::START).await;
        assert_eq!(bell.shown.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_alarm_that_could_not_ring_is_tried_again() {
        let house = house();
        *house.bell.fails.lock().unwrap() = 2;
        house.set(0, "Tea").await;
        house.set(20, "Cake").await;
        let once = house.ringer.ring_due(Next::START).await;
        let twice = house.ringer.ring_due(once).await;
        assert_eq!((once.failures, twice.failures), (1, 2));
        assert_eq!(twice.due.unwrap().to_string(), "2026-03-09T06:00:20Z", "others are not forgotten");
        let thrice = house.ringer.ring_due(twice).await;
        assert_eq!((thrice.failures, house.shown().len()), (0, 1));
    }

    /// The store refuses to be written just when the ring has failed, as a full disk does.
    #[tokio::test]
    async fn an_alarm_that_could_not_be_put_back_is_not_lost() {
        let house = house();
        *house.bell.fails.lock().unwrap() = 1;
        house.set(0, "Tea").await;
        let sql = async |sql: &'static str| {
            let done = house.ringer.db.write(move |tx| Ok::<_, DbError>(tx.execute_batch(sql)?));
            done.await.unwrap();
        };
        sql("CREATE TRIGGER full BEFORE INSERT ON alarms BEGIN SELECT RAISE(ABORT, 'full'); END").await;
        let once = house.ringer.ring_due(Next::START).await;
        let twice = house.ringer.ring_due(once).await;
        assert_eq!((once.failures, twice.failures), (1, 2), "nothing can be done yet");
        sql("DROP TRIGGER full").await;
        let thrice = house.ringer.ring_due(twice).await;
        assert_eq!((thrice.failures, house.shown()), (0, vec!["Tea: It is 06:00.".to_owned()]));
        house.ringer.put_back().await.unwrap();
        assert_eq!(house.ringer.ring_due(thrice).await.failures, 0);
        assert_eq!(house.shown().len(), 1, "once");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_is_as_long_as_it_must_be_and_ends_with_a_wake() {
        let house = house();
        let at = |seconds| Some(house.clock.now().checked_add(SignedDuration::from_secs(seconds)).unwrap());
        for (name, due, failures, expected) in [
            ("soon", at(5), 0, 5),
            ("far away", at(3_000), 0, 30),
            ("past", at(-5), 0, 0),
            ("failed", None, 1, 10),
            ("failed often", None, 40, 600),
            ("failed, another is due sooner", at(4), 5, 4),
        ] {
            let start = tokio::time::Instant::now();
            house.ringer.wait(Next { due, failures }).await;
            assert_eq!(start.elapsed().as_secs(), expected, "{name}");
        }
        let start = tokio::time::Instant::now();
        house.ringer.waker.wake();
        house.ringer.wait(Next::START).await;
        assert_eq!(start.elapsed().as_secs(), 0, "a wake before the wait is not lost");
        let forever = house.ringer.wait(Next::START);
        assert!(
            tokio::time::timeout(Duration::from_hours(24), forever).await.is_err(),
            "no alarm, no polling"
        );
    }

    #[tokio::test]
    async fn there_is_an_end_to_how_many_may_wait() {
        let house = house();
        for _ in 0..3 {
            house.set(60, "").await;
        }
        let due = house.clock.now();
        let more = house.ringer.db.write(move |tx| store::add(tx, due, "", 3)).await;
        assert_eq!(more.map_err(|e: DbError| e.to_string()), Ok(None));
    }
}
