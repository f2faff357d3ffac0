//! The tools for mail.

use std::sync::Arc;

use kai_assistant::email::{CheckEmail, ComposeEmail, ReadEmail, ReplyEmail, SearchEmail, SetupEmail};
use kai_assistant::settings::EMAIL_ENABLED;
use kai_assistant::tool::AnyTool;
use kai_assistant::toolbox::{EnabledBy, Entry};

use super::Parts;

/// The tools that draft mails.
pub(super) const DRAFTING: &[&str] = &["compose_email", "reply_email"];

/// The mail tools, in the order in which the model sees them.
pub(super) fn tools(parts: &Parts<'_>) -> Vec<Entry> {
    let Some(mail) = parts.mail else { return vec![] };
    let on = |tool: Arc<dyn AnyTool>| Entry { tool, governed: EnabledBy::Features(vec![&EMAIL_ENABLED]) };
    let (mailboxes, clock) = (|| mail.mailboxes.clone(), || Arc::clone(parts.clock));
    vec![
        on(Arc::new(CheckEmail { mailboxes: mailboxes(), clock: clock() })),
        on(Arc::new(ReadEmail { mailboxes: mailboxes(), clock: clock() })),
        on(Arc::new(SearchEmail { mailboxes: mailboxes(), clock: clock() })),
        on(Arc::new(ComposeEmail { mailboxes: mailboxes(), clock: clock() })),
        on(Arc::new(ReplyEmail { mailboxes: mailboxes(), clock: clock() })),
        on(Arc::new(SetupEmail { mailboxes: mailboxes() })),
    ]
}
