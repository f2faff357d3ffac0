//! Kai's own reasons for the status of a draft. Every other reason is what a phone said. Pure.

pub(super) const FOUND: &str = "Kai found it among the phone's sent messages.";
pub(super) const DIED: &str = "Kai stopped while sending it. It may have been sent.";
pub(super) const GONE: &str = "The notification is no longer on the phone, or it offers no reply any more.";
pub(super) const OTHER_CHAT: &str =
    "The notification now shows another conversation, so the reply could have reached someone else.";
pub(super) const USED: &str = "This notification was already answered. Wait for the next message in it.";

const OURS: [&str; 5] = [FOUND, DIED, GONE, OTHER_CHAT, USED];

/// Whether Kai itself gave this reason, so that nobody else can have chosen its words.
pub(super) fn is_ours(reason: &str) -> bool {
    OURS.contains(&reason)
}
