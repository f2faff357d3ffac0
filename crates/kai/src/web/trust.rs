//! The line under the messages that says whether the chat includes text from the web or from other people, and lets the
//! user show one-time codes to the assistant.

use kai_assistant::agent::conversation::Kind;
use kai_assistant::gate::Level;
use maud::{Markup, html};

use super::view::View;
use super::{icons, messages};

const WEB: &str = "This chat includes text from the web or from a file, so Kai asks before it saves memories, schedules \
                   tasks, runs commands, or opens an address that neither you nor a search named.";
const PEOPLE: &str = "This chat includes messages from other people, so Kai asks before it searches, opens links, runs \
                      commands, or changes memories, tasks, alarms and notifications.";

/// Renders the line; empty as long as the chat includes nobody else's text.
pub(super) fn line(view: &View<'_>) -> Markup {
    let Some(chat) = &view.stored.chat else { return html! {} };
    let level = if chat.kind == Kind::Heartbeat { Level::People } else { chat.level };
    let says = match level {
        Level::Nothing => return html! {},
        Level::Web => WEB,
        Level::People => PEOPLE,
    };
    html! {
        aside class="trust quiet" id="trust" data-testid="taint" data-level=(level.as_str())
            aria-label="What this conversation has read" {
            (icons::shield())
            p { (says) }
            @if level == Level::People { (messages::codes(view, chat)) }
        }
    }
}
