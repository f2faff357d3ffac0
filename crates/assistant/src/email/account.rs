//! An account: where its mail is read and sent, and how to sign in.

use serde::{Deserialize, Serialize};

use crate::secret::Secret;
use crate::source::SourceId;

/// An account of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub source: SourceId,
    /// The address, such as `you@example.org`. Mails are sent from it.
    pub address: String,
    /// The name to sign in with; often the address.
    pub user: String,
    pub imap: Server,
    pub smtp: Server,
    pub credentials: Credentials,
}

/// A server of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub security: Security,
}

/// How the connection to a server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// From the first byte on.
    Tls,
    /// After a greeting in plain text. If the server does not offer it, nothing else is said to it.
    StartTls,
    /// Not at all, which only a server on this machine may be.
    Plain,
}

/// How to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    Password(Secret),
    /// A command that prints an access token for `XOAUTH2`.
    TokenCommand(String),
}
