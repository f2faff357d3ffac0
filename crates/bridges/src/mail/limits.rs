//! What a mail server may cost: time and bytes.

use std::time::Duration;

/// How long Kai waits for a mail server, and how much it reads from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For the addresses of its name.
    pub resolve: Duration,
    /// For a connection to all of its addresses.
    pub connect: Duration,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For its greeting.
    pub greeting: Duration,
    /// For its answer to a command.
    pub answer: Duration,
    /// For its answer to a search.
    pub search: Duration,
    /// For a look at what is new, from the connection on. What has arrived by then counts, so this has to end before
    /// the poll that asked for the look gives up.
    pub look: Duration,
    /// For everything that one call does, except watching.
    pub whole: Duration,
    /// For the command that prints a token.
    pub token: Duration,
    /// How long a connection waits for news before it is refreshed. Servers drop it after half an hour.
    pub idle: Duration,
    /// How many bytes of one reply are kept. What is longer is read to its end and not kept.
    pub reply: usize,
    /// How many replies a command may get.
    pub replies: usize,
    /// How many bytes a connection may receive; while watching, between two pieces of news.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(15),
            connect: Duration::from_secs(20),
            handshake: Duration::from_secs(20),
            greeting: Duration::from_secs(30),
            answer: Duration::from_secs(30),
            search: Duration::from_mins(1),
            look: Duration::from_secs(50),
            whole: Duration::from_mins(2),
            token: Duration::from_secs(40),
            idle: Duration::from_mins(25),
            reply: 4 * 1024 * 1024,
            replies: 10_000,
            bytes: 32 * 1024 * 1024,
        }
    }
}
