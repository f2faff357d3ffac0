//! The Tools page: a card for each tool that has its own switch, and the services that tools use.

use kai_assistant::settings::{
    LOCATION_SERVICE, OPEN_URL_FOLDERS, TOOL_RESULT_LIMIT, WEB_SEARCH_BACKEND, WEB_SEARCH_BRAVE_KEY,
    WEB_SEARCH_SEARXNG_URL, WEB_SEARCH_TAVILY_KEY,
};
use kai_assistant::tool::Lack;
use kai_assistant::toolbox::{EnabledBy, Entry};
use kai_words::said;
use maud::{Markup, html};

use super::context::{PageContext, ProbePhone};
use super::fields::{Choice, Field, choice, field};
use super::parts::{Region, form};
use crate::failure::Failure;
use crate::web::remedy::{Remedy, Trouble};
use crate::web::rich::rich;

pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let app = &ctx.web.app;
    if ctx.probe == ProbePhone::Phone {
        app.toolbox.check(&app.db, &ctx.values).await?;
    }
    let own = |entry: &&Entry| matches!(entry.governed, EnabledBy::OwnSwitch { .. });
    let cards: Vec<Card<'_>> =
        app.toolbox.entries().iter().filter(own).map(|entry| card(entry, ctx)).collect();
    let mut regions = vec![Region::bare("tools", grid(ctx, &cards))];
    regions.push(Region::bare("mcp-link", more(ctx)));
    regions.push(Region::card("services", ctx.lang.tools_services(), services(ctx)));
    Ok(regions)
}

/// Where there are more tools.
fn more(ctx: &PageContext<'_>) -> Markup {
    let says = said::tools_more(ctx.lang.mcp_label());
    html! { p class="lead quiet" { (rich(&says, ctx.lang, |page| html! { a href="/settings/mcp" data-testid="to-mcp" { (page) } })) } }
}

/// A tool, as its card shows it.
struct Card<'a> {
    tool: &'a str,
    title: String,
    about: String,
    on: bool,
    /// What the tool needs and this machine does not have, and what to do about it.
    lacks: Option<Trouble>,
}

fn card<'a>(entry: &'a Entry, ctx: &PageContext<'_>) -> Card<'a> {
    let tool = entry.tool.name();
    Card {
        tool,
        title: ctx.lang.tool_name(tool),
        about: ctx.lang.tool_about(tool).to_owned(),
        on: entry.enabled(&ctx.values),
        lacks: ctx.web.app.toolbox.lacks(entry).map(|lack| missing(&lack)),
    }
}

/// What the tool needs, and the page that helps.
fn missing(lack: &Lack) -> Trouble {
    let remedy = match lack {
        Lack::Notifier => Some(Remedy::phones()),
        Lack::Demo | Lack::Other(_) => None,
    };
    Trouble { why: lack.said(), remedy }
}

fn grid(ctx: &PageContext<'_>, cards: &[Card<'_>]) -> Markup {
    html! {
        p class="lead quiet" {
            (rich(&said::tools_lead(ctx.lang.settings_agent()), ctx.lang, |page| html! { a href="/settings/agent" { (page) } }))
        }
        ul class="tools-grid" data-testid="tools-grid" aria-label=(ctx.lang.settings_tools()) {
            @for card in cards {
                li class="tool-card" data-testid="tool-card" data-tool=(card.tool) {
                    (toggle(ctx, card))
                    @if let Some(remedy) = card.lacks.as_ref().and_then(|lacks| lacks.remedy.as_ref()) { (remedy.link(ctx.lang)) }
                }
            }
        }
    }
}

/// The switch of a tool; the whole card is the button.
fn toggle(ctx: &PageContext<'_>, card: &Card<'_>) -> Markup {
    let (name, about) = (format!("tool-{}", card.tool), format!("tool-{}-about", card.tool));
    let content = html! {
        input type="hidden" name="key" value=(format!("tool_enabled_{}", card.tool));
        input type="hidden" name="value" value=(!card.on);
        button type="submit" role="switch" aria-checked=(card.on) aria-labelledby=(name) aria-describedby=(about) {
            strong id=(name) { (card.title) }
            span class="track" {}
            span class="about" id=(about) {
                span { (card.about) }
                @if let Some(lacks) = &card.lacks { span class="lacks" data-testid="tool-lacks" { (lacks.why.to(ctx.lang)) } }
            }
        }
    };
    form(ctx, "tools", "/settings/set", "", &content)
}

/// Which services tools use, which folders they may open files from, and how much of a result the model sees.
fn services(ctx: &PageContext<'_>) -> Markup {
    let search: [(&str, &str); 4] =
        [("duckduckgo", "DuckDuckGo"), ("searxng", "SearXNG"), ("brave", "Brave"), ("tavily", "Tavily")];
    let location = [("ipwho.is", "ipwho.is"), ("ipapi.co", "ipapi.co")];
    let lang = ctx.lang;
    html! {
        (choice(ctx, "services", &Choice {
            setting: &WEB_SEARCH_BACKEND, label: lang.tools_search(), options: &search, testid: "search-backend",
        }))
        @if let Some(wanted) = wanted(ctx) { (field(ctx, "services", &wanted)) }
        (choice(ctx, "services", &Choice {
            setting: &LOCATION_SERVICE, label: lang.tools_location(), options: &location, testid: "location-service",
        }))
        (field(ctx, "services", &Field {
            setting: &OPEN_URL_FOLDERS, label: lang.tools_folders(), help: lang.tools_folders_help(), testid: "open-folders",
        }))
        (field(ctx, "services", &Field {
            setting: &TOOL_RESULT_LIMIT, label: lang.tools_limit(), help: lang.tools_limit_help(), testid: "result-limit",
        }))
    }
}

/// What the chosen search service needs: an address or a key.
fn wanted(ctx: &PageContext<'_>) -> Option<Field<'static>> {
    let lang = ctx.lang;
    let (setting, label, help, testid) = match ctx.values.of(&WEB_SEARCH_BACKEND).as_str() {
        "searxng" => {
            (&WEB_SEARCH_SEARXNG_URL, lang.tools_searxng(), lang.tools_searxng_help(), "searxng-url")
        }
        "brave" => (&WEB_SEARCH_BRAVE_KEY, lang.tools_brave_key(), lang.tools_brave_key_help(), "brave-key"),
        "tavily" => {
            (&WEB_SEARCH_TAVILY_KEY, lang.tools_tavily_key(), lang.tools_tavily_key_help(), "tavily-key")
        }
        _ => return None,
    };
    Some(Field { setting, label, help, testid })
}
