//! Decides what to ask a paired phone for, so that everything on it gets into the archive. Pure.
//!
//! A phone answers in pages that go back in time, and pushes news without saying that they are news. After connecting,
//! the conversations are listed; then each one is caught up with, from its newest message back to what was archived
//! before; then the older messages are fetched, page by page, back to the horizon. What is archived of a conversation
//! is one range of dates ([`Kept`]), which is stored with the messages: whatever happens in between costs asking again.
//! Several messages can have the same date, so a range that ends with a push is asked for once more, when the
//! conversations are listed the next time.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::phones::port::{Ask, MessageList, PhoneMessage, ThreadId};

/// How many messages are asked for at once.
#[derive(Debug, Clone, Copy)]
struct Pages {
    /// Where most likely nothing is missing.
    few: u32,
    page: u32,
    /// Makes sure that there are no more, where a page is short.
    wide: u32,
    /// The most, where many messages have the same date.
    most: u32,
}

impl Default for Pages {
    fn default() -> Self {
        Self { few: 10, page: 100, wide: 1_000, most: 16_000 }
    }
}

/// MMS are dated in whole seconds, so one can be dated before an SMS that came earlier. It is less than the moment for
/// which a phone is quiet when its list of conversations is over.
const SECOND: i64 = 1_000;

/// What of a conversation is archived: everything dated after `from` and before `to`, in epoch milliseconds. Several
/// messages can have the same date, so of these two dates themselves something may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub from: i64,
    pub to: i64,
    /// The phone has nothing older.
    pub end: bool,
    /// The phone was asked when the last second of the range was over, so everything of `to` is archived as well. Until
    /// then more can have come in that second, and nobody told of it.
    pub settled: bool,
}

impl Kept {
    /// Whether everything is archived up to a conversation's newest message, which has this date.
    fn reaches(self, newest: i64) -> bool {
        newest < self.to.saturating_sub(SECOND) || (self.settled && newest <= self.to)
    }

    /// Whether everything back to the horizon is archived.
    pub fn is_done(self, horizon: i64) -> bool {
        self.end || self.from < horizon
    }

    /// How much of the time between the horizon and the newest message is archived, per mille.
    pub(super) fn per_mille(self, horizon: i64) -> u16 {
        if self.is_done(horizon) {
            return 1_000;
        }
        let (whole, kept) = (self.to.saturating_sub(horizon), self.to.saturating_sub(self.from));
        let share = i128::from(kept.max(0)) * 1_000 / i128::from(whole.max(1));
        u16::try_from(share.min(999)).unwrap_or_default()
    }
}

/// The date before which nothing is archived, in epoch milliseconds. With 0 days, only news are kept.
pub fn horizon(days: u32, read_since: Timestamp, now: Timestamp) -> i64 {
    let span = SignedDuration::from_hours(24 * i64::from(days));
    let from = if days == 0 { read_since } else { now.saturating_sub(span).unwrap_or(Timestamp::MIN) };
    from.as_millisecond()
}

/// Where a range begins if a page goes back to this date. The rest of that date can be on the next page, unless it is
/// not wanted.
fn begins(oldest: i64, horizon: i64) -> i64 {
    oldest.max(horizon.saturating_sub(1))
}

/// What went wrong, for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The phone lists no conversations.
    Phone,
    /// The phone does not show the messages of one.
    Thread,
}

/// What follows from something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Step {
    /// The ranges that changed; `None` for a conversation that is gone from the phone.
    pub(super) marks: BTreeMap<ThreadId, Option<Kept>>,
    /// The conversations of these messages that were caught up with, and how far. Later messages arrived just now.
    pub(super) live_after: BTreeMap<ThreadId, i64>,
    pub(super) ask: Option<Ask>,
    pub(super) trouble: Option<Trouble>,
}

