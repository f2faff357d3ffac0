//! Requests to the page, as a browser without a script makes them: the real page over an app in memory, asked through
//! a real connection. What needs a script, a layout or a process is in `tests/frame`.

mod agent;
mod attach;
mod chat;
#[cfg(feature = "foss")]
mod demo;
mod document;
mod door;
#[cfg(feature = "foss")]
mod drafts;
mod finder;
mod general;
mod german;
mod going_on;
mod guests;
mod house;
#[cfg(feature = "foss")]
mod inbox;
mod ledger;
mod list;
#[cfg(feature = "local")]
mod local;
mod model;
mod models;
#[cfg(feature = "foss")]
mod paired;
#[cfg(feature = "foss")]
mod phone;
#[cfg(feature = "foss")]
mod phones;
#[cfg(feature = "foss")]
mod phones_wrong;
mod servers;
mod tools;
mod visitor;
#[cfg(feature = "foss")]
mod waiting;
mod welcome;

pub(super) use attach::png;
