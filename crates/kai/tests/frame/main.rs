//! The frame of the house, tried as a user would: the real binary, real processes, real sockets.
//!
//! What holds in either edition is tried in the foss edition alone, which has all of it. In the store edition run the
//! stories of that edition, of the command line and of the daemon.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
#![expect(clippy::disallowed_methods, reason = "these tests live in real time")]

#[cfg(feature = "foss")]
mod ask;
#[cfg(feature = "foss")]
mod attach;
#[cfg(feature = "foss")]
mod axe;
#[cfg(feature = "foss")]
mod banners;
#[cfg(feature = "foss")]
mod browser;
#[cfg(feature = "foss")]
mod bus;
mod cli;
#[cfg(feature = "foss")]
mod codes;
#[cfg(feature = "foss")]
mod composer;
#[cfg(feature = "foss")]
mod context;
#[cfg(feature = "foss")]
mod crowd;
mod daemon;
#[cfg(feature = "foss")]
mod demo;
#[cfg(feature = "foss")]
mod drafts;
mod edition;
#[cfg(feature = "foss")]
mod environment;
#[cfg(feature = "foss")]
mod erase;
#[cfg(feature = "foss")]
mod first_start;
#[cfg(feature = "foss")]
mod inbox;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod kdeconnectd;
#[cfg(feature = "foss")]
mod keyring;
#[cfg(feature = "foss")]
mod killed;
#[cfg_attr(not(feature = "foss"), expect(dead_code, reason = "the stories of the foss edition need more"))]
mod kit;
#[cfg(feature = "foss")]
mod list;
#[cfg(all(target_os = "linux", feature = "foss", feature = "local"))]
mod local;
#[cfg(feature = "foss")]
mod mail;
#[cfg(feature = "foss")]
mod mcp_serve;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod mcp_servers;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod no_desktop;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod notifications;
#[cfg(feature = "foss")]
mod notify;
#[cfg(feature = "foss")]
mod open_page;
mod packaging;
#[cfg(feature = "foss")]
mod page;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod paired;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod pairing;
#[cfg(feature = "foss")]
mod passphrase;
#[cfg(feature = "foss")]
mod phone;
#[cfg(feature = "foss")]
mod provider;
#[cfg(feature = "foss")]
mod refusals;
#[cfg(feature = "foss")]
mod rollback;
mod service;
#[cfg(feature = "foss")]
mod settings;
#[cfg(feature = "foss")]
mod settings_phone;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod shell;
#[cfg(feature = "foss")]
mod sms;
#[cfg(all(target_os = "linux", feature = "foss"))]
mod soak;
#[cfg(feature = "foss")]
mod tools_page;