impl Step {
    /// Whether the message arrived just now, whatever its date says.
    pub(super) fn is_live(&self, message: &PhoneMessage) -> bool {
        self.live_after.get(&message.thread).is_some_and(|to| date(message) > *to)
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// Nothing is asked for.
    Idle,
    /// The list of conversations has no end mark: it is over when the phone has been quiet for a moment.
    Quiet,
    /// The answer to the request with this number.
    Answer(u64),
    /// The same, after a packet without messages: that can be the answer, or a push that overtook it.
    Doubtful(u64),
}

/// One phone's messages on their way into the archive, for as long as a connection lasts.
#[derive(Debug, Clone, Default)]
pub(super) struct Fill {
    stage: Stage,
    horizon: i64,
    threads: BTreeMap<ThreadId, Thread>,
    /// The newest date heard of. A push holds nothing older.
    newest: i64,
    job: Option<Job>,
    asked: u64,
    /// A packet without messages came since. It can be the answer, or a push after something was deleted.
    heard_nothing: bool,
    pages: Pages,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// There is no connection, or nothing is to be read.
    #[default]
    Away,
    Listing {
        heard: bool,
        again: bool,
    },
    Open,
}

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    kept: Option<Kept>,
    /// The newest date heard of on this connection.
    newest: Option<i64>,
    /// The newest date when the list of conversations was over, so that nothing more of that date comes.
    listed: Option<i64>,
    /// Nothing newer than what is kept is missing.
    caught_up: bool,
    /// The phone did not answer, so it is not asked again before the next connection.
    left: bool,
    /// The page that shows whether there is anything older, where what came may have been a push.
    doubt: Option<Job>,
}

/// The conversation that is paged through.
#[derive(Debug, Clone, Copy)]
struct Job {
    thread: ThreadId,
    goal: Goal,
    until: i64,
    count: u32,
    again: bool,
    /// The phone has shown a message of the date `until`, so a page begins with that.
    exact: bool,
    /// Asks for what is older than the newest message, because the page before may have been a push. No answer means
    /// that there is nothing.
    probe: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    CatchUp,
    Back,
}

enum Turned {
    /// Go on with this page.
    On(Job),
    /// Go on with this page when there is nothing else to do.
    Later(Job),
    Reached,
    /// The phone has nothing older.
    End,
}

fn date(message: &PhoneMessage) -> i64 {
    message.date.as_millisecond()
}

/// Something that a conversation has on the phone. A draft is nothing to archive, but a conversation whose newest item is
/// a draft shows nothing else of itself in the list of conversations.
#[derive(Debug, Clone, Copy)]
struct Item {
    thread: ThreadId,
    date: i64,
}

fn items(list: &MessageList) -> Vec<Item> {
    let messages = list.messages.iter().map(|message| (message.thread, message.date));
    let unsent = list.unsent.iter().map(|unsent| (unsent.thread, unsent.date));
    messages.chain(unsent).map(|(thread, date)| Item { thread, date: date.as_millisecond() }).collect()
}

/// The oldest date among them.
fn oldest(items: &[Item]) -> Option<i64> {
    items.iter().map(|item| item.date).min()
}

/// Whether a page has at least half of what was asked for, so that there may be more.
fn is_half(length: usize, count: u32) -> bool {
    length.saturating_mul(2) >= usize::try_from(count).unwrap_or(usize::MAX)
}

impl Thread {
    /// Moves the end of the range to the newest message, if nothing is missing before that. A date in the future counts
    /// as now, or later messages would seem to be archived.
    fn advance(&mut self, now: i64) -> Option<Kept> {
        let to = self.newest.filter(|_| self.caught_up)?.min(now);
        let kept = self.kept.as_mut().filter(|kept| kept.to < to)?;
        (kept.to, kept.settled) = (to, false);
        Some(*kept)
    }

    /// Notes that the phone has shown everything up to the newest message. Returns the range if that changes it.
    fn catch_up(&mut self, now: i64) -> Option<Kept> {
        let before = self.kept;
        self.caught_up = true;
        self.advance(now);
        let kept = self.kept?;
        self.kept = Some(Kept { settled: self.is_settled_at(kept.to), ..kept });
        self.kept.filter(|_| self.kept != before)
    }

    /// Whether a range that ends there has everything that the phone will ever show of its last second.
    fn is_settled_at(&self, to: i64) -> bool {
        self.newest == self.listed && self.newest.is_some_and(|newest| newest <= to)
    }

