//! The approval questions of the tools that only the foss edition has.

/// The words of the question, as `ApprovalCall::words` gives them; `None` for a tool of both editions.
pub(super) fn words<'n>(tool: &str) -> Option<(String, Vec<&'n str>, &'static str)> {
    let says = "Kai wants to dismiss a notification of another app.";
    (tool == "dismiss_notification").then(|| (says.to_owned(), vec![], "Dismiss"))
}
