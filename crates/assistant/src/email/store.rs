//! Stores the user's mail accounts.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::account::{Account, Credentials, Server};
use super::queue::QUEUE;
use super::{kept, sync};
use crate::db::{self, DbError};
use crate::outbox::address::spelling;
use crate::outbox::copies;
use crate::pending;
use crate::secret::Secret;
use crate::source::SourceId;

/// An account that the user adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    pub address: String,
    pub user: String,
    pub imap: Server,
    pub smtp: Server,
    pub credentials: Credentials,
}

impl NewAccount {
    /// The account as servers are asked about it before it is added.
    pub fn untried(&self) -> Account {
        let Self { address, user, imap, smtp, credentials } = self.clone();
        Account { source: SourceId(super::FIRST_ACCOUNT), address, user, imap, smtp, credentials }
    }
}

/// Why an account was not added.
#[derive(Debug, thiserror::Error)]
pub enum NotAdded {
    /// There is one with this address.
    #[error("{}", kai_words::said::email_known(.0))]
    Known(String),
    #[error(transparent)]
    Store(#[from] DbError),
}

/// Adds an account. Its number was never used before.
pub fn add(tx: &Transaction<'_>, new: &NewAccount, now: Timestamp) -> Result<Account, NotAdded> {
    if let Some(known) = by_address(tx, &new.address)? {
        return Err(NotAdded::Known(known.address));
    }
    let (password, command) = columns(&new.credentials);
    tx.execute(
        "INSERT INTO email_accounts (address, spelling, user, imap, smtp, password, token_command, added)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            new.address,
            spelling(&new.address),
            new.user,
            db::json(&new.imap)?,
            db::json(&new.smtp)?,
            password,
            command,
            now.as_millisecond()
        ],
    )
    .map_err(DbError::from)?;
    Ok(Account { source: SourceId(tx.last_insert_rowid()), ..new.untried() })
}

/// Stores other servers and credentials of an account. Where its inbox was read to stays. Returns whether there is such
/// an account.
pub fn change(tx: &Transaction<'_>, account: &Account) -> Result<bool, DbError> {
    let (password, command) = columns(&account.credentials);
    let changed = tx.execute(
        "UPDATE email_accounts SET user = ?2, imap = ?3, smtp = ?4, password = ?5, token_command = ?6 WHERE id = ?1",
        params![
            account.source,
            account.user,
            db::json(&account.imap)?,
            db::json(&account.smtp)?,
            password,
            command
        ],
    )?;
    Ok(changed > 0)
}

fn columns(credentials: &Credentials) -> (Option<&str>, Option<&str>) {
    match credentials {
        Credentials::Password(password) => (Some(password.reveal()), None),
        Credentials::TokenCommand(command) => (None, Some(command)),
    }
}

const SELECT: &str = "SELECT id, address, user, imap, smtp, password, token_command FROM email_accounts";

/// `None` if a later Kai wrote something that this one does not know.
fn account(row: &Row<'_>) -> rusqlite::Result<Option<Account>> {
    let server = |column| row.get::<_, String>(column).map(|json| serde_json::from_str(&json).ok());
    let (imap, smtp): (Option<Server>, Option<Server>) = (server(3)?, server(4)?);
    let (source, address, user) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let credentials = match (row.get::<_, Option<String>>(5)?, row.get::<_, Option<String>>(6)?) {
        (Some(password), _) => Credentials::Password(Secret::new(password)),
        (None, command) => Credentials::TokenCommand(command.unwrap_or_default()),
    };
    Ok(imap.zip(smtp).map(|(imap, smtp)| Account { source, address, user, imap, smtp, credentials }))
}

/// All accounts, in the order in which they were added.
pub fn all(tx: &Transaction<'_>) -> Result<Vec<Account>, DbError> {
    let mut rows = tx.prepare_cached(&format!("{SELECT} ORDER BY id"))?;
    let accounts: Vec<Option<Account>> = rows.query_map([], account)?.collect::<rusqlite::Result<_>>()?;
    Ok(accounts.into_iter().flatten().collect())
}

pub fn get(tx: &Transaction<'_>, source: SourceId) -> Result<Option<Account>, DbError> {
    let mut row = tx.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?;
    Ok(row.query_row([source], account).optional()?.flatten())
}

/// The account with this address, however it is written.
pub fn by_address(tx: &Transaction<'_>, written: &str) -> Result<Option<Account>, DbError> {
    let mut row = tx.prepare_cached(&format!("{SELECT} WHERE spelling = ?1"))?;
    Ok(row.query_row([spelling(written)], account).optional()?.flatten())
}

/// Whether there is any account.
pub fn any(tx: &Transaction<'_>) -> Result<bool, DbError> {
    let mut any = tx.prepare_cached("SELECT EXISTS (SELECT 1 FROM email_accounts)")?;
    Ok(any.query_row([], |row| row.get(0))?)
}

/// Removes an account with everything that is known of its mails. Its drafts stay and fail when they are sent. Returns
/// whether there was such an account.
pub fn remove(tx: &Transaction<'_>, source: SourceId) -> Result<bool, DbError> {
    pending::clear_phone(tx, QUEUE, source)?;
    copies::forget(tx, source)?;
    kept::forget(tx, source)?;
    sync::forget(tx, source)?;
    Ok(tx.execute("DELETE FROM email_accounts WHERE id = ?1", [source])? > 0)
}
