//! A queue to one reader that is bounded by the weight of what waits in it and not by its number: a phone reports
//! thousands of conversations in a packet each, and a single packet can hold megabytes.

use std::collections::VecDeque;
use std::sync::Mutex;

use kai_assistant::lock::lock;
use tokio::sync::mpsc;

/// More packets than ever wait. Room for them costs nothing until they do.
const MOST_WAITING: usize = 1 << 20;

/// The reader is so far behind that there is no room left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// The end of a queue where things go in. Never waits. Whoever reads can take everything that waits at once.
pub(super) struct Lane<T> {
    to: mpsc::Sender<T>,
    /// The weights of what waits, oldest first. What was taken out is noticed when the next thing goes in.
    waiting: Mutex<Waiting>,
    most: usize,
}

#[derive(Default)]
struct Waiting {
    weights: VecDeque<usize>,
    sum: usize,
}

impl Waiting {
    /// Only so many are left.
    fn left(&mut self, count: usize) {
        while self.weights.len() > count {
            let gone = self.weights.pop_front().unwrap_or_default();
            self.sum = self.sum.saturating_sub(gone);
        }
    }
}

impl<T> Lane<T> {
    /// A queue that holds things with a weight of `most` altogether, and always at least one.
    pub(super) fn new(most: usize) -> (Self, mpsc::Receiver<T>) {
        let (to, received) = mpsc::channel(MOST_WAITING);
        (Self { to, waiting: Mutex::default(), most }, received)
    }

    /// Adds something. If nobody reads any more, it is dropped.
    pub(super) fn push(&self, item: T, weight: usize) -> Result<(), Overflow> {
        let mut waiting = lock(&self.waiting);
        waiting.left(self.to.max_capacity() - self.to.capacity());
        if !waiting.weights.is_empty() && waiting.sum.saturating_add(weight) > self.most {
            return Err(Overflow);
        }
        match self.to.try_send(item) {
            Ok(()) => {
                waiting.weights.push_back(weight);
                waiting.sum = waiting.sum.saturating_add(weight);
                Ok(())
            }
            Err(mpsc::error::TrySendError::Full(_)) => Err(Overflow),
            Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_it_can_and_says_when_it_is_full() {
        let (lane, mut received) = Lane::new(10);
        assert_eq!(lane.push("whole", 50), Ok(()), "one thing always fits");
        assert_eq!(lane.push("more", 1), Err(Overflow));
        assert_eq!(received.try_recv(), Ok("whole"));
        for number in 0..10 {
            assert_eq!(lane.push(["even", "odd"][number % 2], 1), Ok(()), "{number}");
        }
        assert_eq!(lane.push("more", 1), Err(Overflow));
        assert_eq!((received.try_recv(), received.try_recv()), (Ok("even"), Ok("odd")), "in order");
        assert_eq!((lane.push("a", 2), lane.push("b", 1)), (Ok(()), Err(Overflow)), "there was room for two");
        drop(lane);
        assert_eq!(std::iter::from_fn(|| received.try_recv().ok()).count(), 9, "none is lost");
    }

    /// Each time somebody takes what waits, it is stored in one go, and each time the disk is waited for.
    #[tokio::test]
    async fn everything_that_waits_can_be_taken_at_once() {
        let (lane, mut received) = Lane::new(1_000);
        for number in 0..200 {
            lane.push(number, 1).unwrap();
        }
        let mut taken = vec![];
        assert_eq!(received.recv_many(&mut taken, 64).await, 64);
        assert_eq!(taken, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn nobody_who_reads_costs_nothing() {
        let (lane, received) = Lane::new(10);
        lane.push((), 10).unwrap();
        drop(received);
        for _ in 0..3 {
            assert_eq!(lane.push((), 10), Ok(()));
        }
        assert_eq!(lock(&lane.waiting).sum, 0);
    }
}
