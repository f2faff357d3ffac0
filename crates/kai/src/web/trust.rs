//! The line under the messages that says whether the chat includes text from the web or from other people, and lets the
//! user show one-time codes to the assistant.

#[cfg(feature = "foss")]
use kai_assistant::agent::conversation::Codes;
use kai_assistant::agent::conversation::{Kind, Whole};
use kai_assistant::gate::Level;
#[cfg(feature = "foss")]
use kai_assistant::settings::CODE_REDACTION_ENABLED;
use maud::{Markup, html};

use super::icons;
use super::view::View;

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
            @if level == Level::People { (codes(view, chat)) }
        }
    }
}

#[cfg(feature = "foss")]
fn codes(view: &View<'_>, chat: &Whole) -> Markup {
    let Some(id) = view.place.chat.filter(|_| view.stored.values.on(&CODE_REDACTION_ENABLED)) else {
        return html! {};
    };
    let (value, label) = match chat.codes {
        Codes::Shown => ("hide", "Hide codes again"),
        Codes::Hidden | Codes::HiddenAgain => ("show", "Show codes to the assistant"),
    };
    html! {
        form method="post" action=(format!("/c/{}/codes", id.0)) data-live {
            input type="hidden" name="csrf" value=(view.csrf);
            @if chat.codes == Codes::Shown { p data-testid="codes-shown" { "It also sees one-time codes here." } }
            button class="small" type="submit" name="codes" value=(value) data-testid="codes" { (label) }
        }
    }
}

#[cfg(not(feature = "foss"))]
fn codes(_: &View<'_>, _: &Whole) -> Markup {
    html! {}
}
