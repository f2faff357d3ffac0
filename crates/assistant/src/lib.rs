//! What Kai knows and decides. A folder per feature; pure rules apart from stores; ports where the outside
//! world begins. Nothing here knows a platform's API, a provider's JSON or a page.

pub mod agent;
pub mod clock;
pub mod db;
pub mod device;
pub mod gate;
pub mod hex;
pub mod home;
pub mod lease;
pub mod ledger;
pub mod manifest;
pub mod memory;
pub mod models;
pub mod settings;
pub mod tool;
pub mod toolbox;
pub mod transfer;
pub mod web;
pub mod words;

/// The tables of the features, in the order in which they are laid.
pub const MIGRATIONS: &[db::Migration] = &[
    settings::MIGRATION,
    memory::MIGRATION,
    models::MIGRATION,
    agent::conversation::MIGRATION,
    ledger::MIGRATION,
    lease::MIGRATION,
    device::MIGRATION,
];
