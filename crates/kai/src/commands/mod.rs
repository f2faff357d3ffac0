//! The operations on an [`App`](crate::app::App), one file per feature, used by both commands and the page.

pub(crate) mod alarms;
pub(crate) mod announce;
pub(crate) mod chats;
pub(crate) mod codes;
#[cfg(feature = "foss")]
pub(crate) mod contacts;
pub(crate) mod doctor;
pub(crate) mod drafts;
pub(crate) mod email;
pub(crate) mod guests;
pub(crate) mod headline;
pub(crate) mod heartbeat;
pub(crate) mod inbox;
pub(crate) mod ledger;
#[cfg_attr(not(feature = "local"), path = "no_local.rs")]
pub(crate) mod local;
pub(crate) mod mcp;
pub(crate) mod memory;
#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
pub(crate) mod messages;
pub(crate) mod model_files;
pub(crate) mod models;
pub(crate) mod noted;
#[cfg(feature = "foss")]
pub(crate) mod notifications;
#[cfg(feature = "foss")]
pub(crate) mod phones;
pub(crate) mod replies;
pub(crate) mod settings;
pub(crate) mod shell;
pub(crate) mod sizes;
#[cfg(feature = "foss")]
pub(crate) mod sms;
pub(crate) mod status;
pub(crate) mod tasks;
pub(crate) mod tools;
pub(crate) mod transfer;
pub(crate) mod visit;