    /// Whether nothing is known to be missing after what is kept.
    fn has_newest(&self) -> bool {
        self.newest.zip(self.kept).is_some_and(|(newest, kept)| newest <= kept.to)
    }
}

impl Job {
    fn new(thread: ThreadId, goal: Goal, until: i64, count: u32) -> Self {
        Self { thread, goal, until, count, again: false, exact: until < i64::MAX, probe: false }
    }

    fn ask(self) -> Ask {
        let until = (self.until < i64::MAX).then(|| Timestamp::from_millisecond(self.until).ok()).flatten();
        Ask::Thread { thread: self.thread, until, count: self.count }
    }

    /// Whether this can be the answer. A push holds something newer than any page but the first. A page that was asked
    /// for earlier would leave a gap behind what is caught up with.
    fn is_answered_by(self, list: &[Item]) -> bool {
        let fits = list.iter().all(|item| item.thread == self.thread && item.date <= self.until);
        let newest = list.iter().map(|item| item.date).max();
        let adjoins = newest == Some(self.until);
        newest.is_some() && fits && (adjoins || !self.exact || self.goal == Goal::Back)
    }

    /// The page before `oldest`. It holds that date again, because several messages can have it.
    fn older(self, oldest: i64, length: usize, pages: Pages) -> Self {
        let count = if is_half(length, self.count) { pages.page } else { pages.wide };
        Self { until: oldest, count, again: false, exact: true, probe: false, ..self }
    }
}

impl Fill {
    pub(super) fn is_away(&self) -> bool {
        self.stage == Stage::Away
    }

    pub(super) fn waits(&self) -> Waits {
        match (self.stage, self.job) {
            (Stage::Listing { heard: true, .. }, _) => Waits::Quiet,
            (Stage::Open, Some(_)) if self.heard_nothing => Waits::Doubtful(self.asked),
            (Stage::Listing { heard: false, .. }, _) | (Stage::Open, Some(_)) => Waits::Answer(self.asked),
            (Stage::Away, _) | (Stage::Open, None) => Waits::Idle,
        }
    }

    /// Begins on a new connection, with what is archived.
    pub(super) fn begin(kept: BTreeMap<ThreadId, Kept>, horizon: i64) -> (Self, Ask) {
        let thread = |(id, kept)| (id, Thread { kept: Some(kept), ..Thread::default() });
        let threads = kept.into_iter().map(thread).collect();
        let stage = Stage::Listing { heard: false, again: false };
        (Self { stage, horizon, threads, newest: i64::MIN, asked: 1, ..Self::default() }, Ask::Threads)
    }

    /// Lists the conversations again, in case a push was missed. Nothing while something else is asked for.
    pub(super) fn list_again(&mut self, horizon: i64) -> Option<Ask> {
        if self.stage != Stage::Open || self.job.is_some() {
            return None;
        }
        self.horizon = horizon;
        self.stage = Stage::Listing { heard: false, again: false };
        for thread in self.threads.values_mut() {
            // The list holds one message of each conversation, and there may be more behind it.
            thread.caught_up = false;
            thread.left = false;
        }
        Some(self.asking(Ask::Threads))
    }

    fn asking(&mut self, ask: Ask) -> Ask {
        self.asked += 1;
        self.heard_nothing = false;
        ask
    }

    /// The phone sent messages: an answer, or news.
    pub(super) fn on_messages(&mut self, list: &MessageList, now: Timestamp) -> Step {
        if self.is_away() {
            return Step::default();
        }
        let list = &items(list);
        self.heard_nothing |= list.is_empty();
        let answered = self.job.filter(|job| job.is_answered_by(list));
        let live_after = if answered.is_none() { self.caught_up_in(list) } else { BTreeMap::new() };
        for item in list {
            let thread = self.threads.entry(item.thread).or_default();
            thread.newest = thread.newest.max(Some(item.date));
            self.newest = self.newest.max(item.date);
        }
        let now = now.as_millisecond();
        match answered {
            Some(job) => self.page(job, list, now),
            None => self.heard(list, live_after, now),
        }
    }

    fn caught_up_in(&self, list: &[Item]) -> BTreeMap<ThreadId, i64> {
        let thread = |item: &Item| {
            let thread = self.threads.get(&item.thread).filter(|thread| thread.caught_up)?;
            Some((item.thread, thread.kept?.to))
        };
        list.iter().filter_map(thread).collect()
    }

