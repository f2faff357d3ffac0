//! The inboxes of all accounts: reads and searches mails on their servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use kai_words::{Said, said};
use rusqlite::Transaction;

use super::account::Account;
use super::port::{Asking, Found, Letter, MailServers, Mark, Trouble, Which, Why};
use super::{EmailId, store};
use crate::db::{Db, DbError};
use crate::source::SourceId;

/// Reads the mails of all accounts.
#[derive(Clone)]
pub struct Mailboxes {
    pub db: Db,
    pub servers: Arc<dyn MailServers>,
    /// Whether there is an account, as far as it is known.
    any: Arc<AtomicBool>,
}

/// Why a mail could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRead {
    /// Its account is gone, or never was there.
    Unknown(EmailId),
    /// It is not on the server any more, or has another number there.
    Gone(EmailId),
    /// The server of this address could not be asked.
    Server(String, Trouble),
    Store(String),
}

impl From<DbError> for NotRead {
    fn from(error: DbError) -> Self {
        Self::Store(error.to_string())
    }
}

/// How long reading one mail may take.
const READING: Duration = Duration::from_secs(25);
/// How long a search may take.
const SEARCHING: Duration = Duration::from_secs(10);

impl Mailboxes {
    pub fn new(db: Db, servers: Arc<dyn MailServers>) -> Self {
        Self { db, servers, any: Arc::default() }
    }

    /// Finds out whether there is an account.
    pub(super) fn look(&self, tx: &Transaction<'_>) -> Result<(), DbError> {
        self.any.store(store::any(tx)?, Ordering::Relaxed);
        Ok(())
    }

    /// Why no mail can be read or drafted, or `None` if there is an account.
    pub fn lacks(&self) -> Option<Said> {
        (!self.any.load(Ordering::Relaxed)).then(said::lacks_email)
    }

    pub async fn accounts(&self) -> Result<Vec<Account>, DbError> {
        self.db.read(store::all).await
    }

    /// The mail in full, and the account that received it.
    pub async fn letter(&self, id: EmailId) -> Result<(Account, Letter), NotRead> {
        let account = self.db.read(move |tx| store::get(tx, id.account)).await?;
        let account = account.ok_or(NotRead::Unknown(id))?;
        let at = Mark { validity: id.validity, uid: id.uid };
        match within(READING, &account, self.servers.read(&account, at)).await {
            // A server that answers with another mail than was asked for does not have this one.
            Ok(letter) => match letter.filter(|letter| letter.header.uid == id.uid) {
                Some(letter) => Ok((account, letter)),
                None => Err(NotRead::Gone(id)),
            },
            Err(trouble) => Err(NotRead::Server(account.address, trouble)),
        }
    }

    /// Searches all accounts on their servers at once. A server that does not answer in time does not hold the others.
    pub async fn search(
        &self,
        words: &str,
        most: usize,
    ) -> Result<Vec<(Account, Result<Found, Trouble>)>, DbError> {
        let searches = self.accounts().await?.into_iter().map(async |account| {
            let found = within(SEARCHING, &account, self.servers.search(&account, words, most)).await;
            (account, found)
        });
        Ok(join_all(searches).await)
    }
}

async fn within<T>(longest: Duration, account: &Account, asking: Asking<'_, T>) -> Result<T, Trouble> {
    tokio::time::timeout(longest, asking).await.unwrap_or_else(|_elapsed| {
        Err(Trouble { which: Which::Imap, host: account.imap.host.clone(), why: Why::Silent })
    })
}

/// The addresses of the accounts, by source.
pub(super) fn address_of(accounts: &[Account], source: SourceId) -> String {
    let found = accounts.iter().find(|account| account.source == source);
    found.map(|account| account.address.clone()).unwrap_or_default()
}
