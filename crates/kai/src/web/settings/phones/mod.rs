//! The Phones page: paired phones and pairing, which phone or desktop Kai runs on, and what it can do there.

#[cfg_attr(not(feature = "foss"), path = "no_messages.rs")]
mod messages;
#[cfg(feature = "foss")]
mod paired;
#[cfg(feature = "foss")]
mod pairing;

use axum::Router;
use kai_assistant::settings::BRIDGE_TERMUX;
use kai_words::{Lang, Said, said};
use maud::{Markup, html};

use super::context::{Page, PageContext, ProbePhone};
use super::fields::{Choice, choice};
use super::parts::Region;
use crate::app::App;
use crate::failure::Failure;
use crate::web::icons;
use crate::web::remedy::Trouble;
use crate::web::rich::rich;
use crate::web::state::Web;

pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let app = &ctx.web.app;
    if ctx.probe == ProbePhone::Phone {
        messages::ask(app, ctx).await;
    }
    let bridges = bridges(app, ctx.lang);
    let mut regions = messages::paired(ctx).await?;
    regions.extend([
        Region::card(
            "phone",
            ctx.lang.phones_connected(),
            connected(ctx.lang, &bridges, &abilities(app, ctx)),
        )
        .testid("phone-card"),
        Region::card("connect", ctx.lang.phones_connect(), connecting(ctx)).testid("connect-card"),
    ]);
    Ok(regions)
}

/// The cards that lead to a first phone: pairing one, and running Kai on it.
pub(super) async fn for_welcome(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let mut regions = messages::paired(ctx).await?;
    regions.push(Region::card("connect", ctx.lang.phones_connect(), connecting(ctx)).testid("connect-card"));
    Ok(regions)
}

pub(super) fn routes() -> Router<Web> {
    messages::routes()
}

/// Without a script, the page reloads itself while something is going on.
pub(super) fn head(ctx: &PageContext<'_>) -> Markup {
    let moves = matches!(ctx.place.page, Page::Phones | Page::Welcome) && messages::moves(&ctx.web.app);
    html! { @if moves { noscript { meta http-equiv="refresh" content="4"; } } }
}

/// Something that Kai could do through a bridge, and whether it works.
struct Ability {
    what: &'static str,
    stands: Stands,
}

enum Stands {
    /// Works.
    On,
    /// Would work, but is switched off.
    #[cfg_attr(not(feature = "foss"), expect(dead_code, reason = "what this edition has is always wanted"))]
    Off,
    /// Something is missing; says what to do about it, and which page helps.
    Lacks(Trouble),
    /// Not possible on this machine.
    No(&'static str),
}

/// The labels of the bridges that were found, without duplicates.
fn bridges(app: &App, lang: Lang) -> Vec<&'static str> {
    let mut found = messages::bridges(app);
    if crate::machine::in_termux() && app.notifier.is_some() {
        found.push("termux");
    }
    #[cfg(target_os = "linux")]
    if !crate::machine::in_termux() && app.notifier.is_some() && !app.home.is_demo() {
        found.push("desktop");
    }
    let mut named: Vec<&'static str> = found.into_iter().map(|bridge| called(bridge, lang)).collect();
    named.sort_unstable();
    named.dedup();
    named
}

fn called(bridge: &str, lang: Lang) -> &'static str {
    match bridge {
        "termux" => lang.phones_is_termux(),
        "simulated" => lang.phones_is_demo(),
        _ => lang.phones_is_desktop(),
    }
}

fn abilities(app: &App, ctx: &PageContext<'_>) -> Vec<Ability> {
    let mut all = messages::abilities(app, ctx);
    let opener = app.toolbox.entries().iter().find(|entry| entry.tool.name() == "open_url");
    let (shows, opens) = if app.home.is_demo() {
        (Stands::No(ctx.lang.lacks_in_demo()), Stands::No(ctx.lang.lacks_in_demo()))
    } else {
        let mute = Stands::No(ctx.lang.lacks_notifier());
        let shows = if app.notifier.is_some() { Stands::On } else { mute };
        let lacks = opener.and_then(|entry| app.toolbox.lacks(entry));
        (shows, lacks.map_or(Stands::On, |lack| Stands::Lacks(lack.said().into())))
    };
    all.push(Ability { what: ctx.lang.phones_show(), stands: shows });
    all.push(Ability { what: ctx.lang.phones_open(), stands: opens });
    all
}

fn connected(lang: Lang, bridges: &[&str], abilities: &[Ability]) -> Markup {
    html! {
        @if bridges.is_empty() {
            p data-testid="phone-bridge" { (lang.phones_nothing()) }
        } @else {
            ul class="bridges" data-testid="phone-bridge" { @for bridge in bridges { li { (icons::phone()) span { (bridge) } } } }
        }
        ul class="abilities" aria-label=(lang.phones_abilities()) {
            @for Ability { what, stands } in abilities {
                li data-testid="ability" {
                    div class="between" { span { (what) } (mark(stands, lang)) }
                    @match stands {
                        Stands::Lacks(trouble) => p class="remark" { (trouble.render(lang)) },
                        Stands::No(why) => p class="quiet" { (why) },
                        Stands::On | Stands::Off => {}
                    }
                }
            }
        }
    }
}

fn mark(stands: &Stands, lang: Lang) -> Markup {
    html! {
        @match stands {
            Stands::On => span class="tag good" { (lang.phones_ready()) },
            Stands::Off => a class="tag" href="/settings/agent" { (lang.phones_off()) },
            Stands::Lacks(_) => span class="tag bad" { (lang.phones_lacking()) },
            Stands::No(_) => span class="tag" { (lang.phones_not_here()) },
        }
    }
}

/// How to connect a phone or a desktop; lists only ways that exist.
fn connecting(ctx: &PageContext<'_>) -> Markup {
    let lang = ctx.lang;
    let ways = [("auto", lang.phones_auto()), ("on", lang.phones_on()), ("off", lang.phones_never())];
    let code = |sentence: &Said| rich(sentence, lang, |command| html! { code { (command) } });
    html! {
        h3 { (lang.phones_termux()) }
        ol class="steps" {
            li { (lang.phones_step_apps()) }
            li { (code(&said::phones_step_packages("pkg install termux-api rust clang perl make"))) }
            li { (lang.phones_step_build()) }
            li { (code(&said::phones_step_run("kai"))) }
            (messages::last_step(lang))
        }
        h3 { (lang.phones_desktop()) }
        p { (messages::on_desktop(lang)) }
        (messages::remark(lang))
        (choice(ctx, "connect", &Choice {
            setting: &BRIDGE_TERMUX, label: lang.phones_programs(), options: &ways, testid: "bridge-termux",
        }))
        p class="quiet" { (code(&said::phones_from_next_start("kai doctor"))) }
    }
}
