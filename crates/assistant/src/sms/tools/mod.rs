//! The tools with which a model reads SMS and drafts them. Nothing here can send.

mod drafting;
mod reading;

pub(super) use drafting::answer;
pub use drafting::{DraftingPhones, ReplySms, SendSms};
pub use reading::{CheckSms, Listed, ReadSms, SearchSms};
