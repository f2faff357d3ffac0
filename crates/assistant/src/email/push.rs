//! Keeps a connection to each account's server, over which the server says at once that something arrived. Only the
//! daemon does this. The polls of the tick go on: a connection may be dead without anybody noticing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use jiff::SignedDuration;
use rusqlite::Transaction;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::account::Account;
use super::poll::{PollError, Poller};
use super::port::Why;
use super::{due, store};
use crate::db::DbError;
use crate::settings::{self, EMAIL_ENABLED, EMAIL_POLL_INTERVAL};
use crate::source::SourceId;

/// Keeps the connections over which news come.
pub struct Push {
    poller: Poller,
    changed: Notify,
}

/// How often Kai looks whether accounts or settings have changed without anybody telling it, such as by a command while
/// the daemon runs.
const LOOK: Duration = Duration::from_mins(1);
/// The shortest pause between two polls, however often a server says that something arrived.
const PAUSE: Duration = Duration::from_secs(2);
/// How often a poll is tried that another one is in the way of.
const TRIES: usize = 5;
/// A connection that held this long was a good one: the pauses start over.
const HELD: SignedDuration = SignedDuration::from_mins(5);

/// What a connection is kept for. It is made anew when something of this changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    account: Account,
    /// The interval of the polls, in minutes.
    minutes: u32,
}

impl Push {
    pub fn new(poller: Poller) -> Self {
        Self { poller, changed: Notify::new() }
    }

    /// Says that accounts or settings have changed.
    pub fn poke(&self) {
        self.changed.notify_one();
    }

    /// Keeps the connections until it is told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        let mut watched: BTreeMap<SourceId, (Wanted, AbortOnDropHandle<()>)> = BTreeMap::new();
        loop {
            match self.poller.db.read(wanted).await {
                Ok(wanted) => self.adjust(&mut watched, wanted),
                Err(error) => tracing::warn!(%error, "the mail accounts could not be read from the store"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Ends the connections that are not wanted any more and makes those that are new. One to a server that cannot push
    /// has ended by itself and is not made again.
    fn adjust(&self, watched: &mut BTreeMap<SourceId, (Wanted, AbortOnDropHandle<()>)>, wanted: Vec<Wanted>) {
        watched.retain(|_, (known, _)| wanted.contains(known));
        for wanted in wanted {
            watched.entry(wanted.account.source).or_insert_with(|| {
                let watching = tokio::spawn(watch(self.poller.clone(), wanted.clone()));
                (wanted, AbortOnDropHandle::new(watching))
            });
        }
    }
}

fn wanted(tx: &Transaction<'_>) -> Result<Vec<Wanted>, DbError> {
    let values = settings::load(tx)?;
    let minutes = values.number(&EMAIL_POLL_INTERVAL);
    if minutes == 0 || !values.on(&EMAIL_ENABLED) {
        return Ok(vec![]);
    }
    Ok(store::all(tx)?.into_iter().map(|account| Wanted { account, minutes }).collect())
}

/// Keeps one connection, and makes it again after growing pauses.
async fn watch(poller: Poller, Wanted { account, minutes }: Wanted) {
    let mut failures = 0;
    loop {
        let (news, begun) = (Notify::new(), poller.clock.now());
        let tell = || news.notify_one();
        let ended = tokio::select! {
            ended = poller.servers.watch(&account, &tell) => ended,
            never = poll_on(&poller, account.source, &news) => match never {},
        };
        match ended {
            Err(trouble) if trouble.why == Why::NoPush => {
                tracing::info!(account = account.source.0, "the mail server cannot push");
                return;
            }
            Err(trouble) => tracing::debug!(account = account.source.0, %trouble, "no push for now"),
            Ok(()) => {}
        }
        let held = poller.clock.now().duration_since(begun) >= HELD;
        failures = if held { 1 } else { failures + 1 };
        tokio::time::sleep(due::reconnects_after(failures, minutes)).await;
    }
}

/// Polls whenever there are news.
async fn poll_on(poller: &Poller, account: SourceId, news: &Notify) -> Infallible {
    loop {
        news.notified().await;
        for _ in 0..TRIES {
            match poller.poll(account).await {
                // The other poll may have asked before this news came.
                Err(PollError::Busy) => tokio::time::sleep(PAUSE).await,
                Ok(done) if done.more => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::debug!(account = account.0, %error, "the poll after news failed");
                    break;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
