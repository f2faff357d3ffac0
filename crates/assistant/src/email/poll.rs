//! Polls the accounts: fetches the mails after the mark, queues them and moves the mark, all or nothing. Each account is
//! polled on its own, so that none waits for another.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::account::Account;
use super::port::{Look, MailServers, Mark, Trouble, Which, Why};
use super::sync::{self, Taken};
use super::{due, store};
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::lease::{self, Lease};
use crate::settings::{self, EMAIL_ENABLED, EMAIL_POLL_INTERVAL};
use crate::source::SourceId;

/// How many mails one poll takes. If there are more, the next tick goes on.
pub const PER_POLL: usize = 50;

/// Polls the user's accounts.
#[derive(Clone)]
pub struct Poller {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub servers: Arc<dyn MailServers>,
}

/// What a poll did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polled {
    pub fresh: usize,
    /// The poll hit its limit, so the next tick polls again.
    pub more: bool,
    /// This poll only marked where the inbox is: it was the first, or the mark before it means nothing any more.
    pub seeded: bool,
}

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.said())]
pub enum PollError {
    /// Email is disabled, or was disabled meanwhile.
    Off,
    /// There is no such account.
    NoAccount,
    /// Another poll of this account is running, or was faster.
    Busy,
    Server(#[from] Trouble),
    Store(#[from] DbError),
}

impl PollError {
    /// The error in the user's language.
    pub fn said(&self) -> Said {
        match self {
            Self::Off => said::email_off(),
            Self::NoAccount => said::email_no_account(),
            Self::Busy => said::email_busy(),
            Self::Server(trouble) => trouble.said(),
            Self::Store(error) => error.said(),
        }
    }
}

/// What became of the polls of one tick, by account.
pub type Tick = Vec<(SourceId, Result<Polled, PollError>)>;

/// How long a poll may take. The port has limits of its own; this one keeps a bridge that ignores them from holding a
/// tick.
const LONGEST: Duration = Duration::from_mins(1);
/// How long a poll holds its lease.
const LEASE: SignedDuration = SignedDuration::from_mins(2);

fn lease_of(account: SourceId) -> String {
    format!("email/poll/{}", account.0)
}

/// Whether any account is polled right now, in any process.
pub fn under_way(tx: &Transaction<'_>, now: Timestamp) -> Result<bool, DbError> {
    lease::any_held(tx, "email/poll/", now)
}

impl Poller {
    /// Polls every account that is due, all at once. Leaves out those that another poll is busy with.
    pub async fn tick(&self) -> Result<Tick, DbError> {
        let now = self.clock.now();
        let due = self.db.read(move |tx| due_accounts(tx, now)).await?;
        Ok(self.poll_each(due).await)
    }

    /// Polls all accounts now, whether or not they are due.
    pub async fn poll_all(&self) -> Result<Tick, DbError> {
        let accounts = self.db.read(store::all).await?;
        Ok(self.poll_each(accounts.into_iter().map(|account| account.source).collect()).await)
    }

    async fn poll_each(&self, accounts: Vec<SourceId>) -> Tick {
        let polls = accounts.into_iter().map(async |account| (account, self.poll(account).await));
        let polled = join_all(polls).await.into_iter();
        polled.filter(|(_, polled)| !matches!(polled, Err(PollError::Busy | PollError::Off))).collect()
    }

    /// Polls an account now, whether or not a poll is due.
    pub async fn poll(&self, source: SourceId) -> Result<Polled, PollError> {
        let now = self.clock.now();
        let begun = move |tx: &Transaction<'_>| {
            if !settings::load(tx)?.on(&EMAIL_ENABLED) {
                return Err(PollError::Off);
            }
            let account = store::get(tx, source)?.ok_or(PollError::NoAccount)?;
            let lease = lease::take(tx, &lease_of(source), now, LEASE)?.ok_or(PollError::Busy)?;
            Ok((lease, account, sync::sync(tx, source)?.mark))
        };
        let (lease, account, mark) = self.db.write(begun).await?;
        let look = self.ask(&account, mark).await;
        self.settle(lease, account, mark, look).await
    }

    async fn ask(&self, account: &Account, mark: Option<Mark>) -> Result<Look, Trouble> {
        let asking = self.servers.newer(account, mark, PER_POLL);
        tokio::time::timeout(LONGEST, asking).await.unwrap_or_else(|_elapsed| {
            Err(Trouble { which: Which::Imap, host: account.imap.host.clone(), why: Why::Silent })
        })
    }

    /// Stores the result, unless another poll was faster, or the user removed the account or disabled email meanwhile.
    async fn settle(
        &self,
        lease: Lease,
        account: Account,
        asked: Option<Mark>,
        look: Result<Look, Trouble>,
    ) -> Result<Polled, PollError> {
        let now = self.clock.now();
        let settled = move |tx: &Transaction<'_>| {
            if !lease::ours(tx, &lease)? {
                return Err(PollError::Busy);
            }
            lease::give_back(tx, &lease)?;
            // An inner error reaches the caller; the outer `Ok` commits what was stored.
            outcome(tx, &account, asked, look, now)
        };
        self.db.write(settled).await?
    }
}

