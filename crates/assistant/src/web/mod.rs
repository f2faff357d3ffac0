//! The web tools: searching, fetching a page, and estimating this machine's location from its public IP address.
//!
//! How a page is fetched: the model names a URL → `fetch` parses it → `guard` checks it → `client` resolves the host
//! once, has the guard check the resolved addresses, and connects to exactly those → each redirect starts over at the
//! guard → `encoding` and `readable` turn the response into text. The result is text from a stranger and is marked as
//! such (`"untrusted": true`).
//!
//! Requests to services that the user chose in the settings (such as a search engine, perhaps on the user's own
//! machine) do not pass the guard, because a model cannot name those services.

mod client;
mod encoding;
mod fetch;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod guard;
mod html;
mod location;
mod readable;
mod results;
mod search;
#[cfg(test)]
mod tests;

pub use client::{Resolver, SystemResolver, Web};
pub use fetch::FetchUrl;
pub use location::{LocationFromIp, LocationServices};
pub use search::{SearchServices, WebSearch};

use crate::tool::ToolError;

/// The readable text of an HTML page, also of one that came by mail.
pub fn html_text(page: &str) -> String {
    readable::readable(page).text
}

/// Turns an error into a tool error, whose message the model reads.
fn sentence(error: impl std::fmt::Display) -> ToolError {
    ToolError(error.to_string())
}
