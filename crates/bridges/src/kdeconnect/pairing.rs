//! Pairing, as a state machine: what to do when a request, an answer, a tap or a time-out comes. Pure.
//!
//! Requests and agreements look the same on the wire, so what a packet means depends on the state it meets.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::identity::Protocol;
use super::packet::Pair;

/// How far the clocks of two devices may differ, as in every other implementation.
const CLOCKS_MAY_DIFFER: SignedDuration = SignedDuration::from_secs(1_800);

/// Where the pairing with a device stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Unpaired,
    /// We asked, and wait for the device.
    Requested {
        timestamp: i64,
        until: Timestamp,
    },
    /// The device asked, and waits for us.
    Asked {
        timestamp: i64,
        until: Timestamp,
    },
    Paired,
}

/// What the person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tap {
    /// Pair with this device.
    Request,
    /// Agree to what the device asked.
    Accept,
    /// Refuse what the device asked, withdraw our own request, or end a pairing.
    Reject,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Send(Pair),
    Tell(News),
}

/// What a person is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// We asked. Both devices now show the key that belongs to this time.
    Requested {
        timestamp: i64,
    },
    /// The device asked, and shows the same key.
    Asked {
        timestamp: i64,
    },
    Paired,
    Failed(Failure),
    Unpaired(By),
}

/// Why two devices were not paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The device refused, or withdrew its request.
    Refused,
    /// The person here refused, or withdrew the request.
    Withdrawn,
    /// Nobody answered in time.
    TimedOut,
    /// The clocks differ by more than half an hour. Setting them right helps.
    ClocksDiffer,
    /// The connection ended before anybody answered.
    Disconnected,
    /// The device's request was not a proper one.
    Malformed,
}

/// Who ended a pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    Us,
    Them,
}

/// The pairing with one device.
#[derive(Debug)]
pub(super) struct Pairing {
    protocol: Protocol,
    patience: SignedDuration,
    state: State,
}

impl Pairing {
    /// `patience` is how long a request waits for its answer.
    pub(super) fn new(protocol: Protocol, patience: Duration, paired: bool) -> Self {
        let patience = SignedDuration::try_from(patience).unwrap_or(SignedDuration::from_secs(30));
        Self { protocol, patience, state: if paired { State::Paired } else { State::Unpaired } }
    }

    pub(super) fn is_paired(&self) -> bool {
        self.state == State::Paired
    }

    /// When to call [`Pairing::on_time`], if somebody is waiting for an answer.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match self.state {
            State::Requested { until, .. } | State::Asked { until, .. } => Some(until),
            State::Unpaired | State::Paired => None,
        }
    }

    /// The time of the device's request, if one waits for our answer.
    pub(super) fn asked(&self) -> Option<i64> {
        match self.state {
            State::Asked { timestamp, .. } => Some(timestamp),
            State::Unpaired | State::Requested { .. } | State::Paired => None,
        }
    }

    /// A pairing packet came.
    pub(super) fn on_packet(&mut self, packet: Pair, now: Timestamp) -> Vec<Step> {
        if packet.pair { self.on_yes(packet.timestamp, now) } else { self.on_no() }
    }

    /// The person decided.
    pub(super) fn on_tap(&mut self, tap: Tap, now: Timestamp) -> Vec<Step> {
        match (tap, self.state) {
            (Tap::Request, State::Unpaired) => {
                let timestamp = now.as_second();
                self.state = State::Requested { timestamp, until: self.until(now) };
                let dated = self.protocol.is_8().then_some(timestamp);
                vec![
                    Step::Send(Pair { pair: true, timestamp: dated }),
                    Step::Tell(News::Requested { timestamp }),
                ]
            }
            (Tap::Accept, State::Asked { until, .. }) if now < until => {
                self.state = State::Paired;
                vec![Step::Send(YES), Step::Tell(News::Paired)]
            }
            (Tap::Reject, State::Requested { .. } | State::Asked { .. }) => {
                self.state = State::Unpaired;
                vec![Step::Send(NO), Step::Tell(News::Failed(Failure::Withdrawn))]
            }
            (Tap::Reject, State::Paired) => {
                self.state = State::Unpaired;
                vec![Step::Send(NO), Step::Tell(News::Unpaired(By::Us))]
            }
            // An agreement needs a request with a key that the person has seen; anything else changes nothing.
            (Tap::Request, State::Requested { .. } | State::Asked { .. } | State::Paired)
            | (
                Tap::Accept,
                State::Unpaired | State::Requested { .. } | State::Asked { .. } | State::Paired,
            )
            | (Tap::Reject, State::Unpaired) => vec![],
        }
    }

    /// Time passed.
    pub(super) fn on_time(&mut self, now: Timestamp) -> Vec<Step> {
        if self.deadline().is_none_or(|until| now < until) {
            return vec![];
        }
        self.state = State::Unpaired;
        vec![Step::Send(NO), Step::Tell(News::Failed(Failure::TimedOut))]
    }

    /// The device, which we do not consider paired, sent something else than a pairing packet. It must think that we
    /// are paired, so it is told that we are not.
    pub(super) fn on_other_packet(&self) -> Option<Pair> {
        match self.state {
            State::Unpaired => Some(NO),
            State::Requested { .. } | State::Asked { .. } | State::Paired => None,
        }
    }

    fn on_yes(&mut self, timestamp: Option<i64>, now: Timestamp) -> Vec<Step> {
        match self.state {
            State::Requested { until, .. } if now < until => {
                self.state = State::Paired;
                vec![Step::Tell(News::Paired)]
            }
            State::Requested { .. } => self.on_time(now),
            State::Asked { .. } => vec![],
            State::Unpaired => self.on_request(timestamp, now),
            // The device forgot us and asks anew; so do all other implementations see it.
            State::Paired => {
                self.state = State::Unpaired;
                let mut steps = vec![Step::Tell(News::Unpaired(By::Them))];
                steps.extend(self.on_request(timestamp, now));
                steps
            }
        }
    }

    fn on_request(&mut self, timestamp: Option<i64>, now: Timestamp) -> Vec<Step> {
        let refused = |why| vec![Step::Send(NO), Step::Tell(News::Failed(why))];
        let timestamp = match (self.protocol.is_8(), timestamp) {
            (false, _) => now.as_second(),
            (true, None) => return refused(Failure::Malformed),
            (true, Some(at)) if !is_near(at, now) => return refused(Failure::ClocksDiffer),
            (true, Some(at)) => at,
        };
        self.state = State::Asked { timestamp, until: self.until(now) };
        vec![Step::Tell(News::Asked { timestamp })]
    }

    fn on_no(&mut self) -> Vec<Step> {
        let news = match self.state {
            State::Unpaired => return vec![],
            State::Requested { .. } | State::Asked { .. } => News::Failed(Failure::Refused),
            State::Paired => News::Unpaired(By::Them),
        };
        self.state = State::Unpaired;
        vec![Step::Tell(news)]
    }

    fn until(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.patience).unwrap_or(now)
    }
}

