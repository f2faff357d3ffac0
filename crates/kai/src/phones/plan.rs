//! When to announce ourselves, when to call phones that are away, and when a search ends. Pure.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::source::SourceId;
use kai_bridges::kdeconnect::back_off;

/// How long a search lasts unless somebody ends it or begins it anew.
pub(crate) const SEARCH: SignedDuration = SignedDuration::from_mins(5);
/// How often we announce ourselves during a search.
const ANNOUNCING: SignedDuration = SignedDuration::from_secs(3);
/// How soon an endpoint that could not be opened is tried again.
const OPENING: SignedDuration = SignedDuration::from_secs(30);
/// How long we stay after a phone ended its pairing: it may ask anew in the same breath.
const LINGERING: SignedDuration = SignedDuration::from_secs(2);
/// A link that lasts less than this was no success.
const STEADY: SignedDuration = SignedDuration::from_secs(60);
/// Nothing is planned further ahead than this, so whatever is was planned before the clock was set back.
const FURTHEST: SignedDuration = SignedDuration::from_mins(6);

/// What is to be done, and when.
#[derive(Debug, Default)]
pub(super) struct Plan {
    search: Option<Timestamp>,
    announced: Option<Timestamp>,
    /// When to try again to open the endpoint, if that failed.
    open: Option<Timestamp>,
    linger: Option<Timestamp>,
    absent: BTreeMap<SourceId, Absence>,
    present: BTreeMap<SourceId, Presence>,
}

/// A phone that is connected.
#[derive(Debug, Clone, Copy)]
struct Presence {
    since: Timestamp,
    /// How many attempts failed before.
    failed: u32,
}

/// A phone that is not connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// It is being called.
    Called { failed: u32 },
    /// It is called at that time.
    Waiting { failed: u32, until: Timestamp },
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Due {
    pub(super) announce: bool,
    pub(super) call: Vec<SourceId>,
}

impl Plan {
    pub(super) fn begin_search(&mut self, now: Timestamp) {
        self.search = Some(later(now, SEARCH));
    }

    pub(super) fn end_search(&mut self) {
        self.search = None;
    }

    /// When the search ends. One whose time has passed is over.
    pub(super) fn search(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.search = self.search.filter(|until| *until > now).map(|until| until.min(later(now, SEARCH)));
        self.search
    }

    /// The endpoint could not be opened.
    pub(super) fn not_opened(&mut self, now: Timestamp) {
        self.open = Some(later(now, OPENING));
    }

    pub(super) fn opened(&mut self) {
        (self.open, self.announced) = (None, None);
    }

    /// Whether it is time to open the endpoint.
    pub(super) fn may_open(&self, now: Timestamp) -> bool {
        self.open.is_none_or(|at| is_due(at, now))
    }

    /// A phone ended its pairing.
    pub(super) fn linger(&mut self, now: Timestamp) {
        self.linger = Some(later(now, LINGERING));
    }

    pub(super) fn lingers(&mut self, now: Timestamp) -> bool {
        self.linger.take_if(|until| is_due(*until, now));
        self.linger.is_some()
    }

    /// A phone became known: it is called at once.
    pub(super) fn expect(&mut self, source: SourceId, now: Timestamp) {
        self.absent.insert(source, Absence::Waiting { failed: 0, until: now });
    }

    /// We ended the connection ourselves, such as to announce more than before: the phone did nothing wrong.
    pub(super) fn hung_up(&mut self, source: SourceId, now: Timestamp) {
        self.present.remove(&source);
        self.absent.insert(source, Absence::Waiting { failed: 0, until: after(0, now) });
    }

    /// The connection with a phone ended. Links that do not last count as failed.
    pub(super) fn lost(&mut self, source: SourceId, now: Timestamp) {
        let before = self.present.remove(&source);
        let short = before.filter(|link| now.duration_since(link.since).abs() < STEADY);
        let failed = short.map_or(0, |link| link.failed.saturating_add(1));
        self.absent.insert(source, Absence::Waiting { failed, until: after(failed, now) });
    }

    /// A phone is connected.
    pub(super) fn reached(&mut self, source: SourceId, now: Timestamp) {
        let failed = match self.absent.remove(&source) {
            Some(Absence::Called { failed } | Absence::Waiting { failed, .. }) => failed,
            None => 0,
        };
        self.present.insert(source, Presence { since: now, failed });
    }

    /// A phone is not expected any more.
    pub(super) fn forget(&mut self, source: SourceId) {
        self.absent.remove(&source);
        self.present.remove(&source);
    }

    /// A call reached nobody.
    pub(super) fn failed(&mut self, source: SourceId, now: Timestamp) {
        if let Some(absence) = self.absent.get_mut(&source)
            && let Absence::Called { failed } = *absence
        {
            let failed = failed.saturating_add(1);
            *absence = Absence::Waiting { failed, until: after(failed, now) };
        }
    }

    /// What is to be done now, while the endpoint is open. It counts as begun.
    pub(super) fn due(&mut self, now: Timestamp) -> Due {
        let mut call = vec![];
        for (source, absence) in &mut self.absent {
            match *absence {
                Absence::Waiting { failed, until } if is_due(until, now) => {
                    *absence = Absence::Called { failed };
                    call.push(*source);
                }
                Absence::Waiting { .. } | Absence::Called { .. } => {}
            }
        }
        // A phone may have another address by now, and connect by itself if it hears us.
        let wanted = self.search(now).is_some() || !call.is_empty();
        let announce = wanted && self.announced.is_none_or(|at| is_due(later(at, ANNOUNCING), now));
        if announce {
            self.announced = Some(now);
        }
        Due { announce, call }
    }

