//! Commands and pages in this very process: an app over a store in memory, asked directly. What needs a process, a
//! terminal, a bus or a browser is in `tests/frame`.

mod commands;
#[cfg(feature = "local")]
mod hub;
mod page;
mod server;
