//! Answers the calls that only the foss edition knows.

use serde_json::Value;

use crate::app::App;
use crate::call::messages::MessagesCall;
use crate::commands::{notifications, phones, sms};
use crate::demo;
use crate::failure::Failure;

pub(super) async fn answer(app: &App, call: MessagesCall) -> Result<Value, Failure> {
    match call {
        MessagesCall::Sms(call) => sms::answer(app, call).await,
        MessagesCall::Notifications(call) => notifications::answer(app, call).await,
        MessagesCall::Phones(call) => phones::answer(app, call).await,
        MessagesCall::Demo(call) => demo::answer(app, call).await,
    }
}
