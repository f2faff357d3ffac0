//! The store edition's twin of `staging.rs`: only mails are drafted.

use super::Channel;

pub(super) fn tool(_: Channel, is_answer: bool) -> &'static str {
    if is_answer { "reply_email" } else { "compose_email" }
}
