//! The mail bridge against real servers, Dovecot and Exim as private instances on loopback, and against liars.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod desk;
mod fate;
mod kinds;
mod liar;
mod looking;
mod proxy;
mod reading;
mod sending;
mod tokens;
mod trouble;
