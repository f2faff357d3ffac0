//! The store edition's twin of `messages.rs`: there is no such call.

use serde_json::Value;

use crate::app::App;
use crate::call::messages::MessagesCall;
use crate::failure::Failure;

#[expect(clippy::unused_async, reason = "the foss edition has calls to answer")]
pub(super) async fn answer(_: &App, call: MessagesCall) -> Result<Value, Failure> {
    match call {}
}
