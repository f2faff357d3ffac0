//! Phones that are paired over the network: keeps the endpoint open while it is needed, reconnects, pairs, and gives
//! each phone to those who work with it. Only the daemon runs it.
//!
//! The walk: a person searches, and [`Hub`] hands that to `running`, which opens the endpoint → a phone is found, and
//! both sides agree on a key → `running` keeps its certificate and hands it to the [`drivers`] → `plan`
//! (pure) says when to call phones that are away → what a phone sends goes to its own queue, so that one phone never
//! waits for another. Everybody reads how it stands from one [`state`].

pub(crate) mod drivers;
mod hub;
pub(crate) mod order;
mod plan;
mod running;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod unpairing;

pub(crate) use hub::Hub;
pub(crate) use plan::SEARCH;
pub(crate) use running::Network;
pub(crate) use unpairing::unpair;