    /// When to look again as long as the endpoint is closed.
    pub(super) fn next_while_closed(&self) -> Option<Timestamp> {
        self.search.into_iter().chain(self.open).chain(self.linger).min()
    }

    /// When to look again as long as the endpoint is open.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let called = self.absent.values().filter_map(|absence| match absence {
            Absence::Waiting { until, .. } => Some(*until),
            Absence::Called { .. } => None,
        });
        let announcing = self.search.and(self.announced).map(|at| later(at, ANNOUNCING));
        called.chain(announcing).chain(self.next_while_closed()).min()
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(at)
}

fn after(failed: u32, now: Timestamp) -> Timestamp {
    later(now, SignedDuration::try_from(back_off(failed)).unwrap_or(SEARCH))
}

fn is_due(at: Timestamp, now: Timestamp) -> bool {
    at <= now || at.duration_since(now) > FURTHEST
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL: SourceId = SourceId(2);
    const WORK: SourceId = SourceId(3);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_794_702_151 + second).unwrap()
    }

    #[test]
    fn a_phone_that_is_away_is_called_less_and_less_often() {
        let mut plan = Plan::default();
        plan.expect(PIXEL, at(0));
        let mut called = vec![];
        for second in 0..1_200 {
            if plan.due(at(second)).call == [PIXEL] {
                called.push(second);
                plan.failed(PIXEL, at(second));
            }
        }
        assert_eq!(called, [0, 2, 6, 14, 30, 62, 126, 254, 510, 810, 1_110]);
        plan.reached(PIXEL, at(1_200));
        assert_eq!((plan.due(at(2_000)), plan.next()), (Due::default(), None));
        plan.lost(PIXEL, at(2_000));
        assert_eq!(plan.due(at(2_000)).call, [], "not faster than a second");
        assert_eq!(plan.next(), Some(at(2_001)));
        assert_eq!(plan.due(at(2_001)).call, [PIXEL]);
        assert_eq!(plan.due(at(9_000)).call, [], "it is being called");
        plan.reached(PIXEL, at(9_000));
        plan.failed(PIXEL, at(9_000));
        assert_eq!(plan.due(at(99_000)).call, [], "it connected by itself meanwhile");
        plan.lost(PIXEL, at(99_000));
        plan.forget(PIXEL);
        assert_eq!((plan.due(at(999_000)), plan.next()), (Due::default(), None));
    }

    #[test]
    fn links_that_do_not_last_are_tried_less_and_less_often() {
        let mut plan = Plan::default();
        plan.expect(PIXEL, at(0));
        let mut reached = vec![];
        for second in 0..100 {
            if plan.due(at(second)).call == [PIXEL] {
                reached.push(second);
                plan.reached(PIXEL, at(second));
                plan.lost(PIXEL, at(second));
            }
        }
        assert_eq!(reached, [0, 2, 6, 14, 30, 62]);
        plan.due(at(200));
        plan.reached(PIXEL, at(200));
        plan.lost(PIXEL, at(260));
        assert_eq!(plan.next(), Some(at(261)), "it lasted");
        for second in [300, 310, 320] {
            plan.reached(PIXEL, at(second));
            plan.hung_up(PIXEL, at(second + 1));
            assert_eq!(plan.next(), Some(at(second + 2)), "we ended it");
        }
    }

    #[test]
    fn whoever_ends_a_pairing_may_ask_anew() {
        let mut plan = Plan::default();
        assert!(!plan.lingers(at(0)));
        plan.linger(at(0));
        assert!(plan.lingers(at(1)) && !plan.lingers(at(2)));
    }

    #[test]
    fn each_phone_has_its_own_pace() {
        let mut plan = Plan::default();
        plan.expect(PIXEL, at(0));
        plan.expect(WORK, at(0));
        assert_eq!(plan.due(at(0)), Due { announce: true, call: vec![PIXEL, WORK] });
        plan.failed(PIXEL, at(0));
        assert_eq!(plan.due(at(2)), Due { announce: false, call: vec![PIXEL] }, "the other one hangs");
    }

    #[test]
    fn a_search_announces_and_ends() {
        let mut plan = Plan::default();
        assert_eq!(plan.search(at(0)), None);
        plan.begin_search(at(0));
        let announced = (0..10).filter(|second| plan.due(at(*second)).announce).collect::<Vec<_>>();
        assert_eq!(announced, [0, 3, 6, 9]);
        assert_eq!(plan.next(), Some(at(12)));
        plan.begin_search(at(100));
        assert!(plan.search(at(399)).is_some() && plan.search(at(400)).is_none());
        plan.begin_search(at(500));
        plan.end_search();
        assert_eq!(plan.search(at(500)), None);
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up() {
        let mut plan = Plan::default();
        plan.begin_search(at(10_000));
        plan.lost(PIXEL, at(10_000));
        plan.not_opened(at(10_000));
        assert!(plan.may_open(at(0)));
        assert_eq!(plan.due(at(0)), Due { announce: true, call: vec![PIXEL] });
        assert_eq!(plan.search(at(0)), Some(at(300)));
    }

    #[test]
    fn an_endpoint_that_failed_is_tried_again() {
        let mut plan = Plan::default();
        assert!(plan.may_open(at(0)));
        plan.not_opened(at(0));
        assert!(!plan.may_open(at(29)) && plan.may_open(at(30)));
        plan.expect(PIXEL, at(0));
        assert_eq!(plan.next_while_closed(), Some(at(30)), "nobody can be called before");
        plan.forget(PIXEL);
        plan.opened();
        assert_eq!(plan.next(), None);
    }
}
