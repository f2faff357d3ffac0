//! Commands on an app in this process, as a person and a script see them.

mod ask;
mod chats;
#[cfg(feature = "foss")]
mod codes;
mod context;
mod device;
mod doctor;
mod heartbeat;
mod json;
mod kit;
mod ledger;
#[cfg(feature = "local")]
mod local;
mod memory;
#[cfg(feature = "foss")]
mod notifications;
#[cfg(feature = "foss")]
mod phone;
#[cfg(feature = "foss")]
mod phones;
mod refusals;
mod served;
mod settings;
#[cfg(all(feature = "foss", feature = "local"))]
mod shapes;
#[cfg(feature = "foss")]
mod sms;
mod socket;
mod status;
mod tasks;
#[cfg(feature = "foss")]
mod telling;
mod tools;
mod transfer;
