//! Kai's domain logic. Each feature has a folder; pure rules are separate from stores, and there are ports where the
//! outside world begins. Nothing here depends on a platform's API, a provider's JSON or a page.

pub mod access;
pub mod agent;
pub mod attachments;
pub mod clock;
pub mod db;
pub mod device;
pub mod drafts;
pub mod email;
pub mod errands;
pub mod gate;
pub mod guests;
pub mod heartbeat;
pub mod hex;
pub mod home;
pub mod inbox;
mod indexed;
pub mod lease;
pub mod ledger;
pub mod legible;
pub mod lock;
pub mod manifest;
pub mod mcp;
pub mod memory;
pub mod models;
pub mod moment;
#[cfg(feature = "notifications")]
pub mod notifications;
pub mod outbox;
pub mod pending;
#[cfg(any(feature = "sms", feature = "notifications"))]
pub mod phones;
pub mod secret;
pub mod settings;
#[cfg(feature = "sms")]
pub mod sms;
pub mod source;
pub mod tasks;
mod terms;
pub mod tool;
pub mod toolbox;
pub mod transfer;
pub mod untrusted;
pub mod web;

/// The database migrations of all features, in the order in which they run.
pub const MIGRATIONS: &[db::Migration] = &[
    settings::MIGRATION,
    memory::MIGRATION,
    memory::TAINT,
    memory::CONFIRMED,
    models::MIGRATION,
    models::WINDOWS,
    agent::conversation::MIGRATION,
    agent::conversation::TAINT,
    agent::conversation::CODES_AND_STOPS,
    agent::reports::MIGRATION,
    agent::reports::RAISED,
    agent::conversation::SHOWN_CODES,
    agent::conversation::LEVELS,
    agent::conversation::MEANINGS,
    agent::conversation::ANSWERS,
    agent::conversation::LIST,
    agent::deleted::MIGRATION,
    ledger::MIGRATION,
    ledger::EDGES,
    ledger::DAYS,
    ledger::NOTED,
    lease::MIGRATION,
    pending::MIGRATION,
    pending::SHOWING,
    pending::PHONES,
    #[cfg(any(feature = "sms", feature = "notifications"))]
    phones::MIGRATION,
    heartbeat::MIGRATION,
    heartbeat::BANNER,
    heartbeat::ESTIMATES,
    outbox::MIGRATION,
    outbox::QUOTES,
    outbox::ANNOUNCED,
    outbox::KINDS,
    outbox::EDITED,
    outbox::OWN,
    #[cfg(feature = "sms")]
    sms::MIGRATION,
    #[cfg(feature = "sms")]
    sms::archive::MIGRATION,
    #[cfg(feature = "sms")]
    sms::archive::INBOX,
    device::MIGRATION,
    tasks::MIGRATION,
    tasks::LEVELS,
    #[cfg(feature = "notifications")]
    notifications::MIGRATION,
    #[cfg(feature = "notifications")]
    notifications::SOURCES,
    #[cfg(feature = "notifications")]
    notifications::INBOX,
    attachments::MIGRATION,
    agent::queued::MIGRATION,
    models::VISION,
    mcp::MIGRATION,
    guests::MIGRATION,
    outbox::GUESTS,
    #[cfg(feature = "sms")]
    sms::archive::SETTLED,
    outbox::MAIL,
    email::MIGRATION,
    agent::conversation::INSTEAD,
    email::WORDS,
    agent::conversation::TERMS,
    #[cfg(feature = "sms")]
    sms::archive::TERMS,
    email::TERMS,
    ledger::HOURS,
];
