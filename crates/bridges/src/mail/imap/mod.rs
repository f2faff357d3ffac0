//! Reads mail over IMAP.
//!
//! The walk of a look: `session` connects, signs in and sends a `command` → the server's lines become a `reply`, made
//! of `value`s → `listed` makes the header of a list from it, and `structure` says which parts of a mail are its text →
//! `inbox` puts them together; `search` has the words of a search and what it finds. `watch` waits for news. `sent`
//! keeps copies of what was sent.

mod command;
mod inbox;
mod listed;
mod reply;
mod search;
mod sent;
mod session;
mod structure;
mod value;
mod watch;

#[cfg(any(test, fuzzing))]
pub(super) use listed::listed;
#[cfg(any(test, fuzzing))]
pub(super) use reply::Reply;
pub(super) use sent::Copy;
pub(super) use session::Session;
#[cfg(any(test, fuzzing))]
pub(super) use structure::Contents;
