//! The line under the messages that says whether the chat includes text from the web or from other people, and why.

use kai_assistant::agent::cause::{self, Because, Cause};
use kai_assistant::agent::conversation::{Kind, Whole};
use kai_assistant::gate::Level;
use kai_assistant::inbox::Key;
use kai_words::{Lang, Said, said};
use maud::{Markup, html};

use super::attach;
use super::inbox::place;
use super::rich::rich;
use super::view::View;
use super::{codes, icons};

/// Renders the line; empty as long as the chat includes nobody else's text.
pub(super) fn line(view: &View<'_>) -> Markup {
    let Some(chat) = &view.stored.chat else { return html! {} };
    let level = if chat.kind == Kind::Heartbeat { Level::People } else { chat.level };
    let says = match level {
        Level::Nothing => return html! {},
        Level::Web => view.lang.trust_web(),
        Level::People => view.lang.trust_people(),
    };
    html! {
        aside class="trust quiet" id="trust" data-testid="taint" data-level=(level.as_str())
            aria-label=(view.lang.trust_label()) {
            (icons::shield())
            div {
                p { (says) }
                (reason(chat, view.lang))
                (codes::shown(chat, view.lang))
            }
        }
    }
}

/// What raised the level, with a link to it.
fn reason(chat: &Whole, lang: Lang) -> Markup {
    let Some(Because { first, more }) = cause::because(chat) else { return html! {} };
    let leads_to = leads_to(&first);
    let value = |text: &str| match &leads_to {
        Some(Lead::Inside(path)) => html! { a href=(path) { bdi { (text) } } },
        Some(Lead::Outside(address)) => {
            html! { a href=(address) target="_blank" rel="noopener noreferrer" { bdi { (text) } } }
        }
        None => html! { bdi { (text) } },
    };
    html! {
        p data-testid="taint-reason" {
            (rich(&sentence(&first, lang), lang, value))
            @if more > 0 { " " (lang.trust_reason_more(more)) }
        }
    }
}

/// How many characters of a search or an address are shown.
const SHOWN: usize = 120;

fn sentence(cause: &Cause, lang: Lang) -> Said {
    match cause {
        Cause::Sms { from, .. } => said::trust_reason_sms(brief(from)),
        Cause::Notification { app, .. } => said::trust_reason_notification(brief(app)),
        Cause::Email { from, .. } => said::trust_reason_email(brief(from)),
        Cause::Page { address } => said::trust_reason_page(brief(address)),
        Cause::Search { query } => said::trust_reason_search(brief(query)),
        Cause::Attachment => said::trust_reason_attachment(),
        Cause::File { name, .. } => said::trust_reason_file(name),
        Cause::Picture { name, .. } => said::trust_reason_picture(name),
        Cause::Quoted => said::trust_reason_quoted(),
        Cause::Reports => said::trust_reason_reports(),
        Cause::Tool { name } => said::trust_reason_tool(lang.tool_name(name)),
    }
}

fn brief(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { shown + "…" } else { shown }
}

/// Where the link of a reason leads.
#[derive(Debug, PartialEq, Eq)]
enum Lead {
    /// To the message in the inbox, or to an attached file.
    Inside(String),
    /// To the page that was read.
    Outside(String),
}

fn leads_to(cause: &Cause) -> Option<Lead> {
    match cause {
        Cause::Sms { id, .. } => Some(Lead::Inside(place::path(&Key::new("sms", id)))),
        Cause::Notification { id, .. } => Some(Lead::Inside(place::path(&Key::new("notification", id)))),
        Cause::Email { id, .. } => Some(Lead::Inside(place::path(&Key::new("email", id)))),
        Cause::Page { address } => {
            let is_web = address.starts_with("https://") || address.starts_with("http://");
            is_web.then(|| Lead::Outside(address.clone()))
        }
        Cause::File { hash, .. } | Cause::Picture { hash, .. } => Some(Lead::Inside(attach::path(hash))),
        Cause::Search { .. } | Cause::Attachment | Cause::Quoted | Cause::Reports | Cause::Tool { .. } => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_leads_to_what_was_read_and_nowhere_else() {
        let page = |address: &str| Cause::Page { address: address.to_owned() };
        let tray = |id: &str| Cause::Notification { id: id.to_owned(), app: "Signal".to_owned() };
        let outside = |address: &str| Some(Lead::Outside(address.to_owned()));
        let inside = |path: &str| Some(Lead::Inside(path.to_owned()));
        for (cause, expected) in [
            (Cause::Sms { id: "42".to_owned(), from: "+1".to_owned() }, inside("/inbox/sms-42")),
            (tray("0|a/b?c#d"), inside("/inbox/notification-0%7Ca%2Fb%3Fc%23d")),
            (tray("ü"), inside("/inbox/notification-%C3%BC")),
            (page("https://a.example/x"), outside("https://a.example/x")),
            (page("javascript:alert(1)"), None),
            (Cause::Attachment, None),
            (Cause::File { name: "a.txt".to_owned(), hash: "ab12".to_owned() }, inside("/files/ab12")),
        ] {
            assert_eq!(leads_to(&cause), expected, "{cause:?}");
        }
    }
}
