//! The calls that simulate events in the demo.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DemoCall {
    /// A message arrives on the simulated phone.
    Sms { from: String, text: String },
    /// An app shows a notification.
    Notification { app: String, title: String, text: String },
}
