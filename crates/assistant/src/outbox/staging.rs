//! The names of the tools that stage drafts. Pure.

use super::Channel;

/// The tool that makes drafts of this kind.
pub(super) fn tool(channel: Channel, is_answer: bool) -> &'static str {
    match (channel, is_answer) {
        (Channel::Notification, _) => "reply_notification",
        (Channel::Sms, true) => "reply_sms",
        (Channel::Sms, false) => "send_sms",
        (Channel::Email, true) => "reply_email",
        (Channel::Email, false) => "compose_email",
    }
}
