//! The web: searching it, reading a page of it, and asking where its other end thinks we are.
//!
//! The walk of a page: the model names an address → `fetch` parses it → `guard` judges it → `client` looks its name
//! up once, has the answer judged, and connects to exactly that → a redirect begins anew at the guard → `encoding`
//! and `readable` make text of it. What comes back is a stranger's text and says so (`"untrusted": true`).
//!
//! Services that the person chose in the settings (a search engine, perhaps on the person's own machine) are asked
//! without the guard; no model can name them.

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

/// A sentence that a model gets to read.
fn sentence(error: impl std::fmt::Display) -> ToolError {
    ToolError(error.to_string())
}