    /// Messages that nobody asked for.
    fn heard(&mut self, list: &[Item], live_after: BTreeMap<ThreadId, i64>, now: i64) -> Step {
        let mut step = Step { live_after, ..Step::default() };
        for item in list {
            let kept = self.threads.get_mut(&item.thread).and_then(|thread| thread.advance(now));
            step.marks.extend(kept.map(|kept| (item.thread, Some(kept))));
        }
        match &mut self.stage {
            Stage::Listing { heard, .. } => *heard = true,
            Stage::Open if self.job.is_none() => step.ask = self.next_job(),
            Stage::Open | Stage::Away => {}
        }
        step
    }

    /// The list of conversations is over.
    pub(super) fn on_quiet(&mut self) -> Step {
        let Stage::Listing { heard: true, .. } = self.stage else { return Step::default() };
        self.stage = Stage::Open;
        for thread in self.threads.values_mut() {
            thread.listed = thread.newest;
            thread.caught_up =
                thread.newest.zip(thread.kept).is_some_and(|(newest, kept)| kept.reaches(newest));
        }
        Step { ask: self.next_job(), ..Step::default() }
    }

    /// The phone did not answer in time. It is asked once more, unless it seems to have nothing to answer with.
    pub(super) fn on_silence(&mut self, now: Timestamp) -> Step {
        match (self.stage, self.job) {
            (Stage::Listing { heard: false, again: false }, _) => {
                self.stage = Stage::Listing { heard: false, again: true };
                Step { ask: Some(self.asking(Ask::Threads)), ..Step::default() }
            }
            (Stage::Listing { heard: false, again: true }, _) => {
                self.stage = Stage::Open;
                Step { trouble: Some(Trouble::Phone), ..Step::default() }
            }
            (Stage::Open, Some(job)) if job.probe || self.heard_nothing => {
                let step = self.mark(job, &Turned::End, &[], now.as_millisecond());
                Step { ask: self.next_job(), ..step }
            }
            (Stage::Open, Some(job)) if !job.again => {
                self.job = Some(Job { again: true, ..job });
                Step { ask: Some(self.asking(job.ask())), ..Step::default() }
            }
            (Stage::Open, Some(job)) => self.leave(job),
            _ => Step::default(),
        }
    }

    /// Leaves a conversation until the next connection.
    fn leave(&mut self, job: Job) -> Step {
        let mut trouble = Some(Trouble::Thread);
        if let Some(thread) = self.threads.get_mut(&job.thread) {
            thread.left = true;
            // Some phones may not answer where there is nothing to tell, as in a conversation that was deleted, or before
            // the oldest message, if that was deleted. Nothing that is new is missing then.
            if thread.newest.is_none() || thread.has_newest() || job.goal == Goal::Back {
                trouble = None;
            }
        }
        Step { ask: self.next_job(), trouble, ..Step::default() }
    }

    /// Takes a page, and asks for the next one.
    fn page(&mut self, job: Job, list: &[Item], now: i64) -> Step {
        let turned = self.turned(job, list);
        let mut step = self.mark(job, &turned, list, now);
        step.ask = match turned {
            Turned::On(next) => {
                self.job = Some(next);
                Some(self.asking(next.ask()))
            }
            Turned::Later(doubt) => {
                if let Some(thread) = self.threads.get_mut(&job.thread) {
                    thread.doubt = Some(doubt);
                }
                self.next_job()
            }
            Turned::Reached | Turned::End => self.next_job(),
        };
        step
    }

    fn turned(&self, job: Job, list: &[Item]) -> Turned {
        let kept = self.threads.get(&job.thread).and_then(|thread| thread.kept);
        let goal = match (job.goal, kept) {
            (Goal::CatchUp, Some(kept)) => kept.to.saturating_sub(SECOND),
            // The first page of a conversation begins its range.
            (Goal::CatchUp, None) => return Turned::Reached,
            (Goal::Back, _) => self.horizon,
        };
        match oldest(list) {
            Some(oldest) if oldest < goal => Turned::Reached,
            Some(oldest) if oldest < job.until => Turned::On(job.older(oldest, list.len(), self.pages)),
            _ => self.stuck(job, list.len()),
        }
    }