const YES: Pair = Pair { pair: true, timestamp: None };
const NO: Pair = Pair { pair: false, timestamp: None };

fn is_near(second: i64, now: Timestamp) -> bool {
    Timestamp::from_second(second).is_ok_and(|at| at.duration_since(now).abs() <= CLOCKS_MAY_DIFFER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_794_702_151;

    /// Something that happens, so many seconds after [`NOW`].
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Packet(Pair),
        Tap(Tap),
        Time,
    }

    fn play(protocol: Protocol, paired: bool, events: &[(i64, Event)]) -> (State, Vec<Step>) {
        let mut pairing = Pairing::new(protocol, Duration::from_secs(30), paired);
        let mut last = vec![];
        for (after, event) in events {
            let now = Timestamp::from_second(NOW + after).unwrap();
            last = match event {
                Event::Packet(packet) => pairing.on_packet(*packet, now),
                Event::Tap(tap) => pairing.on_tap(*tap, now),
                Event::Time => pairing.on_time(now),
            };
        }
        (pairing.state, last)
    }

    fn dated(at: i64) -> Event {
        Event::Packet(Pair { pair: true, timestamp: Some(at) })
    }

    const ASK: Event = Event::Tap(Tap::Request);
    const ACCEPT: Event = Event::Tap(Tap::Accept);
    const REJECT: Event = Event::Tap(Tap::Reject);
    const PEER_YES: Event = Event::Packet(YES);
    const PEER_NO: Event = Event::Packet(NO);
    const SEND_NO: Step = Step::Send(NO);

    fn failed(why: Failure) -> Step {
        Step::Tell(News::Failed(why))
    }

    /// What happens, whether the devices are paired then, and what the last thing led to.
    type Row<'a> = (&'a str, Protocol, &'a [(i64, Event)], bool, &'a [Step]);

    fn check(rows: &[Row<'_>]) {
        for (name, protocol, events, is_paired, expected) in rows {
            let (state, last) = play(*protocol, false, events);
            assert_eq!((state == State::Paired, last.as_slice()), (*is_paired, *expected), "{name}");
        }
    }

    const V7: Protocol = Protocol::V7;
    const V8: Protocol = Protocol::V8;
    const TIME: Event = Event::Time;
    const SEND_YES: Step = Step::Send(YES);
    const REQUESTED: Step = Step::Tell(News::Requested { timestamp: NOW });
    const ASKED: Step = Step::Tell(News::Asked { timestamp: NOW });
    const PAIRED: Step = Step::Tell(News::Paired);

    #[test]
    fn we_ask() {
        let request = Step::Send(Pair { pair: true, timestamp: Some(NOW) });
        let late = [SEND_NO, failed(Failure::TimedOut)];
        check(&[
            ("we ask", V8, &[(0, ASK)], false, &[request, REQUESTED]),
            ("we ask in version 7", V7, &[(0, ASK)], false, &[SEND_YES, REQUESTED]),
            ("they agree", V8, &[(0, ASK), (9, PEER_YES)], true, &[PAIRED]),
            ("they refuse", V8, &[(0, ASK), (9, PEER_NO)], false, &[failed(Failure::Refused)]),
            ("we ask twice", V8, &[(0, ASK), (1, ASK)], false, &[]),
            ("we withdraw", V8, &[(0, ASK), (9, REJECT)], false, &[SEND_NO, failed(Failure::Withdrawn)]),
            ("not late yet", V8, &[(0, ASK), (29, TIME)], false, &[]),
            ("nobody answers", V8, &[(0, ASK), (30, TIME)], false, &late),
            ("they agree too late", V8, &[(0, ASK), (30, PEER_YES)], false, &late),
            ("we cannot agree with ourselves", V8, &[(0, ASK), (1, ACCEPT)], false, &[]),
            ("agreeing to nothing", V8, &[(0, ACCEPT)], false, &[]),
            ("refusing nothing", V8, &[(0, REJECT)], false, &[]),
        ]);
    }

    #[test]
    fn they_ask() {
        let asked = dated(NOW);
        let old = Step::Tell(News::Asked { timestamp: NOW - 1_800 });
        let clocks = [SEND_NO, failed(Failure::ClocksDiffer)];
        check(&[
            ("they ask", V8, &[(0, asked)], false, &[ASKED]),
            ("they ask in version 7", V7, &[(0, PEER_YES)], false, &[ASKED]),
            ("clocks differ a little", V8, &[(0, dated(NOW - 1_800))], false, &[old]),
            ("clocks differ", V8, &[(0, dated(NOW - 1_801))], false, &clocks),
            ("an impossible date", V8, &[(0, dated(i64::MAX))], false, &clocks),
            ("no date", V8, &[(0, PEER_YES)], false, &[SEND_NO, failed(Failure::Malformed)]),
            ("we agree", V8, &[(0, asked), (9, ACCEPT)], true, &[SEND_YES, PAIRED]),
            ("we agree in version 7", V7, &[(0, PEER_YES), (9, ACCEPT)], true, &[SEND_YES, PAIRED]),
            ("we refuse", V8, &[(0, asked), (9, REJECT)], false, &[SEND_NO, failed(Failure::Withdrawn)]),
            ("they withdraw", V8, &[(0, asked), (9, PEER_NO)], false, &[failed(Failure::Refused)]),
            ("they ask twice", V8, &[(0, asked), (1, asked)], false, &[]),
            ("we agree too late", V8, &[(0, asked), (30, ACCEPT)], false, &[]),
            ("we never answer", V8, &[(0, asked), (30, TIME)], false, &[SEND_NO, failed(Failure::TimedOut)]),
            ("we ask while they ask", V8, &[(0, asked), (1, ASK)], false, &[]),
            ("they refuse nothing", V8, &[(0, PEER_NO)], false, &[]),
        ]);
    }

    #[test]
    fn what_is_paired_can_be_ended() {
        let over = |by| Step::Tell(News::Unpaired(by));
        let paired = [(0, ASK), (1, PEER_YES)];
        let then = |event| [paired[0], paired[1], (99, event)];
        check(&[
            ("time passes", V8, &then(TIME), true, &[]),
            ("we ask", V8, &then(ASK), true, &[]),
            ("we agree again", V8, &then(ACCEPT), true, &[]),
            ("we unpair", V8, &then(REJECT), false, &[SEND_NO, over(By::Us)]),
            ("they unpair", V8, &then(PEER_NO), false, &[over(By::Them)]),
            ("they ask anew", V8, &then(dated(NOW)), false, &[over(By::Them), ASKED]),
        ]);
    }

    #[test]
    fn a_device_that_wrongly_thinks_it_is_paired_is_told() {
        let unpaired = Pairing::new(Protocol::V8, Duration::from_secs(30), false);
        assert_eq!(unpaired.on_other_packet(), Some(NO));
        let paired = Pairing::new(Protocol::V8, Duration::from_secs(30), true);
        assert_eq!(paired.on_other_packet(), None);
        let (state, _) = play(Protocol::V8, true, &[(0, PEER_NO)]);
        assert_eq!(state, State::Unpaired);
    }
}
