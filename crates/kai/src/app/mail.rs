//! The mail accounts: reading and searching them, and looking for new mail.

use std::sync::Arc;

use kai_assistant::clock::Clock;
use kai_assistant::db::Db;
use kai_assistant::email::port::MailServers;
use kai_assistant::email::{Copies, EmailSource, Mailboxes, Poller, Post, Push};

/// Everything that mail needs.
pub(crate) struct Mail {
    pub(crate) servers: Arc<dyn MailServers>,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) poller: Poller,
    /// Keeps connections open on which servers tell of new mail. Only the daemon runs it.
    pub(crate) push: Push,
    /// Puts copies of sent mails into the Sent folder.
    pub(crate) copies: Copies,
    /// Held while a tick looks for new mail, so that only one does.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

impl Mail {
    pub(crate) fn new(servers: Arc<dyn MailServers>, db: &Db, clock: &Arc<dyn Clock>) -> Self {
        let poller = Poller { db: db.clone(), clock: Arc::clone(clock), servers: Arc::clone(&servers) };
        Self {
            mailboxes: Mailboxes::new(db.clone(), Arc::clone(&servers)),
            push: Push::new(poller.clone()),
            copies: Copies { db: db.clone(), clock: Arc::clone(clock), servers: Arc::clone(&servers) },
            poller,
            servers,
            looking: tokio::sync::Mutex::default(),
        }
    }

    /// What hands approved mails to their servers.
    pub(crate) fn mailer(servers: &Arc<dyn MailServers>, db: &Db) -> Post {
        Post { db: db.clone(), servers: Arc::clone(servers) }
    }

    /// What the inbox lists of them.
    pub(crate) fn source(&self, clock: &Arc<dyn Clock>) -> EmailSource {
        EmailSource::new(self.mailboxes.clone(), Arc::clone(clock))
    }
}
