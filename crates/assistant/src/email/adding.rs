//! Finds the servers of an account that the user adds, by signing in to them.

use std::time::Duration;

use kai_words::{Said, said};

use super::account::{Credentials, Server};
use super::port::{MailServers, Trouble, Which, Why};
use super::presets::{self, Candidates, SignIn};
use super::store::NewAccount;
use crate::outbox::address::{self, BadAddress};

/// What the user said about an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub address: String,
    /// The name to sign in with, if it is not the address.
    pub user: Option<String>,
    pub imap: Option<Server>,
    pub smtp: Option<Server>,
    pub credentials: Credentials,
}

/// Why no account could be made of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.said())]
pub enum NotFound {
    Address(BadAddress),
    /// The most telling of what went wrong.
    Server(Trouble),
}

impl NotFound {
    /// The reason in the user's language.
    pub fn said(&self) -> Said {
        match self {
            Self::Address(_) => said::email_no_address(),
            Self::Server(trouble) => trouble.said(),
        }
    }
}

/// How long one attempt may take.
const LONGEST: Duration = Duration::from_mins(1);

/// Tries the servers that the user named, those of the service, or guesses, until it can sign in to both. `step` hears
/// what is tried. A refused password ends the search: the right server was found, and others may be the same machine,
/// which counts wrong passwords.
pub async fn find(
    servers: &dyn MailServers,
    wish: &Wish,
    step: &(dyn Fn(Said) + Send + Sync),
) -> Result<NewAccount, NotFound> {
    let address = address::one(&wish.address).map_err(NotFound::Address)?;
    let Candidates { imap, smtp } = presets::candidates(&address);
    let imap = wish.imap.as_ref().map_or(imap, presets::ways);
    let smtp = wish.smtp.as_ref().map_or(smtp, presets::ways);
    let user = wish.user.as_deref().map(str::trim).filter(|user| !user.is_empty());
    let made_of = |imap: &Server, smtp: &Server| NewAccount {
        user: user.unwrap_or(&address).to_owned(),
        address: address.clone(),
        imap: imap.clone(),
        smtp: smtp.clone(),
        credentials: wish.credentials.clone(),
    };
    let (mut reads, mut sends, mut worst) = (0, 0, None);
    while let (Some(imap), Some(smtp)) = (imap.get(reads), smtp.get(sends)) {
        // The first server is asked first, so once mail can be sent from somewhere, that is what is looked for.
        step(said::email_trying(if sends == 0 { &imap.host } else { &smtp.host }));
        let new = made_of(imap, smtp);
        let trouble = match tokio::time::timeout(LONGEST, servers.check(&new.untried())).await {
            Ok(Ok(())) => return Ok(new),
            Ok(Err(trouble)) => trouble,
            Err(_elapsed) => Trouble { which: Which::Imap, host: imap.host.clone(), why: Why::Silent },
        };
        match trouble.which {
            Which::Imap => reads += 1,
            Which::Smtp => sends += 1,
        }
        let is_last = is_about_the_account(&trouble.why);
        worst = Some(more_telling(worst, for_service(trouble, &address)));
        if is_last {
            break;
        }
    }
    let nowhere = || Trouble { which: Which::Imap, host: address.clone(), why: Why::NameNotFound };
    Err(NotFound::Server(worst.unwrap_or_else(nowhere)))
}

/// The trouble that says more about what to do.
fn more_telling(known: Option<Trouble>, new: Trouble) -> Trouble {
    match known {
        Some(known) if rank(&known.why) >= rank(&new.why) => known,
        _ => new,
    }
}

/// How far an attempt came.
fn rank(why: &Why) -> u8 {
    match why {
        Why::NameNotFound => 0,
        Why::NotReached(_) => 1,
        Why::Silent => 2,
        Why::Broken | Why::Nonsense => 3,
        Why::NoTls | Why::PlainElsewhere => 4,
        Why::Certificate(_) => 5,
        Why::Refused(_) | Why::NoPush => 6,
        Why::WrongPassword(_) | Why::AppPassword(_) | Why::ImapOff(_) | Why::TokenCommand(_) => 7,
    }
}

/// Whether the server was reached and does not like the name, the password or the program.
fn is_about_the_account(why: &Why) -> bool {
    rank(why) == 7
}

/// A service that only takes passwords made for a program says no more than that the password is wrong.
fn for_service(trouble: Trouble, address: &str) -> Trouble {
    let app_password = presets::service_of(address)
        .is_some_and(|service| matches!(service.sign_in, SignIn::AppPassword { .. }));
    match trouble.why {
        Why::WrongPassword(words) if app_password => Trouble { why: Why::AppPassword(words), ..trouble },
        why => Trouble { why, ..trouble },
    }
}
