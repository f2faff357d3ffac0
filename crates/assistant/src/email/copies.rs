//! Puts copies of sent mails into the Sent folders. The outbox keeps a copy from the moment at which its mail was sent,
//! so a server that is away, or a crash, only delays it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use rusqlite::Transaction;

use super::account::Account;
use super::port::MailServers;
use super::store;
use crate::clock::Clock;
use crate::db::{Db, DbError};
use crate::lease::{self, Lease};
use crate::outbox::copies::{self, Copy};

/// Puts copies of sent mails into the Sent folders.
#[derive(Clone)]
pub struct Copies {
    pub db: Db,
    pub clock: Arc<dyn Clock>,
    pub servers: Arc<dyn MailServers>,
}

const NAME: &str = "email/copies";
/// How long one copy may take.
const LONGEST: Duration = Duration::from_mins(1);
/// How long a round holds its lease. It ends at the first failure of each account, and the rest is done in the next.
const LEASE: SignedDuration = SignedDuration::from_mins(10);
/// How many copies of an account one round takes.
const PER_ROUND: usize = 5;

impl Copies {
    /// Puts the copies whose time has come into their folders. Returns how many are there now.
    pub async fn tick(&self) -> Result<usize, DbError> {
        let now = self.clock.now();
        let Some((lease, work)) = self.db.write(move |tx| begin(tx, now)).await? else { return Ok(0) };
        let rounds = work.iter().map(|(account, copies)| self.of_account(account, copies));
        let done = join_all(rounds).await.into_iter().sum::<Result<usize, DbError>>();
        self.db.write(move |tx| lease::give_back(tx, &lease)).await?;
        done
    }

    async fn of_account(&self, account: &Account, copies: &[Copy]) -> Result<usize, DbError> {
        let mut done = 0;
        for Copy { id, mail, .. } in copies.iter().take(PER_ROUND) {
            let kept = tokio::time::timeout(LONGEST, self.servers.keep_copy(account, mail)).await;
            let (id, now) = (*id, self.clock.now());
            if matches!(kept, Ok(Ok(()))) {
                self.db.write(move |tx| copies::done(tx, id)).await?;
                done += 1;
            } else {
                tracing::debug!(account = account.source.0, "a copy of a sent mail could not be kept yet");
                self.db.write(move |tx| copies::later(tx, id, now)).await?;
                break;
            }
        }
        Ok(done)
    }
}

/// The copies whose time has come, by account. Those of accounts that are gone can never be put anywhere.
type Work = Vec<(Account, Vec<Copy>)>;

fn begin(tx: &Transaction<'_>, now: Timestamp) -> Result<Option<(Lease, Work)>, DbError> {
    let due = copies::due(tx, now)?;
    if due.is_empty() {
        return Ok(None);
    }
    let Some(lease) = lease::take(tx, NAME, now, LEASE)? else { return Ok(None) };
    let mut work: Work = vec![];
    for copy in due {
        match work.iter_mut().find(|(account, _)| account.source == copy.account) {
            Some((_, copies)) => copies.push(copy),
            None => match store::get(tx, copy.account)? {
                Some(account) => work.push((account, vec![copy])),
                None => copies::done(tx, copy.id)?,
            },
        }
    }
    Ok(Some((lease, work)))
}
