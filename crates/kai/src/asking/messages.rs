//! The approval questions of the tools that only the foss edition has.

use kai_words::Lang;

use super::Words;

/// The words of the question, as `ApprovalCall::words` gives them; `None` for a tool of both editions.
pub(super) fn words<'n>(tool: &str, lang: Lang) -> Option<Words<'n>> {
    (tool == "dismiss_notification")
        .then(|| (lang.asking_dismiss().to_owned(), vec![], lang.asking_do_dismiss()))
}
