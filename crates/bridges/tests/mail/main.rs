//! The mail bridge against real servers: Dovecot and Exim, as private instances on loopback.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod desk;
mod reading;
mod sending;
