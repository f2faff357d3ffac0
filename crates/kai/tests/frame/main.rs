//! The frame of the house, tried as a user would: the real binary, real processes, real sockets.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
#![expect(clippy::disallowed_methods, reason = "these tests live in real time")]

mod ask;
#[cfg(feature = "sms")]
mod banners;
mod browser;
mod bus;
mod cli;
mod daemon;
mod device;
mod edition;
mod heartbeat;
mod keyring;
mod kit;
mod ledger;
#[cfg(all(target_os = "linux", feature = "notifications"))]
mod notifications;
mod notify;
mod page;
mod phone;
mod provider;
mod refusals;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(feature = "sms")]
mod sms;
mod tasks;
mod tools;
mod transfer;
mod web;