fn due_accounts(tx: &Transaction<'_>, now: Timestamp) -> Result<Vec<SourceId>, DbError> {
    let values = settings::load(tx)?;
    if !values.on(&EMAIL_ENABLED) {
        return Ok(vec![]);
    }
    let minutes = values.number(&EMAIL_POLL_INTERVAL);
    let mut due = vec![];
    for account in store::all(tx)? {
        if due::is_due(&sync::sync(tx, account.source)?, minutes, now) {
            due.push(account.source);
        }
    }
    Ok(due)
}

fn outcome(
    tx: &Transaction<'_>,
    account: &Account,
    asked: Option<Mark>,
    look: Result<Look, Trouble>,
    now: Timestamp,
) -> Result<Result<Polled, PollError>, PollError> {
    let (source, values) = (account.source, settings::load(tx)?);
    if store::get(tx, source)?.is_none() {
        return Ok(Err(PollError::NoAccount));
    }
    if !values.on(&EMAIL_ENABLED) {
        return Ok(Err(PollError::Off));
    }
    if sync::sync(tx, source)?.mark != asked {
        return Ok(Err(PollError::Busy));
    }
    match look {
        Ok(look) => {
            let seeded = asked.is_none_or(|asked| is_void(asked, look.mark));
            if seeded && asked.is_some() {
                tracing::warn!(
                    account = source.0,
                    "the server has numbered its mails anew; Kai goes on with those that arrive from now on"
                );
            }
            let taken = taken(look, asked);
            sync::polled(tx, source, &taken, &values, now)?;
            Ok(Ok(Polled { fresh: taken.fresh.len(), more: taken.more, seeded }))
        }
        Err(trouble) => {
            sync::failed(tx, source, &trouble.said(), now)?;
            Ok(Err(PollError::Server(trouble)))
        }
    }
}

/// Whether a mark means nothing any more, now that the inbox is there: the server has numbered its mails anew, or has
/// gone back to lower numbers, as one does whose backup was restored. Nothing would ever be after such a mark.
fn is_void(asked: Mark, now: Mark) -> bool {
    asked.validity != now.validity || now.uid < asked.uid
}

/// What of a look counts: mails with numbers after the mark, each once. Without a mark that means something, only where
/// the inbox is.
fn taken(look: Look, asked: Option<Mark>) -> Taken {
    let Some(asked) = asked.filter(|asked| !is_void(*asked, look.mark)) else {
        return Taken { mark: look.mark, fresh: vec![], more: false };
    };
    let mut fresh = look.mails;
    fresh.retain(|mail| mail.uid > asked.uid);
    fresh.sort_by_key(|mail| mail.uid);
    fresh.dedup_by_key(|mail| mail.uid);
    fresh.truncate(PER_POLL);
    // Without mails the mark may move over those that were deleted; with some it moves no further than the last.
    let uid = fresh.last().map_or(look.mark.uid, |mail| mail.uid);
    let more = look.more && !fresh.is_empty();
    Taken { mark: Mark { uid, ..look.mark }, fresh, more }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::email::port::{Header, Mailbox};
    use crate::untrusted::Untrusted;

    fn mail(uid: u32) -> Header {
        Header {
            uid,
            from: Mailbox::default(),
            subject: Untrusted::default(),
            received: Timestamp::UNIX_EPOCH,
            beginning: Untrusted::default(),
            bulk: false,
            seen: false,
        }
    }

    #[test]
    fn only_what_came_after_the_mark_counts_and_the_mark_goes_back_only_with_the_inbox() {
        let at = |validity, uid| Mark { validity, uid };
        for (name, asked, mark, mails, more, expected, fresh, goes_on) in [
            ("a seed", None, at(1, 9), vec![8, 9], true, at(1, 9), vec![], false),
            ("news", Some(at(1, 5)), at(1, 7), vec![6, 7], false, at(1, 7), vec![6, 7], false),
            ("nothing", Some(at(1, 5)), at(1, 5), vec![], false, at(1, 5), vec![], false),
            ("the last one again", Some(at(1, 5)), at(1, 5), vec![5], false, at(1, 5), vec![], false),
            ("deleted since", Some(at(1, 5)), at(1, 8), vec![], false, at(1, 8), vec![], false),
            ("gone back", Some(at(1, 5)), at(1, 3), vec![], false, at(1, 3), vec![], false),
            ("gone back, with mails", Some(at(1, 5)), at(1, 3), vec![3, 6], true, at(1, 3), vec![], false),
            ("twice, unordered", Some(at(1, 5)), at(1, 9), vec![9, 6, 9], true, at(1, 9), vec![6, 9], true),
            ("more than it sent", Some(at(1, 5)), at(1, 99), vec![6], true, at(1, 6), vec![6], true),
            ("more of nothing", Some(at(1, 5)), at(1, 5), vec![], true, at(1, 5), vec![], false),
            ("numbered anew", Some(at(1, 5)), at(2, 3), vec![1, 2], true, at(2, 3), vec![], false),
        ] {
            let look = Look { mark, mails: mails.into_iter().map(mail).collect(), more };
            let taken = taken(look, asked);
            let uids: Vec<u32> = taken.fresh.iter().map(|mail| mail.uid).collect();
            assert_eq!((taken.mark, uids, taken.more), (expected, fresh, goes_on), "{name}");
        }
    }
}
