//! The Tools page: a card for each tool that has its own switch, and the services that tools use.

use kai_assistant::settings::{
    LOCATION_SERVICE, OPEN_URL_FOLDERS, TOOL_RESULT_LIMIT, WEB_SEARCH_BACKEND, WEB_SEARCH_BRAVE_KEY,
    WEB_SEARCH_SEARXNG_URL, WEB_SEARCH_TAVILY_KEY,
};
use kai_assistant::toolbox::{EnabledBy, Entry};
use maud::{Markup, html};

use super::fields::{Choice, Field, choice, field};
use super::look::{Look, ProbePhone};
use super::parts::{Region, form};
use crate::failure::Failure;

pub(super) async fn regions(look: &Look<'_>) -> Result<Vec<Region>, Failure> {
    let app = &look.web.app;
    if look.probe == ProbePhone::Phone {
        app.toolbox.probe_access(&look.values).await;
    }
    let own = |entry: &&Entry| matches!(entry.governed, EnabledBy::OwnSwitch { .. });
    let cards: Vec<Card> = app.toolbox.entries().iter().filter(own).map(|entry| card(entry, look)).collect();
    Ok(vec![
        Region::bare("tools", grid(look, &cards)),
        Region::card("services", "What tools use", services(look)),
    ])
}

/// A tool, as its card shows it.
struct Card {
    tool: &'static str,
    title: String,
    about: String,
    on: bool,
    /// What the tool needs and this machine does not have, and what to do about it.
    lacks: Option<String>,
}

fn card(entry: &Entry, look: &Look<'_>) -> Card {
    let tool = entry.tool.name();
    Card {
        tool,
        title: look.lang.tool_name(tool),
        about: look.lang.tool_about(tool).to_owned(),
        on: entry.enabled(&look.values),
        lacks: look.web.app.toolbox.lacks(entry),
    }
}

fn grid(look: &Look<'_>, cards: &[Card]) -> Markup {
    html! {
        p class="lead quiet" {
            "What Kai may do in a conversation. A switch counts from the next question on. Tools of memory, tasks and "
            "messages come and go with their features, on the page " a href="/settings/agent" { "Agent" } "."
        }
        ul class="tools-grid" data-testid="tools-grid" aria-label="Tools" {
            @for card in cards {
                li class="tool-card" data-testid="tool-card" data-tool=(card.tool) { (toggle(look, card)) }
            }
        }
    }
}

/// The switch of a tool; the whole card is the button.
fn toggle(look: &Look<'_>, card: &Card) -> Markup {
    let (name, about) = (format!("tool-{}", card.tool), format!("tool-{}-about", card.tool));
    let content = html! {
        input type="hidden" name="key" value=(format!("tool_enabled_{}", card.tool));
        input type="hidden" name="value" value=(!card.on);
        button type="submit" role="switch" aria-checked=(card.on) aria-labelledby=(name) aria-describedby=(about) {
            strong id=(name) { (card.title) }
            span class="track" {}
            span class="about" id=(about) {
                span { (card.about) }
                @if let Some(lacks) = &card.lacks { span class="lacks" data-testid="tool-lacks" { (lacks) } }
            }
        }
    };
    form(look, "tools", "/settings/set", "", &content)
}

/// Which services tools use, which folders they may open files from, and how much of a result the model sees.
fn services(look: &Look<'_>) -> Markup {
    let search: [(&str, &str); 4] =
        [("duckduckgo", "DuckDuckGo"), ("searxng", "SearXNG"), ("brave", "Brave"), ("tavily", "Tavily")];
    let location = [("ipwho.is", "ipwho.is"), ("ipapi.co", "ipapi.co")];
    let wanted = match look.values.of(&WEB_SEARCH_BACKEND).as_str() {
        "searxng" => Some((&WEB_SEARCH_SEARXNG_URL, "Address of your SearXNG", "searxng-url")),
        "brave" => Some((&WEB_SEARCH_BRAVE_KEY, "Key for Brave Search", "brave-key")),
        "tavily" => Some((&WEB_SEARCH_TAVILY_KEY, "Key for Tavily", "tavily-key")),
        _ => None,
    };
    html! {
        (choice(look, "services", &Choice {
            setting: &WEB_SEARCH_BACKEND, label: "Web search", options: &search, testid: "search-backend",
        }))
        @if let Some((setting, label, testid)) = wanted {
            (field(look, "services", &Field { setting, label, testid }))
        }
        (choice(look, "services", &Choice {
            setting: &LOCATION_SERVICE, label: "Location", options: &location, testid: "location-service",
        }))
        (field(look, "services", &Field {
            setting: &OPEN_URL_FOLDERS, label: "Folders whose files may be opened", testid: "open-folders",
        }))
        (field(look, "services", &Field {
            setting: &TOOL_RESULT_LIMIT, label: "Characters of a result that the model sees", testid: "result-limit",
        }))
    }
}
