//! The frame of the house, tried as a user would: the real binary, real processes, real sockets.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
#![expect(clippy::disallowed_methods, reason = "these tests live in real time")]

mod ask;
#[cfg(feature = "foss")]
mod banners;
mod browser;
mod bus;
mod cli;
#[cfg(feature = "foss")]
mod codes;
mod context;
mod crowd;
mod daemon;
mod device;
mod doctor;
mod edition;
mod general_page;
mod keyring;
mod kit;
mod ledger_page;
mod models_page;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod notifications;
mod notify;
mod page;
mod phone;
mod provider;
mod refusals;
mod rollback;
mod settings;
#[cfg(feature = "foss")]
mod settings_phone;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(feature = "foss")]
mod sms;
#[cfg(target_os = "linux")]
mod soak;
mod tasks;
mod tools_page;
mod transfer;
mod web;
