//! The line under the messages that says whether the chat includes text from the web or from other people, and lets the
//! user show one-time codes to the assistant.

use kai_assistant::agent::conversation::Kind;
use kai_assistant::gate::Level;
use maud::{Markup, html};

use super::view::View;
use super::{icons, messages};

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
            p { (says) }
            @if level == Level::People { (messages::codes(view, chat)) }
        }
    }
}
