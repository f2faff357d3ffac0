//! A queue to one reader that is bounded by the weight of what waits in it and not by its number: a phone reports
//! thousands of conversations in a packet each, and a single packet can hold megabytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

/// The reader is so far behind that there is no room left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// The end of a queue where things go in. Never waits.
pub(super) struct Lane<T> {
    to: mpsc::UnboundedSender<(T, usize)>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

impl<T: Send + 'static> Lane<T> {
    /// A queue that holds things with a weight of `most` altogether, and always at least one. Must be called within a
    /// Tokio runtime.
    pub(super) fn new(most: usize) -> (Self, mpsc::Receiver<T>) {
        let (to, waits) = mpsc::unbounded_channel();
        let (passed_on, received) = mpsc::channel(1);
        let waiting = Arc::new(AtomicUsize::new(0));
        tokio::spawn(pass_on(waits, Arc::clone(&waiting), passed_on));
        (Self { to, waiting, most }, received)
    }

    /// Adds something. If nobody reads any more, it is dropped.
    pub(super) fn push(&self, item: T, weight: usize) -> Result<(), Overflow> {
        if self.to.is_closed() {
            return Ok(());
        }
        let before = self.waiting.load(Ordering::SeqCst);
        if before > 0 && before.saturating_add(weight) > self.most {
            return Err(Overflow);
        }
        self.waiting.fetch_add(weight, Ordering::SeqCst);
        // Fails only if whoever reads stopped a moment ago.
        drop(self.to.send((item, weight)));
        Ok(())
    }
}

async fn pass_on<T>(
    mut waits: mpsc::UnboundedReceiver<(T, usize)>,
    waiting: Arc<AtomicUsize>,
    to: mpsc::Sender<T>,
) {
    while let Some((item, weight)) = waits.recv().await {
        let taken = to.send(item).await;
        waiting.fetch_sub(weight, Ordering::SeqCst);
        if taken.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_holds_what_it_can_and_says_when_it_is_full() {
        let (lane, mut received) = Lane::new(10);
        assert_eq!(lane.push("whole", 50), Ok(()), "one thing always fits");
        assert_eq!(lane.push("more", 1), Err(Overflow));
        assert_eq!(received.recv().await, Some("whole"));
        // The weight is taken off before the next thing comes out.
        while lane.waiting.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        for number in 0..10 {
            assert_eq!(lane.push(["even", "odd"][number % 2], 1), Ok(()), "{number}");
        }
        drop(lane);
        let mut count = 0;
        while received.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, 10, "in order, and none is lost");
    }

    #[tokio::test]
    async fn nobody_who_reads_costs_nothing() {
        let (lane, received) = Lane::new(10);
        drop(received);
        assert_eq!(lane.push((), 10), Ok(()), "it is noticed with this one");
        lane.to.closed().await;
        assert_eq!(lane.push((), 10), Ok(()));
    }
}