    /// A page brought nothing older. Either there is nothing, or this was a push that repeats the newest message, or
    /// more messages have the same date than a page holds.
    fn stuck(&self, job: Job, length: usize) -> Turned {
        let (until, Pages { wide, most, .. }) = (job.until.saturating_sub(1), self.pages);
        let before = Job { until, count: wide, again: false, exact: false, ..job };
        let wider = |count: u32| Turned::On(Job { count, again: false, ..job });
        if job.count < wide {
            wider(wide)
        } else if is_half(length, job.count) && job.count < most {
            wider(job.count.saturating_mul(4).min(most))
        } else if is_half(length, job.count) {
            Turned::On(before)
        } else if length > 0 && job.until >= self.newest {
            Turned::Later(Job { probe: true, ..before })
        } else {
            Turned::End
        }
    }

    /// Notes what a page means for the range of its conversation.
    fn mark(&mut self, job: Job, turned: &Turned, list: &[Item], now: i64) -> Step {
        let mut step = Step::default();
        let Some(thread) = self.threads.get_mut(&job.thread) else { return step };
        let oldest = oldest(list);
        match (job.goal, &mut thread.kept) {
            (Goal::Back, Some(kept)) => {
                let from = oldest.map_or(kept.from, |oldest| begins(oldest, self.horizon));
                kept.from = kept.from.min(from);
                kept.end |= matches!(turned, Turned::End);
                step.marks.insert(job.thread, Some(*kept));
            }
            (Goal::CatchUp, None) => {
                let range = oldest.zip(thread.newest).map(|(oldest, newest)| {
                    let to = newest.min(now);
                    // What may have been a push is not known to be everything.
                    let settled = oldest < self.newest && thread.is_settled_at(to);
                    Kept { from: begins(oldest, self.horizon), to, end: false, settled }
                });
                (thread.kept, thread.caught_up, thread.left) = (range, range.is_some(), range.is_none());
                step.marks.extend(range.map(|kept| (job.thread, Some(kept))));
            }
            (Goal::CatchUp, Some(_)) if matches!(turned, Turned::On(_) | Turned::Later(_)) => {}
            (Goal::CatchUp, Some(_)) if thread.newest.is_none() => {
                self.threads.remove(&job.thread);
                step.marks.insert(job.thread, None);
            }
            (Goal::CatchUp, Some(_)) => {
                step.marks.extend(thread.catch_up(now).map(|kept| (job.thread, Some(kept))));
            }
            (Goal::Back, None) => {}
        }
        step
    }

    /// Chooses what is asked for next: what is new first, then what is older, and last what may not be answered.
    fn next_job(&mut self) -> Option<Ask> {
        let (asked, Pages { few, page, .. }) =
            (self.threads.iter().filter(|(_, thread)| !thread.left), self.pages);
        let rank = |(id, thread): (&ThreadId, &Thread)| match (thread.caught_up, thread.kept, thread.newest) {
            _ if thread.doubt.is_some() => thread.doubt.map(|doubt| (0, i64::MAX, doubt)),
            (false, _, Some(newest)) => {
                let count = if thread.has_newest() { few } else { page };
                Some((2, newest, Job::new(*id, Goal::CatchUp, newest, count)))
            }
            (true, Some(kept), newest) if !kept.is_done(self.horizon) => {
                Some((1, newest.unwrap_or(i64::MIN), Job::new(*id, Goal::Back, kept.from, page)))
            }
            (false, Some(_), None) => Some((0, i64::MIN, Job::new(*id, Goal::CatchUp, i64::MAX, page))),
            _ => None,
        };
        let next = asked.filter_map(rank).max_by_key(|(rank, newest, _)| (*rank, *newest));
        self.job = next.map(|(_, _, job)| job);
        let job = self.job?;
        if let Some(thread) = self.threads.get_mut(&job.thread) {
            thread.doubt = None;
        }
        Some(self.asking(job.ask()))
    }
}

#[cfg(test)]
pub(super) mod tests;
