//! `kai mcp serve`: speaks MCP with other programs, and hands what they ask to the daemon or to the store.
//!
//! The path of a call: [`stdio`] or [`http`] takes a message, bounded → [`protocol`] (pure) reads it → [`session`] knows
//! who asks, and makes a [`GuestCall`](crate::call::guests::GuestCall) of it → `commands/guests` decides and answers →
//! [`protocol`] writes the answer. Nothing here can tap: that is another call, which no guest can make.

pub(crate) mod http;
mod protocol;
mod session;
pub(crate) mod stdio;

/// The longest message of a guest, in bytes.
const LONGEST: usize = 1024 * 1024;
