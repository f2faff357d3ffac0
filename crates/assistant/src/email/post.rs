//! Hands approved mails to the server of their account. The door of the outbox calls it after the user's tap.

use std::sync::Arc;

use kai_words::said;

use super::port::MailServers;
use super::store;
use crate::db::Db;
use crate::outbox::door::{ApprovedMail, Mailer, SendError, Sending};
use crate::source::SourceId;

/// The accounts that mails leave by.
#[derive(Clone)]
pub struct Post {
    pub db: Db,
    pub servers: Arc<dyn MailServers>,
}

impl Mailer for Post {
    fn send(&self, account: SourceId, approved: ApprovedMail) -> Sending<'_> {
        Box::pin(async move {
            let found = self.db.read(move |tx| store::get(tx, account)).await;
            match found {
                Ok(Some(account)) => self.servers.send(&account, approved).await,
                Ok(None) => Err(SendError::NotSent(said::draft_reason_no_account())),
                Err(error) => Err(SendError::NotSent(error.said())),
            }
        })
    }
}
