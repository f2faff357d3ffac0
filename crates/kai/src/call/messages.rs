//! What commands ask about messages, notifications and paired phones, and what `kai status` says of them.

use serde::{Deserialize, Serialize};

use super::Call;
use super::demo::DemoCall;
use super::notifications::{NotificationsCall, NotificationsStatus};
use super::phones::{PhonesCall, PhonesStatus};
use super::sms::{SmsCall, SmsStatus};

/// A call that only the foss edition knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessagesCall {
    Sms(SmsCall),
    Notifications(NotificationsCall),
    Phones(PhonesCall),
    Demo(DemoCall),
}

impl MessagesCall {
    /// The names of these calls on the wire.
    pub(crate) const NAMES: &[&str] = &["sms", "notifications", "phones", "demo"];
}

/// The part of `kai status --json` about SMS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SmsPart {
    pub(crate) sms: SmsStatus,
}

/// The part of `kai status --json` about notifications.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NotificationsPart {
    pub(crate) notifications: NotificationsStatus,
}

/// The part of `kai status --json` about paired phones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PhonesPart {
    pub(crate) phones: PhonesStatus,
}

impl From<SmsCall> for Call {
    fn from(call: SmsCall) -> Self {
        Self::Messages(MessagesCall::Sms(call))
    }
}

impl From<NotificationsCall> for Call {
    fn from(call: NotificationsCall) -> Self {
        Self::Messages(MessagesCall::Notifications(call))
    }
}

impl From<PhonesCall> for Call {
    fn from(call: PhonesCall) -> Self {
        Self::Messages(MessagesCall::Phones(call))
    }
}

impl From<DemoCall> for Call {
    fn from(call: DemoCall) -> Self {
        Self::Messages(MessagesCall::Demo(call))
    }
}

#[cfg(test)]
mod tests {
    use kai_assistant::agent::conversation::Which;
    use kai_assistant::sms::SmsId;
    use serde_json::json;

    use super::super::drafts::DraftsCall;
    use super::super::hello::{self, Hello};
    use super::*;
    use crate::caller_env::CallerEnv;

    #[test]
    fn each_call_has_its_own_name_on_the_wire() {
        let read = Call::from(SmsCall::Read { id: SmsId(7) });
        let clear = Call::from(NotificationsCall::Clear);
        let codes = Call::ChatsCodes { chat: Which::Newest, show: true };
        let pair = Call::from(PhonesCall::Pair { device: "d".to_owned() });
        let demo = Call::from(DemoCall::Sms { from: "1".to_owned(), text: "hi".to_owned() });
        let undo = Call::Drafts(DraftsCall::Undo);
        for (call, cmd) in [
            (read, "sms"),
            (undo, "drafts"),
            (clear, "notifications"),
            (codes, "chats_codes"),
            (pair, "phones"),
            (demo, "demo"),
        ] {
            let line = Hello { tty: true, env: CallerEnv::default(), call: call.clone() };
            let line = serde_json::to_value(line).unwrap();
            assert_eq!(line["cmd"], json!(cmd), "{line}");
            assert_eq!(hello::read(cmd.to_owned(), line["args"].clone()).unwrap(), call);
        }
    }
}
